"""Services that differ in what they make of conditions."""

import pytest

import tensorstore_py as ts
from tensorstore_py.kvstores.obstore import ObstoreClients, ObstoreConfig, ObstoreStore
from tensorstore_py.plugin import NO_VALUE, UNKNOWN
from tensorstore_py.testing import FaultServer, drive
from tests.kvstores.s3.fake_s3 import FakeS3


@pytest.fixture
def service(request):
    fake = FakeS3(conditions=request.param)
    server = FaultServer(fake.handle, ())
    with server.running():
        options = {"endpoint": server.url, "region": "x", "skip_signature": True}
        config = ObstoreConfig.parse(
            {
                **options,
                "client_options": {"allow_http": True},
                "retry_config": {"max_retries": 0},
            }
        )
        yield fake, ObstoreStore(ObstoreClients(config), "s3://bucket"), server


def write(store, key, value, **condition):
    return drive(store, lambda: store.write(key, value, **condition)).generation


@pytest.mark.parametrize("service", ["heeded", "unquoted"], indirect=True)
def test_conditions_that_are_heeded_are_used_however_they_have_to_be_told(service):
    fake, store, server = service

    first = write(store, "a", b"1", if_equal=NO_VALUE)
    assert write(store, "a", b"2", if_equal=NO_VALUE) == UNKNOWN
    second = write(store, "a", b"3", if_equal=first)
    assert write(store, "a", b"4", if_equal=first) == UNKNOWN
    server.requests.clear()
    assert write(store, "a", b"5", if_equal=second) not in (UNKNOWN, NO_VALUE)

    assert fake.values["a"].body == b"5"
    assert list(fake.values) == ["a"]
    # What is known is not found out again.
    assert [request.method for request in server.requests] == ["PUT"]


@pytest.mark.parametrize("service", ["ignored", "refused"], indirect=True)
def test_conditions_that_are_not_heeded_are_not_used(service):
    fake, store, _ = service
    first = write(store, "a", b"1")

    for condition in (NO_VALUE, first):
        with pytest.raises(ts.UnsupportedError, match='"use_conditional_write": false'):
            write(store, "a", b"2", if_equal=condition)

    assert {key: stored.body for key, stored in fake.values.items()} == {"a": b"1"}
