import pytest

from tensorstore_py.drivers.zarr.data_type import StoredType
from tensorstore_py.errors import MismatchError, SpecError
from tensorstore_py.plugin.codec import dtype
from tests.drivers.formats import created as made
from tests.drivers.formats import known, opened

ONE = [["x", "<u2", [2, 3]]]
PAIR = [["x", "<u2", [2, 3]], ["y", ">f4"]]
BLOSC = {"blocksize": 0, "clevel": 5, "cname": "lz4", "id": "blosc", "shuffle": -1}


def created(schema: object, metadata: object = None, field: str | None = None) -> dict:
    return made("zarr", schema, metadata or {}, **({} if field is None else {"field": field}))


def asked(*shape: int, **parts: object) -> dict:
    return {"dtype": "uint16", "domain": {"shape": list(shape)}, **parts}


def test_what_nothing_is_said_of_gets_the_format_s_defaults() -> None:
    assert created(asked(10, 20)) == {
        "chunks": [10, 20],
        "compressor": BLOSC,
        "dimension_separator": ".",
        "dtype": StoredType.of(dtype("uint16")).to_json(),
        "fill_value": None,
        "filters": None,
        "order": "C",
        "shape": [10, 20],
        "zarr_format": 2,
    }


@pytest.mark.parametrize(
    ("chunk", "chosen"),
    [
        ({}, [101, 101, 101]),
        ({"shape": [100, 200, 300]}, [100, 200, 300]),
        ({"shape": [None, 200, -1], "elements": 1200000}, [2, 200, 3000]),
        ({"aspect_ratio": [1, 2, 2]}, [64, 128, 128]),
        ({"aspect_ratio": [1, 2, 2], "elements": 2000000}, [79, 159, 159]),
        ({"shape_soft_constraint": [10, 20, 30]}, [10, 20, 30]),
    ],
)
def test_chunks_are_chosen_within_the_constraints(chunk: dict, chosen: list[int]) -> None:
    layout = {"chunk_layout": {"chunk": chunk}}

    assert created(asked(1000, 2000, 3000, **layout))["chunks"] == chosen


def test_a_chunk_holds_a_million_elements_with_the_inner_ones() -> None:
    metadata = {"dtype": ONE, "shape": [1000, 2000, 3000]}

    assert created({}, metadata)["chunks"] == [55, 55, 55]


def test_an_empty_dimension_has_chunks_of_one() -> None:
    assert created(asked(0, 3))["chunks"] == [1, 3]


def test_read_and_write_chunks_are_one() -> None:
    layout = {"read_chunk": {"shape": [4, 0]}, "write_chunk": {"shape": [0, 5]}}
    torn = {"read_chunk": {"shape": [4, 5]}, "write_chunk": {"shape": [8, 5]}}

    assert created(asked(10, 20, chunk_layout=layout))["chunks"] == [4, 5]
    with pytest.raises(SpecError, match="read and write chunks are the same"):
        created(asked(10, 20, chunk_layout=torn))


@pytest.mark.parametrize(
    ("layout", "order"),
    [
        ({"inner_order": [1, 0]}, "F"),
        ({"inner_order": [0, 1]}, "C"),
        ({"inner_order_soft_constraint": [1, 0]}, "F"),
    ],
)
def test_the_inner_order_becomes_c_or_fortran(layout: dict, order: str) -> None:
    assert created(asked(10, 20, chunk_layout=layout))["order"] == order


def test_another_inner_order_is_only_a_wish() -> None:
    soft = {"inner_order_soft_constraint": [1, 0, 2]}

    assert created(asked(10, 20, 30, chunk_layout=soft))["order"] == "C"
    with pytest.raises(SpecError, match=r"inner_order: \[1, 0, 2\] is not possible"):
        created(asked(10, 20, 30, chunk_layout={"inner_order": [1, 0, 2]}))


def test_inner_dimensions_stay_innermost() -> None:
    metadata = {"dtype": ONE, "shape": [10, 20]}

    turned = created({"chunk_layout": {"inner_order": [1, 0, 2, 3]}}, metadata)

    assert turned["order"] == "F"
    with pytest.raises(SpecError, match=r"inside an element, .*come last"):
        created({"chunk_layout": {"inner_order": [3, 2, 1, 0]}}, metadata)


@pytest.mark.parametrize("where", ["schema", "metadata"])
def test_the_compressor_comes_from_either_side(where: str) -> None:
    gzip = {"id": "gzip", "level": 3}
    codec = {"codec": {"driver": "zarr", "compressor": gzip}}

    if where == "schema":
        assert created(asked(10, **codec))["compressor"] == gzip
    else:
        assert created(asked(10), {"compressor": gzip})["compressor"] == gzip
        assert created(asked(10, **codec), {"compressor": gzip})["compressor"] == gzip


def test_no_compression_can_be_asked_for() -> None:
    codec = {"codec": {"driver": "zarr", "compressor": None}}

    assert created(asked(10), {"compressor": None})["compressor"] is None
    assert created(asked(10, **codec))["compressor"] is None


