import pytest

from tensorstore_py.testing.fault_server import CLOSE, RESET, Fault, applied_then, status
from tests.kvstores.s3.fake_s3 import FakeS3


@pytest.fixture
def fake():
    return FakeS3()


@pytest.fixture
def server(serve, fake):
    return serve(fake.handle)


@pytest.fixture
def store(server, open_store):
    return open_store(server.url, use_conditional_write=True)


LOST = [applied_then(RESET), applied_then(CLOSE), applied_then(status(500))]


@pytest.mark.parametrize("fault", LOST, ids=str)
def test_a_write_whose_answer_got_lost_is_known_for_its_own(fake, store, server, fault):
    server.plan = [fault]
    created = store.write("a", b"1", if_equal=b"\x02").result()
    assert created.generation == store.read("a").result().stamp.generation

    server.plan = [fault]
    replaced = store.write("a", b"2", if_equal=created.generation).result()
    assert replaced.generation == store.read("a").result().stamp.generation
    assert fake.values["a"].body == b"2"


@pytest.mark.parametrize("fault", LOST, ids=str)
def test_the_write_of_another_is_not_taken_for_ones_own(fake, store, server, fault):
    """Even if it wrote the same: of two that counted to one, only one may be told that it did."""
    server.plan = [applied_then_written(fake, fault)]

    assert store.write("a", b"1", if_equal=b"\x02").result().generation == b""


def applied_then_written(fake, fault):
    async def act(exchange):
        fake.put("a", b"1", **{"x-amz-meta-tensorstore-write": "of somebody else"})
        return await fault.act(exchange)

    return Fault("written by another", act)


@pytest.mark.parametrize("fault", LOST, ids=str)
def test_a_delete_whose_answer_got_lost_is_known_for_its_own(fake, store, server, fault):
    generation = b"\x00" + fake.put("a", b"1").etag.encode()
    server.plan = [None, fault]

    assert store.write("a", None, if_equal=generation).result().generation == b"\x02"
    assert fake.values == {}


def test_a_delete_that_the_server_makes_under_no_condition_looks_first(fake, store):
    generation = b"\x00" + fake.put("a", b"1").etag.encode()
    fake.conditions = "refused"

    assert store.write("a", None, if_equal=b'\x00"other"').result().generation == b""
    assert store.write("a", None, if_equal=generation).result().generation == b"\x02"
    assert fake.values == {}
