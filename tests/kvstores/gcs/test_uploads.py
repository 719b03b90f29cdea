import email.policy
import json
from array import array
from email.parser import BytesParser

import pytest

from tensorstore_py.errors import (
    DataLossError,
    FailedPreconditionError,
    PermissionDeniedError,
    UnavailableError,
)
from tensorstore_py.kvstores.gcs import GcsStore
from tensorstore_py.kvstores.gcs.uploads import (
    MARK,
    checksum_of,
    in_one_piece,
    is_older,
    mark_in,
    new_mark,
    replaces,
    resource,
    stored_until,
)
from tensorstore_py.kvstores.gcs.urls import Bucket, Service
from tensorstore_py.plugin.http import RetriesModel
from tensorstore_py.plugin.kvstore import NO_VALUE, UNKNOWN, Duration, Semaphore
from tensorstore_py.testing import Fault, Reply, Request, drive
from tensorstore_py.testing.fault_server import (
    CLOSE,
    RESET,
    applied_then,
    close_within,
    status,
)


@pytest.mark.parametrize(
    "value", [b"", b"abc", b"\r\n--x--\r\n", bytes(range(256)), memoryview(b"abc")]
)
def test_one_body_says_what_it_is_and_is_it(value):
    headers, parts = in_one_piece(resource("a/é", "4waSgw==", "5-x"), value)

    body = b"".join(parts)
    head = f"Content-Type: {headers['Content-Type']}\r\n\r\n".encode()
    message = BytesParser(policy=email.policy.HTTP).parsebytes(head + body)
    said, data = message.iter_parts()
    assert json.loads(str(said.get_payload())) == {
        "name": "a/é",
        "crc32c": "4waSgw==",
        "metadata": {MARK: "5-x"},
    }
    assert data.get_content_type() == "application/octet-stream"
    assert body.count(bytes(value)) >= 1


def test_a_value_is_not_copied():
    value = bytes(2**20)

    _, body = in_one_piece(resource("a", "x"), value)

    assert any(part is value for part in body)


def test_wider_items_are_sent_as_they_lie_in_memory():
    numbers = memoryview(array("H", [1, 2, 3, 4, 5, 6])).cast("B").cast("H", (2, 3))

    _, body = in_one_piece(b"{}", numbers)

    assert numbers.tobytes() in b"".join(body)
    assert checksum_of(numbers) == checksum_of(numbers.tobytes())


def test_the_checksum_of_nothing():
    assert checksum_of(b"") == checksum_of(memoryview(b"")) == "AAAAAA=="


def test_every_mark_is_another_one():
    assert len({new_mark(5) for _ in range(100)}) == 100


@pytest.mark.parametrize(
    ("said", "mark"),
    [
        ({"metadata": {MARK: "5-x", "other": "y"}}, "5-x"),
        ({"metadata": {"other": "y"}}, ""),
        ({"metadata": None}, ""),
        ({}, ""),
    ],
)
def test_finds_the_mark_of_an_object(said, mark):
    assert mark_in(said) == mark


def test_a_mark_tells_what_was_replaced():
    assert replaces(new_mark(0), 0)
    assert not replaces(new_mark(0), 5)
    assert not replaces(new_mark(55), 5)
    assert not replaces("", 0)


@pytest.mark.parametrize(
    ("text", "older"),
    [
        ("1970-01-01T00:01:37Z", True),
        ("1970-01-01T00:01:38.500000Z", False),
        ("1970-01-01T01:01:37+01:00", True),
        ("1970-01-01T00:01:37", False),
        ("lately", False),
        (None, False),
    ],
)
def test_what_was_there_before(text, older):
    assert is_older({"timeCreated": text}, 100.0) is older


@pytest.mark.parametrize(
    ("text", "size"),
    [("bytes=0-0", 1), ("bytes=0-262143", 262144), (None, 0), ("", 0), ("bytes=5-9", 0), ("x", 0)],
)
def test_how_much_of_a_session_arrived(text, size):
    assert stored_until(text) == size


#: Servers keep multiples of this.
PIECE = 2**18
VALUE = bytes(range(256)) * 3000


@pytest.fixture
def store(server):
    """A store that sends everything above a kibibyte in sessions, through one slot."""
    retries = RetriesModel(
        max_retries=4, initial_delay=Duration.parse("1ms"), max_delay=Duration.parse("2ms")
    )
    bucket = Bucket(Service(server.url), "bucket")
    return GcsStore(bucket, slots=Semaphore(1), retries=retries, large_bytes=1024)


def write(store, value=VALUE, if_equal=None):
    return drive(store, lambda: store.write("a", value, if_equal=if_equal)).generation


def kept_then(server, size, fault):
    """The service keeps the first bytes of what it is sent, then fails."""

    async def act(exchange):
        whole = exchange.request
        first = int(whole.headers["content-range"].split()[1].partition("-")[0])
        said = f"bytes {first}-{first + size - 1}/{len(VALUE)}"
        part = Request(
            "PUT", whole.target, {**whole.headers, "content-range": said}, whole.body[:size]
        )
        server.api.handle(part)
        return await fault.act(exchange)

    return Fault(f"keeps {size}, then {fault.name}", act)


def sent(server):
    """What was sent: the method, and how many bytes."""
    return [(each.method, len(each.body)) for each in server.requests if each.method != "GET"]


def test_large_values_go_in_a_session(server, store):
    generation = write(store)

    assert server.objects() == {"a": VALUE}
    assert drive(store, lambda: store.read("a")).stamp.generation == generation
    assert [method for method, _ in sent(server)] == ["POST", "PUT"]


