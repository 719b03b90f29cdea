from jsonschema import Draft202012Validator

from tensorstore_py.drivers.zarr3.json_form import METADATA_FORM
from tensorstore_py.drivers.zarr3.metadata import Zarr3Constraints

DOCUMENT = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [3],
    "data_type": "uint8",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [3]}},
    "chunk_key_encoding": {"name": "default"},
    "fill_value": 0,
    "codecs": ["bytes"],
    "dimension_names": ["x"],
    "attributes": {},
    "storage_transformers": [],
}


def test_the_form_lists_the_members_that_the_parser_knows():
    assert set(METADATA_FORM["properties"]) == set(DOCUMENT)
    for name, value in DOCUMENT.items():
        Zarr3Constraints.parse({"data_type": "uint8", name: value})


def test_the_form_tells_grids_apart():
    check = Draft202012Validator(METADATA_FORM["properties"]["chunk_grid"])
    sizes = {"kind": "inline", "chunk_shapes": [4, [1, [2, 3]], []]}
    assert check.is_valid(DOCUMENT["chunk_grid"])
    assert check.is_valid({"name": "rectilinear", "configuration": sizes})
    for wrong in {"chunk_shapes": [4]}, {**sizes, "chunk_shapes": [[[1, 2, 3]]]}, {**sizes, "x": 1}:
        assert not check.is_valid({"name": "rectilinear", "configuration": wrong})
    assert check.is_valid({"name": "somebody.else", "configuration": {"chunks": 4}})
    assert not check.is_valid({"configuration": {"chunk_shape": [4]}})
