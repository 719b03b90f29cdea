import pytest
import tensorstore as reference

import tensorstore_py as ts
from tensorstore_py.kvstores.zip import ZipSpec, ZipStore

PRINTED = [
    "memory://a.zip|zip:b c",
    "memory://a.zip|zip",
    "file:///a.zip|zip:inner/",
    "memory://a.zip|zip:b.zip|zip:c/",
    {"driver": "zip", "base": "memory://a.zip", "path": "x/", "compression": "zstd"},
    {"driver": "zip", "base": "memory://a.zip", "cache_pool": {"total_bytes_limit": 5}},
]
REFUSED = [
    ("file:///a.zip|zip://x", ()),
    ("file:///a.zip|zip:x?y", ()),
    ("zip:x", ()),
    ({"driver": "zip"}, ("base",)),
    ({"driver": "zip", "base": 5}, ("base",)),
    ({"driver": "zip", "base": {"driver": "memory", "pat": "a"}}, ("base", "pat")),
    ({"driver": "zip", "base": "memory://a.zip", "compression": "x"}, ("compression",)),
    ({"driver": "zip", "base": "memory://a.zip", "x": 5}, ("x",)),
]


@pytest.mark.parametrize("json", PRINTED, ids=str)
def test_printed_as_by_the_reference(json):
    ours, theirs = ts.KvStore.Spec(json), reference.KvStore.Spec(json)
    for include in (False, True):
        assert ours.to_json(include) == theirs.to_json(include)
    assert ours.url == theirs.url
    assert str(ours.base) == str(theirs.base)


@pytest.mark.parametrize(("json", "path"), REFUSED, ids=str)
def test_refused_with_the_path(json, path):
    with pytest.raises(ValueError):
        reference.KvStore.Spec(json)
    with pytest.raises(ts.SpecError) as caught:
        ts.KvStore.Spec(json)
    assert caught.value.path == path


def test_an_archive_is_known_by_its_first_bytes():
    assert ZipSpec.detects(b"PK\x03\x04...")
    assert ZipSpec.detects(b"PK\x05\x06" + bytes(18))
    assert not ZipSpec.detects(b"PK")
    context = ts.Context()
    kvstore = ts.KvStore.open("memory://", context=context).result()
    kvstore["a.zip"] = b"PK\x05\x06" + bytes(18)
    with pytest.raises(ts.NotFoundError, match=r'no array found at the zip archive "a\.zip"'):
        ts.open("memory://a.zip", context=context).result()


def archive_of(kvstore: ts.KvStore) -> object:
    assert isinstance(kvstore.store, ZipStore)
    return kvstore.store._archive


def test_all_who_open_an_archive_share_what_is_known_of_it():
    context = ts.Context()
    first = ts.KvStore.open("memory://a.zip|zip:x/", context=context).result()
    second = ts.KvStore.open("memory://a.zip|zip:y", context=context).result()
    other = ts.KvStore.open("memory://b.zip|zip:", context=context).result()

    assert archive_of(first) is archive_of(second)
    assert archive_of(first) is not archive_of(other)
    assert first.store.inline


def test_a_cache_pool_keeps_what_is_known_of_an_archive():
    context = ts.Context({"cache_pool": {"total_bytes_limit": 100_000}})
    first = ts.KvStore.open("memory://a.zip|zip:", context=context).result()
    first["a"] = b"1"
    archive = archive_of(first)
    del first

    again = ts.KvStore.open("memory://a.zip|zip:", context=context).result()
    assert archive_of(again) is archive
