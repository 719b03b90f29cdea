"""Every way in which a web server or the way to it may fail: the right bytes, or an error by name.

Each fault is served twice before all is well, which has to go unnoticed, and for ever, which has to
end. Wrong bytes and hangs are what no test here may ever see.
"""

import asyncio
import base64
import itertools
from typing import Any

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py.errors import (
    DataLossError,
    FailedPreconditionError,
    PermissionDeniedError,
    UnavailableError,
)
from tensorstore_py.plugin.kvstore import ByteRange, crc32c
from tensorstore_py.testing import Fault, WebValues
from tensorstore_py.testing.fault_server import (
    CLOSE,
    GARBAGE,
    RESET,
    STALL,
    applied_then,
    chunked_cut,
    close_within,
    flipped,
    redirect,
    reset_within,
    skewed,
    slow,
    stalled_within,
    status,
    unframed,
    with_length,
)
from tests.runtime.processes import start

SMALL = bytes(range(256)) * 3
LARGE = bytes(range(251)) * 8192

#: Worth as many attempts as the user allows, since it may pass.
PASSING = [
    *(status(code) for code in (408, 425, 429, 500, 502, 503, 504)),
    *(status(code, {"Retry-After": "0"}) for code in (429, 503)),
    status(503, {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}),
    status(503, {"Retry-After": "soon"}),
    RESET,
    CLOSE,
    applied_then(RESET),
    applied_then(CLOSE),
    reset_within(0),
    reset_within(100),
    close_within(0),
    close_within(100),
    with_length(5),
    chunked_cut(0),
    chunked_cut(100),
    GARBAGE,
    STALL,
    stalled_within(0),
    stalled_within(100),
]
#: The server contradicts itself, or does not say how much it sends: tried again twice.
LYING = [
    with_length(-5), unframed(), unframed(100), status(204, body=b""), status(304, body=b"")
]  # fmt: skip
#: Reported at once.
FINAL = [
    (status(400, body=b"<Error><Code>ExpiredToken</Code></Error>"), FailedPreconditionError),
    (status(401), PermissionDeniedError),
    (status(403), PermissionDeniedError),
    (skewed(403, 1e6), PermissionDeniedError),
    (redirect(307, ""), FailedPreconditionError),
    (redirect(301, "gopher://h/"), PermissionDeniedError),
    (status(412), FailedPreconditionError),
    (status(503, {"Retry-After": "86400"}), UnavailableError),
]
PARTS = [None, ByteRange(50, 600), ByteRange(150), ByteRange(-200)]


@pytest.fixture(autouse=True)
def _patience(request, monkeypatch):
    """Short where nothing will ever come; a machine that is busy for a moment is no fault."""
    fault = request.node.callspec.params.get("fault") if hasattr(request.node, "callspec") else ""
    limit = "0.1" if "stall" in repr(fault) else "30"
    monkeypatch.setenv("TENSORSTORE_CURL_LOW_SPEED_TIME_SECONDS", limit)


@pytest.fixture
def web():
    return WebValues({"small": SMALL, "large": LARGE})


def part_of(value: bytes, byte_range: ByteRange | None) -> bytes:
    return value if byte_range is None else value[byte_range.start : byte_range.stop]


def read(store: ts.KvStore, key: str, byte_range: ByteRange | None) -> bytes:
    given: dict[str, Any] = {} if byte_range is None else {
        "byte_range": slice(byte_range.start, byte_range.stop)
    }  # fmt: skip
    return bytes(store.read(key, **given).result(timeout=30).value)


@pytest.mark.parametrize("byte_range", PARTS, ids=str)
@pytest.mark.parametrize("fault", PASSING + LYING, ids=repr)
def test_what_passes_goes_unnoticed(serve, open_store, web, fault: Fault, byte_range):
    server = serve(web.handle, [fault, fault])
    store = open_store(server.url)

    assert read(store, "small", byte_range) == part_of(SMALL, byte_range)
    if fault not in LYING:
        assert len(server.requests) == 3


