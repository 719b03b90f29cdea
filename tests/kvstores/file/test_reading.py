"""What only the reading half of the file store does; the rest is in `test_store`."""

import os

import pytest

from tensorstore_py.errors import AbortedError, PermissionDeniedError, UnsupportedError
from tensorstore_py.kvstores.file import reading
from tensorstore_py.kvstores.file.reading import FETCHERS, FileReads
from tensorstore_py.kvstores.file.resources import FileIoMode, FileIoRetries
from tensorstore_py.plugin.kvstore import ByteRange, ThreadLimiter
from tensorstore_py.testing import drive

VALUE = bytes(range(256)) * 64 + b"tail"
SIZE = len(VALUE)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(VALUE)
    return str(path)


@pytest.fixture(params=FETCHERS)
def opened(request, path):
    open_, fetch = FETCHERS[request.param]
    fd = open_(path)
    yield fd, fetch
    os.close(fd)


@pytest.mark.parametrize(
    ("start", "stop"),
    [(0, SIZE), (0, 0), (SIZE, SIZE), (5000, 5000), (1, 2), (4095, 4097), (4096, 8192),
     (SIZE - 3, SIZE), (4097, SIZE - 1)],
)  # fmt: skip
def test_every_mode_fetches_exactly_what_was_asked_for(opened, start, stop):
    fd, fetch = opened

    assert bytes(fetch(fd, start, stop, SIZE)) == VALUE[start:stop]


def test_what_comes_in_pieces_is_put_together(path, monkeypatch):
    read_at = reading._read_at
    monkeypatch.setattr(
        reading, "_read_at", lambda fd, size, start: read_at(fd, min(size, 1000), start)
    )
    fd = reading.open_file(path)

    assert reading.fetch(fd, 3, SIZE - 1, SIZE) == VALUE[3:-1]
    os.close(fd)


@pytest.mark.parametrize("mode", ["default", "direct"])
def test_a_file_that_shrinks_is_an_error(path, mode):
    open_, fetch = FETCHERS[mode]
    fd = open_(path)
    os.truncate(path, 100)

    with pytest.raises(AbortedError, match=r"shrank from 16388 to 100 bytes.*non_atomic"):
        fetch(fd, 50, SIZE, SIZE)
    os.close(fd)


def test_direct_mode_falls_back_where_the_file_system_cannot(path, monkeypatch):
    os_open = os.open

    def refuse(path, flags):
        if flags & os.O_DIRECT:
            raise OSError(22, "Invalid argument")
        return os_open(path, flags)

    monkeypatch.setattr(os, "open", refuse)
    fd = reading.open_direct(path)

    assert bytes(FETCHERS["direct"][1](fd, 1, 9, SIZE)) == VALUE[1:9]
    os.close(fd)


def test_direct_mode_falls_back_where_blocks_are_larger_than_pages(path, monkeypatch):
    def refuse(*_):
        raise OSError(22, "Invalid argument")

    fd = reading.open_direct(path)
    monkeypatch.setattr(reading, "_read_into", refuse)

    assert bytes(FETCHERS["direct"][1](fd, 1, 9, SIZE)) == VALUE[1:9]
    os.close(fd)


def test_direct_mode_does_not_hide_that_a_file_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        reading.open_direct(f"{tmp_path}/nothing")


RANGES = [ByteRange(0, 2), ByteRange(7, 10), ByteRange(4, 4)]


@pytest.fixture
def key(tmp_path):
    (tmp_path / "a").write_bytes(b"0123456789")
    return f"{tmp_path}/a"


def parts(store, key, size=10):
    return drive(store, lambda: store.read_parts(key, RANGES, size))


@pytest.mark.parametrize("mode", ["default", "memmap", "direct"])
def test_parts_of_a_value(key, mode):
    store = FileReads(mode=FileIoMode(mode=mode), concurrency=ThreadLimiter(1))
    assert [bytes(part) for part in parts(store, key)] == [b"01", b"789", b""]
    assert store._places.available == 1


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
