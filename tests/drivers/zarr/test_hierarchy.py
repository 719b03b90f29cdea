from typing import Any

import pytest

from tensorstore_py.drivers.zarr.hierarchy import Zarr2Hierarchy
from tensorstore_py.errors import SpecError

FORM: Any = Zarr2Hierarchy()


def test_keys_tell_what_a_node_is():
    document = {"zarr_format": 2}

    assert FORM.kind(".zarray", document) == "array"
    assert FORM.kind(".zgroup", document) == "group"
    with pytest.raises(SpecError, match="zarr_format: expected 2, but found 3"):
        FORM.kind(".zgroup", {"zarr_format": 3})


def test_attributes_have_a_document_of_their_own():
    assert FORM.new_group({}) == {".zgroup": {"zarr_format": 2}}
    assert FORM.new_group({"a": 1})[".zattrs"] == {"a": 1}
    assert FORM.attributes(None) == {}
    assert FORM.attributes({"a": 1}) == {"a": 1}
    assert FORM.with_attributes({"a": 1}, {"b": 2}) == {"b": 2}


def test_labels_are_stored_unless_attributes_name_the_dimensions():
    assert FORM.new_array({}, {"a": 1}, labelled=True) == ({"array_dimensions": True}, {"a": 1})
    assert FORM.new_array({}, {}, labelled=False) == ({}, {})
    named = {"_ARRAY_DIMENSIONS": ["x"]}
    assert FORM.new_array({"metadata": {}}, named, labelled=True) == ({"metadata": {}}, named)


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        ("<u2", "uint16"),
        ("<M8[s]", "datetime64[s]"),
        ("odd", "odd"),
        ([["a", "<i4"]], '[["a","<i4"]]'),
    ],
)
def test_names_of_data_types(dtype, name):
    assert FORM.type_name({"dtype": dtype}) == name


def test_consolidated_metadata_by_node():
    documents = {
        ".zgroup": {"zarr_format": 2},
        "a/b/.zarray": {"zarr_format": 2, "shape": [1]},
        "a/b/.zattrs": {"u": 1},
        "lost/.zattrs": {},
        "a/foreign": {},
    }
    found = FORM.consolidated({"zarr_consolidated_format": 1, "metadata": documents})

    assert found == {
        "": {".zgroup": {"zarr_format": 2}},
        "a/b": {".zarray": {"zarr_format": 2, "shape": [1]}, ".zattrs": {"u": 1}},
    }
    again = FORM.with_consolidated(None, found)
    assert FORM.consolidated(again) == found


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({}, "zarr_consolidated_format: expected 1"),
        ({"zarr_consolidated_format": 1}, "metadata: expected an object"),
        (
            {"zarr_consolidated_format": 1, "metadata": {"a/.zgroup": 1}},
            r"metadata\.a/\.zgroup: expected an object|metadata\[.*expected an object",
        ),
    ],
)
def test_consolidated_metadata_of_another_form(document, message):
    with pytest.raises(SpecError, match=message):
        FORM.consolidated(document)
