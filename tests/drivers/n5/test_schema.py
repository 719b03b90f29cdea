from typing import Any

import pytest

import tensorstore_py as ts
from tensorstore_py import ChunkLayout, CodecSpec, IndexDomain, Schema, Unit, dtype
from tensorstore_py.errors import MismatchError, SpecError
from tests.drivers.formats import created, known, opened


def blosc(shuffle: int) -> dict[str, object]:
    return {"blocksize": 0, "clevel": 5, "cname": "lz4", "shuffle": shuffle, "type": "blosc"}


@pytest.mark.parametrize(
    ("schema", "stated", "document"),
    [
        (
            {"dtype": "uint8", "domain": {"shape": [1000, 2000]}},
            {},
            {
                "blockSize": [1000, 1048],
                "compression": blosc(2),
                "dataType": "uint8",
                "dimensions": [1000, 2000],
            },
        ),
        (
            {"dimension_units": ["4nm", None]},
            {"dataType": "float32", "dimensions": [3, 4], "axes": ["a", "b"]},
            {
                "axes": ["a", "b"],
                "blockSize": [3, 4],
                "compression": blosc(1),
                "dataType": "float32",
                "dimensions": [3, 4],
                "resolution": [4.0, 1.0],
                "units": ["nm", ""],
            },
        ),
        (
            {"codec": {"driver": "n5", "compression": {"type": "raw"}}, "dtype": "int64"},
            {"dimensions": [30], "blockSize": [7], "note": "kept", "resolution": [2]},
            {
                "blockSize": [7],
                "compression": {"type": "raw"},
                "dataType": "int64",
                "dimensions": [30],
                "note": "kept",
                "resolution": [2.0],
            },
        ),
        (
            {"dtype": "int8", "rank": 0},
            {},
            {"blockSize": [], "compression": blosc(2), "dataType": "int8", "dimensions": []},
        ),
        (
            {
                "dtype": "int8",
                "domain": {"shape": [300, 400], "labels": ["x", ""]},
                "chunk_layout": {"chunk": {"shape": [30, -1]}},
            },
            {"units": ["nm", ""]},
            {
                "axes": ["x", ""],
                "blockSize": [30, 400],
                "compression": blosc(2),
                "dataType": "int8",
                "dimensions": [300, 400],
                "resolution": [1.0, 1.0],
                "units": ["nm", ""],
            },
        ),
    ],
)
def test_documents(schema: dict, stated: dict, document: dict) -> None:
    assert created("n5", schema, stated) == document


SHAPED: dict[str, Any] = {"dtype": "uint8", "domain": {"shape": [30, 40]}}


@pytest.mark.parametrize(
    ("schema", "stated", "error", "problem"),
    [
        ({}, {}, SpecError, "^dtype must be specified"),
        ({"dtype": "int8", "rank": 2}, {}, SpecError, "^domain must be specified"),
        ({"domain": {"shape": [3]}}, {}, SpecError, "^dtype must be specified"),
        ({**SHAPED, "fill_value": 0}, {}, SpecError, "^fill_value: "),
        (SHAPED, {"blockSize": [2**16, 2**16]}, SpecError, r"^metadata\.blockSize: blocks of"),
        (
            {**SHAPED, "chunk_layout": {"codec_chunk": {"shape": [3, 4]}}},
            {},
            SpecError,
            "^codec_chunk: ",
        ),
        (
            {
                **SHAPED,
                "chunk_layout": {"read_chunk": {"shape": [3, 4]}, "write_chunk": {"shape": [6, 8]}},
            },
            {},
            MismatchError,
            "read and write chunks are the same",
        ),
    ],
)
def test_what_cannot_be_had_is_named(
    schema: dict, stated: dict, error: type[Exception], problem: str
) -> None:
    with pytest.raises(error, match=problem):
        created("n5", schema, stated)


DOCUMENT = {
    "axes": ["x", "y"],
    "blockSize": [3, 2],
    "compression": {"type": "raw"},
    "dataType": "uint16",
    "dimensions": [5, 4],
    "resolution": [4, 3.5],
    "units": ["nm", "um"],
}


