import sys
from pathlib import Path
from types import FrameType

import numpy as np
import pytest

from tensorstore_py.errors import MismatchError, SpecError
from tensorstore_py.plugin.codec import dtype
from tensorstore_py.plugin.driver import (
    ArrayInfo,
    CodecSpec,
    ElementView,
    Schema,
    Unit,
)

ANY = CodecSpec({"driver": "zarr3"})


def info(**members) -> ArrayInfo:
    return ArrayInfo(codec=ANY, **members)


def whole(schema: Schema, **members) -> ArrayInfo:
    stated = info(**members)
    return stated.complete(stated.constrain(schema))


BOX: dict[str, object] = {"inclusive_min": [0, 0], "exclusive_max": [[3], [4]]}
GZIP = {"driver": "zarr3", "codecs": ["gzip"]}


def test_the_data_type_comes_from_either_side() -> None:
    int8 = info(data_type=dtype("int8"))
    assert info().chosen_type(Schema(dtype="int8")) == dtype("int8")
    assert int8.chosen_type(Schema()) == int8.chosen_type(Schema(dtype="int8")) == dtype("int8")
    with pytest.raises(SpecError, match="dtype must be specified"):
        info().chosen_type(Schema())
    with pytest.raises(MismatchError, match=r"uint8.*int8"):
        int8.chosen_type(Schema(dtype="uint8"))


@pytest.mark.parametrize(
    ("domain", "shape", "labels", "expected"),
    [
        (None, None, None, None),
        (None, [3, 4], None, BOX),
        ({"shape": [3, 4]}, None, None, BOX),
        ({"shape": [3, 4]}, [3, 4], None, BOX),
        ({"rank": 2}, [3, 4], None, BOX),
        ({"exclusive_max": [[3], 4]}, None, None, BOX),
        (None, None, ["x", ""], {"inclusive_min": [0, 0], "labels": ["x", ""]}),
        ({"labels": ["", "y"]}, [3, 4], ["x", ""], BOX | {"labels": ["x", "y"]}),
    ],
)
def test_what_is_known_of_the_domain(domain, shape, labels, expected) -> None:
    schema = Schema() if domain is None else Schema({"domain": domain})

    found = info(shape=shape, labels=labels).constrain(schema).domain

    assert (None if found is None else found.to_json()) == expected


@pytest.mark.parametrize(
    ("schema", "shape", "labels"),
    [
        ({"domain": {"shape": [3, 4]}}, [3, 5], None),
        ({"domain": {"exclusive_max": [[3], [4]]}}, [3, 5], None),
        ({"domain": {"inclusive_min": [1], "exclusive_max": [3]}}, None, None),
        ({"domain": {"labels": ["x"]}}, None, ["y"]),
        ({"rank": 2}, [3], None),
        ({"rank": 2, "dtype": "int8"}, None, ["x"]),
    ],
)
def test_domains_that_contradict_each_other(schema, shape, labels) -> None:
    with pytest.raises(MismatchError):
        info(shape=shape, labels=labels).constrain(Schema(schema))


def test_a_new_domain_is_finite() -> None:
    assert whole(Schema(dtype="int8"), shape=[3, 0]).shape == (3, 0)
    for schema in ({}, {"rank": 1}, {"domain": {"rank": 1}}, {"domain": {"labels": ["x"]}}):
        with pytest.raises(SpecError, match="domain must be specified"):
            whole(Schema({**schema, "dtype": "int8"}))


def layout(json: dict, **stated: object):
    return info(rank=2, **stated).layout(Schema({"chunk_layout": json, "rank": 2}))


def test_the_layout_joins_both_sides() -> None:
    found = layout(
        {"read_chunk": {"elements": 5}, "inner_order_soft_constraint": [1, 0]}, write_chunk=[4, 6]
    )

    assert found.to_json() == {
        "grid_origin": [0, 0],
        "inner_order_soft_constraint": [1, 0],
        "read_chunk": {"elements": 5},
        "write_chunk": {"shape": [4, 6]},
    }
    new = {"dtype": "int8", "domain": {"shape": [8, 9]}}
    turned = Schema({**new, "chunk_layout": {"inner_order_soft_constraint": [1, 0]}})
    assert whole(turned).inner_order == (1, 0)
    assert whole(turned, inner_order=(0, 1)).inner_order == (0, 1)
    assert whole(Schema(new)).inner_order is None


