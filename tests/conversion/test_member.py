from typing import Any

import pytest

import tensorstore_py as ts
from tensorstore_py._conversion.ends import source
from tensorstore_py._conversion.member import is_whole, node_attributes, open_source
from tensorstore_py._runtime.inline import run_inline


def found_at(end) -> Any:
    return run_inline(end.find())


@pytest.fixture
def array():
    return ts.open(
        {"driver": "zarr3", "kvstore": "memory://", "metadata": {"attributes": {"a": 1}}},
        create=True, dtype="int8", domain=ts.IndexDomain(shape=[4, 3], labels=["y", "x"]),
    ).result()  # fmt: skip


def test_a_view_is_whole_or_not(array):
    assert is_whole(array)
    for view in (
        array[1:],
        array[::2],
        array[:, ::-1],
        array.T,
        array[ts.d[:].translate_by[1]],
        array[ts.d["x"].label["z"]],
    ):
        assert not is_whole(view)


def test_an_array_has_its_document_and_attributes(array):
    found = found_at(source(array, ts.Context()))

    member: Any = run_inline(open_source(found, found.node, ""))
    view = found_at(source(array[1:], ts.Context()))

    assert member.attributes == {"a": 1}
    assert member.document["shape"] == [4, 3]
    assert (member.shape, member.size) == ((4, 3), 12)
    assert run_inline(open_source(view, view.node, "")).document is None


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_attributes_of_groups(zarr_format):
    group = ts.Group.open(
        "memory://", create=True, zarr_format=zarr_format, attributes={"a": 1}
    ).result()
    found = found_at(source(group, ts.Context()))

    assert run_inline(node_attributes(found.tree, found.node)) == {"a": 1}
