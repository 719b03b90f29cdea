from tensorstore_py._api.tree import Tree
from tests.display.pages import Page


def test_it_is_drawn():
    tree = Tree("/", [("b", ""), ("a/y", "(2,) int8"), ("a", ""), ("a/x/z", "<i>"), ("a/x", "")])

    assert str(tree) == repr(tree) == (
        "/\n"
        "├── a\n"
        "│   ├── x\n"
        "│   │   └── z <i>\n"
        "│   └── y (2,) int8\n"
        "└── b"
    )  # fmt: skip


def test_nothing_is_a_name():
    assert str(Tree("/a", [])) == "/a"


def test_it_is_html_for_notebooks():
    page = Page(Tree("/", [("a", ""), ("a/b", "<i>")])._repr_html_())

    assert page.text.split() == ["Tree", "/", "a/", "1", "b", "<i>"]
    assert page.elements.count("details") == 1
