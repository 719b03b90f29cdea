"""Store objects of obstore that the user made."""

import pickle

import numpy as np
import obstore.store
import pytest

import tensorstore_py as ts
from tensorstore_py.errors import SpecError
from tensorstore_py.testing import KvStoreSuite

BAD = ("", "/a", "a/", "a//b", ".", "a/..", "a/./b", "a\x01")


class TestMemory(KvStoreSuite):
    bad_keys = BAD

    @pytest.fixture
    def store(self):
        return ts.KvStore.open(obstore.store.MemoryStore()).result().store


def create(store):
    spec = {"driver": "zarr3", "kvstore": store}
    layout = {"chunk": {"shape": [4]}}
    return ts.open(spec, create=True, dtype="u2", shape=[8], chunk_layout=layout).result()


def s3(server, bucket, **options):
    return obstore.store.S3Store(
        bucket,
        endpoint=server.endpoint,
        access_key_id=server.access_key,
        secret_access_key=server.secret_key,
        region=server.region,
        client_options={"allow_http": True},
        **options,
    )


def test_they_are_taken_everywhere(tmp_path):
    for store in (obstore.store.MemoryStore(), obstore.store.LocalStore(tmp_path)):
        create(store)[1:6] = 7

        expected = [0, 7, 7, 7, 7, 7, 0, 0]
        assert ts.open(store).result().read().result().tolist() == expected
        assert ts.zarr.open_array(store, mode="r")[:].tolist() == expected
        assert b"zarr.json" in ts.KvStore.open(store).result().list().result()
        assert bytes(store.get("zarr.json").bytes())[:1] == b"{"


def test_conditions_are_the_services_own(moto_s3):
    bucket = moto_s3.make_bucket()
    store = s3(moto_s3, bucket, prefix="lab/data")
    array = create(store)

    for future in [array[place].write(place + 1) for place in range(8)]:
        future.result()

    assert array.read().result().tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert moto_s3.get(bucket, "lab/data/zarr.json") is not None
    assert moto_s3.secret_key not in f"{array.spec()!r} {array.kvstore!r}"


def test_a_pickle_has_the_store(moto_s3, tmp_path):
    for store in (s3(moto_s3, moto_s3.make_bucket()), obstore.store.LocalStore(tmp_path)):
        create(store)[:] = np.arange(8, dtype="u2")
        array = pickle.loads(pickle.dumps(ts.open(store).result()))

        assert array[5].read().result() == 5


@pytest.mark.parametrize(
    ("store", "url"),
    [
        (obstore.store.MemoryStore(), "memory://"),
        (obstore.store.S3Store("bucket", region="x"), "s3://bucket"),
        (obstore.store.S3Store("bucket", prefix="a/b", region="x"), "s3://bucket/a/b"),
        (obstore.store.GCSStore("bucket", skip_signature=True), "gs://bucket"),
    ],
)
def test_a_spec_says_where_it_is_and_what_it_is(store, url):
    json = ts.KvStore.Spec(store).to_json()

    assert str(json["url"]).rstrip("/") == url.rstrip("/")
    assert json["store"] == f"<{type(store).__name__}>"


def test_members_go_beside_it(tmp_path):
    store = obstore.store.LocalStore(tmp_path)
    spec = {"driver": "obstore", "store": store, "path": "a/", "use_conditional_write": False}

    ts.KvStore.open(spec).result()["x"] = b"1"

    assert (tmp_path / "a" / "x").read_bytes() == b"1"


def test_what_is_no_store_is_refused():
    for given in ("<S3Store>", 5, ts.zarr.MemoryStore()):
        with pytest.raises(SpecError, match="store object of obstore"):
            ts.KvStore.Spec({"driver": "obstore", "store": given})
    with pytest.raises(SpecError, match="url"):
        ts.KvStore.Spec({"driver": "obstore"})
