import pytest

from tensorstore_py.kvstores.fsspec.generations import generation_of, is_weak


@pytest.mark.parametrize("name", ["ETag", "etag", "generation", "content_md5", "sha"])
def test_what_is_strong_is_enough(name):
    info = {name: "x", "mtime": 1, "size": 5}

    assert not is_weak(info)
    assert generation_of(info) == generation_of({name: "x", "mtime": 2})
    assert generation_of(info) != generation_of({name: "y", "mtime": 1, "size": 5})


@pytest.mark.parametrize("name", ["mtime", "LastModified", "modify", "created", "ino", "size"])
def test_all_that_is_weak_is_used(name):
    info = {"mtime": 1, "size": 5, "ETag": ""}

    assert is_weak(info)
    assert generation_of(info) != generation_of({**info, name: 7})


def test_what_changes_without_the_value_is_not_used():
    assert generation_of({"mtime": 1, "atime": 1}) == generation_of({"mtime": 1, "atime": 2})
