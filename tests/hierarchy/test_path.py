import pytest

from tensorstore_py._hierarchy.path import check_new, join, normalised, parents
from tensorstore_py.errors import SpecError
from tests.hierarchy.trees import tree


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("", ""),
        ("/", ""),
        ("a", "a"),
        ("/a/b/", "a/b"),
        ("a//b///c", "a/b/c"),
        ("a\\b", "a/b"),
        ("a/...", "a/..."),
        ("ä/ ", "ä/ "),
    ],
)
def test_a_path_has_one_form(path, expected):
    assert normalised(path) == expected


@pytest.mark.parametrize("path", [".", "..", "a/.", "../a", "a\\..\\b"])
def test_no_path_leads_elsewhere(path):
    with pytest.raises(SpecError, match=r'has the part "\.\.?"'):
        normalised(path)


def test_a_path_is_text():
    with pytest.raises(TypeError, match="int"):
        normalised(1)


def test_paths_are_joined():
    assert [join("", ""), join("a", ""), join("", "b/c"), join("a", "b/c")] == [
        "",
        "a",
        "b/c",
        "a/b/c",
    ]


def test_parents_come_outermost_first():
    assert parents("a/b/c") == ["", "a", "a/b"]
    assert parents("a/b/c", "") == ["a", "a/b"]
    assert parents("a/b/c", "a/b") == []
    assert parents("") == []


def test_reserved_names_are_for_the_format_alone():
    form = tree("zarr3").form
    check_new(form, "")
    check_new(form, "a/b__")
    with pytest.raises(SpecError, match="__meta"):
        check_new(form, "a/__meta/b")
