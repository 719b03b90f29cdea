import os
from array import array

import pytest

from tensorstore_py.kvstores.file import staging
from tensorstore_py.kvstores.file.staging import (
    Segment,
    copy_range,
    make_parents,
    open_stage,
    write_all,
    write_parts,
)
from tensorstore_py.plugin.kvstore import CopiedRange


@pytest.fixture
def key(tmp_path):
    return f"{tmp_path}/a"


@pytest.fixture(params=["os", "lockfile", "none"])
def stage(request, key):
    return open_stage(request.param, key, 1)


def test_a_published_file_takes_the_key(stage, key, tmp_path):
    (tmp_path / "a").write_bytes(b"old")

    write_all(stage.fd, b"new")
    stage.publish(key)
    stage.release()

    assert (tmp_path / "a").read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["a"]


def test_a_file_that_is_not_published_leaves_no_trace(stage, tmp_path):
    (tmp_path / "a").write_bytes(b"old")

    write_all(stage.fd, b"new")
    stage.release()

    assert (tmp_path / "a").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


def test_the_file_is_hidden_from_listings_while_it_is_written(stage):
    assert stage.path.endswith(".__lock")
    stage.release()


@pytest.mark.parametrize("published", [True, False])
def test_on_windows_the_lock_stands_beside_the_file(monkeypatch, key, tmp_path, published):
    # The steps are the ones for a system that renames no open file; they work here, too.
    monkeypatch.setattr(staging, "WINDOWS", True)
    stage = open_stage("os", key, 1)
    assert len(os.listdir(tmp_path)) == 2

    write_all(stage.fd, b"new")
    if published:
        stage.publish(key)
    stage.release()

    assert os.listdir(tmp_path) == (["a"] if published else [])


def test_on_windows_a_rename_waits_for_readers(monkeypatch, key, tmp_path):
    monkeypatch.setattr(staging, "WINDOWS", True)
    replace, refusals = os.replace, [2]

    def refuse_twice(old, new):
        if refusals[0]:
            refusals[0] -= 1
            raise PermissionError(13, "The file is used by another process")
        replace(old, new)

    monkeypatch.setattr(os, "replace", refuse_twice)
    stage = open_stage("none", key, 1)
    write_all(stage.fd, b"new")
    stage.publish(key)
    stage.release()

    assert (tmp_path / "a").read_bytes() == b"new"


def test_writes_on_where_the_system_stopped(key, monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, bytes(data)[:7]))
    fd = os.open(key, os.O_WRONLY | os.O_CREAT)

    write_all(fd, memoryview(bytes(range(40))))
    os.close(fd)

    with open(key, "rb") as file:
        assert file.read() == bytes(range(40))


@pytest.mark.parametrize("sync", [True, False])
def test_makes_all_directories_that_are_missing(tmp_path, sync):
    make_parents(f"{tmp_path}/x/y/z/file", sync=sync)
    make_parents(f"{tmp_path}/x/y/z/file", sync=sync)

    assert os.listdir(tmp_path / "x/y") == ["z"]
    assert os.listdir(tmp_path / "x/y/z") == []


def test_makes_them_again_when_somebody_removes_them_meanwhile(tmp_path, monkeypatch):
    mkdir, removals = os.mkdir, [3]

    def remove_first(path):
        if path.endswith("/y") and removals[0]:
            removals[0] -= 1
            os.rmdir(os.path.dirname(path)) if os.path.exists(os.path.dirname(path)) else None
        mkdir(path)

    monkeypatch.setattr(os, "mkdir", remove_first)
    make_parents(f"{tmp_path}/x/y/file", sync=False)

    assert os.path.isdir(tmp_path / "x/y")


@pytest.mark.parametrize("how", ["by the system", "some of it", "refused", "unknown"])
def test_a_part_of_a_file_is_copied(monkeypatch, tmp_path, how):
    data = bytes(range(256)) * 20_000
    (tmp_path / "a").write_bytes(data)

    def some(source, target, size, start, copy=staging._COPY_RANGE, left=[3]):  # noqa: B006 - a count
        left[0] -= 1
        return copy(source, target, min(size, 1000), start) if left[0] else 0

    def refused(*_):
        raise OSError(18, "not here")

    if how != "by the system":
        fake = {"some of it": some, "refused": refused, "unknown": None}[how]
        monkeypatch.setattr(staging, "_COPY_RANGE", fake)
    with open(tmp_path / "a", "rb") as source, open(tmp_path / "b", "wb") as file:
        copy_range(source.fileno(), file.fileno(), 7, 4_000_000)
        write_all(file.fileno(), b"tail")
        copy_range(source.fileno(), file.fileno(), 3, 5)
        with pytest.raises(OSError, match="less than"):
            copy_range(source.fileno(), file.fileno(), 9, len(data) + 1)

    assert (tmp_path / "b").read_bytes().startswith(data[7:4_000_000] + b"tail" + data[3:5])


def test_what_is_kept_stands_between_what_is_new(tmp_path):
    (tmp_path / "a").write_bytes(b"0123456789")
    parts: list[Segment] = [
        b"ab",
        b"c",
        CopiedRange(2, 4),
        CopiedRange(4, 7),
        memoryview(b"d"),
        CopiedRange(0, 1),
        CopiedRange(9, 9),
    ]
    with open(tmp_path / "a", "rb") as kept, open(tmp_path / "b", "wb") as file:
        write_parts(file.fileno(), parts, kept.fileno())

    assert (tmp_path / "b").read_bytes() == b"abc23456d0"


@pytest.mark.parametrize("vectors", [True, False])
def test_parts_are_written_one_after_the_other(tmp_path, monkeypatch, vectors):
    parts = [bytes([number % 251]) * (number % 7) for number in range(3000)]
    if not vectors:
        monkeypatch.setattr(staging, "_WRITEV", None)
    with open(tmp_path / "a", "wb") as file:
        write_parts(file.fileno(), parts)

    assert (tmp_path / "a").read_bytes() == b"".join(parts)


def test_a_part_of_wide_items_is_counted_in_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(staging, "_WRITEV", lambda fd, parts: os.write(fd, b"".join(parts)[:5]))
    wide = memoryview(array("H", [1, 2, 3, 4]))
    with open(tmp_path / "a", "wb") as file:
        write_parts(file.fileno(), [wide, b"tail"])

    assert (tmp_path / "a").read_bytes() == wide.tobytes() + b"tail"


@pytest.mark.parametrize("most", [1, 3, 5, 9])
def test_what_a_call_did_not_write_is_written_by_the_next(tmp_path, monkeypatch, most):
    def short(fd, parts):
        return os.write(fd, b"".join(parts)[:most])

    monkeypatch.setattr(staging, "_WRITEV", short)
    with open(tmp_path / "a", "wb") as file:
        write_parts(file.fileno(), [b"ab", b"", memoryview(b"cdef"), bytearray(b"gh")])

    assert (tmp_path / "a").read_bytes() == b"abcdefgh"
