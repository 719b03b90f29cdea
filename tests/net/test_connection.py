"""A connection between fakes: every way in which a response may arrive, byte by byte."""

import asyncio
import tracemalloc
from typing import Any

import pytest

from tensorstore_py._interface.byte_range import WHOLE, ByteRange
from tensorstore_py._net import connection as module
from tensorstore_py._net.connection import PIECE, HttpConnection, ReceiveBuffer
from tensorstore_py._net.failures import Failure
from tensorstore_py._net.idle_timeout import IdleTimeouts
from tensorstore_py.errors import DataLossError, OutOfRangeError, UnavailableError

BODY = bytes(range(200))
HEAD = b'HTTP/1.1 200 OK\r\nContent-Length: 200\r\nETag: "1"\r\n\r\n'
LONG = bytes(range(250)) * 300  # more than what is received whole although a part is wanted
CLOSES = "closes"


class Transport:
    """The loop's side: has what was written, and brings what is given, as a loop does."""

    def __init__(self, protocol: HttpConnection) -> None:
        self.protocol = protocol
        self.written = bytearray()
        self.is_closed = False
        self.unsent = 0

    def write(self, data):
        self.written += data

    def get_write_buffer_size(self):
        return self.unsent

    def is_closing(self):
        return self.is_closed

    def abort(self):
        self.is_closed = True

    def bring(self, data, size=2**20):
        for at in range(0, len(data), size):
            piece = data[at : at + size]
            while piece:
                space = self.protocol.get_buffer(-1)
                count = min(len(space), len(piece))
                assert count > 0
                space[:count] = piece[:count]
                self.protocol.buffer_updated(count)
                piece = piece[count:]


class Talk:
    """One connection, and requests over it."""

    def __init__(self, buffer_size=2**10):
        self.lost: list[HttpConnection] = []
        loop = asyncio.get_running_loop()
        self.connection = HttpConnection(loop, ReceiveBuffer(buffer_size), self.lost.append)
        self.transport = Transport(self.connection)
        given: Any = self.transport
        self.connection.connection_made(given)
        self.idle = IdleTimeouts(30).watch()
        self.idle.loop = loop

    def request(self, method="GET", byte_range=WHOLE, unpack=False):
        return self.connection.request(b"request", method, byte_range, unpack, self.idle)


def answer(*headers: str, status="200 OK", body=b"", version="1.1"):
    return "\r\n".join([f"HTTP/{version} {status}", *headers, "", ""]).encode() + body


def chunked(body: bytes, size=7000, end=b"0\r\n\r\n"):
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + end


IN_CHUNKS = "Transfer-Encoding: chunked"
PART = "206 Partial Content"


@pytest.mark.parametrize("buffer_size", [1, 7, len(HEAD), len(HEAD) + 1, 2**10])
@pytest.mark.parametrize("size", [1, 2, 3, 50, 51, 52, 53, 54, 100, 10_000])
async def test_an_answer_may_come_in_any_pieces(buffer_size, size):
    talk = Talk(buffer_size)
    for _ in range(2):
        received = talk.request()
        talk.transport.bring((HEAD + BODY)[:-1], size)
        assert not received.done()
        talk.transport.bring(BODY[-1:])
        response = await received

        assert bytes(response.body) == BODY
        assert (response.status, response.headers["ETag"], response.size) == (200, '"1"', 200)
        assert talk.connection.is_reusable
        talk.connection.rest(0.0)

    assert talk.transport.written == b"requestrequest"
    assert not talk.transport.is_closed


