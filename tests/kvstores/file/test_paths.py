import pytest
import tensorstore as reference
from hypothesis import assume, given
from hypothesis import strategies as st

from tensorstore_py.errors import SpecError, UnsupportedError
from tensorstore_py.kvstores.file.paths import (
    check_key,
    is_valid_path,
    normal_path,
    path_from_url,
    path_to_url,
)

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
