"""Connections: made, kept, used again, closed; by address or name, with TLS, through proxies."""

import asyncio
import socket
import ssl
from pathlib import Path

import pytest

from tensorstore_py._net import pool as module
from tensorstore_py._net.failures import Failure, Retryability, connect_failure
from tensorstore_py._net.message import HttpRequest
from tensorstore_py._net.pool import ConnectionPool, close_pool, connection_pool
from tensorstore_py._net.routing import Proxy
from tensorstore_py._net.transport import HttpTransport
from tensorstore_py.errors import FailedPreconditionError, SpecError, UnavailableError
from tensorstore_py.testing import Fault, FaultServer, Reply, WebValues
from tensorstore_py.testing.fault_server import CLOSE
from tests.runtime.processes import run_script

pytestmark = pytest.mark.usefixtures("_direct")
CERTIFICATE = Path(__file__).with_name("certificate.pem")


@pytest.fixture
async def server():
    async with FaultServer(WebValues({"a": b"1"}).handle) as running:
        yield running
        await close_pool()


async def get(server, transport=None, host="127.0.0.1"):
    url = server.url.replace("127.0.0.1", host) + "/a"
    return await (transport or HttpTransport(idle_s=30.0)).attempt(HttpRequest("GET", url, {}))


async def none_are_left():
    for _ in range(10_000):
        if not connection_pool()._connections:
            return
        await asyncio.sleep(0.001)
    raise AssertionError("there are still connections")


async def test_as_many_connections_as_are_needed(server):
    for _ in range(3):
        await asyncio.gather(*(get(server) for _ in range(4)))

    assert server.connections == 4


async def test_the_last_one_used_is_the_first_used_again(server):
    await asyncio.gather(*(get(server) for _ in range(3)))
    for _ in range(4):
        await get(server)

    used = {request.connection for request in server.requests[3:]}
    assert len(used) == 1


async def test_stores_share_them(server):
    await get(server, HttpTransport(idle_s=30.0))
    await get(server, HttpTransport(idle_s=10.0))

    assert server.connections == 1


async def test_what_is_idle_for_too_long_is_closed(server, monkeypatch):
    monkeypatch.setattr(module, "KEEP_ALIVE_S", 0.01)
    await asyncio.gather(*(get(server) for _ in range(3)))
    assert len(connection_pool()._connections) == 3

    await none_are_left()

    assert (await get(server)).status == 200
    assert server.connections == 4


async def test_what_is_too_old_is_not_used(server, monkeypatch):
    await get(server)
    monkeypatch.setattr(module, "KEEP_ALIVE_S", 0.0)
    await get(server)

    assert server.connections == 2