@pytest.mark.parametrize("size", [1, 13, 2**20])
@pytest.mark.parametrize(
    ("byte_range", "sent", "expected", "is_reusable"),
    [
        (WHOLE, answer(IN_CHUNKS, body=chunked(LONG)), LONG, True),
        (WHOLE, answer(IN_CHUNKS, body=chunked(b"", end=b"0\r\nTrailer: a\r\n\r\n")), b"", True),
        (WHOLE, answer(IN_CHUNKS, body=chunked(BODY, 3)), BODY, True),
        (WHOLE, answer("transfer-encoding: Chunked", "connection: close", body=chunked(BODY)),
         BODY, False),
        (WHOLE, answer(f"Content-Length: {len(BODY)}", version="1.0", body=BODY), BODY, False),
        (WHOLE, answer("Content-Length: 200", "Connection: Close", body=BODY), BODY, False),
        (WHOLE, answer("Content-Length: 200", "Connection: keep-alive", body=BODY), BODY, True),
        (WHOLE, answer("Content-Length: 5", "X: a\x01", body=b"12345"), b"12345", True),
        (WHOLE, b"HTTP/1.1 200 OK\nContent-Length: 5\n\nabcde", b"abcde", True),
        (WHOLE, b"HTTP/1.1 200\r\nContent-Length: 5\r\n\r\n\r\n\r\na", b"\r\n\r\na", True),
        (ByteRange(5, 9), answer(IN_CHUNKS, body=chunked(LONG)), LONG[5:9], False),
        (ByteRange(70_000, 75_000), answer(IN_CHUNKS, body=chunked(LONG)), LONG[70_000:], False),
        (ByteRange(70_000), answer(IN_CHUNKS, body=chunked(LONG)), LONG[70_000:], True),
        (ByteRange(-9), answer(IN_CHUNKS, body=chunked(LONG)), LONG[-9:], True),
        (ByteRange(5, 9), answer(IN_CHUNKS, "Content-Range: bytes 5-8/300", status=PART,
                                 body=chunked(LONG[5:9])), LONG[5:9], True),
        (ByteRange(5, 9), answer("Content-Range: bytes 5-8/300", "Content-Length: 4", status=PART,
                                 body=LONG[5:9]), LONG[5:9], True),
        (ByteRange(5, 9), answer("Content-Length: 200", body=BODY), BODY[5:9], True),
        (ByteRange(9, 99), answer("Content-Length: 75000", body=LONG), LONG[9:99], False),
        (ByteRange(9, 75_000), answer("Content-Length: 75000", body=LONG), LONG[9:], True),
        (ByteRange(9, 9), answer("Content-Range: bytes */5", "Content-Length: 2", status="416 No",
                                 body=b"no"), None, True),
        (ByteRange(5, 5), answer("Content-Range: bytes */5", "Content-Length: 2", status="416 No",
                                 body=b"no"), b"", True),
        (ByteRange(5, 5), answer("Content-Range: bytes */5", IN_CHUNKS, status="416 No",
                                 body=chunked(b"no")), b"", False),
    ],
)  # fmt: skip
async def test_exactly_what_is_wanted_is_received(byte_range, sent, expected, is_reusable, size):
    talk = Talk(2**12)
    received = talk.request(byte_range=byte_range)
    talk.transport.bring(sent, size)

    if expected is None:
        with pytest.raises(Failure, match="outside"):
            await received
        return
    response = await received
    assert bytes(response.body) == expected
    # What follows the wanted part may have come with it, or not.
    if is_reusable or size == 1:
        assert talk.connection.is_reusable is is_reusable


