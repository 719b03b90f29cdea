import copy
import pickle
from typing import Any

import numpy as np
import pytest
import tensorstore as reference

from tensorstore_py import _index as ours
from tensorstore_py._index import IndexDomain
from tensorstore_py._spec.chunk_layout import ChunkLayout
from tensorstore_py._spec.schema import Schema
from tensorstore_py._spec.units import Unit
from tensorstore_py.errors import MismatchError, OutOfRangeError, SpecError

JSONS = [
    {},
    [],
    {"foo": 5},
    {"rank": 2},
    {"rank": 2.0},
    {"rank": 33},
    {"rank": None},
    {"dtype": "foo"},
    {"dtype": 5},
    {"dtype": "int8"},
    {"domain": {"shape": [2]}, "rank": 3},
    {"domain": {"shape": [2], "inclusive_min": [1]}},
    {"domain": [1, 2]},
    {"domain": None},
    {"chunk_layout": {"rank": 2}, "rank": 3},
    {"chunk_layout": {"rank": 2}},
    {"chunk_layout": {"chunk": {"elements": 3}}},
    {"chunk_layout": {"inner_order": [1, 0]}},
    {"codec": 5},
    {"fill_value": 3, "dtype": "uint8"},
    {"fill_value": 300, "dtype": "uint8"},
    {"fill_value": [1, 2], "rank": 0},
    {"dtype": "uint8", "fill_value": [1, 2], "domain": {"shape": [2, 2]}},
    {"dtype": "uint8", "fill_value": [1, 2], "domain": {"shape": [2, 3]}},
    {"dtype": "float32", "fill_value": "NaN"},
    {"dimension_units": ["4nm", None, [3, "s"], 5]},
    {"dimension_units": [None, None]},
    {"dimension_units": [None, None], "rank": 3},
    {"dimension_units": "4nm"},
    {"dimension_units": [True]},
]


def outcome(make):
    try:
        return repr(make())
    except (TypeError, ValueError) as error:
        return TypeError if isinstance(error, TypeError) else ValueError


@pytest.mark.parametrize("json", JSONS, ids=repr)
def test_json_as_in_the_reference(json):
    assert outcome(lambda: reference.Schema(json)) == outcome(lambda: Schema(json))


@pytest.mark.parametrize(
    ("json", "path"),
    [
        ({"rnk": 2}, ("rnk",)),
        ({"rank": "2"}, ("rank",)),
        ({"dtype": "unit8"}, ("dtype",)),
        ({"rank": 1, "domain": {"shape": [1, 2]}}, ("domain",)),
        (
            {"chunk_layout": {"read_chunk": {"shape": ["a"]}}},
            ("chunk_layout", "read_chunk", "shape", 0),
        ),
        ({"codec": {"driver": "nothing"}}, ("codec", "driver")),
        ({"dtype": "int8", "fill_value": [1, "x"]}, ("fill_value", 1)),
        ({"dimension_units": [None, ["a", 1]]}, ("dimension_units", 1, 0)),
    ],
)
def test_errors_have_the_path(json, path):
    with pytest.raises(SpecError) as caught:
        Schema(json)

    assert caught.value.path == path


@pytest.mark.parametrize(
    "make",
    [
        lambda ts: ts.Schema(shape=[2, 3]),
        lambda ts: ts.Schema(shape=[2, 3], domain=ts.IndexDomain(shape=[2, 4])),
        lambda ts: ts.Schema(shape=[2, 3], domain=ts.IndexDomain(rank=2, labels=["x", "y"])),
        lambda ts: ts.Schema(shape=[2, 3], rank=3),
        lambda ts: ts.Schema(shape=[-1]),
        lambda ts: ts.Schema(shape=5),
        lambda ts: ts.Schema(dtype="int32", schema=ts.Schema(dtype="int64")),
        lambda ts: ts.Schema(dtype=np.int8),
        lambda ts: ts.Schema(rank=-1),
        lambda ts: ts.Schema(rank=33),
        lambda ts: ts.Schema(rank=2.0),
        lambda ts: ts.Schema(chunk_layout=ts.ChunkLayout(rank=2)),
        lambda ts: ts.Schema(chunk_layout=ts.ChunkLayout(chunk_shape=[2, 3]), rank=3),
        lambda ts: ts.Schema(fill_value=[1, 2], rank=0),
        lambda ts: ts.Schema(dimension_units=["4nm", None, 3, (3, "s"), ts.Unit("s")]),
        lambda ts: ts.Schema(dimension_units="4nm"),
        lambda ts: ts.Schema(dimension_units=[object()]),
        lambda ts: ts.Schema(dimension_units=[None]),
    ],
)
def test_parts_as_in_the_reference(make):
    class Ours:
        Schema = Schema
        ChunkLayout = ChunkLayout
        Unit = Unit
        IndexDomain = IndexDomain

    assert outcome(lambda: make(reference)) == outcome(lambda: make(Ours))


def test_json_of_a_part_does_for_the_part():
    assert Schema(domain={"shape": [2]}) == Schema(domain=IndexDomain(json={"shape": [2]}))
    layout = {"chunk": {"shape": [2, 3]}}
    assert Schema(chunk_layout=layout) == Schema(chunk_layout=ChunkLayout(layout))
    assert Schema(codec={"driver": "zarr3"}) == Schema({"codec": {"driver": "zarr3"}})
    assert Schema(schema={"rank": 2}) == Schema(rank=2)


