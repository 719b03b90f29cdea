import pytest

import tensorstore_py as ts
from tests.api.counted_memory import counts


@pytest.fixture(params=[2, 3])
def group(request):
    return ts.Group.open(
        {"driver": "counted_memory"}, create=True, zarr_format=request.param
    ).result()


def test_a_new_array_with_all_above_it(group):
    array = group.create_array(
        "a/b/c", dtype="int16", shape=[4, 6], fill_value=7, attributes={"u": "nm"}
    ).result()
    array[1] = 1

    assert array.read().result()[:2].tolist() == [[7] * 6, [1] * 6]
    assert group["a/b/c"].attrs == {"u": "nm"}
    assert dict(group.groups(None)).keys() == {"a", "a/b"}


def test_labels_are_dimension_names(group):
    domain = ts.IndexDomain(shape=[2, 3], labels=["y", "x"])
    group.create_array("a", dtype="int8", domain=domain, attributes={"u": 1}).result()

    found = group["a"]

    assert found.domain.labels == ("y", "x")
    names = {"_ARRAY_DIMENSIONS": ["y", "x"]} if group.zarr_format == 2 else {}
    assert found.attrs == {"u": 1, **names}


def test_attributes_that_name_dimensions_are_labels():
    group = ts.Group.open("memory://", create=True, zarr_format=2).result()
    names = {"_ARRAY_DIMENSIONS": ["t", "x"]}

    group.create_array("a", dtype="int8", shape=[2, 3], attributes=names).result()

    assert group["a"].domain.labels == ("t", "x")
    assert group["a"].attrs == names


@pytest.mark.parametrize("labels", [["x"], ["x", "x"], "xy", [1, 2], None])
def test_labels_that_it_cannot_have_are_only_attributes(labels):
    group = ts.Group.open("memory://", create=True, zarr_format=2).result()
    names = {"_ARRAY_DIMENSIONS": labels}
    group.create_array("a", dtype="int8", shape=[2, 3], attributes=names).result()

    assert group["a"].domain.labels == ("", "")


def test_members_of_the_drivers_spec(group):
    metadata = {"shape": [4], "dtype": "|i1", "fill_value": 3}
    if group.zarr_format == 3:
        metadata = {"shape": [4], "data_type": "int8", "fill_value": 3, "attributes": {"a": 1}}
    array = group.create_array("a", dtype="int8", metadata=metadata, attributes={"b": 2}).result()

    assert (array.shape, array.fill_value) == ((4,), 3)
    assert array.attrs["b"] == 2
    with pytest.raises(ts.SpecError, match="chunk_layout"):
        group.create_array("b", dtype="int8", shape=[4], chunks=[2])
    with pytest.raises(ts.SpecError, match="metadatas"):
        group.create_array("b", dtype="int8", shape=[4], metadatas={})
    with pytest.raises(ts.SpecError, match="kvstore"):
        group.create_array("b", dtype="int8", shape=[4], kvstore="memory://")


def test_what_is_there_is_refused(group):
    group.create_group("g").result()
    group.create_array("a", dtype="int8", shape=[2]).result()

    for path in ("a", "g"):
        with pytest.raises(ts.AlreadyExistsError, match=path):
            group.create_array(path, dtype="int8", shape=[2]).result()
    with pytest.raises(ts.FailedPreconditionError, match='"/a" is an array'):
        group.create_array("a/b", dtype="int8", shape=[2]).result()
    group.create_array("g/x", dtype="int8", shape=[2]).result()
    group.create_array("g", dtype="int8", shape=[3], delete_existing=True).result()
    assert (group["g"].shape, "g/x" in group) == ((3,), False)


def test_an_array_that_is_required(group):
    first = group.require_array("a", dtype="int8", shape=[2], attributes={"x": 1}).result()
    first[:] = 1
    second = group.require_array("a", dtype="int8", shape=[2], attributes={"x": 2}).result()

    assert second.read().result().tolist() == [1, 1]
    assert second.attrs == {"x": 1}
    with pytest.raises(ts.MismatchError, match="dtype"):
        group.require_array("a", dtype="int16", shape=[2]).result()
    group.create_group("g").result()
    with pytest.raises(ts.MismatchError, match='"/g" is a group, not an array'):
        group.require_array("g", dtype="int8", shape=[2]).result()


def test_one_request_opens_an_array(group):
    group.create_array("a", dtype="int8", shape=[2], attributes={"x": 1}).result()
    asked = counts(group)

    array = group.open("a").result()

    keys = ["a/zarr.json"] if group.zarr_format == 3 else ["a/.zarray", "a/.zattrs"]
    assert asked.reads == dict.fromkeys(keys, 1)
    assert array.shape == (2,)


def test_a_new_array_costs_no_look_at_its_group():
    group = ts.Group.open({"driver": "counted_memory"}, create=True).result()
    asked = counts(group)

    group.create_array("a", dtype="int8", shape=[2], attributes={"x": 1}).result()

    assert (asked.reads, asked.writes) == ({}, {"a/zarr.json": 1})


def test_options_say_what_is_expected(group):
    group.create_array("a", dtype="int8", shape=[2]).result()

    assert group.open("a", dtype="int8", recheck_cached_data=False).result().shape == (2,)
    with pytest.raises(ts.MismatchError, match="dtype"):
        group.open("a", dtype="int16").result()
    group.create_group("g").result()
    with pytest.raises(ts.MismatchError, match='"/g" is a group'):
        group.open("g", dtype="int8").result()


def test_what_was_seen_before_is_seen_again_though_it_changed(group):
    array = group.create_array("a", dtype="int8", shape=[2]).result()
    group.open("a").result()
    array.resize(exclusive_max=[5]).result()

    assert group.open("a").result().shape == (5,)


def test_an_array_from_an_old_copy_grows_from_what_is_stored(group):
    group.create_array("a", dtype="int8", shape=[2], attributes={"x": 1}).result()
    group.consolidate().result()
    here, there = (
        ts.Group.open(place).result() for place in [group.kvstore.spec(retain_context=True)] * 2
    )
    old = here["a"]
    with pytest.warns(UserWarning, match="out of date"):
        there["a"].append([1, 1, 1]).result()

    assert old.shape == (2,)
    with pytest.warns(UserWarning, match="out of date"):
        old.append([2]).result()

    fresh = ts.Group.open(group.kvstore, consolidated=False).result()["a"]
    assert fresh.read().result().tolist() == [0, 0, 1, 1, 1, 2]
    assert fresh.attrs == {"x": 1}


def test_attributes_that_are_no_numbers(group):
    attributes = {"all": [float("inf"), {"x": float("nan")}], "nan": float("nan")}
    group.create_array("a", dtype="int8", shape=[2], attributes=attributes).result()

    assert repr(group["a"].attrs.asdict()) == repr(attributes)
    spec = group["a"].spec(retain_context=True)
    assert ts.open(spec).result().shape == (2,)
    again = group.require_array("a", dtype="int8", shape=[2], attributes=attributes).result()
    assert again.shape == (2,)
