import pytest

from tensorstore_py._index.labels import escape, find_label, merge_labels, quote, require_unique
from tensorstore_py.errors import IndexingError


def test_labels_that_are_not_empty_are_unique() -> None:
    require_unique(["x", "", "", "y"])
    with pytest.raises(IndexingError, match='"a", "b" not unique'):
        require_unique(["b", "a", "a", "b", "c"])


def test_an_unlabeled_dimension_agrees_with_any() -> None:
    assert [merge_labels("x", ""), merge_labels("", "x"), merge_labels("x", "x")] == ["x"] * 3
    with pytest.raises(IndexingError, match='"x" and "y"'):
        merge_labels("x", "y")


def test_find_label() -> None:
    assert find_label("y", ["x", "y"]) == 1
    with pytest.raises(IndexingError, match=r'Label "z" does not match one of \{"x", "y"\}'):
        find_label("z", ["x", "y"])
    with pytest.raises(IndexingError, match="empty label"):
        find_label("", ["x", ""])


def test_quotes_escape() -> None:
    assert quote('a"b\\c\n') == '"a\\"b\\\\c\\n"'
    assert eval(f"'{escape(chr(39))}'") == "'"
