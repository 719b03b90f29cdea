"""A server of this process: who may ask it, where it runs, and how it ends."""

import asyncio
import json
import os
import socket
import threading
from http.client import HTTPConnection

import pytest
from aiohttp import web

from tensorstore_py import SpecError, UnavailableError
from tests.internals import local_server
from tests.runtime.processes import forked, run_script

LocalServer = local_server()


async def hello(request):
    return web.Response(text=f"hello {request.match_info.get('name', '')}")


def start(*routes, **arguments):
    return LocalServer.start(routes or [("GET", "/hello/{name}", hello)], **arguments).result()


def ask(server, path, method="GET", **headers):
    connection = HTTPConnection("127.0.0.1", server.port, timeout=60)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


def test_answers_below_its_token_alone():
    with start() as server:
        path = f"/{server.token}/hello/you"

        assert server.url == f"http://127.0.0.1:{server.port}/{server.token}/"
        assert ask(server, path)[::2] == (200, b"hello you")
        assert ask(server, path, "HEAD")[::2] == (200, b"")
        for wrong in ("/", "/hello/you", f"/{server.token}x/hello/you", "//hello/you", "/%00/"):
            status, headers, body = ask(server, wrong)
            assert status == 404
            assert json.loads(body)["error"] == "there is nothing here"
            assert "Access-Control-Allow-Origin" not in headers
        assert server.token not in repr(server)


def status_of_preflight_without_the_token(server, asked):
    status, headers, _ = ask(server, "/hello/you", "OPTIONS", **asked)
    assert not [name for name in headers if name.startswith("Access-Control")]
    return status


def test_tokens_are_new_each_time():
    with start() as one, start() as other:
        assert one.token != other.token
        assert len(one.token) >= 24


def test_without_a_token_pages_of_others_read_nothing():
    with start(token=False) as server:
        status, headers, _ = ask(server, "/hello/you", Origin="https://evil.example")

        assert status == 200
        assert "Access-Control-Allow-Origin" not in headers


def test_pages_may_read_who_know_the_token():
    with start() as server:
        path = f"/{server.token}/hello/you"
        asked = {"Origin": "https://viewer.example", "Access-Control-Request-Method": "GET"}

        status, headers, _ = ask(server, path, "OPTIONS", **asked)
        assert status == 204
        assert headers["Access-Control-Allow-Origin"] == "*"
        assert headers["Access-Control-Allow-Methods"] == "GET, HEAD"
        assert "Range" in headers["Access-Control-Allow-Headers"]

        asked["Access-Control-Request-Private-Network"] = "true"
        headers = ask(server, path, "OPTIONS", **asked)[1]
        assert headers["Access-Control-Allow-Private-Network"] == "true"
        assert status_of_preflight_without_the_token(server, asked) == 404

        headers = ask(server, path, Origin="https://viewer.example")[1]
        assert headers["Access-Control-Allow-Origin"] == "*"
        assert "ETag" in headers["Access-Control-Expose-Headers"]


def test_origins_that_are_named_may_read_and_no_others():
    with start(cors="https://viewer.example/") as server:
        path = f"/{server.token}/hello/you"

        named = ask(server, path, Origin="https://viewer.example")[1]
        other = ask(server, path, Origin="https://evil.example")[1]
        assert named["Access-Control-Allow-Origin"] == "https://viewer.example"
        assert "Access-Control-Allow-Origin" not in other
        assert named["Vary"] == other["Vary"] == "Origin"


@pytest.mark.parametrize("cors", ["viewer.example", "https://viewer.example/page", "null"])
def test_what_is_no_origin_is_refused(cors):
    with pytest.raises(SpecError, match="origin"):
        start(cors=cors)


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "[", "10.0.0.1"])
def test_names_that_lead_here_by_dns_alone_are_refused(host):
    with start() as server:
        status, _, body = ask(server, f"/{server.token}/hello/you", Host=host)

    assert status in (400, 421)
    assert b"hello" not in body


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:9000", "[::1]:80", "127.0.0.9"])
def test_names_of_this_machine_are_answered(host):
    with start() as server:
        assert ask(server, f"/{server.token}/hello/you", Host=host)[0] == 200


