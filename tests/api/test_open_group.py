import pytest

import tensorstore_py as ts
from tensorstore_py._api.open_group import OpenGroup, OpenNode
from tests.api.counted_memory import counts

STORE = {"driver": "counted_memory"}


@pytest.fixture
def context():
    return ts.Context()


def test_one_name_for_two():
    assert isinstance(ts.Group.open, OpenGroup)
    group = ts.Group.open("memory://", create=True).result()
    assert isinstance(group.open, OpenNode)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_what_was_created_is_opened(context, zarr_format):
    new = ts.Group.open(
        STORE, create=True, zarr_format=zarr_format, attributes={"a": 1}, context=context
    ).result()
    found = ts.Group.open(STORE, context=context).result()

    assert new.zarr_format == found.zarr_format == zarr_format
    assert new.attrs == found.attrs == {"a": 1}


def test_one_request_opens_a_group(context):
    group = ts.Group.open(STORE, create=True, context=context).result()
    asked = counts(group)

    ts.Group.open(STORE, context=context).result()

    assert asked.reads == {"zarr.json": 1}


def test_modes(context):
    with pytest.raises(ts.NotFoundError, match=r"no group found at .*create=True"):
        ts.Group.open(STORE, context=context).result()
    first = ts.Group.open(STORE, create=True, open=True, context=context).result()
    first.create_group("g").result()
    with pytest.raises(ts.AlreadyExistsError, match='"/" exists already, a group'):
        ts.Group.open(STORE, create=True, context=context).result()
    second = ts.Group.open(
        STORE, create=True, open=True, attributes={"a": 1}, context=context
    ).result()
    assert (list(second), dict(second.attrs)) == (["g"], {})
    third = ts.Group.open(STORE, create=True, delete_existing=True, context=context).result()
    assert list(third) == []


def test_a_group_of_another_format_is_in_the_way_unless_the_format_is_named(context):
    ts.Group.open(STORE, create=True, zarr_format=2, context=context).result()

    with pytest.raises(ts.AlreadyExistsError, match=r"\.zgroup"):
        ts.Group.open(STORE, create=True, context=context).result()
    ts.Group.open(STORE, create=True, zarr_format=3, context=context).result()
    assert ts.Group.open(STORE, context=context).result().zarr_format == 3
    assert ts.Group.open(STORE, zarr_format=2, context=context).result().zarr_format == 2


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_group_inside_is_made_with_those_above_it(context, zarr_format):
    inner = ts.Group.open(
        STORE, path="/a//b/", create=True, zarr_format=zarr_format, context=context
    ).result()

    assert (inner.path, inner.name, inner.basename) == ("a/b", "/a/b", "b")
    root = ts.Group.open(STORE, context=context).result()
    assert dict(root.groups(None)).keys() == {"a", "a/b"}
    assert ts.Group.open(STORE, path="a/b", context=context).result().path == "a/b"
    with pytest.raises(ts.SpecError, match=r"\.\."):
        ts.Group.open(STORE, path="a/..", context=context)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_an_array_is_no_group(context, zarr_format):
    root = ts.Group.open(STORE, create=True, zarr_format=zarr_format, context=context).result()
    root.create_array("a", dtype="int8", shape=[1]).result()

    for create in (False, True):
        with pytest.raises(ts.MismatchError, match='"/a" is an array, not a group'):
            ts.Group.open(STORE, path="a", context=context, open=True, create=create).result()
    with pytest.raises(ts.FailedPreconditionError, match='"/a" is an array'):
        ts.Group.open(STORE, path="a/b", create=True, context=context).result()


def test_a_store_in_a_transaction_is_a_group_in_it():
    with ts.Transaction() as transaction:
        store = ts.KvStore.open("memory://", transaction=transaction).result()
        group = ts.Group.open(store, create=True).result()
        assert group.transaction is transaction
        plain = ts.KvStore.open("memory://").result()
        assert plain.list().result() == []


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_consolidated_metadata_is_used_as_asked(context, zarr_format):
    group = ts.Group.open(STORE, create=True, zarr_format=zarr_format, context=context).result()

    with pytest.raises(ts.NotFoundError, match=r"no consolidated metadata.*consolidate\(\)"):
        ts.Group.open(STORE, consolidated=True, context=context).result()
    assert not ts.Group.open(STORE, context=context).result().consolidated
    group.consolidate().result()
    assert ts.Group.open(STORE, context=context).result().consolidated
    assert ts.Group.open(STORE, consolidated=True, context=context).result().consolidated
    assert not ts.Group.open(STORE, consolidated=False, context=context).result().consolidated


def test_attributes_are_checked_at_once():
    with pytest.raises(ts.SpecError, match="a: a set is no JSON"):
        ts.Group.open("memory://", create=True, attributes={"a": {1}})


def test_a_transaction_that_is_over_is_refused_at_once():
    transaction = ts.Transaction()
    transaction.abort()

    with pytest.raises(ts.FailedPreconditionError):
        ts.Group.open("memory://", transaction=transaction)


def test_an_archive_is_found_out(tmp_path):
    file = tmp_path / "a.zip"
    inside = ts.Group.open(f"{file.as_uri()}|zip:", create=True, zarr_format=2).result()
    inside.create_group("g").result()

    assert list(ts.Group.open(file).result()) == ["g"]
    assert ts.Group.open(file.as_uri(), path="g").result().path == "g"
    with pytest.raises(ts.NotFoundError, match=r"a\.zip"):
        ts.Group.open(file, path="h").result()
    (tmp_path / "b").write_bytes(b"plain")
    with pytest.raises(ts.FailedPreconditionError, match="no known format"):
        ts.Group.open(tmp_path / "b").result()
