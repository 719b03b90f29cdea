"""A line between fakes: every way in which an answer may arrive."""

import asyncio
from typing import Any

import pytest

from tensorstore_py._interface.byte_range import WHOLE, ByteRange
from tensorstore_py._net import line as module
from tensorstore_py._net.failures import Failure
from tensorstore_py._net.line import PIECE, Desk, Line
from tensorstore_py._net.stall import StallGuard

BODY = bytes(range(200))
HEAD = b'HTTP/1.1 200 OK\r\nContent-Length: 200\r\nETag: "1"\r\n\r\n'


class Transport:
    """The loop's side: has what was written, and brings what is given, as a loop does."""

    def __init__(self):
        self.written = bytearray()
        self.protocol: Any = None
        self.closed = False
        self.waiting = 0

    def set_protocol(self, protocol):
        self.protocol = protocol

    def write(self, data):
        self.written += data

    def get_write_buffer_size(self):
        return self.waiting

    def is_closing(self):
        return self.closed

    def bring(self, data):
        while data:
            if not isinstance(self.protocol, Line):
                self.protocol.data_received(data)
                return
            space = self.protocol.get_buffer(-1)
            count = min(len(space), len(data))
            assert count > 0
            space[:count] = data[:count]
            self.protocol.buffer_updated(count)
            data = data[count:]


class Handler:
    """The library's protocol."""

    def __init__(self):
        self.received = b""
        self.params = {}
        self.lost = []
        self.should_close = False
        self.paused = False

    def set_response_params(self, **params):
        self.params = params

    def data_received(self, data):
        assert self.params
        self.received += data

    def connection_lost(self, error):
        self.lost.append(error)

    def pause_writing(self):
        self.paused = True


class Connection:
    """The library's handle of both."""

    def __init__(self):
        self.protocol: Any = Handler()
        self.transport: Any = Transport()
        self.closed = 0

    def close(self):
        self.closed += 1
        self.transport.closed = True


class Talk:
    """One line, and an exchange over it."""

    def __init__(self, desk_size=2**10):
        self.connection = Connection()
        self.transport = self.connection.transport
        self.handler = self.connection.protocol
        self.dropped: list[Line] = []
        loop = asyncio.get_running_loop()
        self.line = Line(loop, self.connection, Desk(desk_size), self.dropped.append)  # type: ignore[arg-type]
        self.guard = StallGuard(30)

    def begin(self, method="GET", byte_range=WHOLE, unpack=False):
        watch = self.guard.watch()
        watch.loop = asyncio.get_running_loop()
        return self.line.begin(b"request", method, byte_range, unpack, watch)

    def rest(self):
        self.line.rest(0.0)


@pytest.mark.parametrize("desk_size", [1, 7, len(HEAD), len(HEAD) + 1, 2**10])
@pytest.mark.parametrize("size", [1, 2, 3, 50, 51, 52, 53, 54, 100, 10_000])
async def test_an_answer_may_come_in_any_pieces(desk_size, size):
    talk = Talk(desk_size)
    for _ in range(2):
        answered = talk.begin()
        whole = HEAD + BODY
        for at in range(0, len(whole), size):
            assert not answered.done()
            talk.transport.bring(whole[at : at + size])
        await answered

        assert bytes(talk.line.body) == BODY
        head, cut = talk.line.head, talk.line.cut
        assert head is not None
        assert cut is not None
        assert (head.status, head.fields["ETag"], cut.size) == (200, '"1"', 200)
        assert talk.line.is_usable
        talk.rest()

    assert talk.transport.written == b"requestrequest"
    assert talk.handler.received == b""
    assert not talk.dropped


@pytest.mark.parametrize("cut", [1, 40, len(HEAD), len(HEAD) + 1, len(HEAD) + 199])
async def test_more_than_was_said_is_noticed(cut):
    talk = Talk()
    answered = talk.begin()
    whole = HEAD + BODY + b"x"
    talk.transport.bring(whole[:cut])
    talk.transport.bring(whole[cut:])

    with pytest.raises(Failure, match="more than it said"):
        await answered
    assert not talk.line.is_usable


async def test_more_than_was_said_is_noticed_until_somebody_looks():
    talk = Talk()
    answered = talk.begin()
    talk.transport.bring(HEAD + BODY)
    talk.transport.bring(b"HTTP")
    await answered

    assert talk.line.is_excessive
    assert not talk.line.is_usable


async def test_what_comes_unasked_ends_the_connection():
    talk = Talk()
    answered = talk.begin()
    talk.transport.bring(HEAD + BODY)
    await answered
    talk.rest()

    talk.transport.bring(b"HTTP/1.1 408 Too Slow\r\n\r\n")

    assert talk.connection.closed
    assert talk.dropped == [talk.line]
    assert not talk.line.is_usable