@pytest.mark.parametrize(("value", "written"), [(7, 7), ([7], 7), (7.0, 7)])
def test_a_schema_s_fill_value_is_written(value: object, written: object) -> None:
    assert created(asked(10, fill_value=value))["fill_value"] == written


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (7, "BwAHAAcABwAHAAcA"),
        ([7, 8, 9], "BwAIAAkABwAIAAkA"),
        ([[7, 8, 9], [1, 2, 3]], "BwAIAAkAAQACAAMA"),
    ],
)
def test_a_field_s_fill_value_is_broadcast(value: object, written: str) -> None:
    assert created({"fill_value": value}, {"dtype": ONE, "shape": [4]})["fill_value"] == written


@pytest.mark.parametrize(
    ("metadata", "value", "problem"),
    [
        ({"dtype": "<u2"}, -1, "expected an integer from 0 to 65535"),
        ({"dtype": "<u2"}, [1, 2], r"an array of shape \[2\]"),
        ({"dtype": "<u2", "fill_value": None}, 7, r"asks for 7, but the metadata has none"),
        ({"dtype": "<u2", "fill_value": 8}, 7, "asks for 7, but the metadata has 8"),
        ({"dtype": ONE}, [7, 8], r"shape \[2\] does not broadcast"),
    ],
)
def test_a_fill_value_that_cannot_be_is_refused(
    metadata: dict, value: object, problem: str
) -> None:
    with pytest.raises((SpecError, MismatchError), match=problem):
        created({"fill_value": value}, {"shape": [4], **metadata})


def test_one_field_s_schema_does_not_fill_the_others() -> None:
    with pytest.raises(SpecError, match="as base64"):
        created({"fill_value": 1}, {"dtype": PAIR, "shape": [4]}, "y")


@pytest.mark.parametrize(
    ("schema", "metadata", "problem"),
    [
        ({"domain": {"shape": [3]}}, {}, "dtype must be specified"),
        ({"dtype": "uint8"}, {}, "domain must be specified"),
        ({"dtype": "uint8", "rank": 2}, {}, "domain must be specified"),
        ({"dtype": "byte", "domain": {"shape": [3]}}, {}, "^dtype: data type byte"),
        (asked(3, dimension_units=["nm"]), {}, "^dimension_units: .*use driver zarr3"),
        (asked(3, chunk_layout={"codec_chunk": {"shape": [2]}}), {}, "codec_chunk"),
    ],
)
def test_what_is_missing_or_impossible_is_named(schema: dict, metadata: dict, problem: str) -> None:
    with pytest.raises(SpecError, match=problem):
        created(schema, metadata)


@pytest.mark.parametrize(
    ("schema", "metadata"),
    [
        (asked(10), {"dtype": "<u4"}),
        (asked(10), {"shape": [11]}),
        (asked(10), {"shape": [10, 10]}),
        (asked(10, chunk_layout={"chunk": {"shape": [4]}}), {"chunks": [5]}),
        (asked(10, 20, chunk_layout={"inner_order": [0, 1]}), {"order": "F"}),
        (asked(10, chunk_layout={"grid_origin": [1]}), {}),
        (
            asked(10, codec={"driver": "zarr", "compressor": {"id": "bz2"}}),
            {"compressor": {"id": "zlib"}},
        ),
        ({"domain": {"shape": [10, 2, 4]}}, {"dtype": ONE}),
        ({"rank": 1}, {"dtype": ONE}),
        ({"rank": 2}, {"dtype": ONE, "shape": [10, 20]}),
    ],
)
def test_contradictions_are_refused(schema: dict, metadata: dict) -> None:
    with pytest.raises((MismatchError, SpecError)):
        created(schema, metadata)


def test_a_field_needs_a_data_type_with_fields() -> None:
    with pytest.raises(SpecError, match=r"^metadata\.dtype: .*required"):
        created(asked(10), {}, "x")


def test_metadata_implies_a_schema() -> None:
    schema = known("zarr", {}, {"shape": [10], "chunks": [5], "dtype": ONE}, field="x")

    assert schema.to_json() == {
        "chunk_layout": {
            "grid_origin": [0, 0, 0],
            "read_chunk": {"shape": [5, 2, 3]},
            "write_chunk": {"shape": [5, 2, 3]},
        },
        "codec": {"driver": "zarr", "filters": None},
        "domain": {"exclusive_max": [[10], 2, 3], "inclusive_min": [0, 0, 0]},
        "dtype": "uint16",
        "rank": 3,
    }


def test_without_a_type_the_rank_is_unknown() -> None:
    assert known("zarr", {}, {"shape": [10]}).rank is None
    assert known("zarr", {"rank": 1}, {"shape": [10]}).domain is not None


def test_a_stored_fill_value_is_compared_by_value() -> None:
    document = created(asked(3), {"dtype": ">u2", "fill_value": 1})

    opened("zarr", document, schema={"fill_value": 1})
    opened("zarr", {**document, "fill_value": None}, schema={})
    with pytest.raises(MismatchError, match="asks for 2, but the metadata has 1"):
        opened("zarr", document, schema={"fill_value": 2})
