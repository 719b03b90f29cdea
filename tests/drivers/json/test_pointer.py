import copy

import pytest

from tensorstore_py.drivers.json.pointer import find, parse_pointer, replaced
from tensorstore_py.errors import (
    FailedPreconditionError,
    NotFoundError,
    OutOfRangeError,
    SpecError,
)
from tensorstore_py.plugin import Unset

DOCUMENT = {"a": {"b": [1, 2, {"c": 3}], "x/y": 4, "m~n": 5, "": 6}, "e": None, "1": 7}


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("", DOCUMENT),
        ("/a/b", [1, 2, {"c": 3}]),
        ("/a/b/0", 1),
        ("/a/b/2/c", 3),
        ("/a/x~1y", 4),
        ("/a/m~0n", 5),
        ("/a/", 6),
        ("/e", None),
        ("/1", 7),
    ],
)
def test_values_are_found(pointer, value):
    assert find(DOCUMENT, parse_pointer(pointer)) == value


@pytest.mark.parametrize(
    ("pointer", "error", "words"),
    [
        ("/z", NotFoundError, '"/z"'),
        ("/a/z/y", NotFoundError, '"/a/z"'),
        ("/a/x~1", NotFoundError, '"/a/x~1"'),
        ("/a/b/3", OutOfRangeError, "array of 3"),
        ("/a/b/1" + "0" * 5000, OutOfRangeError, "array of 3"),
        ("/a/b/-", FailedPreconditionError, "behind the last"),
        ("/a/b/-1", FailedPreconditionError, "no position"),
        ("/a/b/01", FailedPreconditionError, "no position"),
        ("/a/b/", FailedPreconditionError, "no position"),
        ("/a/b/²", FailedPreconditionError, "no position"),
        ("/a/b/0/z", FailedPreconditionError, '"/a/b/0" is 1 and has no "z"'),
        ("/e/x", FailedPreconditionError, '"/e" is null'),
    ],
)
def test_what_is_not_there(pointer, error, words):
    with pytest.raises(error, match=words):
        find(DOCUMENT, parse_pointer(pointer))


def test_a_document_without_members():
    with pytest.raises(FailedPreconditionError, match="the document is 5"):
        find(5, ["a"])
    with pytest.raises(FailedPreconditionError, match="the document is 5"):
        replaced(5, ["a"], 1)


@pytest.mark.parametrize("pointer", ["a", "a/b", " /a", "/~", "/a~2", "/~~0", "/a~"])
def test_malformed_pointers(pointer):
    with pytest.raises(SpecError):
        parse_pointer(pointer)


@pytest.mark.parametrize(
    ("document", "pointer", "expected"),
    [
        ({"a": 1}, "", "new"),
        ({"a": 1}, "/a", {"a": "new"}),
        ({"a": 1}, "/b", {"a": 1, "b": "new"}),
        ({"a": {"b": 1}}, "/a/c/d", {"a": {"b": 1, "c": {"d": "new"}}}),
        ({"a": [1, 2]}, "/a/0", {"a": ["new", 2]}),
        ({"a": [1, 2]}, "/a/-", {"a": [1, 2, "new"]}),
        ([], "/-/x", [{"x": "new"}]),
        ([{"x": 1}], "/0/x", [{"x": "new"}]),
        (Unset.UNSET, "", "new"),
        (Unset.UNSET, "/a/0", {"a": {"0": "new"}}),
        (Unset.UNSET, "/-", {"-": "new"}),
    ],
    ids=str,
)
def test_values_are_replaced(document, pointer, expected):
    assert replaced(copy.deepcopy(document), parse_pointer(pointer), "new") == expected


@pytest.mark.parametrize(
    ("document", "pointer", "error"),
    [
        ([1], "/1", OutOfRangeError),
        ([1], "/x", FailedPreconditionError),
        ({"a": 1}, "/a/b", FailedPreconditionError),
        (None, "/a", FailedPreconditionError),
        ("text", "/0", FailedPreconditionError),
    ],
    ids=str,
)
def test_what_cannot_be_replaced(document, pointer, error):
    with pytest.raises(error):
        replaced(document, parse_pointer(pointer), "new")
