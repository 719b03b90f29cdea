import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from tensorstore_py._net.exchange import Wire
from tensorstore_py._net.library_answer import LibraryAnswer
from tensorstore_py._net.message import HttpRequest


class Handler:
    """Gives what was received."""

    def __init__(self, *codes):
        self.codes = iter(codes)

    async def read(self):
        code = next(self.codes)
        return SimpleNamespace(code=code, reason="so", headers={"A": "b"}), f"body of {code}"


@pytest.mark.parametrize(
    ("codes", "status"), [((200,), 200), ((100, 103, 404), 404), ((101, 200), 101)]
)
async def test_interim_answers_are_passed_over(codes, status):
    connection: Any = SimpleNamespace(protocol=Handler(*codes))
    closed: list[int] = []

    answer: Any = await LibraryAnswer.of(connection, lambda: closed.append(1))

    assert (answer.status, answer.reason, answer.headers) == (status, "so", {"A": "b"})
    assert answer.content == f"body of {status}"
    answer.release()
    assert not closed
    answer.close()
    assert closed


def test_a_connection_survives_an_answer_in_chunks(run):
    chunked = b"Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n"
    plain = b"Content-Length: 5\r\n\r\nplain"
    connections = []

    async def serve(reader, writer):
        connections.append(writer)
        while head := await reader.readuntil(b"\r\n\r\n"):
            writer.write(b"HTTP/1.1 200 OK\r\n" + (chunked if b"/chunked" in head else plain))

    async def talk():
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        wire = Wire(stall_s=30.0)
        for path in ("chunked", "plain", "chunked", "chunked", "plain"):
            found = await wire.exchange(HttpRequest("GET", f"{url}/{path}", {}))
            assert bytes(found.body) == (b"abcde" if path == "chunked" else b"plain")
        server.close()
        for writer in connections:
            writer.close()

    run(talk)
    assert len(connections) == 1
