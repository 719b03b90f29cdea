import errno
import os
import shutil

import pytest
import tensorstore as reference
from hypothesis import assume, given
from hypothesis import strategies as st

from tensorstore_py import errors
from tensorstore_py.errors import SpecError, UnsupportedError
from tensorstore_py.kvstores.file import tree
from tensorstore_py.kvstores.file.errors import translate
from tensorstore_py.kvstores.file.locking import acquire
from tensorstore_py.kvstores.file.paths import (
    check_key,
    is_valid_path,
    normal_path,
    path_from_url,
    path_to_url,
)
from tensorstore_py.kvstores.file.tree import delete_tree, names_in, walk
from tensorstore_py.plugin.kvstore import ALL, KeyRange

PIECES = st.sampled_from(
    [
        "/",
        "/",
        "a",
        "b",
        ".",
        "..",
        ".__lock",
        "\\",
        "é",
        " ",
        "%2F",
        "%",
        ":",
        "\0",
        "C:",
        "~",
        "@",
    ]
)
# The reference refuses a root that is spelled with a backslash.
PATHS = (
    st.lists(PIECES, max_size=8)
    .map("".join)
    .filter(lambda path: "\\" not in path or path.strip("/\\."))
)


def outcome(function, *arguments):
    try:
        return function(*arguments)
    except ValueError:
        return ValueError


@given(PATHS)
def test_takes_the_paths_that_the_reference_takes(path):
    theirs = outcome(
        lambda: reference.KvStore.Spec({"driver": "file", "path": path}).to_json().get("path", "")
    )

    assert outcome(normal_path, path, False) == theirs


@given(PATHS)
def test_takes_the_keys_that_the_reference_takes(key):
    store = reference.KvStore.open("file:///proc/none/").result()
    theirs = outcome(lambda: store.read(key).result().state)

    assert (outcome(check_key, "/proc/none/" + key, False) is ValueError) == (theirs is ValueError)


@given(PATHS)
def test_reads_the_urls_that_the_reference_reads(path):
    assume(
        not path.replace("%2F", "/").lstrip("/").startswith("\\")
    )  # it is strict with a backslash at the root
    url = "file:///" + path.replace("\0", "")
    theirs = outcome(lambda: reference.KvStore.Spec(url).path)

    assert outcome(path_from_url, url, False) == theirs


@given(PATHS)
def test_prints_urls_as_the_reference_does(path):
    if outcome(normal_path, path, False) is ValueError:
        return
    theirs = outcome(lambda: reference.KvStore.Spec({"driver": "file", "path": path}).url)

    assert outcome(path_to_url, normal_path(path, False), False) == theirs


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("file:///a/b", "/a/b"),
        ("file://localhost/a", "/a"),
        ("FILE:///a", "/a"),
        ("file:///", "/"),
        ("file:////a//b/", "/a/b/"),
        ("file:///a/./b/../c", "/a/c"),
        ("file:///..", "/"),
        ("file:///a/..", "/"),
        ("file:///a%2Fb", "/a/b"),
        ("file:///%C3%A9", "/é"),
        ("file:///C:/x", "/C:/x"),
    ],
)
def test_urls_of_posix_paths(url, path):
    assert path_from_url(url, windows=False) == path


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("file:///C:/x/y", "C:/x/y"),
        ("file:///c:/x%20y/", "c:/x y/"),
        ("file:///C:", "C:"),
        ("file://C:/x", "C:/x"),
        ("file://localhost/C:/x", "C:/x"),
        ("file:///C:\\x\\y", "C:/x/y"),
        ("file://server/share/x", "//server/share/x"),
        ("file:///x", "/x"),
    ],
)
def test_urls_of_windows_paths(url, path):
    assert path_from_url(url, windows=True) == path


@pytest.mark.parametrize("path", ["C:/x/y z/", "c:/", "//server/share/x", "/x", "D:/é"])
def test_windows_paths_survive_their_urls(path):
    assert path_from_url(path_to_url(path, windows=True), windows=True) == path


@pytest.mark.parametrize(
    ("path", "normal"),
    [("C:\\x\\y", "C:/x/y"), ("\\\\server\\share\\x\\", "//server/share/x/"), ("x\\y", "x/y")],
)
def test_windows_paths_are_written_with_slashes(path, normal):
    assert normal_path(path, windows=True) == normal


