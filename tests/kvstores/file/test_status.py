import os
import stat
import struct

import pytest
import tensorstore as reference

from tensorstore_py.errors import FailedPreconditionError
from tensorstore_py.kvstores.file.status import (
    advance_mtime,
    check_replaceable,
    generation_of,
    keep_access,
    present_at,
    what_it_is,
)
from tensorstore_py.plugin.kvstore import NO_VALUE

MINE, THEIRS = 1000, 2000


def status(mode, *, uid=MINE, gid=10):
    return os.stat_result((stat.S_IFREG | mode, 1, 1, 1, uid, gid, 0, 0, 0, 0))


@pytest.fixture
def system(monkeypatch):
    """A system with a new file of ours; what is done to it."""
    done = []
    monkeypatch.setattr(os, "geteuid", lambda: MINE)
    monkeypatch.setattr(os, "fstat", lambda _: status(0o644))
    monkeypatch.setattr(os, "fchmod", lambda _, bits: done.append(oct(bits)))
    monkeypatch.setattr(os, "fchown", lambda _, *ids: done.append(ids))
    return done


@pytest.fixture
def refused(monkeypatch):
    """The owners and groups that could not be given."""
    tried = []

    def refuse(_fd, *ids):
        tried.append(ids)
        raise PermissionError(1, os.strerror(1))

    monkeypatch.setattr(os, "fchown", refuse)
    return tried


@pytest.mark.parametrize("bits", [0o600, 0o640, 0o664, 0o777, 0o200])
def test_the_bits_of_ones_own_file_are_kept(system, bits):
    assert keep_access(3, status(bits), link=False) is None
    assert system == [oct(bits)]


def test_a_usual_file_costs_nothing(system):
    assert keep_access(3, status(0o644), link=False) is None
    assert system == []


def test_a_file_that_its_owner_may_not_write_can_be_opened_meanwhile(system):
    assert keep_access(3, status(0o440), link=False) == 0o440
    assert system == [oct(0o640)]


def test_bits_that_change_the_user_that_runs_it_are_not_kept(system):
    keep_access(3, status(0o6644), link=False)
    assert system == []


@pytest.mark.parametrize(("theirs", "mine"), [(0o666, []), (0o600, ["0o600"]), (0o640, ["0o640"])])
def test_another_users_file_opens_mine_no_further(system, theirs, mine):
    keep_access(3, status(theirs, uid=THEIRS), link=False)
    assert system == mine


def test_the_group_is_kept(system):
    keep_access(3, status(0o660, gid=20), link=False)
    assert system == [(-1, 20), "0o660"]


@pytest.mark.parametrize(
    ("bits", "kept"), [(0o660, 0o600), (0o664, 0o644), (0o604, 0o600), (0o640, 0o600)]
)
def test_where_it_cannot_be_kept_access_does_not_widen(system, refused, bits, kept):
    keep_access(3, status(bits, gid=20), link=False)
    assert refused == [(-1, 20)]
    assert system == ([oct(kept)] if kept != 0o644 else [])


def test_a_user_that_may_give_files_away_does(system, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    keep_access(3, status(0o600, uid=THEIRS, gid=20), link=False)
    assert system == [(THEIRS, 20), "0o600"]


def test_but_not_to_the_owner_of_what_a_link_points_to(system, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    keep_access(3, status(0o666, uid=THEIRS), link=True)
    assert system == []


def test_where_the_owner_cannot_be_kept_the_group_may(system, refused, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    keep_access(3, status(0o644, uid=THEIRS, gid=20), link=False)
    keep_access(3, status(0o644, uid=THEIRS), link=False)
    assert refused == [(THEIRS, 20), (-1, 20), (THEIRS, -1)]
    assert system == []


@pytest.mark.usefixtures("system")
def test_a_file_system_without_bits_is_no_trouble(monkeypatch):
    def refuse(_fd, _bits):
        raise PermissionError(1, os.strerror(1))

    monkeypatch.setattr(os, "fchmod", refuse)
    assert keep_access(3, status(0o600), link=False) is None


@pytest.mark.parametrize("link", [False, True], ids=["", "link"])
@pytest.mark.parametrize(
    ("make", "name"), [(os.mkfifo, "a named pipe"), (os.mkdir, "a directory")], ids=["pipe", "dir"]
)
def test_only_files_are_replaced_by_files(tmp_path, make, name, link):
    path = str(tmp_path / "a")
    make(path)
    if link:
        os.symlink("a", tmp_path / "b")
        path = str(tmp_path / "b")
    with pytest.raises(FailedPreconditionError, match=rf'"{path}": {name} is in its place; remove'):
        check_replaceable(path, os.stat(path))


def test_each_kind_has_its_name():
    kinds = (stat.S_IFLNK, stat.S_IFDIR, stat.S_IFIFO, stat.S_IFSOCK, stat.S_IFCHR, stat.S_IFBLK)
    assert [what_it_is(kind).split()[-1] for kind in kinds] == [
        "link",
        "directory",
        "pipe",
        "socket",
        "device",
        "device",
    ]
    assert what_it_is(os.stat(__file__).st_mode) == "a file"


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


def test_quick_values_are_distinguished_by_the_precise_clock(path):
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
