"""Every way in which the service or the way to it may fail: the right outcome, or an error by name.

Each fault is served twice before all is well, which has to go unnoticed, and for ever, which has to
end. A write is carried out once or, if there is an error, at most once.
"""

import pytest

from tensorstore_py.errors import (
    AbortedError,
    DataLossError,
    FailedPreconditionError,
    NotFoundError,
    OutOfRangeError,
    PermissionDeniedError,
    UnavailableError,
    UnsupportedError,
)
from tensorstore_py.plugin.kvstore import NO_VALUE, UNKNOWN
from tensorstore_py.testing import Fault
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

VALUE = bytes(range(256)) * 3
WRONG_SUM = (
    b'{"error": {"message": "Provided CRC32C \\"a\\" doesn\'t match calculated CRC32C \\"b\\"."}}'
)

#: Worth as many attempts as the user allows, since it may pass.
PASSING = [
    *(status(code) for code in (408, 429, 500, 501, 502, 503, 504)),
    *(status(code, {"Retry-After": "0"}) for code in (429, 503)),
    RESET,
    CLOSE,
    GARBAGE,
    STALL,
    applied_then(RESET),
    applied_then(CLOSE),
    applied_then(STALL),
    applied_then(GARBAGE),
    *(applied_then(status(code)) for code in (500, 502, 503, 504)),
    reset_within(0),
    reset_within(10),
    close_within(0),
    close_within(10),
    with_length(5),
    chunked_cut(0),
    chunked_cut(10),
    stalled_within(0),
    stalled_within(10),
]
#: The service contradicts itself, or does not say how much it sends.
LYING = [with_length(-5), unframed(), unframed(10)]
#: Reported at once.
FINAL: list[tuple[Fault, type[Exception]]] = [
    (status(400), FailedPreconditionError),
    (status(401), PermissionDeniedError),
    (status(403), PermissionDeniedError),
    (skewed(403, 1e6), PermissionDeniedError),
    (status(409), AbortedError),
    (status(413), FailedPreconditionError),
    (redirect(301, "/storage/v1/b/bucket/o/b"), FailedPreconditionError),
    (redirect(307, "http://127.0.0.1:9/"), FailedPreconditionError),
    (status(429, {"Retry-After": "86400"}), UnavailableError),
]
#: By what was asked for: some faults are answers to it.
OPERATIONS = ["read", "part", "look", "write", "create", "replace", "delete", "list"]


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setenv("TENSORSTORE_CURL_LOW_SPEED_TIME_SECONDS", "0.05")


class Operations:
    """Each of them on a bucket with one value, and whether what came of it is right."""

    def __init__(self, server, store):
        self.server, self.store = server, store
        self.number = server.put("a", VALUE)
        self.before = b"\0" + self.number.to_bytes(8, "little")

    def do(self, name):
        return getattr(self, name)()

    def read(self):
        assert self.store.read("a").result(timeout=30).value == VALUE

    def part(self):
        found = self.store.read("a", byte_range=slice(50, 600)).result(timeout=30)
        assert found.value == VALUE[50:600]

    def look(self):
        found = self.store.read("a", byte_range=slice(7, 7)).result(timeout=30)
        assert found.stamp.generation == self.before

    def write(self):
        self._written("b", self.store.write("b", b"new"))

    def create(self):
        self._written("b", self.store.write("b", b"new", if_equal=NO_VALUE))

    def replace(self):
        self._written("a", self.store.write("a", b"new", if_equal=self.before))

    def _written(self, key, future):
        generation = future.result(timeout=30).generation
        assert generation != UNKNOWN
        found = self.server.api.buckets.bucket("bucket").objects[key]
        assert found.data == b"new"
        assert generation == b"\0" + found.generation.to_bytes(8, "little")

    def delete(self):
        stamp = self.store.write("a", None, if_equal=self.before).result(timeout=30)
        assert stamp.generation == NO_VALUE
        assert self.server.objects() == {}

    def list(self):
        assert self.store.list().result(timeout=30) == [b"a"]


@pytest.fixture
def operations(server, kv):
    return Operations(server, kv())


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("fault", PASSING, ids=repr)
def test_what_passes_goes_unnoticed(server, operations, name, fault):
    server.plan = [fault, fault]

    operations.do(name)


@pytest.mark.parametrize("name", ["read", "part", "look", "write", "list"])
@pytest.mark.parametrize("fault", LYING, ids=repr)
def test_lies_are_seen_through(server, operations, name, fault):
    server.plan = [fault, fault]

    operations.do(name)


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("fault", [status(503), RESET, CLOSE, GARBAGE, status(429)], ids=repr)
def test_what_does_not_pass_ends(server, operations, name, fault):
    server.plan = lambda _: fault

    with pytest.raises(UnavailableError, match=r"cannot \w+ .*bucket.*gcs_request_retries") as e:
        operations.do(name)

    assert e.value.attempts == 5
    assert server.objects() == {"a": VALUE}


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize(("fault", "error"), FINAL, ids=repr)
def test_what_will_not_pass_is_reported_at_once(server, operations, name, fault, error):
    server.plan = lambda _: fault

    with pytest.raises(error, match=r"cannot \w+ .*bucket"):
        operations.do(name)

    assert len(server.requests) == 1
    assert server.objects() == {"a": VALUE}


@pytest.mark.parametrize("name", ["write", "create", "replace"])
def test_lost_answers_for_ever_write_once(server, operations, name):
    stored = []

    def plan(request):
        if request.method == "POST":
            stored.append(dict(server.objects()))
        return applied_then(RESET)

    server.plan = plan

    with pytest.raises(UnavailableError):
        operations.do(name)

    assert {value for state in stored[1:] for value in state.values()} <= {VALUE, b"new"}


@pytest.mark.parametrize("name", ["read", "list"])
def test_flipped_bits(server, operations, name):
    server.plan = [flipped(3)]
    operations.do(name)
    server.plan = lambda _: flipped(3)
    with pytest.raises(DataLossError):
        operations.do(name)


@pytest.mark.parametrize("name", ["write", "create", "replace"])
def test_values_that_arrive_damaged(server, operations, name):
    server.plan = [status(400, {"Content-Type": "application/json"}, WRONG_SUM)]
    operations.do(name)

    server.plan = lambda _: status(400, {"Content-Type": "application/json"}, WRONG_SUM)
    with pytest.raises(DataLossError, match=r"cannot write .*match calculated"):
        operations.do("write")


@pytest.mark.parametrize("name", ["read", "part", "look", "write", "create", "list"])
def test_slow_is_not_stuck(server, operations, name):
    server.plan = [slow(4, 0.002)]

    operations.do(name)


def test_answers_to_conditions_that_the_request_did_not_have(server, operations):
    server.plan = [status(308)]
    with pytest.raises(FailedPreconditionError, match="308"):
        operations.read()


def test_a_service_that_cannot_at_all(server, operations):
    server.plan = lambda _: status(501)
    with pytest.raises(UnsupportedError, match="501"):
        operations.write()


def test_what_is_missing_is_no_fault(server, kv):
    assert kv().read("b").result().state == "missing"
    with pytest.raises(NotFoundError):
        kv(bucket="nowhere").list().result()
    with pytest.raises(OutOfRangeError):
        Operations(server, kv()).store.read("a", byte_range=slice(0, 10**6)).result()
    assert len(server.requests) == 3