@pytest.mark.parametrize(
    "path",
    ["C:/a:stream", "C:/a/b.", "C:/a /b", "C:/a?", "C:/a*b", 'C:/"a"', "C:/a\x01", "C:/a|b",
     "C://a", "//server", "C:/../a", "C:/a.__lock"],
)  # fmt: skip
def test_windows_refuses_what_its_files_cannot_be_called(path):
    assert not is_valid_path(path, windows=True)


@pytest.mark.parametrize("path", ["C:/a", "C:/", "//server/share/a", "/a/b", "a/b", "a/b/"])
def test_windows_takes_drives_and_shares(path):
    assert is_valid_path(path, windows=True)


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("file:/a", "Scheme"),
        ("file://a", "authority"),
        ("file://host/a", "authority.*file:///path"),
        ("file://", "relative"),
        ("file:///a?b", "Query"),
        ("file:///a#b", "Fragment"),
        ("file:///%ff", "UTF-8"),
        ("file:///a%zz", "percent"),
        ("file:///a%00b", "Invalid file path"),
        ("file:///a.__lock", "Invalid file path"),
    ],
)
def test_says_what_is_wrong_with_a_url(url, problem):
    with pytest.raises(SpecError, match=problem):
        path_from_url(url, windows=False)


def test_a_relative_path_has_no_url():
    with pytest.raises(UnsupportedError, match="relative"):
        path_to_url("a/b", windows=False)


@pytest.mark.parametrize("key", ["", "/", "/a/", "/a\\", "/.", "/..", "./a", "/a//b", "/a\0"])
def test_bad_keys_are_named(key):
    with pytest.raises(SpecError, match="Invalid key"):
        check_key(key, windows=False)


@pytest.mark.parametrize("key", ["/a/.b", "/..a", "/a..", "/a.__lock2", "/a.__lock/../b"[:7], ".a"])
def test_keys_that_only_look_bad_are_taken(key):
    check_key(key, windows=False)


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


def test_removes_locks_without_a_holder(root):
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


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.EACCES, errors.PermissionDeniedError),
        (errno.EROFS, errors.PermissionDeniedError),
        (errno.ENOENT, errors.NotFoundError),
        (errno.EEXIST, errors.AlreadyExistsError),
        (errno.ENOTDIR, errors.FailedPreconditionError),
        (errno.EISDIR, errors.FailedPreconditionError),
        (errno.ENOSPC, errors.FailedPreconditionError),
        (errno.ENOLCK, errors.FailedPreconditionError),
        (errno.ENAMETOOLONG, errors.SpecError),
        (errno.ELOOP, errors.SpecError),
        (errno.EIO, errors.UnavailableError),
        (errno.ESTALE, errors.UnavailableError),
        (errno.EMFILE, errors.UnavailableError),
        (errno.ENOTTY, errors.FailedPreconditionError),
    ],
)
def test_each_number_has_a_class_that_is_a_value_error(number, kind):
    error = translate(OSError(number, os.strerror(number)), "write", "/data/a")

    assert type(error) is kind
    assert isinstance(error, ValueError)
    assert str(error).startswith(f'cannot write "/data/a": {os.strerror(number)}')


def test_says_what_to_do():
    error = translate(OSError(errno.ENOSPC, "No space left on device"), "write", "/a")

    assert str(error) == 'cannot write "/a": No space left on device; free some space'


def test_names_another_file_that_is_in_the_way():
    error = PermissionError(errno.EPERM, "Operation not permitted", "/data/a.__lock")

    assert 'not permitted at "/data/a.__lock"; check' in str(translate(error, "write", "/data/a"))
    assert " at " not in str(translate(error, "write", "/data/a.__lock"))
    assert " at " not in str(translate(OSError(errno.EIO, "I/O error", 3), "write", "/data/a"))


def test_counts_the_attempts():
    error = translate(OSError(errno.EIO, "I/O error"), "read", "/a", attempts=3)

    assert isinstance(error, errors.UnavailableError)
    assert error.attempts == 3


def test_shows_names_that_are_no_text():
    error = translate(OSError(errno.EIO, "I/O error"), "read", "/\udcff")

    assert '"/\\xff"' in str(error)


def test_an_error_without_a_number_is_not_lost():
    assert "odd" in str(translate(OSError("odd"), "read", "/a"))
