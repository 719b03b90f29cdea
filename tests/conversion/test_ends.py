from typing import Any

import pytest

import tensorstore_py as ts
from tensorstore_py._conversion.ends import destination, source
from tensorstore_py._hierarchy.formats import format_of
from tensorstore_py._runtime.inline import run_inline


def found_at(end, *form) -> Any:
    return run_inline(end.find(*form))


@pytest.fixture
def context():
    return ts.Context()


def group(context, **options):
    return ts.Group.open("memory://g/", create=True, context=context, **options).result()


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_whatever_names_a_place(context, zarr_format):
    made = group(context, zarr_format=zarr_format)
    array = made.create_array("a", dtype="int8", shape=[2]).result()

    for given in ("memory://g/", {"driver": "memory", "path": "g/"}, made, made.kvstore):
        found = found_at(source(given, context))
        assert found.node.kind == "group"
        assert found.tree.form.zarr_format == zarr_format
    for given in ("memory://g/a/", array, array.spec()):
        found = found_at(source(given, context))
        assert found.node.kind == "array"
        assert found.array.shape == (2,)


def test_a_group_inside_another(context):
    inner = group(context).create_group("a/b").result()

    found = found_at(source(inner, context))

    assert found.path == "a/b"


def test_an_array_by_itself(context):
    found = found_at(source(ts.array([1, 2]), context))
    cast = found_at(source(ts.cast(ts.array([1, 2]), "float64"), context))

    assert (found.tree, found.node) == (None, None)
    assert cast.array.dtype == ts.float64


def test_a_view_in_a_spec(context):
    group(context).create_array("a", dtype="int8", shape=[5]).result()
    spec = {
        "driver": "zarr3",
        "kvstore": "memory://g/a/",
        "transform": {"input_inclusive_min": [1], "input_exclusive_max": [3]},
    }

    assert found_at(source(spec, context)).array.shape == (2,)


def test_a_destination_gets_the_sources_format(context):
    for name, form in (("zarr", format_of("zarr")), ("zarr3", format_of("zarr3"))):
        found = found_at(destination("memory://new/", context, None), form)
        assert found.tree.form.driver == name
    assert found_at(destination("memory://", context, 2), form).tree.form.zarr_format == 2
    assert found_at(destination("memory://", context, None), None).tree.form is form


def test_a_destination_that_is_there_keeps_its_format(context):
    group(context, zarr_format=2)

    found = found_at(destination("memory://g/", context, None), format_of("zarr3"))

    assert found.tree.form.zarr_format == 2
    with pytest.raises(ts.MismatchError, match="of version 2"):
        found_at(destination("memory://g/", context, 3), None)
    with pytest.raises(ts.SpecError, match="zarr_format"):
        destination(group(context, zarr_format=2, open=True), context, 3)


def test_a_named_driver_wins(context):
    found = found_at(destination("memory://g/|zarr2:", context, None), format_of("zarr3"))

    assert found.tree.form.zarr_format == 2


def test_what_is_wrong_is_said_at_once(context):
    for wrong in ({"driver": "memroy"}, "local/path", {"driver": "zarr3", "kvstore": 5}):
        with pytest.raises(ts.SpecError):
            source(wrong, context)
        with pytest.raises(ts.SpecError):
            destination(wrong, context, None)


@pytest.mark.parametrize("kind", ["array", "group"])
def test_open_ones_at_relative_paths(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    given: ts.TensorStore | ts.Group
    if kind == "array":
        spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": "from/"}}
        given = ts.open(spec, create=True, dtype="uint8", shape=[4]).result()
    else:
        given = ts.Group.open({"driver": "file", "path": "from/"}, create=True).result()

    ts.copy(given, {"driver": "file", "path": "to/"}).result()

    assert (tmp_path / "to" / "zarr.json").exists()