@pytest.mark.parametrize("value", [bytearray(VALUE), memoryview(VALUE).cast("B")[::1]])
def test_of_any_buffer(server, store, value):
    write(store, value)

    assert server.objects() == {"a": VALUE}


def test_small_ones_do_not(server, store):
    write(store, b"x" * 1024)

    assert len(server.requests) == 1


@pytest.mark.parametrize("fault", [RESET, CLOSE, status(503)], ids=repr)
def test_after_a_cut_only_the_rest_is_sent(server, store, fault):
    server.plan = [None, kept_then(server, PIECE, fault)]

    write(store)

    assert server.objects() == {"a": VALUE}
    assert sent(server)[1:] == [("PUT", len(VALUE)), ("PUT", 0), ("PUT", len(VALUE) - PIECE)]


def test_after_many_cuts_too(server, store):
    server.plan = [
        None,
        kept_then(server, PIECE, RESET),
        RESET,
        status(502),
        None,
        kept_then(server, PIECE, RESET),
        None,
    ]

    write(store)

    assert server.objects() == {"a": VALUE}


@pytest.mark.parametrize("if_equal", [None, NO_VALUE])
@pytest.mark.parametrize("fault", [RESET, status(503), close_within(0)], ids=repr)
def test_an_answer_that_was_lost_is_asked_for_again(server, store, fault, if_equal):
    server.plan = [None, applied_then(fault)]

    generation = write(store, if_equal=if_equal)

    assert server.objects() == {"a": VALUE}
    assert drive(store, lambda: store.read("a")).stamp.generation == generation
    assert sent(server)[1:] == [("PUT", len(VALUE)), ("PUT", 0)]


def test_even_if_the_object_was_replaced_since(server, store):
    async def act(exchange):
        exchange.serve()
        server.put("a", b"later")
        return await RESET.act(exchange)

    server.plan = [None, Fault("applied, replaced, reset", act)]

    assert write(store, if_equal=NO_VALUE) != UNKNOWN
    assert server.objects() == {"a": b"later"}


def test_an_opening_that_was_lost_is_repeated(server, store):
    server.plan = [applied_then(RESET), status(503)]

    write(store, if_equal=NO_VALUE)

    assert server.objects() == {"a": VALUE}


def test_conditions_hold_at_the_beginning_and_at_the_end(server, store):
    server.put("a", b"1")
    assert write(store, if_equal=NO_VALUE) == UNKNOWN
    assert [method for method, _ in sent(server)] == ["POST"]

    async def overtake(exchange):
        server.put("b", b"2")
        server.put("a", b"2")
        await exchange.answer(exchange.serve())
        return True

    present = drive(store, lambda: store.read("a")).stamp.generation
    server.plan = [None, Fault("overtaken", overtake)]

    assert write(store, if_equal=present) == UNKNOWN
    assert server.objects()["a"] == b"2"


def test_a_session_that_was_forgotten_is_begun_again(server, store):
    async def forget(exchange):
        server.api.uploads.sessions.clear()
        await exchange.answer(exchange.serve())
        return True

    server.plan = [None, Fault("forgotten", forget)]

    write(store)

    assert server.objects() == {"a": VALUE}
    assert [method for method, _ in sent(server)] == ["POST", "PUT", "POST", "PUT"]


def test_a_service_that_forgets_every_session_is_given_up(server, store):
    """It keeps a part of each, so that every session gets somewhere."""

    async def keep_half(exchange):
        await exchange.answer(Reply(308, headers={"Range": "bytes=0-9"}))
        return True

    halves = iter(range(10**6))
    half = Fault("half", keep_half)
    server.plan = lambda request: (
        None if request.method == "POST" else half if next(halves) % 2 == 0 else status(410)
    )

    with pytest.raises(UnavailableError, match="kept nothing") as forgetful:
        write(store)

    assert forgetful.value.attempts == 9
    assert len(server.requests) == 3 * 9


def test_a_service_that_keeps_nothing_is_given_up(server, store):
    server.plan = lambda request: None if request.method == "POST" else status(308)

    with pytest.raises(UnavailableError, match="kept nothing"):
        write(store)


def test_a_damaged_value_is_refused_and_reported(server, store):
    async def flip(exchange):
        body = bytearray(exchange.request.body)
        body[500] ^= 1
        damaged = Request("PUT", exchange.request.target, exchange.request.headers, bytes(body))
        await exchange.answer(server.api.handle(damaged))
        return True

    server.plan = [None, Fault("flipped", flip)]

    with pytest.raises(DataLossError, match=r"gs://bucket/a"):
        write(store)
    assert server.objects() == {}


def test_a_refused_write_is_an_error_with_the_key(server, store):
    server.plan = [status(403)]

    with pytest.raises(PermissionDeniedError, match=r'write "gs://bucket/a"'):
        write(store)


def test_another_protocol_is_recognised(server, store):
    server.plan = [status(200)]

    with pytest.raises(FailedPreconditionError, match="JSON API"):
        write(store)


def test_the_session_is_where_we_were_sent_ourselves(server, store):
    async def elsewhere(exchange):
        reply = exchange.serve()
        where = reply.headers["Location"].replace(server.url, "https://elsewhere.example")
        await exchange.answer(Reply(200, b"", {"Location": where}))
        return True

    server.plan = [Fault("elsewhere", elsewhere)]

    write(store)

    assert server.objects() == {"a": VALUE}
