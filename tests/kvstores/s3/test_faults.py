"""Every way in which S3 or the way to it may fail: right bytes, or an error by name.

Each fault is served twice before all is well, which has to go unnoticed, and for ever, which has to
end. Wrong bytes, lost or doubled writes and hangs are what no test here may ever see.
"""

import collections
import itertools
import re
import time

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py.errors import (
    DataLossError,
    FailedPreconditionError,
    NotFoundError,
    PermissionDeniedError,
    UnavailableError,
)
from tensorstore_py.testing import Exchange, Fault, Reply
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
    stalled_within,
    status,
    unframed,
    with_length,
)
from tests.kvstores.s3.fake_s3 import FakeS3, error

VALUE = bytes(range(256)) * 3


def coded(code: int, name: str, more: str = "", age_s: float = 0.0) -> Fault:
    """An answer with a code of S3's; the request is not carried out."""

    async def act(exchange: Exchange) -> bool:
        reply = error(code, name, more)
        await exchange.answer(Reply(code, reply.body, reply.headers, age_s))
        return True

    return Fault(f"{code} {name}", act)


#: Worth as many attempts as the user allows, since it may pass.
PASSING = [
    *(status(code) for code in (408, 429, 500, 502, 503, 504, 509)),
    status(503, {"Retry-After": "0"}),
    coded(503, "SlowDown"),
    coded(400, "RequestTimeout"),
    coded(409, "OperationAborted"),
    coded(500, "UnknownError"),
    RESET,
    CLOSE,
    GARBAGE,
    STALL,
    *(applied_then(fault) for fault in (RESET, CLOSE, GARBAGE, status(500))),
]
#: Of a read only: nothing of an answer to a write is wanted.
CUT = [
    reset_within(0),
    reset_within(100),
    close_within(0),
    close_within(100),
    with_length(5),
    chunked_cut(100),
    stalled_within(0),
    stalled_within(100),
]
#: The last of these is one chunk of nothing, which ends a body.
LYING = [with_length(-5), unframed(), unframed(100), chunked_cut(0)]
FINAL = [
    (coded(400, "ExpiredToken"), PermissionDeniedError),
    (coded(403, "AccessDenied"), PermissionDeniedError),
    (coded(403, "SignatureDoesNotMatch", "<StringToSign>do-not-print</StringToSign>"),
     PermissionDeniedError),
    (coded(403, "RequestTimeTooSkewed"), PermissionDeniedError),
    (status(401), PermissionDeniedError),
    (status(403), PermissionDeniedError),
    (coded(400, "InvalidArgument"), FailedPreconditionError),
    (coded(403, "InvalidObjectState"), FailedPreconditionError),
    (coded(404, "NoSuchBucket"), NotFoundError),
    (redirect(307, ""), FailedPreconditionError),
    (redirect(301, "gopher://h/"), FailedPreconditionError),
    (status(503, {"Retry-After": "86400"}), UnavailableError),
]  # fmt: skip
PARTS = [slice(None), slice(50, 600), slice(150, None), slice(-200, None)]


@pytest.fixture(autouse=True)
def _impatient(request, monkeypatch):
    """Stalls are given up soon; elsewhere a machine that is busy is no stall."""
    callspec = getattr(request.node, "callspec", None)
    fault = "" if callspec is None else repr(callspec.params.get("fault"))
    if "stall" in fault or "weather" in request.node.name:
        monkeypatch.setenv("TENSORSTORE_CURL_LOW_SPEED_TIME_SECONDS", "0.05")


@pytest.fixture
def fake():
    fake = FakeS3()
    fake.put("a", VALUE)
    return fake


@pytest.fixture
def server(serve, fake):
    return serve(fake.handle)


@pytest.fixture
def store(server, open_store):
    return open_store(server.url, use_conditional_write=True)


def read(store, part=slice(None)):
    given = {} if part == slice(None) else {"byte_range": part}
    return bytes(store.read("a", **given).result(timeout=30).value)


@pytest.mark.parametrize("part", PARTS, ids=str)
@pytest.mark.parametrize("fault", PASSING + CUT, ids=repr)
def test_a_read_does_not_notice_what_passes(server, store, fault, part):
    server.plan = [fault, fault]

    assert read(store, part) == VALUE[part]
    assert len(server.requests) == 3


@pytest.mark.parametrize("part", PARTS, ids=str)
@pytest.mark.parametrize("fault", LYING, ids=repr)
def test_a_read_does_not_believe_lies(server, store, fault, part):
    server.plan = [fault, fault]

    assert read(store, part) == VALUE[part]


def test_a_flipped_bit_is_seen_by_the_etag_or_a_checksum(fake, server, store):
    for fake.checksums in (False, True):
        server.plan = [flipped(77), flipped(78)]
        assert read(store) == VALUE
        server.plan = lambda _: flipped(79)
        with pytest.raises(DataLossError, match=r"/bucket/a.*(md5|crc32c)"):
            read(store)


@pytest.mark.parametrize("fault", PASSING, ids=repr)
def test_a_write_does_not_notice_what_passes(fake, server, store, fault):
    server.plan = [fault, fault]
    stamp = store.write("a", b"new").result(timeout=30)

    assert (fake.values["a"].body, stamp.generation[1:].decode()) == (b"new", fake.values["a"].etag)


