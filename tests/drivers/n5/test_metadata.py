import json

import pytest

from tensorstore_py.drivers.n5.metadata import N5Constraints, N5Metadata, check_data_type
from tensorstore_py.errors import MismatchError, SpecError
from tensorstore_py.plugin.codec import dtype
from tensorstore_py.plugin.driver import Unit
from tests.drivers.formats import opened

DOCUMENT = {
    "axes": ["x", "y"],
    "blockSize": [3, 2],
    "compression": {"type": "raw"},
    "dataType": "uint16",
    "dimensions": [5, 4],
    "resolution": [4.0, 3.5],
    "units": ["nm", "um"],
}


def parse(**members: object) -> N5Metadata:
    return N5Metadata.read(json.dumps({**DOCUMENT, **members}).encode())


def test_a_document_comes_back_as_it_is() -> None:
    metadata = parse()

    assert metadata.dimensions == (5, 4)
    assert metadata.block_size == (3, 2)
    assert metadata.data_type == dtype("uint16")
    assert metadata.axes == ("x", "y")
    assert metadata.serialize() == json.dumps(DOCUMENT, separators=(",", ":")).encode()
    assert N5Metadata.read(metadata.serialize()) == metadata
    assert hash(N5Metadata.read(metadata.serialize())) == hash(metadata)


def test_attributes_of_the_user_s_are_kept() -> None:
    extra = {
        "extra": {"b": [1, {"a": None}]}, "block_size": 3, "n5": "2.0.0", "pi": 3.0, "none": None,
        "$comment": "x", "fill_value": 7,
    }  # fmt: skip

    metadata = parse(**extra)

    assert dict(metadata.extra).keys() == extra.keys()
    assert json.loads(metadata.serialize()) == {**DOCUMENT, **extra}
    assert N5Metadata.read(metadata.serialize()) == metadata


def test_labels_that_are_empty_are_not_written() -> None:
    metadata = parse(axes=["", ""])

    assert "axes" not in metadata.to_json()
    assert metadata.axes == ("", "")
    assert "axes" not in N5Constraints.parse({"axes": [""]}).to_json()


def test_what_a_document_may_leave_out() -> None:
    document = {name: DOCUMENT[name] for name in ("blockSize", "compression", "dataType")}
    metadata = N5Metadata.read(json.dumps({**document, "dimensions": [5, 4]}).encode())

    assert (metadata.axes, metadata.units, metadata.resolution) == (("", ""), None, None)


def test_numbers_may_be_written_with_a_point() -> None:
    assert parse(dimensions=[5.0, 4]).to_json() == DOCUMENT
    assert parse(resolution=[4, 3.5]).to_json() == DOCUMENT


@pytest.mark.parametrize(
    "name",
    [
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "int8",
        "int16",
        "int32",
        "int64",
        "float32",
        "float64",
    ],
)
def test_data_types(name: str) -> None:
    assert parse(dataType=name).data_type == dtype(name)
    check_data_type(dtype(name))


@pytest.mark.parametrize("name", ["bool", "float16", "complex64", "string", "char", "bfloat16"])
def test_other_data_types_are_refused_with_those_that_there_are(name: str) -> None:
    with pytest.raises(SpecError, match=rf'^dataType: expected one of uint8, .*"{name}"'):
        N5Constraints.parse({"dataType": name})
    with pytest.raises(SpecError, match=f"^n5 has no data type {name}, only uint8"):
        check_data_type(dtype(name))


def test_blocks_have_a_largest_size() -> None:
    assert parse(blockSize=[2**15, 2**15]).block_size == (2**15, 2**15)
    with pytest.raises(SpecError, match=r"^blockSize: blocks of 2147549184 bytes are too large"):
        parse(blockSize=[2**15, 2**15 + 1])


def test_constraints_print_what_is_said() -> None:
    assert N5Constraints.parse({}).to_json() == {}
    assert N5Constraints.parse({}).is_spec_default
    assert N5Constraints.parse({"axes": [""]}).rank == 1
    for name, value in DOCUMENT.items():
        stated = N5Constraints.parse({name: value})
        assert stated.to_json() == {name: value}
        assert not stated.is_spec_default
        assert stated == N5Constraints.parse({name: value})
        assert hash(stated) == hash(N5Constraints.parse({name: value}))
        assert stated != N5Constraints.parse({})


@pytest.mark.parametrize("name", ["blockSize", "axes", "units", "resolution"])
def test_all_members_have_one_rank(name: str) -> None:
    value = {"blockSize": [1], "axes": ["x"], "units": ["m"], "resolution": [1]}[name]

    with pytest.raises(SpecError, match=f"^{name}: 1 dimensions, but dimensions has 2"):
        N5Constraints.parse({"dimensions": [3, 4], name: value})


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ({"dimensions": [5, 3]}, r'"dimensions" is \[5,4\] in the stored metadata, .* \[5,3\]'),
        ({"blockSize": [3, 3]}, '"blockSize" is'),
        ({"dataType": "int16"}, '"dataType" is "uint16"'),
        ({"compression": {"type": "gzip"}}, '"compression" is'),
        ({"axes": ["x", ""]}, '"axes" is'),
        ({"axes": ["", ""]}, '"axes" is'),
        ({"units": ["nm", "nm"]}, '"units" is'),
        ({"resolution": [4, 4]}, '"resolution" is'),
        ({"note": 2}, '"note" is 1 in'),
        ({"notes": 1}, '"notes" is not in the stored metadata, but the spec asks for 1'),
    ],
)
def test_what_is_stored_is_compared_with_what_is_asked(asked: dict, problem: str) -> None:
    document = {**DOCUMENT, "note": 1}

    opened("n5", document, metadata=document)
    opened("n5", document, metadata={})
    with pytest.raises(MismatchError, match=f"does not match the spec: {problem}"):
        opened("n5", document, metadata=asked)


def test_a_document_satisfies_its_own_constraints() -> None:
    for members in ({}, {"axes": ["", ""]}, {"note": {"deep": [1]}}):
        metadata = parse(**members)
        constraints = metadata.constraints
        assert isinstance(constraints, N5Constraints)
        constraints.check(metadata)


def test_units_need_a_base() -> None:
    for stated, units in (
        ({"units": ["nm", ""], "resolution": [2, 3]}, (Unit(2, "nm"), Unit(3, ""))),
        ({"units": ["2 nm"]}, (Unit(1, "2 nm"),)),
        ({"resolution": [1, 2]}, None),
    ):
        assert N5Constraints.parse(stated).info.units == units
