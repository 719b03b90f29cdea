from tensorstore_py._display.outline import outline
from tests.display.pages import Page


def test_groups_open_and_close_and_arrays_do_not():
    children = {"": ["a", "z"], "a": ["a/b"]}
    page = Page(outline(children, {"a": "", "a/b": "(2,) int8", "z": "(3,) int8"}))

    assert page.elements.count("details") == 1
    assert page.text.split() == ["a/", "1", "b", "(2,)", "int8", "z", "(3,)", "int8"]


def test_nothing():
    assert outline({}, {}) is None


def test_names_and_labels_are_text():
    name = "<b onclick='x()'>&"
    page = Page(outline({"": [name]}, {name: "<i>"}))

    assert name in page.text
    assert "<i>" in page.text


def test_however_many_nodes_there_are_so_many_are_shown():
    children = {"": [str(one) for one in range(20_000)]}
    children |= {one: [f"{one}/{two}" for two in range(2000)] for one in children[""][:100]}
    labels = {path: "(1,) int8" for one in children[""][:100] for path in children[one]}
    page = Page(outline(children, labels))

    assert page.size < 200_000
    assert page.elements.count("li") < 1200
    assert "1,900 more" in page.text
    assert "19,9" in page.text


def test_a_deep_tree():
    children, path = {"": ["x"]}, "x"
    for _ in range(2000):
        children[path] = [f"{path}/x"]
        path += "/x"
    assert Page(outline(children, {})).size < 20_000
