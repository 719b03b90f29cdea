import numpy as np
import pytest
import tensorstore as reference

import tensorstore_py as ts
from tensorstore_py.kvstores.memory import MemoryStore

AUTO = {"driver": "auto", "kvstore": "memory://a/"}


@pytest.mark.parametrize("library", [ts, reference], ids=["ours", "reference"])
def test_a_directory_with_a_manifest_is_the_database_that_it_is(tmp_path, library):
    url = f"file://{tmp_path}/|ocdbt:|zarr3:"
    library.open(url, create=True, dtype="int16", shape=[4]).result()[...] = 7

    for place in (
        f"file://{tmp_path}/",
        f"file://{tmp_path}",
        f"file://{tmp_path}/|auto:",
        tmp_path,
    ):
        array = ts.open(place).result()
        assert array.read().result().tolist() == [7, 7, 7, 7]
        assert array.url == url
    group = ts.Group.open(f"file://{tmp_path}/g/|ocdbt:", create=True).result()
    group.create_array("a", dtype="int8", shape=[2]).result()
    assert ts.Group.open(tmp_path / "g").result()["a"].shape == (2,)
    ts.KvStore.open(f"file://{tmp_path}/none/|ocdbt:").result()["a"] = b"1"
    with pytest.raises(ts.NotFoundError, match="no array found at the OCDBT database"):
        ts.open(f"file://{tmp_path}/none/").result()


@pytest.fixture
def context():
    context = ts.Context()
    for driver, path in (("zarr3", "a/"), ("zarr", "b/")):
        where = {"driver": driver, "kvstore": f"memory://{path}"}
        ts.open(where, create=True, dtype="uint8", shape=[4], context=context).result()
    kvstore = ts.KvStore.open("memory://", context=context).result()
    kvstore["c.json"] = b'{"a": 1}'
    kvstore["d/x"] = b"abc"
    kvstore["long"] = bytes(10_000)
    return context


@pytest.mark.parametrize(
    ("spec", "driver"),
    [
        ("memory://a/", "zarr3"),
        ("memory://a", "zarr3"),
        ("memory://b/", "zarr"),
        ("memory://b/|auto:", "zarr"),
        (AUTO, "zarr3"),
        ({**AUTO, "kvstore": "memory://", "path": "b/"}, "zarr"),
        ({**AUTO, "dtype": "uint8", "rank": 1}, "zarr3"),
        ({**AUTO, "schema": {"dtype": "uint8"}, "open": True}, "zarr3"),
        ({"driver": "memory", "path": "b/"}, "zarr"),
        ({"driver": "cast", "base": "memory://a/", "dtype": "int32"}, "cast"),
        ("memory://b/|auto:|cast:int32", "cast"),
    ],
    ids=str,
)
def test_the_format_is_found(context, spec, driver):
    store = ts.open(spec, context=context).result()
    assert store.spec().to_json()["driver"] == driver
    assert store.shape == (4,)


@pytest.mark.parametrize(
    "spec",
    [
        "memory://a/",
        "memory://b/|auto:",
        AUTO,
        {"driver": "memory", "path": "a/"},
        {"driver": "file", "path": "/a/", "file_io_sync": False},
    ],
    ids=str,
)
def test_specs_as_the_reference(spec):
    ours, theirs = ts.Spec(spec), reference.Spec(spec)
    assert ours.to_json() == theirs.to_json()
    assert ours.url == theirs.url
    assert str(ours.kvstore) == str(theirs.kvstore)
    assert str(ours.open_mode) == str(theirs.open_mode)


def test_a_known_format_costs_no_request_more(context, monkeypatch):
    reads = []

    async def read(self, key, *arguments, **options):
        reads.append(key)
        return await plain(self, key, *arguments, **options)

    plain = MemoryStore.read
    monkeypatch.setattr(MemoryStore, "read", read)
    ts.open("memory://a/", context=context).result()
    assert reads == ["a/zarr.json"]
    ts.open("memory://b/", context=context).result()
    assert reads[1:] == ["b/zarr.json", "b/.zarray"]


@pytest.mark.parametrize(
    ("url", "error", "words"),
    [
        ("memory://d/", ts.NotFoundError, ".zarray, attributes.json, zarr.json"),
        ("memory://zz", ts.NotFoundError, '"zz"'),
        ("memory://c.json", ts.FailedPreconditionError, "no known format"),
        ("memory://long", ts.FailedPreconditionError, "no known format"),
    ],
)
def test_nothing_found(context, url, error, words):
    with pytest.raises(error, match=words):
        ts.open(url, context=context).result()
    with pytest.raises(ValueError):
        reference.open(url).result()


@pytest.mark.parametrize("options", [{"create": True}, {"assume_metadata": True}], ids=str)
def test_what_needs_a_format(context, options):
    with pytest.raises(ts.SpecError, match="name the driver"):
        ts.open("memory://a/", context=context, **options)
    with pytest.raises(ValueError):
        reference.open("memory://a/", **options).result()


def test_constraints_and_options_are_handed_on(context):
    with pytest.raises(ts.MismatchError):
        ts.open("memory://a/", dtype="int8", context=context).result()
    store = ts.open("memory://a/", shape=[4], recheck_cached=False, context=context).result()
    assert store.spec().to_json()["recheck_cached_data"] is False
    spec = {**AUTO, "transform": {"input_shape": [2]}}
    assert ts.open(spec, context=context).result().shape == (2,)


def test_every_context_resource_is_a_member(context):
    spec = {**AUTO, "cache_pool": {"total_bytes_limit": 5}, "file_io_concurrency": {"limit": 3}}
    assert ts.Spec(spec).to_json() == reference.Spec(spec).to_json() == {
        **spec, "kvstore": {"driver": "memory", "path": "a/"}
    }  # fmt: skip
    found = ts.open(spec, context=context).result().spec(retain_context=True).to_json()
    assert found["cache_pool"] == {"total_bytes_limit": 5}
    # a reference to the default is the default, and no circle
    assert ts.open({**AUTO, "cache_pool": "cache_pool"}, context=context).result().shape == (4,)


@pytest.mark.parametrize(
    ("members", "path"),
    [
        ({"xx": 1}, ("xx",)),
        ({"metadata": {}}, ("metadata",)),
        ({"resources": {}}, ("resources",)),
        ({"cache_pool": {"total_bytes_limi": 5}}, ("cache_pool", "total_bytes_limi")),
        ({"file_io_sync": 3}, ("file_io_sync",)),
    ],
)
def test_malformed_specs_name_the_place(members, path):
    with pytest.raises(ts.SpecError) as caught:
        ts.Spec({**AUTO, **members})
    assert caught.value.path == path
    with pytest.raises(ValueError):
        reference.Spec({**AUTO, **members})


def test_a_kvstore_is_required():
    assert ts.Spec({"driver": "auto"}).to_json() == {"driver": "auto"}
    with pytest.raises(ts.SpecError) as caught:
        ts.open({"driver": "auto"})
    assert caught.value.path == ("kvstore",)


def test_a_directory_on_disk(tmp_path):
    spec = {"driver": "zarr", "kvstore": {"driver": "file", "path": f"{tmp_path}/a/"}}
    ts.open(spec, create=True, dtype="int16", shape=[3]).result()[...] = [1, 2, 3]
    for where in (tmp_path / "a", f"file://{tmp_path}/a/"):
        np.testing.assert_array_equal(ts.open(where).result().read().result(), [1, 2, 3])
    with pytest.raises(ts.NotFoundError, match="looked for"):
        ts.open(tmp_path).result()
