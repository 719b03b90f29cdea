import pickle

import pytest

import tensorstore_py as ts
from tests.api import loop_memory  # noqa: F401 - registers the store


@pytest.fixture(params=[2, 3])
def group(request):
    root = ts.Group.open("memory://", create=True, zarr_format=request.param).result()
    root.create_array("g/a", dtype="int8", shape=[2]).result()[:] = 5
    return root


def test_it_is_made_by_open():
    with pytest.raises(TypeError, match=r"Group\.open"):
        ts.Group()


def test_groups_are_made(group):
    made = group.create_group("x/y", attributes={"a": 1}).result()

    assert (made.path, made.attrs) == ("x/y", {"a": 1})
    with pytest.raises(ts.AlreadyExistsError, match='"/x/y" exists already, a group'):
        group.create_group("x/y").result()
    assert group.require_group("x/y", attributes={"a": 2}).result().attrs == {"a": 1}
    assert group["g"].require_group("z").result().path == "g/z"
    group["x"].create_group("y/z").result()
    assert group.create_group("x", delete_existing=True).result().keys() == []
    with pytest.raises(ts.MismatchError, match='"/g/a" is an array'):
        group.require_group("g/a").result()
    with pytest.raises(ts.AlreadyExistsError, match='"/g/a" exists already, an array'):
        group.create_group("g/a").result()
    with pytest.raises(ts.FailedPreconditionError, match='"/g/a" is an array'):
        group.create_group("g/a/b").result()


def test_nodes_are_moved_and_deleted(group):
    group.move("g", "x/y").result()

    assert group["x/y/a"].read().result().tolist() == [5, 5]
    assert "g" not in group
    group["x"].move("y/a", "b").result()
    assert group["x"].keys() == ["b", "y"]
    group.delete("x/y").result()
    del group["x/b"]
    assert group["x"].keys() == []
    with pytest.raises(KeyError, match="cannot delete"):
        del group["x/b"]
    for call in (lambda: group.delete("/"), lambda: group.move("", "x")):
        with pytest.raises(ts.SpecError, match="the group itself"):
            call()


def test_a_change_makes_consolidated_metadata_stale(group):
    for change in (
        lambda found: found.create_group("new").result(),
        lambda found: found.create_array("n", dtype="int8", shape=[1]).result(),
        lambda found: found.delete("new").result(),
        lambda found: found.move("n", "m").result(),
        lambda found: found.attrs.update(x=1).result(),
        lambda found: found["g"].attrs.update(x=1).result(),
        lambda found: found["g"].create_group("y").result(),
        lambda found: found["g/a"].attrs.update(x=1).result(),
        lambda found: found["g/a"].resize(exclusive_max=[3]).result(),
    ):
        group.consolidate().result()
        found = ts.Group.open(group.kvstore).result()
        was_used = found.consolidated
        with pytest.warns(UserWarning, match=r"out of date, .* was changed.*call consolidate\(\)"):
            change(found)
        assert (was_used, found.consolidated) == (True, False)
        fresh = ts.Group.open(group.kvstore, consolidated=False).result()
        assert found.attrs == fresh.attrs
        assert [*dict(found.members(None))] == [*dict(fresh.members(None))]
        assert found["g"].attrs == fresh["g"].attrs
        assert found["g/a"].attrs == fresh["g/a"].attrs
        group = found


def test_what_is_consolidated_again_is_used_again(group):
    again = group.consolidate().result()

    assert again.consolidated
    assert group.consolidated
    with pytest.warns(UserWarning, match="out of date"):
        group.create_group("x").result()
    group.consolidate().result()
    assert group.consolidated
    assert list(group) == ["g", "x"]


def test_data_may_be_written_without_a_warning(group):
    group.consolidate().result()
    found = ts.Group.open(group.kvstore).result()

    found["g/a"][0] = 1

    assert found.consolidated
    assert group["g/a"].read().result().tolist() == [1, 5]


def test_all_or_nothing_in_a_transaction(group):
    transaction = ts.Transaction()
    inside = group.with_transaction(transaction)
    inside.move("g/a", "b").result()
    inside.create_array("c", dtype="int8", shape=[1], attributes={"x": 1}).result()[:] = 3
    assert inside["b"].read().result().tolist() == [5, 5]
    transaction.abort()

    assert list(group) == ["g"]
    assert group["g/a"].read().result().tolist() == [5, 5]


def test_its_text_and_its_pickle():
    root = ts.Group.open("memory://x/", create=True, zarr_format=2).result()
    assert repr(root.create_group("y").result()) == "Group('memory://x/y/', zarr_format=2)"

    copy = pickle.loads(pickle.dumps(root["y"]))

    assert (copy.path, copy.zarr_format, copy.url) == ("y", 2, "memory://x/y/")


@pytest.mark.parametrize("zarr_format", [2, 3])
async def test_on_a_store_across_a_network(zarr_format):
    group = await ts.Group.open({"driver": "loop_memory"}, create=True, zarr_format=zarr_format)
    array = await group.create_array("a/b", dtype="int8", shape=[2], attributes={"x": 1})
    await array.write([1, 2])
    await group.move("a/b", "c")

    assert [path async for path, _ in group.members(None)] == ["a", "c"]
    assert await (await group.open("c")).attrs.read() == {"x": 1}
    assert (await (await group.consolidate()).members())[1][0] == "c"
    assert str(await group.tree()) == "/\n├── a\n└── c (2,) int8"
    assert repr(group).endswith(f", zarr_format={zarr_format})")


def test_what_was_opened_in_it_is_closed_with_it():
    with ts.Group.open("memory://", create=True).result() as group:
        inner = group.create_group("g").result()
        array = inner.create_array("a", dtype="int8", shape=[1]).result()
        writing = array.attrs.update(x=1)
        store, attrs = inner.kvstore, group.attrs

    assert writing.done()
    assert group.closed
    for call in (
        group.names,
        lambda: inner.open("a"),
        array.read,
        array.attrs.read,
        lambda: attrs.update(y=1),
        store.list,
        lambda: group.kvstore,
    ):
        with pytest.raises(ts.FailedPreconditionError, match="closed"):
            call()


def test_what_is_in_it_may_be_closed_before_it(group):
    with group["g"] as inner:
        assert list(inner) == ["a"]
    assert inner.closed
    assert list(group["g"]) == ["a"]


async def test_it_is_closed_with_its_context():
    context = ts.Context()
    async with await ts.Group.open("memory://", create=True, context=context) as group:
        await group.create_group("g")
    assert group.closed
    other = await ts.Group.open("memory://", context=context)
    context.close()
    with pytest.raises(ts.FailedPreconditionError, match="this Group is closed"):
        other.names()


def test_at_a_relative_path_it_prints_its_place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    group = ts.Group.open({"driver": "file", "path": "near/"}, create=True).result()
    group.create_array("a", dtype="uint8", shape=[4]).result()

    assert "near/" in repr(group)
    assert "near/" in repr(group.attrs)
    assert "near/" in repr(ts.zarr.Group(group))
    with pytest.raises(ts.UnsupportedError, match="relative"):
        _ = group.url
    with pytest.raises(ValueError, match="relative"):  # as the reference has it
        _ = group.kvstore.url
