from tensorstore_py._spec.dtype import dtype
from tensorstore_py._spec.json_forms import FORMS
from tensorstore_py._spec.schema_constraints import SchemaConstraints


def test_every_plain_data_type_is_listed():
    listed = FORMS["dtype"]["anyOf"][0]["enum"]
    plain = {name for name in dtype._by_name if name.isidentifier()}
    parametric = {name for name in plain if name[0] in "USV" or name.endswith("64")}
    assert set(listed) >= plain - parametric - {"datetime64", "timedelta64"}
    for name in listed:
        assert dtype(name).name == name


def test_forms_refer_to_forms():
    assert set(FORMS) >= {"Schema", "ChunkLayout", "Grid", "IndexTransform", "Unit", "dtype"}


def test_a_schema_has_the_members_that_its_parser_knows():
    known = set(SchemaConstraints.__dataclass_fields__)
    listed = set(FORMS["Schema"]["properties"]) - {"$schema", "$comment"}
    assert {"dtype", "domain", "codec", "fill_value"} <= listed
    assert listed - {"dimension_units", "chunk_layout"} <= known | {"units", "layout"}