def found(*without: str, **members: object) -> ts.TensorStore:
    document = {name: value for name, value in DOCUMENT.items() if name not in without}
    return opened("n5", document, **members)


def test_the_schema_of_an_array() -> None:
    assert found().schema.to_json() == {
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
    assert repr(found().domain) == '{ "x": [0, 5*), "y": [0, 4*) }'


def test_all_constraints_make_the_schema_of_the_array() -> None:
    assert known("n5", metadata=DOCUMENT) == found().schema


def test_what_is_known_of_nothing_is_whose_codec_it_is() -> None:
    assert known("n5").to_json() == {"codec": {"driver": "n5"}}


def test_a_rank_tells_the_order() -> None:
    assert known("n5", Schema(rank=3)).to_json() == {
        "chunk_layout": {"grid_origin": [0, 0, 0], "inner_order": [2, 1, 0]},
        "codec": {"driver": "n5"},
        "rank": 3,
    }


def test_what_is_read_and_what_is_written_is_one_thing() -> None:
    box = {"dtype": "uint8", "domain": {"shape": [8, 8]}}
    read = {**box, "chunk_layout": {"read_chunk": {"shape": [3, 2]}}}
    both = {"read_chunk": {"shape": [3, 2]}, "write_chunk": {"shape": [3, 4]}}
    torn = {**box, "chunk_layout": both}
    inside = {**box, "chunk_layout": {"codec_chunk": {"shape": [3, 2]}}}

    assert created("n5", read)["blockSize"] == [3, 2]
    with pytest.raises(MismatchError, match="read and write chunks are the same here"):
        created("n5", torn)
    with pytest.raises(SpecError, match=r"codec_chunk: "):
        created("n5", inside)


def test_there_is_one_domain_without_dimensions() -> None:
    assert known("n5", Schema(rank=0)).domain == IndexDomain(rank=0)


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
        known("n5", asked, stated)


def test_a_multiplier_without_a_base_unit_holds() -> None:
    schema = known("n5", Schema(dimension_units=["2 nm", None]), {"resolution": [2, 3]})

    assert schema.dimension_units == (Unit(2, "nm"), None)


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        (Schema(dtype=dtype("int16")), " dtype: the stored data type is uint16"),
        (Schema(rank=3), " rank"),
        (Schema(domain=IndexDomain(shape=[5, 5])), " domain"),
        (Schema(domain=IndexDomain(labels=["y", "x"])), " domain"),
        (Schema(chunk_layout=ChunkLayout(chunk_shape=[3, 3])), " chunk_layout"),
        (Schema(chunk_layout=ChunkLayout(grid_origin=[1, 0])), "grid_origin"),
        (Schema(codec=CodecSpec({"driver": "n5", "compression": {"type": "xz"}})), " codec"),
        (Schema(dimension_units=["nm", None]), " dimension_units"),
    ],
)
def test_an_array_is_compared_with_what_is_asked(asked: Schema, problem: str) -> None:
    with pytest.raises((MismatchError, SpecError), match=problem):
        found(schema=asked)


def test_an_array_has_the_units_that_are_asked_for() -> None:
    asked = Schema(dimension_units=["4 nm", None])

    found(schema=asked)
    found("units", schema=Schema(dimension_units=[None, None]))
    with pytest.raises(MismatchError, match='of dimension 0 is not stated, asked for was "4 nm"'):
        found("units", schema=asked)


@pytest.mark.parametrize("value", [0, 1])
def test_no_fill_value_can_be_asked_for(value: int) -> None:
    with pytest.raises(SpecError, match=r"^fill_value: n5 cannot store one"):
        created("n5", Schema(dtype="uint8", shape=[3], fill_value=value))
    with pytest.raises(SpecError, match=r"^fill_value: "):
        found(schema=Schema(dtype=dtype("uint16"), fill_value=value))