@pytest.mark.parametrize(
    "fault", [reset_within(10**6), close_within(10**6), stalled_within(10**6), with_length(-5)],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize("byte_range", [None, ByteRange(1000, 2_000_000)], ids=str)
def test_large_values_are_begun_anew(serve, open_store, web, fault: Fault, byte_range):
    server = serve(web.handle, [fault, fault])
    store = open_store(server.url)

    assert read(store, "large", byte_range) == part_of(LARGE, byte_range)


@pytest.mark.parametrize("fault", PASSING, ids=repr)
def test_what_does_not_pass_ends(serve, open_store, web, fault: Fault):
    server = serve(web.handle, lambda _: fault)
    store = open_store(server.url + "?sig=s3cret")

    with pytest.raises(
        UnavailableError, match=rf'cannot read "{server.url}/small\?sig=\.\.\."'
    ) as e:
        read(store, "small", None)

    assert len(server.requests) == e.value.attempts == 4
    assert "attempt 4" in str(e.value)
    assert "http_request_retries" in str(e.value)


@pytest.mark.parametrize("fault", LYING, ids=repr)
def test_lies_are_not_listened_to_for_long(serve, open_store, web, fault: Fault):
    server = serve(web.handle, lambda _: fault)
    store = open_store(server.url)

    # What follows a body that should have ended may come along with it, and then all is garbage.
    with pytest.raises((DataLossError, UnavailableError), match=rf'read "{server.url}/small"') as e:
        read(store, "small", None)

    assert len(server.requests) == (3 if e.type is DataLossError else 4)


@pytest.mark.parametrize(("fault", "error"), FINAL, ids=repr)
def test_what_will_not_pass_is_reported_at_once(serve, open_store, web, fault: Fault, error):
    server = serve(web.handle, lambda _: fault)
    store = open_store(server.url)

    with pytest.raises(error, match=rf'cannot read "{server.url}/small"'):
        read(store, "small", None)

    assert len(server.requests) == 1


@pytest.mark.parametrize("byte_range", PARTS, ids=str)
def test_an_end_that_is_known_needs_no_length(serve, open_store, web, byte_range):
    # The answer to a range says what it holds, so that a cut is seen.
    server = serve(web.handle, lambda _: unframed())
    store = open_store(server.url)

    if byte_range is None:
        with pytest.raises(DataLossError, match="Content-Length"):
            read(store, "small", byte_range)
    else:
        assert read(store, "small", byte_range) == part_of(SMALL, byte_range)


@pytest.mark.parametrize("key", ["small", "large"])
def test_slow_is_not_stalled(serve, open_store, web, key, monkeypatch):
    # More than the limit in all, and much less between two pieces.
    monkeypatch.setenv("TENSORSTORE_CURL_LOW_SPEED_TIME_SECONDS", "0.2")
    server = serve(web.handle, [slow(25, 0.01)])
    store = open_store(server.url)

    assert read(store, key, None) == web.values[key]
    assert len(server.requests) == 1


def test_a_flipped_bit_is_seen_where_there_is_a_checksum(serve, open_store, web):
    digest = base64.b64encode(crc32c(SMALL).to_bytes(4, "big")).decode()
    web.headers = {"x-goog-hash": f"crc32c={digest}"}
    server = serve(web.handle, [flipped(77), flipped(78)])
    store = open_store(server.url)

    assert read(store, "small", None) == SMALL
    assert len(server.requests) == 3
    server.plan = lambda _: flipped(79)
    with pytest.raises(DataLossError, match=rf'cannot read "{server.url}/small".*crc32c'):
        read(store, "small", None)


def test_a_server_may_ask_for_time(serve, open_store, web):
    server = serve(web.handle, [status(503, {"Retry-After": "1e3"}), status(429)])
    store = open_store(server.url)

    assert read(store, "small", None) == SMALL, "what cannot be understood is no time to wait"


def test_a_cancelled_caller_does_not_block_others(serve, open_store, web):
    server = serve(web.handle, [STALL, stalled_within(100)])
    store = open_store(server.url, http_request_concurrency={"limit": 2})
    arrived = [asyncio.Event(), asyncio.Event()]
    plan = iter([STALL, stalled_within(100)])

    def plan_and_tell(_):
        if len(server.requests) <= 2:
            arrived[len(server.requests) - 1].set()
        return next(plan, None)

    server.plan = plan_and_tell

    async def body() -> bytes:
        plain = store.store
        hanging = [asyncio.ensure_future(plain.read("small")) for _ in range(2)]
        for event in arrived:
            await asyncio.wait_for(event.wait(), 30)
        waiting = asyncio.ensure_future(plain.read("small"))
        for task in hanging:
            task.cancel()
        await asyncio.wait(hanging)
        assert all(task.cancelled() for task in hanging)
        return bytes((await waiting).value)

    assert start(False, body).result(timeout=30) == SMALL


def test_an_array_is_read_through_any_weather(serve, tmp_path):
    data = np.arange(40 * 50, dtype="<u4").reshape(40, 50)
    path = f"file://{tmp_path}/|zarr3:"
    made = ts.open(path, create=True, dtype="uint32", shape=[40, 50], chunk_layout=ts.ChunkLayout(
        read_chunk_shape=[5, 5], write_chunk_shape=[20, 25])).result()  # fmt: skip
    made[...] = data
    files = {
        str(p.relative_to(tmp_path)): p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()
    }
    weather = itertools.cycle([*PASSING[:-3], None, *LYING, None, None])
    told = set()

    def plan(request):
        fault = next(weather)
        if fault in LYING:  # a server that lies again and again about one thing is not believed
            fault = None if request.target in told else fault
            told.add(request.target)
        return fault

    server = serve(WebValues(files).handle, plan)
    context = {"http_request_retries": {"initial_delay": "1ms", "max_delay": "2ms"}}

    found = ts.open(f"{server.url}/|zarr3:", context=ts.Context(context)).result(timeout=30)

    np.testing.assert_array_equal(found.read().result(timeout=30), data)
    np.testing.assert_array_equal(found[3:33:7, ::-3].read().result(timeout=30), data[3:33:7, ::-3])
    assert len(server.requests) > 20