@pytest.mark.usefixtures("server")
async def test_a_connection_that_the_server_closed_is_not_used():
    async def closes(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(Reply(200, b"1").head() + b"1")
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(closes, "127.0.0.1", 0) as other:
        port = other.sockets[0].getsockname()[1]
        request = HttpRequest("GET", f"http://127.0.0.1:{port}/a", {})
        for _ in range(3):
            assert (await HttpTransport(idle_s=30.0).attempt(request)).status == 200
            await none_are_left()


async def test_a_connection_survives_an_answer_in_chunks(server):
    async def act(at):
        at.serve()
        head = Reply(200, b"", {"Transfer-Encoding": "chunked"}).head(-1)
        await at.send(head + b"5\r\nabcde\r\n0\r\n\r\n")
        return True

    server.plan = [Fault("chunks", act)] * 2
    assert [bytes((await get(server)).body) for _ in range(3)] == [b"abcde", b"abcde", b"1"]
    assert server.connections == 1


async def test_all_are_closed_with_the_pool(server):
    await asyncio.gather(*(get(server) for _ in range(3)))
    pool = connection_pool()
    kept = list(pool._connections)
    await close_pool()

    assert not pool._connections
    assert not any(connection.is_reusable for connection in kept)
    await close_pool()
    assert connection_pool() is not pool


async def test_one_that_is_in_use_at_the_end_is_closed(server):
    server.plan = [CLOSE]
    with pytest.raises(Exception, match="closed"):
        await get(server)

    await none_are_left()


@pytest.mark.parametrize("stage", ["connecting", "waiting"])
async def test_a_cancelled_request_leaves_no_connection(stage):
    began, taken = asyncio.Event(), asyncio.Event()

    async def forever(reader, writer):
        began.set()
        await reader.read()  # until the client is gone
        writer.close()
        taken.set()

    async with await asyncio.start_server(forever, "127.0.0.1", 0) as silent:
        port = silent.sockets[0].getsockname()[1]
        scheme = "https" if stage == "connecting" else "http"
        request = HttpRequest("GET", f"{scheme}://127.0.0.1:{port}/a", {})
        reading = asyncio.ensure_future(HttpTransport(idle_s=30.0).attempt(request))
        await began.wait()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        await none_are_left()
        await taken.wait()


@pytest.mark.parametrize("given", [{}, {"authorization": "Bearer 1"}])
async def test_names_and_passwords_of_a_url_are_sent_as_a_header(server, given):
    url = server.url.replace("127.0.0.1", "me:p%40ss@127.0.0.1") + "/a"

    await HttpTransport(idle_s=30.0).attempt(HttpRequest("GET", url, given))

    sent = server.requests[0].headers
    assert sent["authorization"] == given.get("authorization", "Basic bWU6cEBzcw==")
    assert "@" not in sent["host"]


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("https://example.org:443", "example.org"),
        ("http://example.org:443", "example.org:443"),
        ("http://me:secret@Example.org", "example.org"),
        ("http://[::1]:8", "[::1]:8"),
        ("http://b\u00fccher.example", "xn--bcher-kva.example"),
    ],
)
async def test_what_a_server_is_called(origin, host):
    assert ConnectionPool().endpoint(origin).host == host


@pytest.mark.parametrize("origin", ["http://", "http://[::1", "http://h:99999", "ftp://h",
                                    "http://a..\u00fc"])  # fmt: skip
async def test_what_is_no_origin_is_an_error(origin):
    with pytest.raises(Failure, match="URL is not valid") as failure:
        ConnectionPool().endpoint(origin)

    assert failure.value.error is SpecError


