import pytest

import tensorstore_py as ts
from tensorstore_py.testing.fault_server import status
from tests.kvstores.s3.fake_s3 import FakeS3

EVERYTHING = ts.KvStore.KeyRange()


@pytest.fixture
def start(serve, open_store):
    def start(keys, **options):
        fake = FakeS3(**options)
        for key in keys:
            fake.put(key, b"1")
        server = serve(fake.handle)
        return fake, server, open_store(server.url)

    return start


def methods(server):
    return sorted(request.method for request in server.requests)


def test_many_keys_are_deleted_by_one_request(start):
    fake, server, store = start([f"{number}&<é>" for number in range(50)], page=20)

    store.delete_range(EVERYTHING).result()

    assert fake.values == {}
    assert methods(server) == 3 * ["GET"] + 3 * ["POST"]


def test_keys_that_xml_cannot_say_are_deleted_one_by_one(start):
    fake, server, store = start(["a\x01b", "a\nb", "c", "d"])

    store.delete_range(EVERYTHING).result()

    assert fake.values == {}
    assert methods(server) == ["DELETE", "DELETE", "GET", "POST"]


def test_a_single_key_is_deleted_plainly(start):
    _, server, store = start(["a"])

    store.delete_range(EVERYTHING).result()

    assert methods(server) == ["DELETE", "GET"]


def test_a_server_that_cannot_is_asked_once(start):
    fake, server, store = start([f"{number}" for number in range(10)], page=5, batches=False)

    store.delete_range(EVERYTHING).result()

    assert fake.values == {}
    assert methods(server) == 10 * ["DELETE"] + 2 * ["GET"] + ["POST"]


def test_a_key_that_was_not_deleted_is_tried_by_itself(start):
    fake, server, store = start(["a", "b-locked", "c"])

    store.delete_range(EVERYTHING).result()

    assert fake.values == {}
    assert methods(server) == ["DELETE", "GET", "POST"]


def test_a_key_that_cannot_be_deleted_is_named(start):
    _, server, store = start(["a", "b-locked", "c"])
    server.plan = lambda request: status(403) if request.method == "DELETE" else None

    with pytest.raises(ts.PermissionDeniedError, match=r'cannot delete ".*/bucket/b-locked"'):
        store.delete_range(EVERYTHING).result()


def test_only_the_range_is_deleted(start):
    fake, _, store = start([f"{number}" for number in range(10)], page=3)

    store.delete_range(ts.KvStore.KeyRange("3", "7")).result()

    assert sorted(fake.values) == ["0", "1", "2", "7", "8", "9"]