@pytest.mark.parametrize(
    ("method", "byte_range", "unpack", "answer"),
    [
        ("GET", WHOLE, False, b"HTTP/1.1 101 Switching\r\n\r\n"),
        ("GET", WHOLE, False, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n"),
        ("GET", WHOLE, False, b"HTTP/1.1 200 OK\r\n\r\n"),
        ("GET", WHOLE, False, b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n"),
        ("GET", WHOLE, True, b"HTTP/1.1 200 OK\r\nContent-Length:1\r\nContent-Encoding: x\r\n\r\n"),
        ("GET", WHOLE, False, b"HTTP/1.1 500 No\r\nContent-Length: 65537\r\n\r\n"),
        ("GET", ByteRange(0, 5), False, b"HTTP/1.1 200 OK\r\nContent-Length: 65537\r\n\r\n"),
        ("GET", ByteRange(9, 12), False, b"HTTP/1.1 416 No\r\nContent-Length: 0\r\n\r\n"),
        ("GET", WHOLE, False, b"no HTTP at all\r\n\r\n"),
        ("GET", WHOLE, False, b"SSH-2.0-OpenSSH\r\n"),
        ("GET", WHOLE, False, b"HTTP/1.0 2"),
        ("GET", WHOLE, False, b"HTTP/1.1 200 OK\nContent-Length: 5\n\nabcde"),
        ("GET", WHOLE, False, b"HTTP/1.1 200 OK\r\nA: b\n\n"),
        ("GET", WHOLE, False, b"HTTP/1.1 200 OK\r\nA: " + b"a" * 2**16),
        ("HEAD", WHOLE, False, b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("size", [5, 2**20])
async def test_other_answers_are_handed_over_from_their_first_byte(
    method, byte_range, unpack, answer, size
):
    talk = Talk()
    answered = talk.begin(method, byte_range, unpack)
    for at in range(0, len(answer), size):
        talk.transport.bring(answer[at : at + size])
    await answered

    assert talk.line.head is None
    assert talk.handler.received == answer
    assert talk.transport.protocol is talk.handler
    assert talk.handler.params["skip_payload"] is (method == "HEAD")
    assert talk.handler.params["auto_decompress"] is False
    for unfit in (True, False):
        talk.handler.should_close = unfit
        assert talk.line.is_usable is not unfit
    talk.rest()
    assert talk.transport.protocol is talk.line


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\n"),
        ("GET", b"HTTP/1.1 204 No Content\r\n\r\n"),
        ("GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 200\r\n\r\n"),
    ],
)
async def test_some_answers_have_no_body(method, answer):
    talk = Talk()
    answered = talk.begin(method)
    talk.transport.bring(answer)
    await answered

    assert (bytes(talk.line.body), talk.line.cut) == (b"", None)
    assert talk.line.is_usable


async def test_of_an_error_there_is_the_text():
    talk = Talk()
    answered = talk.begin()
    talk.transport.bring(b"HTTP/1.1 503 Later\r\nContent-Length: 5\r\n\r\nlater")
    await answered

    assert (bytes(talk.line.body), talk.line.cut) == (b"later", None)


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("GET", b"HTTP/1.1 404 Not Found\r\nContent-Length: 1\r\n\r\nno"),
        ("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nn"),
        ("GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 1\r\n\r\nn"),
    ],
)
async def test_where_there_is_no_value_too_much_only_ends_the_connection(method, answer):
    talk = Talk()
    answered = talk.begin(method)
    talk.transport.bring(answer)
    await answered

    assert talk.line.head is not None
    assert not talk.line.is_usable


async def test_an_answer_that_contradicts_itself_is_a_failure():
    talk = Talk()
    answered = talk.begin(byte_range=ByteRange(0, 5))
    talk.transport.bring(
        b"HTTP/1.1 206 OK\r\nContent-Length: 5\r\nContent-Range: bytes 5-9/20\r\n\r\nabcde"
    )

    with pytest.raises(Failure, match="another part"):
        await answered


async def test_a_large_body_is_not_believed_in_before_it_comes(monkeypatch):
    monkeypatch.setattr(module, "CREDIT", 1000)
    body = bytes(range(251)) * 40
    talk = Talk(100)
    answered = talk.begin()
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
    talk.transport.bring(head + body[:10])
    assert len(talk.line.get_buffer(-1)) < 1001

    talk.transport.bring(body[10:])
    await answered

    assert bytes(talk.line.body) == body


@pytest.mark.parametrize("error", [None, ConnectionResetError(104, "Connection reset by peer")])
@pytest.mark.parametrize("count", [0, 5, len(HEAD) + 5])
async def test_a_lost_connection_is_a_failure(error, count):
    talk = Talk()
    answered = talk.begin()
    talk.transport.bring((HEAD + BODY)[:count])
    talk.line.connection_lost(error)

    words = "within the answer" if count else "closed it" if error is None else "reset by peer"
    with pytest.raises(Failure, match=words) as failure:
        await answered
    assert failure.value.may_have_run
    assert failure.value.is_prompt is (count == 0)
    assert talk.handler.lost == [error]
    assert not talk.line.is_usable


async def test_a_connection_that_is_lost_already_is_noticed():
    talk = Talk()
    talk.line.connection_lost(None)
    assert talk.dropped

    with pytest.raises(Failure, match="lost"):
        await talk.begin()
    assert not talk.transport.written


async def test_nobody_complains_of_a_failure_that_nobody_asked_for():
    complaints = []
    asyncio.get_running_loop().set_exception_handler(lambda _, told: complaints.append(told))
    talk = Talk()
    answered = talk.begin()
    talk.line.connection_lost(None)
    talk.line.close()
    del answered, talk

    await asyncio.sleep(0)
    assert not complaints


async def test_a_body_leaves_at_the_pace_of_the_connection():
    talk = Talk()
    answered = talk.begin("PUT")
    part = bytes(3 * PIECE)
    sending = asyncio.ensure_future(talk.line.send(part))
    talk.line.pause_writing()
    await asyncio.sleep(0)
    assert len(talk.transport.written) == len(b"request")

    talk.line.resume_writing()
    await sending
    assert len(talk.transport.written) == len(b"request") + len(part)

    talk.transport.bring(HEAD + BODY)
    await answered
    assert talk.line.is_usable


@pytest.mark.parametrize(
    "answer", [HEAD + BODY, b"HTTP/1.1 403 No\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"]
)
async def test_an_early_answer_ends_the_sending(answer):
    talk = Talk()
    answered = talk.begin("PUT")
    talk.line.pause_writing()
    sending = asyncio.ensure_future(talk.line.send(bytes(3 * PIECE)))
    await asyncio.sleep(0)

    talk.transport.bring(answer)
    await sending
    await answered

    assert not talk.line.is_usable
    assert talk.handler.paused is (talk.line.head is None)


async def test_a_lost_connection_ends_the_sending():
    talk = Talk()
    answered = talk.begin("PUT")
    talk.line.pause_writing()
    sending = asyncio.ensure_future(talk.line.send(bytes(PIECE)))
    await asyncio.sleep(0)

    talk.line.connection_lost(BrokenPipeError(32, "Broken pipe"))
    await sending

    with pytest.raises(Failure, match="Broken pipe"):
        await answered


async def test_what_is_on_its_way_out_moves():
    talk = Talk()
    talk.transport.waiting = 1000
    guard = StallGuard(30)
    with guard.watch() as watch:
        talk.line.begin(b"request", "PUT", WHOLE, False, watch)
        watch.moved = 0.0
        watch.look()
        assert watch.moved == 0.0
        talk.transport.waiting = 900
        watch.look()
        assert watch.moved > 0.0


async def test_a_connection_that_is_gone_before_it_is_ours():
    connection = Connection()
    connection.transport = None

    with pytest.raises(Failure, match="closed it"):
        Line(asyncio.get_running_loop(), connection, Desk(10), print)  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [1, 30, 2**20])
