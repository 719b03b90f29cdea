import pytest

import tensorstore_py as ts
from tensorstore_py._conversion.ends import source
from tensorstore_py._conversion.member import is_whole, node_attributes, open_source
from tensorstore_py._runtime.inline import run_inline


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
    found = run_inline(source(array, ts.Context()).find())

    member = run_inline(open_source(found, found.node, ""))
    view = run_inline(source(array[1:], ts.Context()).find())

    assert member.attributes == {"a": 1}
    assert member.document["shape"] == [4, 3]
    assert (member.shape, member.size) == ((4, 3), 12)
    assert run_inline(open_source(view, view.node, "")).document is None


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_attributes_of_groups(zarr_format):
    group = ts.Group.open(
        "memory://", create=True, zarr_format=zarr_format, attributes={"a": 1}
    ).result()
    found = run_inline(source(group, ts.Context()).find())

    assert run_inline(node_attributes(found.tree, found.node)) == {"a": 1}