@pytest.mark.parametrize("part", ["domain", "chunk_layout", "schema"])
def test_what_is_no_json_of_a_part_is_refused_with_an_example(part):
    wrong: dict[str, Any] = {part: [4, 4]}
    with pytest.raises(TypeError, match=r"or its JSON, such as \{.*but found \[4, 4\]"):
        Schema(**wrong)


DIMS: dict[type, Any] = {Schema: ours.d, reference.Schema: reference.d}


def sample(schema_class, layout_class):
    return schema_class(
        shape=[10, 20],
        dtype="int32",
        chunk_layout=layout_class(chunk_shape=[2, 3], inner_order=[1, 0], grid_origin=[0, 0]),
        fill_value=[[1], [2]] * 5,
        dimension_units=["4nm", "5nm"],
    )


@pytest.mark.parametrize(
    "index",
    [
        lambda schema: schema[2:5],
        lambda schema: schema[2:6:2],
        lambda schema: schema[3],
        lambda schema: schema[..., None],
        lambda schema: schema.T,
        lambda schema: schema[[1, 2]],
        lambda schema: schema.oindex[[1, 2], 2:4],
        lambda schema: schema.vindex[[1, 2], [3, 4]],
        lambda schema: schema.translate_by[3],
        lambda schema: schema.label["x", "y"],
        lambda schema: schema[DIMS[type(schema)][1].translate_to[5]],
        lambda schema: schema[::-1, ::-3],
    ],
)
def test_indexing_as_in_the_reference(index):
    expected = index(sample(reference.Schema, reference.ChunkLayout))

    assert repr(expected) == repr(index(sample(Schema, ChunkLayout)))


def test_indexing_outside_and_without_rank():
    schema = Schema(shape=[10, 20])

    with pytest.raises(OutOfRangeError):
        schema[30]
    with pytest.raises(SpecError, match="unknown rank"):
        Schema(dtype="int8")[0]
    assert Schema(rank=2, fill_value=3)[2:3, 5].fill_value == 3


def test_properties():
    schema = sample(Schema, ChunkLayout)

    assert (schema.rank, schema.ndim, schema.dtype.name) == (2, 2, "int32")
    assert schema.domain == IndexDomain(shape=[10, 20])
    assert (schema.shape, schema.origin, schema.size) == ((10, 20), (0, 0), 200)
    assert schema.chunk_layout.read_chunk.shape == (2, 3)
    assert schema.dimension_units == (Unit("4nm"), Unit("5nm"))
    assert schema.codec is None

    nothing = Schema()

    assert (nothing.rank, nothing.dtype, nothing.domain, nothing.fill_value) == (None,) * 4
    assert nothing.dimension_units is None
    assert Schema(rank=2).dimension_units == (None, None)
    assert nothing.chunk_layout == ChunkLayout()


def test_copies_are_independent():
    schema = sample(Schema, ChunkLayout)

    for other in (
        schema.copy(),
        copy.copy(schema),
        copy.deepcopy(schema),
        pickle.loads(pickle.dumps(schema)),
        Schema(schema),
    ):
        assert other == schema
        assert Schema.parse(other) is other

    other = schema.copy()
    other.update(domain=IndexDomain(rank=2, labels=["x", "y"]))

    assert other != schema
    assert schema.domain.labels == ("", "")
    assert schema != 5


class TestUpdate:
    def test_all_or_nothing(self):
        schema = Schema(dtype="int8")

        with pytest.raises(MismatchError, match="shape: Rank specified by shape"):
            schema.update(rank=3, shape=[1, 2], fill_value=4)

        assert schema == Schema(dtype="int8")

    @pytest.mark.parametrize(
        ("first", "second", "problem"),
        [
            ({"fill_value": 4}, {"fill_value": 5}, "fill_value"),
            ({"fill_value": [4, 4]}, {"rank": 0}, "incompatible with existing fill_value"),
            ({"fill_value": [4, 4]}, {"shape": [3]}, "incompatible with domain"),
            ({"shape": [3]}, {"fill_value": [4, 4]}, "incompatible with domain"),
            ({"dtype": "int8"}, {"dtype": "int16"}, "dtype"),
            ({"dimension_units": ["4nm"]}, {"dimension_units": ["5nm"]}, "units"),
            ({"shape": [3]}, {"shape": [4]}, "Upper bounds do not match"),
        ],
    )
    def test_contradictions(self, first, second, problem):
        schema = Schema(**first)

        with pytest.raises(MismatchError, match=problem):
            schema.update(**second)
        with pytest.raises(MismatchError, match=problem):
            schema.update(schema=Schema(**second))

    def test_unknown_argument(self):
        with pytest.raises(TypeError, match='did you mean "dtype"'):
            Schema(dtpe="int8")  # type: ignore[call-arg]

    def test_units_are_merged(self):
        schema = Schema(dimension_units=["4nm", None])

        schema.update(dimension_units=[None, "s"])

        assert schema.dimension_units == (Unit("4nm"), Unit("s"))


def test_a_schema_without_json_has_a_repr_all_the_same():
    assert repr(Schema(dtype="byte", fill_value=np.void(b"a"))) == "Schema(...)"
