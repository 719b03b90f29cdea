import json

import pytest

from tensorstore_py.drivers.n5.metadata import Metadata, MetadataConstraints
from tensorstore_py.drivers.n5.schema import (
    array_domain,
    block_layout,
    check_asked,
    check_fill_value,
    known_schema,
    metadata_schema,
)
from tensorstore_py.errors import MismatchError, SpecError
from tensorstore_py.plugin import ChunkLayout, CodecSpec, IndexDomain, Schema, Unit, dtype

DOCUMENT = {
    "axes": ["x", "y"],
    "blockSize": [3, 2],
    "compression": {"type": "raw"},
    "dataType": "uint16",
    "dimensions": [5, 4],
    "resolution": [4, 3.5],
    "units": ["nm", "um"],
}
METADATA = Metadata.parse(json.dumps(DOCUMENT).encode())


def without(*names: str) -> Metadata:
    kept = {name: value for name, value in DOCUMENT.items() if name not in names}
    return Metadata.parse(json.dumps(kept).encode())


def test_the_schema_of_an_array() -> None:
    assert metadata_schema(METADATA).to_json() == {
        "chunk_layout": {
            "grid_origin": [0, 0],
            "inner_order": [1, 0],
            "read_chunk": {"shape": [3, 2]},
            "write_chunk": {"shape": [3, 2]},
        },
        "codec": {"compression": {"type": "raw"}, "driver": "n5"},
        "dimension_units": [[4, "nm"], [3.5, "um"]],
        "domain": {"exclusive_max": [[5], [4]], "inclusive_min": [0, 0], "labels": ["x", "y"]},
        "dtype": "uint16",
        "rank": 2,
    }


def test_the_domain_of_an_array_can_be_resized() -> None:
    assert repr(array_domain(METADATA)) == '{ "x": [0, 5*), "y": [0, 4*) }'


def test_all_constraints_make_the_schema_of_the_array() -> None:
    assert known_schema(Schema(), METADATA.constraints) == metadata_schema(METADATA)


def test_what_is_known_of_nothing_is_whose_codec_it_is() -> None:
    assert known_schema(Schema(), MetadataConstraints()).to_json() == {"codec": {"driver": "n5"}}


def test_a_rank_tells_the_order() -> None:
    assert known_schema(Schema(rank=3), MetadataConstraints()).to_json() == {
        "chunk_layout": {"grid_origin": [0, 0, 0], "inner_order": [2, 1, 0]},
        "codec": {"driver": "n5"},
        "rank": 3,
    }


def test_what_is_read_and_what_is_written_is_one_thing() -> None:
    read = Schema(chunk_layout=ChunkLayout(read_chunk_shape=[3, 2]))
    other = Schema(chunk_layout=ChunkLayout(read_chunk_shape=[3, 2], write_chunk_shape=[3, 4]))
    inside = Schema(chunk_layout=ChunkLayout(codec_chunk_shape=[3, 2]))

    assert block_layout(read, 2).write_chunk.shape == (3, 2)
    with pytest.raises(MismatchError, match="read and write chunks are the same here"):
        block_layout(other, 2)
    with pytest.raises(SpecError, match=r"^codec_chunk: "):
        block_layout(inside, 2)


def test_there_is_one_domain_without_dimensions() -> None:
    assert known_schema(Schema(rank=0), MetadataConstraints()).domain == IndexDomain(rank=0)


@pytest.mark.parametrize(
    ("asked", "stated", "problem"),
    [
        (Schema(dtype=dtype("bool")), {}, "n5 has no data type bool"),
        (Schema(dtype=dtype("int8")), {"dataType": "uint8"}, "dtype"),
        (Schema(rank=3), {"dimensions": [3]}, "rank"),
        (
            Schema(chunk_layout=ChunkLayout(read_chunk_shape=[1, 2])),
            {"blockSize": [3, 2]},
            "does not match existing hard constraint",
        ),
        (Schema(domain=IndexDomain(shape=[3])), {"dimensions": [4]}, "Upper bounds do not match"),
        (Schema(domain=IndexDomain(labels=["x"])), {"axes": ["y"]}, "labels do not match"),
        (Schema(dimension_units=["3 a"]), {"units": ["a"]}, "dimension_units"),
        (Schema(dimension_units=["3 a"]), {"resolution": [2]}, '"resolution" is 2'),
        (Schema(rank=2, chunk_layout=ChunkLayout(inner_order=[0, 1])), {}, "inner_order"),
        (Schema(codec=CodecSpec({"driver": "zarr"})), {}, "codec"),
        (
            Schema(codec=CodecSpec({"driver": "n5", "compression": {"type": "xz"}})),
            {"compression": {"type": "raw"}},
            "codec",
        ),
    ],
)
def test_contradictions_are_named(asked: Schema, stated: dict, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        known_schema(asked, MetadataConstraints.parse(stated))


def test_a_multiplier_without_a_base_unit_holds() -> None:
    stated = MetadataConstraints.parse({"resolution": [2, 3]})

    schema = known_schema(Schema(dimension_units=["2 nm", None]), stated)

    assert schema.dimension_units == (Unit(2, "nm"), None)


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        (Schema(dtype=dtype("int16")), "^dtype: the stored data type is uint16"),
        (Schema(rank=3), "^rank"),
        (Schema(domain=IndexDomain(shape=[5, 5])), "^domain"),
        (Schema(domain=IndexDomain(labels=["y", "x"])), "^domain"),
        (Schema(chunk_layout=ChunkLayout(chunk_shape=[3, 3])), "^chunk_layout"),
        (Schema(chunk_layout=ChunkLayout(inner_order=[0, 1])), "^chunk_layout"),
        (Schema(codec=CodecSpec({"driver": "n5", "compression": {"type": "xz"}})), "^codec"),
        (Schema(dimension_units=["nm", None]), "^dimension_units"),
    ],
)
def test_an_array_is_compared_with_what_is_asked(asked: Schema, problem: str) -> None:
    with pytest.raises(MismatchError, match=problem):
        check_asked(asked, METADATA)


def test_an_array_has_the_units_that_are_asked_for() -> None:
    asked = Schema(dimension_units=["4 nm", None])

    check_asked(asked, METADATA)
    check_asked(Schema(dimension_units=[None, None]), without("units"))
    with pytest.raises(MismatchError, match='of dimension 0 is not stated, asked for was "4 nm"'):
        check_asked(asked, without("units"))


@pytest.mark.parametrize("value", [0, 1])
def test_no_fill_value_can_be_asked_for(value: int) -> None:
    with pytest.raises(SpecError, match=r"^fill_value: n5 cannot store one"):
        check_fill_value(Schema(dtype=dtype("uint8"), fill_value=value))
    with pytest.raises(SpecError, match=r"^fill_value: "):
        check_asked(Schema(dtype=dtype("uint16"), fill_value=value), METADATA)