def test_in_one_grid_a_constraint_holds_for_reading_and_writing() -> None:
    found = layout({"read_chunk": {"shape": [5, 6]}}, write_chunk=[5, 6], one_grid=True)

    assert found.read_chunk.shape == found.write_chunk.shape == (5, 6)
    with pytest.raises(MismatchError, match="read and write chunks are the same here"):
        layout({"read_chunk": {"shape": [5, 6]}}, write_chunk=[5, 7], one_grid=True)


@pytest.mark.parametrize(
    ("json", "stated"),
    [
        ({"write_chunk": {"shape": [5, 6]}}, {"write_chunk": [5, 7]}),
        ({"read_chunk": {"shape": [5, 6]}}, {"read_chunk": [5, 7]}),
        ({"inner_order": [0, 1]}, {"inner_order": [1, 0]}),
        ({"grid_origin": [0, 1]}, {}),
    ],
)
def test_layouts_that_contradict_each_other(json: dict, stated: dict) -> None:
    with pytest.raises(MismatchError):
        layout(json, **stated)


def test_codec_chunks_are_refused() -> None:
    with pytest.raises(SpecError, match="codec_chunk"):
        layout({"codec_chunk": {"shape": [1, 2]}})


@pytest.mark.parametrize(
    ("json", "one_grid", "read", "write"),
    [
        ({}, False, (100, 200), (100, 200)),
        ({"chunk": {"elements": 100}}, False, (10, 10), (10, 10)),
        ({"read_chunk": {"shape": [10, 20]}}, False, (10, 20), (100, 200)),
        ({"read_chunk": {"shape": [10, 20]}}, True, (10, 20), (10, 20)),
        ({"write_chunk": {"shape": [10, -1]}}, False, (10, 200), (10, 200)),
        ({"read_chunk": {"elements": 1000}}, False, (31, 31), (93, 186)),
    ],
)
def test_chunk_shapes(json: dict, one_grid: bool, read: tuple, write: tuple) -> None:
    schema = {"dtype": "int8", "domain": {"shape": [100, 200]}, "chunk_layout": json}

    assert whole(Schema(schema), one_grid=one_grid).chunk_shapes == (read, write)


def test_read_chunks_must_divide_write_chunks() -> None:
    layout = {"read_chunk": {"shape": [5, 4]}}
    schema = {"dtype": "int8", "domain": {"shape": [100, 200]}, "chunk_layout": layout}

    with pytest.raises(MismatchError, match="dimension 1"):
        whole(Schema(schema), write_chunk=[5, 6])


@pytest.mark.parametrize(
    ("given", "name", "expected"),
    [
        (Schema(), "int8", None),
        (Schema(fill_value=3, dtype="int8"), "int8", 3),
        (Schema(fill_value=3), "uint8", 3),
        (Schema({"fill_value": 3}), "uint8", 3),
        (Schema({"fill_value": 3.0}), "uint8", 3),
        (Schema(fill_value=0.5), "float32", 0.5),
        (Schema(fill_value=3), "bfloat16", 3),
        (Schema(fill_value=1e300), "float32", np.inf),
        (Schema(fill_value=1j), "complex64", 1j),
        (Schema(fill_value=True), "bool", True),
    ],
)
def test_fill_values_are_converted(given: Schema, name: str, expected: object) -> None:
    found = ElementView("", dtype(name), dtype(name).array_dtype).asked_fill_value(given)

    if expected is None:
        assert found is None
        return
    assert found is not None
    assert found.shape == ()
    assert found.dtype == dtype(name).array_dtype
    assert found == np.array(expected).astype(found.dtype)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (Schema(fill_value=2.5), "uint8"),
        (Schema(fill_value=300), "uint8"),
        (Schema(fill_value=-1), "uint64"),
        (Schema(fill_value=np.nan), "int32"),
        (Schema({"fill_value": 300}), "uint8"),
        (Schema({"fill_value": "x"}), "float32"),
        (Schema(fill_value=1), "bool"),
        (Schema(fill_value=True), "int8"),
        (Schema(fill_value=1j), "float32"),
        (Schema(fill_value=[1, 2]), "int8"),
    ],
)
def test_fill_values_that_are_none_of_the_type(given: Schema, name: str) -> None:
    with pytest.raises(SpecError, match="fill_value"):
        ElementView("", dtype(name), dtype(name).array_dtype).asked_fill_value(given)


