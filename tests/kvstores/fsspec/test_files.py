import os
import sys
import uuid

import pytest
from fsspec.implementations.memory import MemoryFileSystem

import tensorstore_py as ts
from tensorstore_py.kvstores.fsspec.files import Files, open_files


@pytest.mark.parametrize(
    ("root", "key", "path"),
    [
        ("", "a/b", "/a/b"),
        ("", "", "/"),
        ("bucket", "a", "bucket/a"),
        ("/x/", "a", "/x/a"),
        ("https://host/x", "a", "https://host/x/a"),
    ],
)
def test_paths_of_keys(root, key, path):
    files = Files(lambda: (MemoryFileSystem(), root), "memory", inline=True)

    assert files.path(key) == path
    assert files.key(path) == key


def test_what_is_not_below_the_root_has_no_key():
    files = Files(lambda: (MemoryFileSystem(), "/x"), "memory", inline=True)

    assert files.key("/xy/z") == files.key("/x") == ""


def test_a_file_system_is_made_once_and_again_in_a_child(monkeypatch):
    made = []

    def connect():
        made.append(1)
        return MemoryFileSystem(), ""

    files = Files(connect, "memory", inline=True)
    assert made == []
    files.path("a")
    files.path("b")
    assert len(made) == 1
    monkeypatch.setattr(os, "getpid", lambda: -1)
    files.path("a")
    assert len(made) == 2


def test_chains_of_file_systems_are_opened():
    name = uuid.uuid4().hex
    MemoryFileSystem().pipe_file(f"/{name}/a", b"1")

    assert open_files(f"simplecache::memory://{name}", {}).inline
    spec = {"driver": "fsspec", "url": f"simplecache::memory://{name}"}
    assert ts.KvStore.open(spec).result()["a"] == b"1"


def test_what_is_not_installed_is_named(monkeypatch):
    with pytest.raises(ts.UnsupportedError, match="Protocol not known: nosuch"):
        open_files("nosuch://a", {})
    monkeypatch.setitem(sys.modules, "fsspec", None)
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(ts.UnsupportedError, match=r"tensorstore-py\[fsspec\]"):
        open_files("memory://a", {})
