"""What notebooks and `info` show of groups, their trees and attributes."""

import asyncio

import pytest

import tensorstore_py as ts
from tests.api.counted_memory import asked, counts
from tests.display.pages import Page

HOSTILE = "<script>alert('x')</script><img src=x onerror=alert(1)>"
WHERE = {"driver": "counted_memory", "path": "h/"}


@pytest.fixture(params=[2, 3])
def root(request):
    attributes = {"title": HOSTILE, HOSTILE: 1, "nested": {"a": ["x" * 50] * 5}}
    root = ts.Group.open(
        WHERE, create=True, zarr_format=request.param, attributes=attributes
    ).result()
    root.create_array("raw/<i>", dtype="int16", shape=[3], attributes={"u": HOSTILE}).result()
    root.create_group("empty").result()
    return root


def test_what_is_known_is_shown_and_nothing_is_asked(root):
    store = counts(root)
    page = Page(root._repr_html_())
    repr(root.info)
    Page(root.attrs._repr_html_())

    assert asked(store) == 0
    assert "Consolidated" in page.text
    assert ".tree()" in page.text
    assert "raw" not in page.text


def test_consolidated_metadata_tells_it_all(root):
    root = root.consolidate().result()
    store = counts(root)
    page = Page(root._repr_html_())
    attributes = Page(root.attrs._repr_html_())
    inner = Page(root["raw/<i>"].attrs._repr_html_())

    assert asked(store) == 0
    assert page.elements.count("details") >= 2
    for word in ("raw", "<i>", "(3,) int16", "empty", "Attributes, 3", HOSTILE):
        assert word in page.text, word
    assert HOSTILE in attributes.text
    assert HOSTILE in inner.text


def test_what_was_changed_since_is_not_shown(root):
    root = root.consolidate().result()
    with pytest.warns(UserWarning, match="out of date"):
        root.create_group("new").result()

    assert ".tree()" in Page(root._repr_html_()).text
    assert "not read" in Page(root.attrs._repr_html_()).text


def test_the_short_text():
    group = ts.Group.open("memory://h/", path="a/b", create=True).result()

    assert repr(group.info) == (
        "Type         : Group\n"
        "Path         : /a/b\n"
        "Place        : memory://h/a/b/\n"
        "Format       : Zarr, version 3\n"
        "Consolidated : no"
    )


def test_a_tree_is_shown_and_not_the_future_of_one(root):
    class Printer:
        def __init__(self):
            self.printed = ""

        def text(self, text):
            self.printed += text

    root.tree()._repr_pretty_(printer := Printer(), cycle=False)
    page = Page(root.tree()._repr_html_())

    assert printer.printed == str(root.tree().result())
    assert "<i> (3,) int16" in printer.printed
    assert "<i>" in page.text
    assert "pending" not in page.text


def test_a_future_of_a_tree_is_a_future(root):
    async def wait():
        return await root.tree()

    future = root.tree()
    assert isinstance(future, ts.Future)
    assert str(asyncio.run(wait())) == str(future.result())
    assert future.done()
    assert future.exception() is None
    cancelled = root.tree()
    assert cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        cancelled.result()


def test_a_tree_that_cannot_be_had_says_why():
    group = ts.Group.open("memory://", create=True).result()
    group.close()
    with pytest.raises(ts.FailedPreconditionError, match="closed"):
        group.tree()
    assert "Closed" in Page(group._repr_html_()).text


def test_a_large_tree():
    root = ts.Group.open("memory://", create=True).result()
    for name in range(1500):
        root.kvstore[f"g{name:04}/zarr.json"] = '{"zarr_format": 3, "node_type": "group"}'
    page = Page(root.tree()._repr_html_())
    known = Page(root.consolidate().result()._repr_html_())

    for each in (page, known):
        assert each.size < 50_000
        assert "1,400 more" in each.text


def test_zarr_faces_show_the_same(root):
    root = root.consolidate().result()
    face = ts.zarr.open(root.kvstore)
    array = face["raw/<i>"]
    store = counts(face.ts)
    group_page, array_page = Page(face._repr_html_()), Page(array._repr_html_())

    assert asked(store) == 0
    assert "(3,) int16" in group_page.text
    assert "zarr.Array" in array_page.text
    assert "svg" in array_page.elements
    assert "int16" in Page(array.info._repr_html_()).text
