"""Stores of this package in zarr-python: its own published suite, on stores and real servers."""

import uuid
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from zarr.buffer import cpu
from zarr.testing.stateful import ZarrHierarchyStateMachine, ZarrStoreStateMachine
from zarr.testing.store import StoreTests

import tensorstore_py as ts
from tensorstore_py.zarr.key_value_store import InlineKeyValueStore, KeyValueStore


class Published(StoreTests[KeyValueStore, cpu.Buffer]):
    """zarr-python's suite; what is stored behind the store's back is by the `ts.KvStore`."""

    store_cls = KeyValueStore
    buffer_cls = cpu.Buffer
    shown: str

    @pytest.fixture
    def store_kwargs(self, spec):
        return {"store": ts.KvStore.open(spec).result()}

    async def set(self, store, key, value):
        await store.kvstore.write(key, value.to_bytes())

    async def get(self, store, key):
        result = await store.kvstore.read(key)
        return self.buffer_cls.from_bytes(bytes(result.value))

    def test_store_repr(self, store):
        assert repr(store).startswith(f"ts.zarr.as_store({self.shown}")

    def test_store_supports_writes(self, store):
        assert store.supports_writes
        assert store.supports_deletes

    def test_store_supports_listing(self, store):
        assert store.supports_listing


class PublishedInline(Published):
    """With the calls that do not await."""

    store_cls = InlineKeyValueStore


class PublishedRemote(Published):
    """zarr-python has these calls for stores that need not wait, and leaves them out elsewhere."""

    def test_it_has_no_calls_that_do_not_await(self, store):
        assert not hasattr(store, "get_sync")


for _name in (
    "test_get_sync",
    "test_get_sync_missing",
    "test_get_sync_byte_range_parity",
    "test_set_sync",
    "test_delete_sync",
    "test_delete_sync_missing",
    "test_delete_sync_visible_to_async_get",
    "test_sync_async_set_get_parity",
):
    setattr(PublishedRemote, _name, None)


class TestMemory(PublishedInline):
    shown = "'memory://"

    @pytest.fixture
    def spec(self):
        return "memory://data/"


class TestFile(PublishedInline):
    shown = "'file://"

    @pytest.fixture
    def spec(self, tmp_path):
        return f"file://{tmp_path}/data/"


class TestZip(PublishedInline):
    shown = "'file://"

    @pytest.fixture
    def spec(self, tmp_path):
        return f"file://{tmp_path}/data.zip|zip:"


class TestS3(PublishedRemote):
    shown = "'http://127.0.0.1"

    @pytest.fixture(scope="class")
    @classmethod
    def bucket(cls, moto_s3):
        return moto_s3.make_bucket()

    @pytest.fixture
    def spec(self, moto_s3, bucket):
        return {
            "driver": "s3",
            "bucket": bucket,
            "endpoint": moto_s3.endpoint,
            "aws_credentials": {
                "type": "static",
                "access_key_id": moto_s3.access_key,
                "secret_access_key": moto_s3.secret_key,
            },
            "path": f"{uuid.uuid4()}/",
        }


class TestGcs(PublishedRemote):
    shown = "'gs://bucket/"

    @pytest.fixture
    def spec(self, gcs_server, monkeypatch):
        monkeypatch.setenv("TENSORSTORE_GCS_HTTP_URL", gcs_server.url)
        monkeypatch.setenv("NO_GCE_CHECK", "true")
        return {"driver": "gcs", "bucket": "bucket", "path": f"{uuid.uuid4()}/"}


@pytest.mark.parametrize(
    ("machine", "place"),
    [
        (ZarrStoreStateMachine, "memory://"),
        (ZarrStoreStateMachine, "file://{}/a.zip|zip:"),
        (ZarrHierarchyStateMachine, "{}/data"),
    ],
)
@pytest.mark.filterwarnings("ignore")  # the machines try what zarr-python warns of
def test_any_sequence_of_calls_does_what_zarr_pythons_model_does(tmp_path_factory, machine, place):
    def begun():
        return machine(ts.zarr.as_store(place.format(tmp_path_factory.mktemp("machine"))))

    begin: Any = begun  # it may be a function as well
    few = settings(max_examples=3, stateful_step_count=8, phases=[Phase.generate])
    run_state_machine_as_test(begin, settings=few)