@pytest.mark.parametrize(
    ("byte_range", "sent", "words", "error"),
    [
        (WHOLE, answer(body=BODY), "neither", DataLossError),
        (ByteRange(5), answer(body=BODY), "neither", DataLossError),
        (ByteRange(5, 300), answer(body=BODY), "neither", DataLossError),
        (WHOLE, answer("Content-Length: 201", body=BODY), "ended within", UnavailableError),
        (WHOLE, answer(IN_CHUNKS, body=chunked(BODY, end=b"")), "ended within", UnavailableError),
        (ByteRange(5, 300), answer(IN_CHUNKS, body=chunked(BODY)), "outside", OutOfRangeError),
        (ByteRange(5, 11), answer("Content-Range: bytes 5-10/300", status=PART, body=b"1234"),
         "4 of 6 bytes", UnavailableError),
        (ByteRange(5, 11), answer("Content-Range: bytes 5-10/300", status=PART, body=b"1234567"),
         "more than it said", DataLossError),
        (ByteRange(5, 11), answer("Content-Range: bytes 5-10/300", IN_CHUNKS, status=PART,
                                  body=chunked(b"1234")), "4 of 6 bytes", UnavailableError),
        (ByteRange(0, 5), answer("Content-Range: bytes 5-9/20", "Content-Length: 5", status=PART,
                                 body=b"abcde"), "another part", DataLossError),
        (WHOLE, b"no HTTP at all\r\n\r\n", "not HTTP", UnavailableError),
        (WHOLE, b"SSH-2.0-OpenSSH\r\n", "not HTTP", UnavailableError),
        (WHOLE, b"HTTP/1.1 2000 OK\r\n\r\n", "not HTTP", UnavailableError),
        (WHOLE, b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "not HTTP", UnavailableError),
        (WHOLE, answer("Content-Length: 5", "content-length: 6"), "not HTTP", UnavailableError),
        (WHOLE, answer("Content-Length: 5", IN_CHUNKS), "not HTTP", UnavailableError),
        (WHOLE, answer(IN_CHUNKS, body=b"nonsense\r\n"), "not HTTP", UnavailableError),
        *((WHOLE, answer(f"Content-Length: {length}"), "not HTTP", UnavailableError)
          for length in ("+5", "5, 5", "-5", "\xd9\xa5", "1" * 21, "0x5")),
        (WHOLE, answer("Upgrade: x", "Connection: upgrade", status="101 Go"), "101",
         DataLossError),
        (WHOLE, b"HTTP/1.1 200 OK\r\nA: " + b"a" * 2**19, "without an end", UnavailableError),
        (WHOLE, b"HTTP/1.1 200 OK\r\n" + b"A: a\r\n" * 2**17, "without an end", UnavailableError),
        (WHOLE, answer(status="100 Continue") * 2**15, "without an end", UnavailableError),
        (WHOLE, answer(IN_CHUNKS, body=b"1;" + b"a" * 2**20), "without an end", UnavailableError),
        (WHOLE, answer(IN_CHUNKS, body=b"0\r\n" + b"A: a\r\n" * 2**17), "without an end",
         UnavailableError),
    ],
)  # fmt: skip
@pytest.mark.parametrize("size", [5, 2**20])
async def test_a_broken_answer_is_a_failure(byte_range, sent, words, error, size):
    talk = Talk(2**12)
    received = talk.request(byte_range=byte_range)
    talk.transport.bring(sent, size)
    talk.connection.connection_lost(None)

    with pytest.raises(Failure, match=words) as failure:
        await received
    assert failure.value.error is error
    assert not talk.connection.is_reusable


async def test_a_value_becomes_bytes_without_a_copy():
    """The public API promises `bytes`, which it then has not to make of something else."""
    talk = Talk()
    received = talk.request()
    talk.transport.bring(HEAD + BODY[:50])
    talk.transport.bring(BODY[50:])

    assert type((await received).body) is bytes


async def test_a_loop_may_hold_on_to_what_it_filled():
    talk = Talk()
    received = talk.request()
    talk.transport.bring(HEAD + BODY[:50])
    space = talk.connection.get_buffer(-1)
    with memoryview(space) as held:
        held[:150] = BODY[50:]
        with memoryview(held):
            talk.connection.buffer_updated(150)

            assert bytes((await received).body) == BODY


@pytest.mark.parametrize("cut", [1, 40, len(HEAD), len(HEAD) + 1, len(HEAD) + 199])
@pytest.mark.parametrize("extra", [b"x", HEAD, b"HTTP"])
async def test_more_than_was_said_is_noticed(cut, extra):
    talk = Talk()
    received = talk.request()
    whole = HEAD + BODY + extra
    talk.transport.bring(whole[:cut])
    talk.transport.bring(whole[cut:])

    with pytest.raises(Failure, match="more than it said"):
        await received
    assert not talk.connection.is_reusable


async def test_more_than_was_said_is_noticed_until_the_response_is_taken():
    talk = Talk()
    received = talk.request()
    talk.transport.bring(HEAD + BODY)
    talk.transport.bring(b"HTTP")
    await received

    assert talk.connection.is_contradicted
    assert not talk.connection.is_reusable


async def test_what_comes_without_a_request_ends_the_connection():
    talk = Talk()
    received = talk.request()
    talk.transport.bring(HEAD + BODY)
    await received
    talk.connection.rest(0.0)
    assert talk.connection.is_idle

    talk.transport.bring(b"HTTP/1.1 408 Too Slow\r\n\r\n")

    assert talk.transport.is_closed
    assert not talk.connection.is_reusable