def test_what_changes_something_is_for_own_pages():
    with start(("POST", "/do", hello)) as server:
        path = f"/{server.token}/do"
        own = f"http://127.0.0.1:{server.port}"

        assert ask(server, path, "POST", Origin="https://viewer.example")[0] == 403
        assert ask(server, path, "POST", Origin=own)[0] == 200
        assert ask(server, path, "POST")[0] == 200
        assert ask(server, path)[0] == 405


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (UnavailableError("no answer from /home/me/secret"), 502),
        (PermissionError(13, "denied", "/home/me/secret"), 502),
        (ZeroDivisionError("/home/me/secret"), 500),
        (web.HTTPBadRequest(text="what is wrong"), 400),
    ],
    ids=lambda each: type(each).__name__,
)
def test_failures_are_json_that_tells_no_places(error, status, caplog):
    async def fail(_):
        raise error

    with start(("GET", "/fail", fail)) as server:
        found, headers, body = ask(server, f"/{server.token}/fail")

        assert found == status
        assert headers["Content-Type"].startswith("application/json")
        assert "secret" not in json.loads(body)["error"]
        assert server.token not in caplog.text
    if status >= 500:
        assert "/home/me/secret" in caplog.text


@pytest.mark.parametrize("path", ["\xff", "?" + "a" * 10_000], ids=["bytes", "too_long"])
def test_a_request_that_is_none_is_refused_and_not_logged(path, caplog):
    with start() as server, socket.create_connection(("127.0.0.1", server.port), 60) as client:
        client.sendall(
            f"GET /{server.token}/{path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode("latin-1")
        )

        assert client.recv(12).endswith(b"400")
        assert server.token not in caplog.text


def test_a_handler_whose_client_has_gone_away_is_cancelled():
    begun, cancelled = threading.Event(), threading.Event()

    async def endless(_):
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    with start(("GET", "/endless", endless)) as server:
        with socket.create_connection(("127.0.0.1", server.port)) as client:
            client.sendall(
                f"GET /{server.token}/endless HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
            )
            assert begun.wait(60)

        assert cancelled.wait(60)


def test_a_port_that_is_taken_is_named():
    with start() as server, pytest.raises(UnavailableError, match=f"port {server.port} of"):
        start(port=server.port)


@pytest.mark.parametrize("wrong", [{"port": -1}, {"port": 2**16}, {"token": "a/b"}])
def test_wrong_arguments_are_named(wrong):
    with pytest.raises(SpecError):
        start(**wrong)


async def test_in_a_loop_of_the_users():
    async with await LocalServer.start([("GET", "/hello/{name}", hello)]) as server:
        path = f"/{server.token}/hello/you"
        assert (await asyncio.to_thread(ask, server, path))[2] == b"hello you"

    assert server.closed
    with pytest.raises(ConnectionRefusedError):
        ask(server, "/")


def test_waiting_ends_when_it_is_closed():
    server = start()
    waiting = threading.Thread(target=server.wait)
    waiting.start()

    server.close()
    server.close()

    waiting.join(60)
    assert not waiting.is_alive()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_forked_child_has_none_and_leaves_its_parents_alone():
    out = forked("""
        from urllib.request import urlopen
        from aiohttp import web
        from tests.internals import local_server

        async def hello(request):
            return web.Response(text="hello")

        def start():
            return local_server().start([("GET", "/hello", hello)]).result()

        server = start()
        def child():
            print(server.closed)
            server.close()
            server.wait()
            with start() as own, urlopen(own.url + "hello") as answer:
                print(answer.read())
        in_child(child)
        with urlopen(server.url + "hello") as answer:
            print(answer.read())
    """)

    assert out.split() == ["True", "b'hello'", "b'hello'"]


def test_the_process_ends_with_servers_that_run():
    out = run_script("""
        import socket
        from aiohttp import web
        from tests.internals import local_server

        async def endless(request):
            import asyncio
            await asyncio.Event().wait()

        server = local_server().start([("GET", "/", endless)], token=False).result()
        client = socket.create_connection(("127.0.0.1", server.port))
        client.sendall(b"GET / HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n")
        print("the end")
        client.detach()
    """)

    assert out == "the end\n"


def test_that_aiohttp_is_missing_is_said():
    out = run_script("""
        import sys
        sys.modules["aiohttp"] = None
        import tensorstore_py as ts
        try:
            ts.serve("memory://")
        except ts.UnsupportedError as error:
            print(error)
    """)

    assert 'pip install "tensorstore-py[serve]"' in out
