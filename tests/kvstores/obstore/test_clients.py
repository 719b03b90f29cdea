"""Store objects of obstore that the user made."""

import pickle

import numpy as np
import obstore.store
import pytest

import tensorstore_py as ts
from tensorstore_py.errors import SpecError
from tensorstore_py.kvstores.obstore import ObstoreConfig, ObstoreStore
from tensorstore_py.testing import KvStoreSuite
from tests.runtime.processes import run_script


def test_what_the_library_does_not_like_names_the_member():
    config = {"region": "x", "swordfish_option": "s3cr3t-value"}
    store = ts.KvStore.open({"driver": "obstore", "url": "s3://b", "config": config}).result()

    with pytest.raises(ts.SpecError, match="swordfish_option") as caught:
        _ = store["a"]
    assert "s3cr3t" not in str(caught.value)
    other = ts.KvStore.open({"driver": "obstore", "url": "ftp://host/"}).result()
    with pytest.raises(ts.SpecError, match="Unable to recognise URL"):
        _ = other["a"]


def test_secrets_are_not_printed():
    config = {"account_name": "lab", "account_key": "c2VjcmV0", "client_options": {"timeout": "3s"}}
    spec = {"driver": "obstore", "url": "az://box", "config": config}
    store = ts.KvStore.open(spec).result()
    shown = {"account_name": "lab", "client_options": {"timeout": "3s"}}

    assert store.spec(unbind_context=True).to_json()["config"] == shown
    for text in (
        repr(store),
        repr(store.spec(retain_context=True)),
        pickle.dumps(store).decode("latin-1"),
    ):
        assert "c2VjcmV0" not in text
    assert isinstance(store.store, ObstoreStore)


def test_how_often_to_try_again_is_handed_on():
    retries = {"max_retries": 0, "retry_timeout": "1s", "backoff": {"init_backoff": "1ms"}}
    options = {"endpoint": "http://127.0.0.1:9", "skip_signature": True, "region": "x"}
    config = {**options, "retry_config": retries, "client_options": {"allow_http": True}}
    store = ts.KvStore.open({"driver": "obstore", "url": "s3://box", "config": config}).result()

    with pytest.raises(ts.UnavailableError, match='cannot read "s3://box/a"'):
        _ = store["a"]


def test_stores_of_one_context_share_a_memory():
    context = ts.Context()
    first = ts.KvStore.open({"driver": "obstore", "url": "memory:///x/"}, context=context).result()
    first["a"] = b"1"

    again = ts.KvStore.open({"driver": "obstore", "url": "memory:///"}, context=context).result()
    assert again["x/a"] == b"1"
    assert again.list().result() == [b"x/a"]


def test_without_the_library_is_said_how_to_get_it(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "obstore", None)
    store = ts.KvStore.open("az://box/").result()

    with pytest.raises(ts.UnsupportedError, match=r"tensorstore-py\[obstore\]"):
        _ = store["a"]


@pytest.mark.parametrize("json", [5, "key", ["a"]])
def test_it_is_an_object(json):
    with pytest.raises(ts.SpecError, match="expected an object"):
        ObstoreConfig.parse(json)


def test_a_forked_child_gets_an_error_and_does_not_wait_for_ever():
    script = """
        import os
        import tensorstore_py as ts

        store = ts.KvStore.open({"driver": "obstore", "url": "memory:///"}).result()
        store["a"] = b"1"
        child = os.fork()
        if not child:
            try:
                store["a"]
            except ts.UnsupportedError as error:
                print(error, flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        print(store["a"], flush=True)
        os._exit(0)  # how the library's threads end after a fork is its own affair
    """
    told, value = run_script(script).splitlines()
    assert told.startswith('cannot use "memory:///" in this process: it was forked')
    assert value == "b'1'"


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