@pytest.mark.parametrize(
    ("method", "sent", "is_reusable"),
    [
        ("HEAD", answer("Content-Length: 200"), True),
        ("HEAD", answer("Content-Length: 200", IN_CHUNKS.replace("T", "X-T")), True),
        ("HEAD", answer("Content-Length: 200", "Connection: close"), False),
        ("HEAD", answer("Content-Length: 1", body=b"n"), False),
        ("GET", answer(status="204 No Content"), True),
        ("GET", answer("Content-Length: 200", status="304 Not Modified"), True),
        ("GET", answer("Content-Length: 1", status="304 Not Modified", body=b"n"), False),
        ("CONNECT", answer(status="200 Established"), False),
    ],
)
async def test_some_answers_have_no_body(method, sent, is_reusable):
    talk = Talk()
    received = talk.request(method)
    talk.transport.bring(sent)
    response = await received

    assert (bytes(response.body), talk.connection.window) == (b"", None)
    assert talk.connection.is_reusable is is_reusable


@pytest.mark.parametrize("size", [9, 2**20])
@pytest.mark.parametrize(
    ("sent", "body"),
    [
        (answer("Content-Length: 5", status="503 Later", body=b"later"), b"later"),
        (answer(IN_CHUNKS, status="503 Later", body=chunked(b"later")), b"later"),
        (answer(status="503 Later", body=b"later"), b"later"),
        (answer(IN_CHUNKS, status="503 Later", body=chunked(LONG)), LONG[: 2**16]),
        (answer("Content-Length: 75000", status="503 Later", body=LONG), LONG[: 2**16]),
        (answer("Content-Length: 1", status="404 Not Found", body=b"no"), b"n"),
    ],
)
async def test_of_an_error_there_is_the_beginning_of_its_text(sent, body, size):
    talk = Talk(2**12)
    received = talk.request()
    talk.transport.bring(sent, size)
    talk.connection.connection_lost(None)
    response = await received

    assert (bytes(response.body), talk.connection.window) == (body, None)


async def test_of_what_is_stored_compressed_everything_is_received():
    talk = Talk()
    received = talk.request(byte_range=ByteRange(1, 3), unpack=True)
    talk.transport.bring(answer("Content-Encoding: gzip", "Content-Length: 5", body=b"abcde"))
    assert bytes((await received).body) == b"abcde"

    talk = Talk()
    received = talk.request(byte_range=ByteRange(1, 3), unpack=True)
    talk.transport.bring(answer("Content-Encoding: gzip", status=PART))
    with pytest.raises(Failure, match="gzip"):
        await received


async def test_headers_are_found_in_any_case_and_the_first_counts():
    talk = Talk()
    received = talk.request()
    talk.transport.bring(
        b'HTTP/1.1 200 \r\nContent-Length: 0\r\nETag:\t"a b" \r\nX:\r\nx-name: caf\xc3\xa9 \xff\r\n'
        b"X-Name: other\r\n\r\n"
    )
    response = await received

    assert response.reason == ""
    assert dict(response.headers) == {
        "content-length": "0",
        "etag": '"a b"',
        "x": "",
        "x-name": "café \udcff",
    }
    assert "X-NAME" in response.headers
    assert response.headers.get("other", "none") == "none"


async def test_a_large_body_is_not_believed_in_before_it_comes(monkeypatch):
    monkeypatch.setattr(module, "CREDIT", 1000)
    body = bytes(range(251)) * 40
    talk = Talk(100)
    received = talk.request()
    talk.transport.bring(answer(f"Content-Length: {len(body)}", body=body[:10]))
    assert len(talk.connection.get_buffer(-1)) < 1001

    talk.transport.bring(body[10:])

    assert bytes((await received).body) == body


@pytest.mark.parametrize("error", [None, ConnectionResetError(104, "Connection reset by peer")])
@pytest.mark.parametrize("count", [0, 5, len(HEAD) + 5])
async def test_a_lost_connection_is_a_failure(error, count):
    talk = Talk()
    received = talk.request()
    talk.transport.bring((HEAD + BODY)[:count])
    talk.connection.connection_lost(error)

    words = "within the answer" if count else "closed it" if error is None else "reset by peer"
    with pytest.raises(Failure, match=words) as failure:
        await received
    assert failure.value.may_have_run
    assert failure.value.is_prompt is (count == 0)
    assert talk.lost == [talk.connection]
    assert not talk.connection.is_reusable


async def test_a_connection_that_is_lost_already_is_noticed():
    talk = Talk()
    talk.connection.connection_lost(None)
    assert talk.lost

    with pytest.raises(Failure, match="lost"):
        await talk.request()
    assert not talk.transport.written