async def test_a_name_is_looked_up_once_for_all_connections(server, monkeypatch):
    asked = []
    loop = asyncio.get_running_loop()

    async def getaddrinfo(host, port, **_):
        asked.append(host)
        await asyncio.sleep(0)
        dead = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 9))
        return [dead, (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(loop, "getaddrinfo", getaddrinfo)

    await asyncio.gather(*(get(server, host="data.example") for _ in range(5)))
    await get(server, host="data.example")

    assert asked == ["data.example"]
    # Nothing listens at the first address, so the next one is tried.
    assert server.connections == 5


@pytest.mark.usefixtures("server")
async def test_a_name_that_is_none_is_an_error_and_asked_for_again(monkeypatch):
    asked = []

    async def getaddrinfo(host, _port, **_):
        asked.append(host)
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", getaddrinfo)
    request = HttpRequest("GET", "http://nowhere.example/a", {})
    for _ in range(2):
        with pytest.raises(Failure, match=r"resolved \(Name or service not known\)") as failure:
            await HttpTransport(idle_s=30.0).attempt(request)
        assert not failure.value.may_have_run

    assert len(asked) == 2


@pytest.mark.parametrize(
    ("raised", "to_proxy", "words", "error", "retryability"),
    [
        (ssl.SSLCertVerificationError("bad"), False, "not trusted.*TENSORSTORE_CA_BUNDLE",
         FailedPreconditionError, Retryability.NONE),
        (ssl.SSLError(1, "wrong version"), False, "secure connection.*wrong version",
         UnavailableError, Retryability.LITTLE),
        (socket.gaierror(-2, "Name or service not known"), False, "could not be resolved",
         UnavailableError, Retryability.LITTLE),
        (OSError(111, "Connection refused"), False, "no connection could be made.*refused",
         UnavailableError, Retryability.FULL),
        (OSError("Multiple exceptions: a, b"), False, "Multiple exceptions",
         UnavailableError, Retryability.FULL),
        (OSError(111, "Connection refused"), True, "the proxy could not be reached.*HTTPS_PROXY",
         UnavailableError, Retryability.LITTLE),
        (UnicodeError("label too long"), False, "URL is not valid", SpecError, Retryability.NONE),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_why_there_is_no_connection(raised, to_proxy, words, error, retryability):
    failure = connect_failure(raised, to_proxy=to_proxy)

    assert (failure.error, failure.retryability) == (error, retryability)
    assert not failure.may_have_run
    with pytest.raises(Failure, match=words):
        raise failure


async def test_a_loop_of_another_kind_has_a_receive_buffer_for_each(server, monkeypatch):
    await close_pool()
    monkeypatch.setattr(asyncio, "SelectorEventLoop", str)
    await asyncio.gather(*(get(server) for _ in range(3)))

    assert len({id(each._receive_buffer) for each in connection_pool()._connections}) == 3


def test_loops_do_not_share():
    async def own():
        made = connection_pool()
        assert connection_pool() is made
        await close_pool()
        return made

    assert asyncio.run(own()) is not asyncio.run(own())


def test_the_libraries_are_imported_at_the_first_request():
    out = run_script("""
        import sys
        import tensorstore_py as ts
        store = ts.KvStore.open("http://127.0.0.1:9/").result()
        print({"httptools", "aiohappyeyeballs", "aiohttp"} & set(sys.modules))
    """)

    assert out == "set()\n"


def test_the_pool_is_closed_at_exit_without_complaints():
    out = run_script("""
        import warnings
        warnings.simplefilter("error")
        import tensorstore_py as ts
        from tensorstore_py.testing import FaultServer, WebValues
        server = FaultServer(WebValues({"a": b"1"}).handle)
        with server.running() as url:
            print(ts.KvStore.open(url).result()["a"])
    """)

    assert out == "b'1'\n"


def test_a_forked_child_has_its_own():
    out = run_script("""
        import os
        import tensorstore_py as ts
        from tensorstore_py.testing import FaultServer, WebValues
        server = FaultServer(WebValues({"/a": b"1", "a": b"1"}).handle)
        with server.running() as url:
            store = ts.KvStore.open(url).result()
            print(store["a"], flush=True)
            child = os.fork()
            if child == 0:
                print(store["a"], flush=True)
                os._exit(0)
            _, status = os.waitpid(child, 0)
            print(status, store["a"], len(server.requests), server.connections)
    """)

    assert out == "b'1'\nb'1'\n0 b'1' 3 2\n"


def test_what_a_forked_child_ends_with_is_not_its_parents():
    out = run_script("""
        import gc, os, sys, threading
        import tensorstore_py as ts
        from tensorstore_py._runtime.execution import start
        from tensorstore_py.testing import FaultServer, WebValues
        from tensorstore_py.testing.fault_server import slow
        arrived = threading.Event()
        def plan(request):
            if request.target == "/slow":
                arrived.set()
                return slow(5, 0.05)
        server = FaultServer(WebValues({"a": b"1", "slow": b"23456"}).handle, plan)
        start(False, server.__aenter__).result()
        store = ts.KvStore.open(server.url).result()
        print(store["a"], flush=True)
        under_way = store.read("slow")
        arrived.wait()
        child = os.fork()
        if child == 0:
            gc.collect()
            sys.exit(0)  # everything is finalised
        _, status = os.waitpid(child, 0)
        print(status, under_way.result().value, store["a"])
        print([request.connection for request in server.requests])
        start(False, lambda: server.__aexit__(None, None, None)).result()
    """)

    # The connection is still good: nothing was tried again on another one.
    assert out == "b'1'\n0 b'23456' b'1'\n[0, 0, 0]\n"


@pytest.mark.parametrize("begun", [True, False], ids=["the library", "the loop"])
def test_too_many_open_files_at_the_first_request_is_an_error_that_may_pass(begun):
    out = run_script(
        """
        import os, resource
        import tensorstore_py as ts
        from tensorstore_py._runtime.loop import library_loop
        context = ts.Context({"http_request_retries": {"max_retries": 0}})
        store = ts.KvStore.open("http://127.0.0.1:9/", context=context).result()
        if BEGUN:
            library_loop()
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        taken = []
        try:
            while True:
                taken.append(os.open("/dev/null", os.O_RDONLY))
        except OSError:
            pass
        try:
            store.read("a").result()
        except ts.errors.UnavailableError as error:
            print(("a library could not" if BEGUN else "no event loop could") in str(error))
        for each in taken:
            os.close(each)
        try:
            store.read("a").result()
        except ts.errors.UnavailableError as error:
            print("Too many open files" in str(error))
    """.replace("BEGUN", str(begun))
    )

    assert out == "True\nFalse\n"


class TestTls:
    @pytest.fixture
    async def secure(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATE)
        await close_pool()
        async with FaultServer(WebValues({"a": b"1" * 10**6}).handle, tls=context) as running:
            yield running
            await close_pool()

    async def test_a_stranger_is_not_trusted(self, secure):
        with pytest.raises(Failure, match=r"not trusted.*TENSORSTORE_CA_BUNDLE") as failure:
            await get(secure)

        assert secure.requests == []
        assert failure.value.retryability is Retryability.NONE
        await none_are_left()

    @pytest.mark.parametrize("count", [1, 3])
    async def test_unless_the_environment_says_so(self, secure, monkeypatch, count):
        monkeypatch.setenv("TENSORSTORE_CA_BUNDLE", str(CERTIFICATE))

        for _ in range(count):
            assert len((await get(secure)).body) == 10**6
        assert secure.connections == 1

    async def test_a_bundle_that_is_not_there_is_an_error(self, secure, monkeypatch):
        monkeypatch.setenv("TENSORSTORE_CA_BUNDLE", "/nowhere/bundle.pem")

        with pytest.raises(Failure, match=r"TENSORSTORE_CA_BUNDLE.*No such file"):
            await get(secure)

    @pytest.mark.parametrize("proxy_is_secure", [False, True])
    async def test_through_a_tunnel(self, secure, monkeypatch, proxy_is_secure):
        monkeypatch.setenv("TENSORSTORE_CA_BUNDLE", str(CERTIFICATE))
        asked, ended = [], asyncio.Event()

        async def tunnel(reader, writer):
            head = await reader.readuntil(b"\r\n\r\n")
            asked.append(head)
            place = head.split()[1].decode().rpartition(":")
            there, onward = await asyncio.open_connection("127.0.0.1", int(place[2]))
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")

            async def copy(source, sink):
                while data := await source.read(2**16):
                    sink.write(data)
                sink.close()

            await asyncio.gather(copy(reader, onward), copy(there, writer), return_exceptions=True)
            for end in (onward, writer):
                end.close()
            ended.set()

        context = None
        if proxy_is_secure:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(CERTIFICATE)
        async with await asyncio.start_server(tunnel, "127.0.0.1", 0, ssl=context) as proxy:
            port = proxy.sockets[0].getsockname()[1]
            scheme = "https" if proxy_is_secure else "http"
            monkeypatch.setenv("https_proxy", f"{scheme}://me:secret@127.0.0.1:{port}")
            transport = HttpTransport(idle_s=30.0)
            for _ in range(2):
                assert len((await get(secure, transport)).body) == 10**6
            await close_pool()
            await ended.wait()
            await asyncio.sleep(0)

        (head,) = asked
        assert head.startswith(b"CONNECT 127.0.0.1:")
        assert b"Proxy-Authorization: Basic " in head
        assert [request.connection for request in secure.requests] == [0, 0]
        assert "proxy-authorization" not in secure.requests[0].headers

    async def test_a_tunnel_that_leads_to_no_tls(self, server, monkeypatch):
        async def tunnel(reader, writer):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await reader.read(10)
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            writer.close()

        async with await asyncio.start_server(tunnel, "127.0.0.1", 0) as proxy:
            port = proxy.sockets[0].getsockname()[1]
            endpoint = connection_pool().endpoint(
                "https://data.example", Proxy(f"http://127.0.0.1:{port}")
            )
            assert endpoint.host == "data.example"
            monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{port}")
            request = HttpRequest("GET", "https://data.example/a", {})
            with pytest.raises(Failure, match="secure connection"):
                await HttpTransport(idle_s=30.0).attempt(request)
            await none_are_left()
