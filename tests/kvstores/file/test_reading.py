import os

import pytest

from tensorstore_py.errors import AbortedError
from tensorstore_py.kvstores.file import reading
from tensorstore_py.kvstores.file.reading import FETCHERS

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
