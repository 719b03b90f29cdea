import os
import shutil

import pytest
import tensorstore as reference

from tensorstore_py.kvstores.file import tree
from tensorstore_py.kvstores.file.locking import acquire
from tensorstore_py.kvstores.file.tree import delete_tree, names_in, walk
from tensorstore_py.plugin import ALL, KeyRange

FILES = ("a/1", "a/2", "a/x/3", "a.c", "ab/1", "b", "c/d/e/f")


@pytest.fixture
def root(tmp_path):
    for name in FILES:
        path = tmp_path / "r" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"123")
    return f"{tmp_path}/r/"


def keys(root, key_range=ALL):
    return [entry.key.removeprefix(root) for entry in walk(key_range.with_base(root))]


def delete(root, key_range=ALL, break_locks=True):
    delete_tree(key_range.with_base(root), break_locks=break_locks)


@pytest.fixture
def scanned(monkeypatch):
    """The directories that are scanned."""
    scanned: list[str] = []
    scan = tree._scan

    def note(path):
        scanned.append(path)
        return scan(path)

    monkeypatch.setattr(tree, "_scan", note)
    return scanned


def left(root):
    """Every directory and file below the root."""
    found = []
    for path, directories, files in os.walk(root):
        found += [os.path.relpath(os.path.join(path, name), root) for name in directories + files]
    return sorted(found)


def test_lists_in_key_order(root):
    assert keys(root) == sorted(FILES)


def test_tells_the_sizes(root):
    assert {entry.size for entry in walk(ALL.with_base(root))} == {3}


def test_enters_only_directories_that_can_hold_keys(root, scanned):
    assert keys(root, KeyRange(b"a/2", b"ab")) == ["a/2", "a/x/3"]
    assert [path.removeprefix(root) for path in scanned] == ["", "a/", "a/x/"]


def test_starts_at_the_deepest_common_directory(root, scanned):
    assert keys(root, KeyRange.prefix("c/d/")) == ["c/d/e/f"]
    assert [path.removeprefix(root) for path in scanned] == ["c/d/", "c/d/e/"]


def test_skips_locks_and_what_is_no_file(root):
    os.symlink(root + "a", root + "link_to_directory")
    os.symlink(root + "nothing", root + "link_to_nothing")
    os.symlink(root + "b", root + "link_to_file")
    os.mkfifo(root + "pipe")
    os.mkdir(root + "empty")
    open(root + "b.__lock", "w").close()

    assert keys(root) == sorted([*FILES, "link_to_file"])


def test_directories_that_link_to_themselves_end(root):
    os.symlink(root, root + "a/loop")

    assert keys(root) == sorted(FILES)


def test_names_that_are_no_text_are_keys(root):
    with open(os.fsencode(root) + b"a/\xff", "w"):
        pass

    assert "a/\udcff" in keys(root)


@pytest.mark.parametrize("deleting", [False, True])
def test_what_vanishes_meanwhile_is_skipped(root, monkeypatch, deleting):
    scan = tree._scan

    def vanish(path):
        entries = scan(path)
        if path == root:
            shutil.rmtree(root + "a", ignore_errors=True)
            os.remove(root + "b")
        return entries

    monkeypatch.setattr(tree, "_scan", vanish)
    if deleting:
        delete(root)
        assert left(root) == []
    else:
        assert keys(root) == ["a.c", "ab/1", "c/d/e/f"]


def test_an_absent_or_odd_start_holds_nothing(root):
    assert keys(root + "nothing/") == []
    assert keys(root + "b/") == []
    delete(root + "nothing/")


@pytest.mark.parametrize(
    ("low", "high"),
    [("", ""), ("a", "b"), ("a/", "a0"), ("a/2", "a0"), ("a/x", "a/y"), ("c/d/", "c/d0"),
     ("c/d", "c/e"), ("a/1", ""), ("", "a/x/3"), ("b", "a")],
)  # fmt: skip
def test_leaves_the_directories_that_the_reference_leaves(tmp_path, root, low, high):
    shutil.copytree(tmp_path / "r", tmp_path / "s")
    store = reference.KvStore.open(f"file://{tmp_path}/s/").result()

    delete(root, KeyRange(low.encode(), high.encode()))
    store.delete_range(reference.KvStore.KeyRange(low, high)).result()

    assert left(root) == left(f"{tmp_path}/s/")


def test_removes_links_but_not_what_they_point_to(root, tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/file").write_bytes(b"1")
    os.symlink(tmp_path / "outside", root + "a/link")

    delete(root)

    assert left(root) == []
    assert (tmp_path / "outside/file").exists()


def test_removes_locks_that_nobody_holds(root):
    open(root + "a/1.__lock", "w").close()
    held = acquire(root + "a/2.__lock", 1)

    delete(root)
    assert left(root) == ["a", "a/2.__lock"]

    os.close(held)
    delete(root)
    assert left(root) == []


def test_removes_what_is_in_the_place_of_a_lock(root):
    os.mkfifo(root + "a/1.__lock")
    os.symlink("1", root + "a/2.__lock")

    delete(root)

    assert left(root) == []


def test_links_that_go_round_in_a_circle_are_no_keys(root):
    os.symlink("circle", root + "circle")

    assert "circle" not in keys(root)
    assert "circle" not in names_in(root)


def test_leaves_locks_where_existing_is_holding(root):
    open(root + "a/1.__lock", "w").close()

    delete(root, break_locks=False)

    assert left(root) == ["a", "a/1.__lock"]


def test_a_file_that_appears_meanwhile_stays(root, monkeypatch):
    rmdir = os.rmdir

    def write_first(path):
        if path == root + "a":
            open(path + "/new", "w").close()
        rmdir(path)

    monkeypatch.setattr(os, "rmdir", write_first)
    delete(root)

    assert left(root) == ["a", "a/new"]


def test_names_in_a_directory_are_those_of_keys(root, tmp_path):
    (tmp_path / "r" / "empty" / "inside").mkdir(parents=True)
    (tmp_path / "r" / "b.__lock").write_bytes(b"")

    assert list(names_in(root)) == ["a.c", "a/", "ab/", "b", "c/"]
    assert list(names_in(f"{root}zz/")) == []


def test_one_level_costs_no_walk_through_what_is_below(root, scanned):
    list(names_in(f"{root}a/"))

    assert scanned == [f"{root}a/", f"{root}a/x/"]
