import pytest

import tensorstore_py as ts
from tensorstore_py._runtime.inline import run_inline
from tests.api.counted_memory import counts

ALL = ["a", "e", "g", "g/b", "g/h", "g/h/c"]


@pytest.fixture(params=[2, 3])
def group(request):
    root = ts.Group.open(
        {"driver": "counted_memory"}, create=True, zarr_format=request.param
    ).result()
    for path in ("a", "g/b", "g/h/c"):
        root.create_array(path, dtype="int8", shape=[2]).result()
    root.create_group("e").result()
    return root


def test_where_it_is(group):
    inner = group["g/h"]

    assert (group.path, group.name, group.basename) == ("", "/", "")
    assert (inner.path, inner.name, inner.basename) == ("g/h", "/g/h", "h")
    assert inner.kvstore.path == "g/h/"
    assert inner.zarr_format == group.zarr_format
    assert inner.transaction is None
    assert ts.Group.open("memory://x/", create=True).result().url == "memory://x/"


def test_members_by_depth_and_kind(group):
    assert [path for path, _ in group.members()] == ["a", "e", "g"]
    assert [path for path, _ in group.members(1)] == ["a", "e", "g", "g/b", "g/h"]
    assert [path for path, _ in group.members(None)] == ALL
    assert [path for path, _ in group.arrays(None)] == ["a", "g/b", "g/h/c"]
    assert [path for path, _ in group.groups(None)] == ["e", "g", "g/h"]
    assert [path for path, _ in group["g"].members(None)] == ["b", "h", "h/c"]
    for _, node in group.arrays(None):
        assert node.shape == (2,)
    assert {node.path for _, node in group.groups(None)} == {"e", "g", "g/h"}


def test_as_a_dictionary(group):
    assert (list(group), group.keys(), len(group)) == (["a", "e", "g"], ["a", "e", "g"], 3)
    assert "g/h/c" in group
    assert "g/h/d" not in group
    assert 1 not in group
    assert group["/g//h/"].path == "g/h"
    assert group["e"]
    assert group._ipython_key_completions_() == group.keys()
    with pytest.raises(KeyError, match='nothing is at "/g/x"'):
        group["g/x"]
    with pytest.raises(ts.NotFoundError, match='nothing is at "/x"'):
        group.open("x").result()
    with pytest.raises(ts.SpecError, match=r"\.\."):
        group["g/.."]


def test_names_cost_one_listing(group):
    asked = counts(group)

    assert group["g"].names().result() == ["b", "h"]
    assert group["g"].names(None).result() == ["b", "h", "h/c"]

    assert asked.directories == {"g/": 2, "g/h/": 1}


def test_a_picture(group):
    assert str(group.tree().result()) == (
        "/\n├── a (2,) int8\n├── e\n└── g\n    ├── b (2,) int8\n    └── h\n        └── c (2,) int8"
    )
    assert str(group["g"].tree(0).result()) == "/g\n├── b (2,) int8\n└── h"
    html = group.tree().result()._repr_html_()
    assert html.count("<details") == 2
    assert ">h/ <" in html


def test_ten_thousand_arrays_cost_one_listing_a_group():
    group = ts.Group.open({"driver": "counted_memory"}, create=True).result()
    for number in range(10):
        group.create_group(f"g{number}").result()
    asked = counts(group)
    for number in range(10_000):
        run_inline(asked.base.write(f"g{number % 10}/a{number:05}/zarr.json", b"{}"))
    asked.reset()

    assert len(group["g3"]) == 1000
    names = group.names(max_depth=1).result()

    assert (len(names), names[-1]) == (10_010, "g9/a09999")
    assert asked.directories == {"": 1, "g3/": 2, **{f"g{n}/": 1 for n in range(10) if n != 3}}
    assert asked.reads == {"g3/zarr.json": 2} | {f"g{n}/zarr.json": 1 for n in range(10) if n != 3}
    assert asked.lists == {}


def test_one_request_opens_a_consolidated_tree_and_all_in_it(group):
    group["g/b"].attrs["x"] = 1
    group["e"].attrs["y"] = 2
    group.consolidate().result()
    asked = counts(group)

    opened = ts.Group.open(group.kvstore).result()
    paths = [path for path, _ in opened.members(None)]
    attributes = [opened["g/b"].attrs["x"], opened["e"].attrs["y"], dict(opened.attrs)]
    names, picture = list(opened["g"]), str(opened.tree().result())

    assert (paths, attributes, names) == (ALL, [1, 2, {}], ["b", "h"])
    assert "c (2,) int8" in picture
    key = ".zmetadata" if group.zarr_format == 2 else "zarr.json"
    tried = ["zarr.json", key] if group.zarr_format == 2 else [key]
    assert asked.reads == dict.fromkeys(tried, 1)
    assert (asked.lists, asked.directories) == ({}, {})


def test_within_a_transaction(group):
    with ts.Transaction() as transaction:
        inside = group.with_transaction(transaction)
        inside.create_array("g/new", dtype="int8", shape=[1]).result()
        inside.delete("a").result()
        assert list(inside) == ["e", "g"]
        assert list(inside["g"]) == ["b", "h", "new"]
        assert inside["g/new"].transaction is transaction
        assert [path for path, _ in group.members(None)] == ALL

    assert [path for path, _ in group.members(None)] == ["e", "g", "g/b", "g/h", "g/new", "g/h/c"]
