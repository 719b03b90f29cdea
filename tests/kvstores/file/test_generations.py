import os
import struct

import pytest
import tensorstore as reference

from tensorstore_py.kvstores.file.generations import advance_mtime, generation_of, present_at
from tensorstore_py.plugin import NO_VALUE


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"1")
    return str(path)


def test_packs_device_inode_and_time_like_the_reference(path):
    status = os.stat(path)

    generation = generation_of(status)

    assert generation == b"\0" + struct.pack(
        "<QQQ", status.st_dev, status.st_ino, status.st_mtime_ns
    )
    theirs = reference.KvStore.open(f"file://{path}").result().read("").result()
    assert theirs.stamp.generation == generation


def test_files_from_before_the_epoch_have_a_generation(path):
    os.utime(path, ns=(0, -1_500_000_000))

    present = present_at(path)

    assert present.mtime_ns == -1_500_000_000
    assert present.generation[17:] == struct.pack("<q", -1_500_000_000)


def test_where_no_file_is_there_is_no_value(tmp_path, path):
    for absent in (tmp_path, tmp_path / "b", tmp_path / "b/c", path + "/c"):
        assert present_at(str(absent))[:2] == (NO_VALUE, 0)


def advance(path, previous_ns):
    fd = os.open(path, os.O_WRONLY)
    try:
        return advance_mtime(fd, path, previous_ns)
    finally:
        os.close(fd)


def test_a_new_value_is_dated_after_the_old_one(path):
    # The clock of the machine that wrote the old value was ahead.
    future_ns = os.stat(path).st_mtime_ns + 10**15

    generation = advance(path, future_ns)

    assert os.stat(path).st_mtime_ns == future_ns + 1
    assert generation == present_at(path).generation


def test_quick_values_are_told_apart_by_the_precise_clock(path):
    dates = []
    for _ in range(100):
        advance(path, 0)
        dates.append(os.stat(path).st_mtime_ns)

    assert len(set(dates)) == 100


@pytest.mark.parametrize("resolution_ns", [100, 1_000_000_000, 2_000_000_000])
def test_coarse_file_systems_take_longer_steps(path, monkeypatch, resolution_ns):
    future_ns = 2 * 10**18
    utime = os.utime

    def coarse(target, *, ns):
        utime(target, ns=(ns[0], ns[1] // resolution_ns * resolution_ns))

    monkeypatch.setattr(os, "utime", coarse)
    advance(path, future_ns)

    assert os.stat(path).st_mtime_ns == future_ns + resolution_ns
