import pickle

import pytest

import tensorstore_py as ts
from tensorstore_py.kvstores.fsspec import FsspecStorageOptions


@pytest.mark.parametrize(
    ("url", "json"),
    [
        ("ftp://host/a%20b/", {"driver": "fsspec", "url": "ftp://host", "path": "a b/"}),
        ("sftp://me@host:22/x", {"driver": "fsspec", "url": "sftp://me@host:22", "path": "x"}),
        ("github://org:repo@/x", {"driver": "fsspec", "url": "github://org:repo@", "path": "x"}),
        ("hdfs://host", {"driver": "fsspec", "url": "hdfs://host"}),
    ],
)
def test_schemes_that_no_other_store_has(url, json):
    spec = ts.KvStore.Spec(url)

    assert spec.to_json() == json
    assert ts.KvStore.Spec(spec.url).to_json() == json


def test_the_path_of_the_url_is_the_path():
    spec = ts.KvStore.Spec({"driver": "fsspec", "url": "s3://bucket/a", "path": "c"})

    assert spec.to_json() == {"driver": "fsspec", "url": "s3://bucket", "path": "a/c"}
    with pytest.raises(ts.UnsupportedError, match="URL means another store"):
        _ = spec.url


@pytest.mark.parametrize(
    "url",
    ["simplecache::memory://a/b", "https://host/a?token=1", "zip://a::github://org:repo@main/b"],
)
def test_what_cannot_be_taken_apart_is_the_root(url):
    assert ts.KvStore.Spec({"driver": "fsspec", "url": url}).to_json()["url"] == url


@pytest.mark.parametrize(
    ("json", "problem"),
    [
        ({"url": "nothing"}, "is no URL"),
        ({"url": "ftp://me:pass@host"}, 'use "storage_options"'),
        ({"url": "simplecache::ftp://me:pass@host"}, 'use "storage_options"'),
        ({"url": "ftp://me:pa#ss@host/a"}, 'use "storage_options"'),
        ({"url": "ftp://me:pass@[host"}, 'use "storage_options"'),
        ("ftp://me:pa?ss@host/a", 'use "storage_options"'),
        ({"url": "ftp://[host"}, "is no URL"),
        ({"url": "ftp://host", "storage_options": 5}, "expected an object"),
        ({}, "url"),
        ("ftp://host/a?b", "%3F"),
    ],
)
def test_bad_specs_are_refused(json, problem):
    with pytest.raises(ts.SpecError, match=problem):
        ts.KvStore.Spec({"driver": "fsspec", **json} if isinstance(json, dict) else json)


def test_local_files_are_where_the_url_says(tmp_path):
    spec = {"driver": "fsspec", "url": f"{tmp_path.as_uri()}/x"}
    ts.KvStore.open(spec).result()["/a"] = b"1"

    assert (tmp_path / "x" / "a").read_bytes() == b"1"
    assert ts.KvStore.Spec(spec).to_json() == {
        "driver": "fsspec", "url": "file:///", "path": f"{tmp_path}/x"[1:]
    }  # fmt: skip


def test_secrets_are_not_printed():
    options = {"username": "me", "password": "swordfish", "client_kwargs": {"region_name": "x"}}
    spec = {"driver": "fsspec", "url": "memory://a", "storage_options": options}
    store = ts.KvStore.open(spec).result()
    shown = {"username": "me", "client_kwargs": {"region_name": "x"}}

    assert store.spec(unbind_context=True).to_json()["storage_options"] == shown
    pickled = pickle.dumps(store).decode("latin-1")
    for text in (repr(store), repr(store.spec(retain_context=True)), pickled):
        assert "swordfish" not in text


def test_options_are_said_once_for_all():
    context = ts.Context({"fsspec_storage_options#lab": {"password": "swordfish"}})
    spec = {
        "driver": "fsspec", "url": "memory://a", "storage_options": "fsspec_storage_options#lab"
    }  # fmt: skip
    store = ts.KvStore.open(spec, context=context).result()

    assert store.spec().to_json() == {"driver": "fsspec", "url": "memory://a"}
    unbound = store.spec(unbind_context=True).to_json()
    assert unbound["storage_options"] in ("fsspec_storage_options#lab", {})


def test_clients_with_the_same_options_share_connections():
    shared = FsspecStorageOptions().create()

    assert shared.open("memory://a") is shared.open("memory://a")
    assert shared.open("memory://a") is not shared.open("memory://b")
