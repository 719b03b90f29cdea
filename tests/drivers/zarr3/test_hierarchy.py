from typing import Any

import pytest

from tensorstore_py.drivers.zarr3.hierarchy import Zarr3Hierarchy
from tensorstore_py.errors import SpecError

FORM: Any = Zarr3Hierarchy()
GROUP = {"zarr_format": 3, "node_type": "group"}


def test_the_document_tells_what_a_node_is():
    assert FORM.kind("zarr.json", GROUP) == "group"
    assert FORM.kind("zarr.json", {**GROUP, "node_type": "array"}) == "array"
    with pytest.raises(SpecError, match="zarr_format: expected 3, but found 2"):
        FORM.kind("zarr.json", {"zarr_format": 2})
    with pytest.raises(SpecError, match=r"node_type: expected .* but found null"):
        FORM.kind("zarr.json", {"zarr_format": 3})


def test_attributes_are_in_it():
    document = FORM.new_group({"a": 1})["zarr.json"]

    assert FORM.attributes(document) == {"a": 1}
    assert FORM.attributes(None) == {}
    assert FORM.with_attributes({**document, "x": 1}, {}) == {**GROUP, "attributes": {}, "x": 1}
    with pytest.raises(SpecError, match="attributes: expected an object"):
        FORM.attributes({"attributes": 1})


def test_attributes_of_a_new_array_are_metadata():
    spec = {"metadata": {"attributes": {"a": 1, "b": 1}, "shape": [2]}}

    assert FORM.new_array(spec, {"b": 2}, labelled=True) == (
        {"metadata": {"attributes": {"a": 1, "b": 2}, "shape": [2]}},
        {},
    )
    assert FORM.new_array({}, {}, labelled=True) == ({}, {})


@pytest.mark.parametrize(
    ("data_type", "name"),
    [("int8", "int8"), ({"name": "struct", "configuration": {}}, "struct"), (1, "1")],
)
def test_names_of_data_types(data_type, name):
    assert FORM.type_name({"data_type": data_type}) == name


def test_consolidated_metadata_by_node():
    nodes = {"": {"zarr.json": GROUP}, "a": {"zarr.json": {**GROUP, "consolidated_metadata": {}}}}

    document = FORM.with_consolidated({**GROUP, "x": 1}, nodes)

    assert document["x"] == 1
    assert FORM.consolidated(document) == {"": {"zarr.json": document}, "a": {"zarr.json": GROUP}}
    assert FORM.consolidated(GROUP) is None
    assert FORM.consolidated({**GROUP, "consolidated_metadata": None}) is None


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        (1, "consolidated_metadata: expected an object"),
        ({"kind": "else"}, "consolidated_metadata: expected an object of kind"),
        ({"kind": "inline"}, r"consolidated_metadata\.metadata: expected an object"),
        ({"kind": "inline", "metadata": {"a": 1}}, r"metadata\.a: expected an object"),
    ],
)
def test_consolidated_metadata_of_another_form(stated, message):
    with pytest.raises(SpecError, match=message):
        FORM.consolidated({**GROUP, "consolidated_metadata": stated})


def test_reserved_names():
    for name in ("__a", "zarr.json"):
        with pytest.raises(SpecError, match=name):
            FORM.check_name(name)
    FORM.check_name("a__")
    assert FORM.may_be_node("a")
    assert not FORM.may_be_node("__a")


@pytest.mark.parametrize("name", ["__values__", "__xarray_dataarray_variable__"])
def test_reserved_names_that_xarray_stores_arrays_by(name):
    FORM.check_name(name)
    assert FORM.may_be_node(name)