@pytest.mark.parametrize("fault", PASSING, ids=repr)
def test_a_conditional_write_is_neither_lost_nor_doubled(fake, server, store, fault):
    generation = store.read("a").result().stamp.generation
    server.plan = [fault, fault]

    stamp = store.write("a", b"new", if_equal=generation).result(timeout=30)

    assert (fake.values["a"].body, stamp.generation[1:].decode()) == (b"new", fake.values["a"].etag)
    server.plan = [fault, fault]
    assert store.write("a", b"newer", if_equal=generation).result(timeout=30).generation == b""
    assert fake.values["a"].body == b"new"


@pytest.mark.parametrize("fault", PASSING, ids=repr)
def test_a_delete_does_not_notice_what_passes(fake, server, store, fault):
    server.plan = [fault, fault]

    assert store.write("a", None).result(timeout=30).generation == b"\x02"
    assert fake.values == {}


@pytest.mark.parametrize("fault", PASSING, ids=repr)
def test_a_listing_does_not_notice_what_passes(fake, server, store, fault):
    fake.page = 2
    for number in range(5):
        fake.put(f"b{number}", b"")
    server.plan = [fault, fault, None, fault]

    assert len(store.list().result(timeout=30)) == 6


@pytest.mark.parametrize("fault", PASSING + CUT, ids=repr)
def test_what_does_not_pass_ends(server, store, fault):
    server.plan = lambda _: fault

    with pytest.raises(UnavailableError, match=f'cannot read "{server.url}/bucket/a"') as caught:
        read(store)

    assert len(server.requests) == caught.value.attempts == 4
    assert "s3_request_retries" in str(caught.value)


@pytest.mark.parametrize(("fault", "kind"), FINAL, ids=repr)
@pytest.mark.parametrize("action", ["read", "write", "delete"])
def test_what_will_not_pass_is_reported_at_once(server, store, fault, kind, action):
    server.plan = lambda _: fault

    with pytest.raises(kind, match=f'cannot {action} "{re.escape(server.url)}/bucket/a"') as caught:
        {"read": lambda: store.read("a"), "write": lambda: store.write("a", b"1"),
         "delete": lambda: store.write("a", None)}[action]().result(timeout=30)  # fmt: skip

    assert len(server.requests) <= 2
    assert "do-not-print" not in str(caught.value)


def test_a_clock_that_is_off_is_put_right(server, store):
    server.plan = [coded(403, "RequestTimeTooSkewed", age_s=5000), None, None]

    assert read(store) == VALUE
    read(store)

    stamps = [request.headers["x-amz-date"] for request in server.requests]
    now = time.strftime("%Y%m%dT%H", time.gmtime())
    behind = {time.strftime("%Y%m%dT%H", time.gmtime(time.time() - 5000 + more)) for more in (0, 9)}
    assert stamps[0].startswith(now)
    assert stamps[1][:11] in behind
    assert stamps[2][:11] in behind


@pytest.mark.parametrize("fault", [coded(400, "ExpiredToken"), status(401)], ids=repr)
def test_keys_that_expired_are_looked_for_again(monkeypatch, server, open_store, fault):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIA")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    store = open_store(server.url, aws_credentials={"type": "environment"})

    def plan(request):
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIB")
        return fault if "=AKIA/" in request.headers["authorization"] else None

    server.plan = plan

    assert read(store) == VALUE
    assert read(store) == VALUE
    assert len(server.requests) == 3


def test_an_array_is_written_and_read_through_any_weather(server):
    """The chunks are shared between writes, so all of them are conditional."""
    data = np.arange(20 * 30, dtype="<u4").reshape(20, 30)
    lies = [*LYING, flipped(77)]
    weather = itertools.cycle([*PASSING, None, *CUT, None, *lies, None])
    told = set()
    running: collections.Counter[tuple[str, str]] = collections.Counter()

    def plan(request):
        fault = next(weather)
        asked = request.method, request.target
        if fault in lies:  # a server that lies more than twice about one thing is not believed
            fault = None if request.target in told else fault
            told.add(request.target)
        # A write looks after each fault whether it was carried out: in step with the weather it
        # could meet faults alone.
        running[asked] = 0 if fault is None or running[asked] == 8 else running[asked] + 1
        return fault if running[asked] else None

    server.plan = plan
    spec = {
        "driver": "zarr3",
        "kvstore": {
            "driver": "s3",
            "endpoint": server.url,
            "bucket": "bucket",
            "use_conditional_write": True,
            "aws_credentials": {"type": "anonymous"},
            "s3_request_retries": {"initial_delay": "1ms", "max_delay": "2ms"},
        },
        "metadata": {
            "shape": [20, 30],
            "data_type": "uint32",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [7, 7]}},
        },
    }

    made = ts.open(spec, create=True).result(timeout=240)
    writes = [made[start : start + 5, 3:].write(data[start : start + 5, 3:])
              for start in range(0, 20, 5)]  # fmt: skip
    writes += [made[:, :3].write(data[:, :3])]
    for write in writes:
        write.result(timeout=240)

    found = ts.open(spec).result(timeout=240).read().result(timeout=240)
    np.testing.assert_array_equal(found, data)
