from jsonschema import Draft202012Validator

import tensorstore_py as ts
from tensorstore_py.drivers.n5.metadata import METADATA_FORM, N5Constraints

DOCUMENT = {
    "axes": ["x", "y"],
    "blockSize": [3, 2],
    "compression": {"type": "gzip", "useZlib": True},
    "dataType": "uint16",
    "dimensions": [5, 4],
    "resolution": [4.0, 3.5],
    "units": ["nm", "um"],
}


def test_the_form_lists_the_members_that_the_parser_knows() -> None:
    properties = METADATA_FORM["properties"]
    assert isinstance(properties, dict)
    fields = N5Constraints.model_fields

    assert set(properties) == set(DOCUMENT)
    assert set(properties) == {fields[name].alias or name for name in fields} - {"extra"}


def test_editors_check_a_spec_as_one_types() -> None:
    check = Draft202012Validator(ts.json_schema())
    spec = {"driver": "n5", "kvstore": "memory://", "metadata": {**DOCUMENT, "note": [None]}}

    assert check.is_valid(spec)
    for wrong in (
        {"dataType": "bool"},
        {"dimensions": [-1]},
        {"blockSize": [0]},
        {"axes": [1]},
        {"resolution": ["1"]},
        {"compression": {"type": "gzip", "level": 10}},
        {"compression": {"type": "blosc", "cname": "lz4"}},
        {"compression": {"type": "lzma"}},
        {"compression": "raw"},
    ):
        assert not check.is_valid({**spec, "metadata": wrong}), wrong
    codec = {"driver": "n5", "compression": {"type": "bzip2", "blockSize": 1}}
    assert check.is_valid({**spec, "schema": {"codec": codec}})
