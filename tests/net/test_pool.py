import asyncio

import pytest

from tensorstore_py._net import pool as module
from tensorstore_py._net.exchange import Wire
from tensorstore_py._net.message import HttpRequest
from tensorstore_py._net.sessions import close_session, lines
from tensorstore_py.testing import FaultServer, Reply, WebValues
from tensorstore_py.testing.fault_server import CLOSE

pytestmark = pytest.mark.usefixtures("_direct")


@pytest.fixture
async def server():
    async with FaultServer(WebValues({"a": b"1"}).handle) as running:
        yield running
        await close_session()


async def get(server, wire=None, host="127.0.0.1"):
    url = server.url.replace("127.0.0.1", host) + "/a"
    return await (wire or Wire(stall_s=30.0)).exchange(HttpRequest("GET", url, {}))


async def none_are_left():
    for _ in range(10_000):
        if not lines()._lines:
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
    await get(server, Wire(stall_s=30.0))
    await get(server, Wire(stall_s=10.0))

    assert server.connections == 1


async def test_what_rests_too_long_is_closed(server, monkeypatch):
    monkeypatch.setattr(module, "KEEP_ALIVE_S", 0.01)
    await asyncio.gather(*(get(server) for _ in range(3)))
    assert len(lines()._lines) == 3

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
        url = f"http://127.0.0.1:{port}/a"
        for _ in range(3):
            assert (await Wire(stall_s=30.0).exchange(HttpRequest("GET", url, {}))).status == 200
            await none_are_left()


async def test_all_are_closed_with_the_session(server):
    await asyncio.gather(*(get(server) for _ in range(3)))
    kept = list(lines()._lines)
    await close_session()

    assert not any(line.is_usable for line in kept)


async def test_one_that_is_in_use_at_the_end_is_closed(server):
    server.plan = [CLOSE]
    with pytest.raises(Exception, match="closed"):
        await get(server)

    assert not lines()._lines


async def test_names_and_passwords_are_the_librarys_business(server):
    response = await get(server, host="me:secret@127.0.0.1")

    assert response.status == 200
    assert server.requests[0].headers["authorization"].startswith("Basic ")
    assert lines().destination("http://me:secret@127.0.0.1") is None
    assert lines().destination("http://b\u00fccher.example") is None
    assert lines().destination("http://") is None


async def test_the_default_port_is_not_said():
    try:
        found = lines().destination("https://example.org:443")
        assert found is not None
        assert found.host == "example.org"
    finally:
        await close_session()


async def test_a_loop_of_another_kind_has_a_desk_for_each(server, monkeypatch):
    await close_session()
    monkeypatch.setattr(module, "asyncio", _NoSelectors)
    await asyncio.gather(*(get(server) for _ in range(3)))

    assert len({id(line._desk) for line in lines()._lines}) == 3


class _NoSelectors:
    get_running_loop = staticmethod(asyncio.get_running_loop)

    class SelectorEventLoop:
        pass