async def test_no_log_of_a_failure_that_was_never_awaited():
    complaints = []
    asyncio.get_running_loop().set_exception_handler(lambda _, told: complaints.append(told))
    talk = Talk()
    received = talk.request()
    talk.connection.connection_lost(None)
    talk.connection.close()
    del received, talk

    await asyncio.sleep(0)
    assert not complaints


async def test_a_body_leaves_at_the_pace_of_the_connection():
    talk = Talk()
    received = talk.request("PUT")
    part = bytes(3 * PIECE)
    sending = asyncio.ensure_future(talk.connection.send(part))
    talk.connection.pause_writing()
    await asyncio.sleep(0)
    assert len(talk.transport.written) == len(b"request")

    talk.connection.resume_writing()
    await sending
    assert len(talk.transport.written) == len(b"request") + len(part)

    talk.transport.bring(HEAD + BODY)
    await received
    assert talk.connection.is_reusable


@pytest.mark.parametrize(
    "sent", [HEAD + BODY, answer(IN_CHUNKS, status="403 No", body=chunked(b"no"))]
)
async def test_an_early_answer_ends_the_sending(sent):
    talk = Talk()
    received = talk.request("PUT")
    talk.connection.pause_writing()
    sending = asyncio.ensure_future(talk.connection.send(bytes(3 * PIECE)))
    await asyncio.sleep(0)

    talk.transport.bring(sent)
    await sending
    await received

    assert not talk.connection.is_reusable


async def test_a_lost_connection_ends_the_sending():
    talk = Talk()
    received = talk.request("PUT")
    talk.connection.pause_writing()
    sending = asyncio.ensure_future(talk.connection.send(bytes(PIECE)))
    await asyncio.sleep(0)

    talk.connection.connection_lost(BrokenPipeError(32, "Broken pipe"))
    await sending

    with pytest.raises(Failure, match="Broken pipe"):
        await received


async def test_what_is_on_its_way_out_is_progress():
    talk = Talk()
    talk.transport.unsent = 1000
    talk.request("PUT")
    idle = talk.idle
    idle.moved = 0.0
    idle.look()
    assert idle.moved == 0.0
    talk.transport.unsent = 900
    idle.look()
    assert idle.moved > 0.0


@pytest.mark.parametrize("size", [1, 30, 2**20])
async def test_interim_answers_are_skipped_and_the_request_goes_on(size):
    talk = Talk()
    received = talk.request("PUT")
    talk.connection.pause_writing()
    part = bytes(3 * PIECE)
    sending = asyncio.ensure_future(talk.connection.send(part))
    await asyncio.sleep(0)
    interim = answer(status="100 Continue") + answer("Link: x", status="103 Early Hints")
    talk.transport.bring(interim, size)
    assert not received.done()

    talk.connection.resume_writing()
    await sending
    assert len(talk.transport.written) == len(b"request") + len(part)
    talk.transport.bring(interim + HEAD + BODY)
    response = await received

    assert bytes(response.body) == BODY
    assert "Link" not in response.headers
    assert talk.connection.is_reusable


async def test_nothing_is_written_to_a_connection_that_closes_meanwhile(monkeypatch):
    talk = Talk()
    written = []

    def write(data):  # the second piece cannot be sent: asyncio closes, and tells so in a moment
        written.append(len(data))
        talk.transport.is_closed = len(written) > 2

    monkeypatch.setattr(talk.transport, "write", write)
    received = talk.request("PUT")
    await talk.connection.send(bytes(100 * PIECE))
    await talk.connection.send(bytes(5))

    assert len(written) == 3
    assert not talk.connection.is_reusable
    talk.connection.connection_lost(ConnectionResetError())
    with pytest.raises(Failure, match="the connection was lost"):
        await received


async def test_trailers_are_not_kept():
    talk = Talk(2**16)
    received = talk.request()
    talk.transport.bring(answer(IN_CHUNKS, body=chunked(bytes(2**20), 2**16, end=b"0\r\n")), 2**16)
    trailers = b"".join(b"T%d: %b\r\n" % (number, bytes(1000)) for number in range(8000))

    tracemalloc.start()
    try:
        talk.transport.bring(trailers, 2**16)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < len(trailers) / 2

    talk.transport.bring(b"\r\n")
    assert len((await received).body) == 2**20