async def test_interim_answers_are_none_and_the_request_goes_on(size):
    talk = Talk()
    answered = talk.begin("PUT")
    talk.line.pause_writing()
    part = bytes(3 * PIECE)
    sending = asyncio.ensure_future(talk.line.send(part))
    await asyncio.sleep(0)
    interim = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
    for at in range(0, len(interim), size):
        talk.transport.bring(interim[at : at + size])
    assert not talk.line.is_answered

    talk.line.resume_writing()
    await sending
    assert len(talk.transport.written) == len(b"request") + len(part)
    talk.transport.bring(interim + HEAD + BODY)
    await answered

    assert bytes(talk.line.body) == BODY
    assert talk.line.is_usable


async def test_endless_interim_answers_are_the_librarys():
    talk = Talk(2**16)
    answered = talk.begin()
    talk.transport.bring(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000)
    await answered

    assert talk.line.head is None
    assert talk.handler.received == b"HTTP/1.1 100 Continue\r\n\r\n" * 984


async def test_nothing_is_written_to_a_connection_that_closes_meanwhile(monkeypatch):
    talk = Talk()
    written = []

    def write(data):  # the second piece cannot be sent: asyncio closes, and tells so in a moment
        written.append(len(data))
        talk.transport.closed = len(written) > 2

    monkeypatch.setattr(talk.transport, "write", write)
    answered = talk.begin("PUT")
    await talk.line.send(bytes(100 * PIECE))
    await talk.line.send(bytes(5))

    assert len(written) == 3
    assert not talk.line.is_usable
    talk.line.connection_lost(ConnectionResetError())
    with pytest.raises(Failure, match="the connection was lost"):
        await answered
