import asyncio
import threading

import pytest

import tensorstore_py as ts
from tensorstore_py.kvstores.s3 import writes
from tensorstore_py.testing.fault_server import RESET, STALL, Fault, applied_then, status
from tests.kvstores.s3.fake_s3 import FakeS3, error

VALUE = bytes(range(256)) * 40
PARTS = 11


@pytest.fixture
def fake():
    return FakeS3()


@pytest.fixture
def server(serve, fake):
    return serve(fake.handle)


@pytest.fixture
def store(server, open_store):
    face = open_store(server.url, use_conditional_write=True)
    face.store._writes._large_bytes = 1000
    face.store._writes._part_bytes = 1000
    return face


def only(method, marker, fault):
    """A plan: the first request that is like this one fails."""
    left = [fault]

    def plan(request):
        return (
            left.pop() if left and request.method == method and marker in request.target else None
        )

    return plan


def test_a_large_value_goes_in_parts(store, fake, server):
    stamp = store.write("a", VALUE).result()

    assert fake.values["a"].body == VALUE
    assert stamp.generation == b"\x00" + fake.values["a"].etag.encode()
    assert fake.values["a"].etag.endswith(f'-{PARTS}"')
    assert [request.method for request in server.requests] == ["POST"] + PARTS * ["PUT"] + ["POST"]
    assert store["a"] == VALUE


def test_a_value_that_is_not_large_goes_whole(store, server):
    store.write("a", VALUE[:1000]).result()

    assert [request.method for request in server.requests] == ["PUT"]


def test_a_value_is_never_more_parts_than_s3_takes(store, fake, monkeypatch):
    monkeypatch.setattr(writes, "_MOST_PARTS", 10)
    store.store._writes._part_bytes = 1
    store.write("a", bytes(1001)).result()

    assert fake.values["a"].etag.endswith('-10"')


@pytest.mark.parametrize(
    ("method", "marker"), [("POST", "uploads"), ("PUT", "partNumber=3"), ("POST", "uploadId")]
)
@pytest.mark.parametrize("fault", [status(503), RESET, applied_then(RESET)], ids=str)
def test_what_goes_wrong_once_is_tried_again(store, fake, server, method, marker, fault):
    server.plan = only(method, marker, fault)

    stamp = store.write("a", VALUE).result()

    assert fake.values["a"].body == VALUE
    assert stamp.generation == b"\x00" + fake.values["a"].etag.encode()


def test_the_parts_of_a_write_that_failed_are_discarded(store, fake, server):
    server.plan = lambda request: status(403) if "partNumber=3&" in request.target else None

    with pytest.raises(ts.PermissionDeniedError, match="/bucket/a"):
        store.write("a", VALUE).result()

    assert fake.uploads == {}
    assert fake.values == {}


def test_the_parts_of_a_write_that_was_cancelled_are_discarded(store, fake, server):
    discarded = threading.Event()

    def plan(request):
        if request.method == "DELETE":
            discarded.set()
        elif "partNumber=3&" in request.target:
            future.cancel()
            return STALL
        return None

    server.plan = plan
    future = store.write("a", VALUE)

    with pytest.raises(asyncio.CancelledError):
        future.result(timeout=60)

    assert discarded.wait(timeout=60)
    assert fake.values == {}


def test_an_error_in_the_text_of_a_success_is_one(store, fake, server):
    async def act(exchange):
        reply = error(200, "InternalError")
        await exchange.answer(reply)
        return True

    server.plan = only("POST", "uploadId", Fault("late", act))

    store.write("a", VALUE).result()

    assert fake.values["a"].body == VALUE


def test_parts_that_somebody_discarded(store, server):
    async def act(exchange):
        await exchange.answer(error(404, "NoSuchUpload"))
        return True

    server.plan = only("POST", "uploadId", Fault("gone", act))

    with pytest.raises(ts.FailedPreconditionError, match="discarded"):
        store.write("a", VALUE).result()


def test_conditions_are_of_the_last_request_at_aws(store, fake, server, monkeypatch):
    bucket = store.store._bucket
    monkeypatch.setattr(bucket, "_address", bucket._address._replace(is_aws=True))
    first = store.write("a", VALUE, if_equal=b"\x02").result()
    assert store.write("a", VALUE, if_equal=b"\x02").result().generation == b""
    second = store.write("a", VALUE * 2, if_equal=first.generation).result()
    assert store.write("a", VALUE, if_equal=first.generation).result().generation == b""

    assert fake.values["a"].body == VALUE * 2
    assert second.generation == b"\x00" + fake.values["a"].etag.encode()
    assert fake.uploads == {}
    server.plan = only("POST", "uploadId", applied_then(RESET))
    assert store.write("a", VALUE, if_equal=second.generation).result().generation != b""


def test_other_servers_put_no_parts_together_under_a_condition(store, fake, server, monkeypatch):
    store.write("a", VALUE, if_equal=b"\x02").result()
    assert [request.method for request in server.requests] == ["PUT"]

    monkeypatch.setattr(writes, "_MOST_AT_ONCE", 2000)
    with pytest.raises(ts.UnsupportedError, match="10240 bytes are more than one request takes"):
        store.write("b", VALUE, if_equal=b"\x02").result()
    assert set(fake.values) == {"a"}
