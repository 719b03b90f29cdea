"""What only the reading half of the file store does; the rest is in `test_store`."""

import os

import pytest

from tensorstore_py.errors import PermissionDeniedError, UnsupportedError
from tensorstore_py.kvstores.file.reads import FileReads
from tensorstore_py.kvstores.file.resources import FileIoMode, FileIoRetries
from tensorstore_py.plugin import ByteRange, Places
from tensorstore_py.testing import drive

RANGES = [ByteRange(0, 2), ByteRange(7, 10), ByteRange(4, 4)]


@pytest.fixture
def key(tmp_path):
    (tmp_path / "a").write_bytes(b"0123456789")
    return f"{tmp_path}/a"


def parts(store, key, size=10):
    return drive(store, lambda: store.read_parts(key, RANGES, size))


@pytest.mark.parametrize("mode", ["default", "memmap", "direct"])
def test_parts_of_a_value(key, mode):
    store = FileReads(mode=FileIoMode(mode=mode), concurrency=Places(1))
    assert [bytes(part) for part in parts(store, key)] == [b"01", b"789", b""]
    assert store._places.free == 1


def test_parts_of_a_value_of_another_size_are_not_given(key):
    store = FileReads()
    assert parts(store, key, 9) is None
    assert parts(store, key, 11) is None


def test_parts_of_what_is_not_there(key, tmp_path):
    os.mkdir(f"{tmp_path}/d")
    store = FileReads()
    assert parts(store, key + "b") == [None] * 3
    assert parts(store, key + "/below") == [None] * 3
    assert parts(store, f"{tmp_path}/d") is None


def test_what_the_system_forbids_is_said(key, monkeypatch):
    store = FileReads()

    def forbid(_path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(store, "_open", forbid)
    with pytest.raises(PermissionDeniedError, match=r'cannot read ".*/a"'):
        parts(store, key)


def test_an_error_that_passes_is_not_noticed(key, monkeypatch):
    store = FileReads(retries=FileIoRetries(max_retries=1))
    opened, errors = store._open, [OSError(116, "Stale file handle")]

    def once(path):
        if errors:
            raise errors.pop()
        return opened(path)

    monkeypatch.setattr(store, "_open", once)
    assert bytes(parts(store, key)[0]) == b"01"


def test_it_cannot_write(key):
    store = FileReads()
    with pytest.raises(UnsupportedError):
        drive(store, lambda: store.write(key, b""))