def stored() -> ArrayInfo:
    return ArrayInfo(
        data_type=dtype("float32"),
        shape=[10, 20],
        labels=["y", ""],
        read_chunk=[2, 3],
        write_chunk=[4, 6],
        inner_order=(1, 0),
        codec=CodecSpec(GZIP),
        fill_value=np.array(np.nan, np.float32),
        units=[Unit("4nm"), None],
    )


def test_the_schema_of_an_array() -> None:
    schema = stored().schema().to_json()

    assert repr(schema.pop("fill_value")) == "nan"
    assert schema == {
        "chunk_layout": {
            "grid_origin": [0, 0],
            "inner_order": [1, 0],
            "read_chunk": {"shape": [2, 3]},
            "write_chunk": {"shape": [4, 6]},
        },
        "codec": {"driver": "zarr3", "codecs": [{"name": "gzip"}]},
        "dimension_units": [[4, "nm"], None],
        "domain": {
            "inclusive_min": [0, 0],
            "exclusive_max": [[10], [20]],
            "labels": ["y", ""],
        },
        "dtype": "float32",
        "rank": 2,
    }


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"rank": 2, "dtype": "float32"},
        {"domain": {"shape": [10, 20]}},
        {"domain": {"labels": ["y", "x"]}},
        {"chunk_layout": {"read_chunk": {"shape": [2, 3]}, "inner_order": [1, 0]}},
        {"chunk_layout": {"chunk": {"elements": 7, "shape_soft_constraint": [9, 9]}}},
        {"codec": {"driver": "zarr3", "codecs": ["gzip"]}},
        {"dtype": "float32", "fill_value": "NaN"},
        {"dimension_units": ["4nm", None]},
    ],
)
def test_an_array_that_satisfies(asked: dict) -> None:
    stored().check(Schema(asked))


@pytest.mark.parametrize(
    ("part", "asked"),
    [
        ("dtype", "float64"),
        ("rank", 3),
        ("domain", {"shape": [10, 21]}),
        ("domain", {"labels": ["x", ""]}),
        ("chunk_layout", {"chunk": {"shape": [2, 3]}}),
        ("chunk_layout", {"inner_order": [0, 1]}),
        ("codec", {"driver": "zarr3", "codecs": ["zstd"]}),
        ("fill_value", 0),
        ("dimension_units", ["5nm", None]),
    ],
)
def test_an_array_that_does_not(part: str, asked: object) -> None:
    with pytest.raises(MismatchError, match=f"^{part}: "):
        stored().check(Schema({part: asked}))


def test_zero_and_negative_zero_are_different_fill_values() -> None:
    found = stored()
    negative = Schema(dtype="float32", fill_value=-0.0)

    with pytest.raises(MismatchError, match="fill_value"):
        found.check(negative)


@pytest.mark.parametrize(
    ("asked", "makes"),
    [
        (Schema(dtype="int8", shape=[3, 4]), False),
        (Schema(dtype="int8", shape=[3, 4], dimension_units=[None, None]), False),
        (Schema(chunk_layout={"read_chunk": {"shape": [3, 4]}}), True),
        (Schema(chunk_layout={"inner_order": [0, 1]}), True),
        (Schema(chunk_layout={"grid_origin": [0, 0]}), True),
    ],
)
def test_no_layout_is_made_to_compare_what_asks_for_none(asked: Schema, makes: bool) -> None:
    array = whole(Schema(dtype="int8", shape=[3, 4]))
    calls: list[str] = []

    def count(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and Path(frame.f_code.co_filename).stem == "chunk_layout":
            calls.append(frame.f_code.co_name)

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        array.check(asked)
    finally:
        sys.setprofile(before)
    assert ("update" in calls) is makes


@pytest.mark.parametrize(
    "layout",
    [
        {"inner_order": [1, 0]},
        {"grid_origin": [0, 1]},
        {"chunk": {"shape": [2, 2]}},
        {"write_chunk": {"shape": [2, None]}},
        {"read_chunk": {"shape": [None, 2]}},
    ],
)
def test_a_layout_that_contradicts_is_refused(layout: dict[str, object]) -> None:
    array = whole(Schema(dtype="int8", shape=[3, 4]))
    with pytest.raises(MismatchError, match="chunk_layout"):
        array.check(Schema(chunk_layout=layout))
