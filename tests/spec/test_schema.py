"""Schemas, chunk layouts, their grids, and units, beside the reference's."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import tensorstore as reference

import tensorstore_py as ts
from tensorstore_py import (
    ChunkLayout,
    IndexDomain,
    MismatchError,
    OutOfRangeError,
    Schema,
    SpecError,
    Unit,
)

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


DIMS: dict[type, Any] = {Schema: ts.d, reference.Schema: reference.d}


def sample(schema_class, layout_class):
    return schema_class(
        shape=[10, 20],
        dtype="int32",
        chunk_layout=layout_class(chunk_shape=[2, 3], inner_order=[1, 0], grid_origin=[0, 0]),
        fill_value=[[1], [2]] * 5,
        dimension_units=["4nm", "5nm"],
    )


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


class TestSchema:
    @pytest.mark.parametrize("json", JSONS, ids=repr)
    def test_json_as_in_the_reference(self, json):
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
    def test_errors_have_the_path(self, json, path):
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
    def test_parts_as_in_the_reference(self, make):
        class Ours:
            Schema = Schema
            ChunkLayout = ChunkLayout
            Unit = Unit
            IndexDomain = IndexDomain

        assert outcome(lambda: make(reference)) == outcome(lambda: make(Ours))

    def test_json_of_a_part_does_for_the_part(self):
        assert Schema(domain={"shape": [2]}) == Schema(domain=IndexDomain(json={"shape": [2]}))
        layout = {"chunk": {"shape": [2, 3]}}
        assert Schema(chunk_layout=layout) == Schema(chunk_layout=ChunkLayout(layout))
        assert Schema(codec={"driver": "zarr3"}) == Schema({"codec": {"driver": "zarr3"}})
        assert Schema(schema={"rank": 2}) == Schema(rank=2)

    @pytest.mark.parametrize("part", ["domain", "chunk_layout", "schema"])
    def test_what_is_no_json_of_a_part_is_refused_with_an_example(self, part):
        wrong: dict[str, Any] = {part: [4, 4]}
        with pytest.raises(TypeError, match=r"or its JSON, such as \{.*but found \[4, 4\]"):
            Schema(**wrong)

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
    def test_indexing_as_in_the_reference(self, index):
        expected = index(sample(reference.Schema, reference.ChunkLayout))

        assert repr(expected) == repr(index(sample(Schema, ChunkLayout)))

    def test_indexing_outside_and_without_rank(self):
        schema = Schema(shape=[10, 20])

        with pytest.raises(OutOfRangeError):
            schema[30]
        with pytest.raises(SpecError, match="unknown rank"):
            Schema(dtype="int8")[0]
        assert Schema(rank=2, fill_value=3)[2:3, 5].fill_value == 3

    def test_properties(self):
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

    def test_copies_are_independent(self):
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

    def test_a_schema_without_json_has_a_repr_all_the_same(self):
        assert repr(Schema(dtype="byte", fill_value=np.void(b"a"))) == "Schema(...)"


GRID = ChunkLayout.Grid


# Keyword arguments on which both libraries must agree: repr, or the class of the error.
ARGUMENTS = [
    {},
    {"rank": 2},
    {"rank": 0},
    {"rank": 33},
    {"inner_order": []},
    {"inner_order": [1, 0], "rank": 2},
    {"inner_order": [0, 0]},
    {"inner_order": [0, 2]},
    {"rank": 2, "inner_order": [0]},
    {"inner_order_soft_constraint": [1, 0], "inner_order": [0, 1]},
    {"inner_order": [1, 0], "grid_origin": [0]},
    {"grid_origin_soft_constraint": [1, None], "grid_origin": [None, 4]},
    {"grid_origin": [2**62]},
    {"chunk_shape": [1, 2], "write_chunk_shape": [1, 3]},
    {"chunk_shape": [-1, 3], "write_chunk_shape": [5, 3]},
    {"chunk_shape_soft_constraint": [4, 4], "read_chunk_shape_soft_constraint": [5, 5]},
    {"chunk_elements_soft_constraint": 5, "chunk_elements": 6},
    {"chunk_aspect_ratio": [1, 2], "codec_chunk_aspect_ratio_soft_constraint": [3, None]},
    {"codec_chunk_elements": 7, "read_chunk_aspect_ratio": [None, 3]},
    {"chunk_shape": 5},
    {"chunk_elements": 1.5},
    {"finalize": True},
    {"rank": 2, "finalize": True},
    {"grid_origin": [0, 0], "finalize": True},
    {"grid_origin": [0, None], "chunk_shape": [1, 2], "finalize": True},
    {"grid_origin": [0, 0], "chunk_shape": [1, 2], "chunk_elements": 9, "finalize": True},
    {
        "grid_origin": [0, 0],
        "write_chunk_shape": [4, 2],
        "read_chunk_shape": [2, 0],
        "codec_chunk_shape_soft_constraint": [1, 1],
        "finalize": True,
    },
    {
        "grid_origin": [0, 0],
        "write_chunk_shape": [4, 2],
        "read_chunk_shape": [3, 0],
        "finalize": True,
    },
]


LAYOUTS = [
    {},
    [],
    {"foo": 1},
    {"rank": 2.0},
    {"rank": "2"},
    {"rank": 33},
    {"inner_order": None},
    {"inner_order": "C"},
    {"rank": 2, "inner_order": [0]},
    {"grid_origin": None},
    {"grid_origin": [1, None]},
    {"write_chunk": None},
    {"write_chunk": {}},
    {"read_chunk": {"shape": [3, -4]}},
    {"chunk": {"shape": [1, 2], "aspect_ratio": [1, 2], "elements": 5}},
    {"chunk": {"shape": [1, 2]}, "write_chunk": {"shape": [1, 3]}},
    {"codec_chunk": {"elements": 3, "shape": [3]}},
]


class TestChunkLayout:
    @pytest.mark.parametrize("arguments", ARGUMENTS, ids=repr)
    def test_arguments_as_in_the_reference(self, arguments):
        expected = outcome(lambda: reference.ChunkLayout(**arguments))

        assert expected == outcome(lambda: ChunkLayout(**arguments))

    @pytest.mark.parametrize("json", LAYOUTS, ids=repr)
    def test_json_as_in_the_reference(self, json):
        assert outcome(lambda: reference.ChunkLayout(json)) == outcome(lambda: ChunkLayout(json))

    @pytest.mark.parametrize(
        ("json", "path"),
        [
            ({"write_chnk": {}}, ("write_chnk",)),
            ({"rank": -1}, ("rank",)),
            ({"inner_order": [0, 0]}, ("inner_order",)),
            ({"inner_order": [0, "a"]}, ("inner_order",)),
            ({"rank": 2, "grid_origin": [0]}, ("grid_origin",)),
            ({"read_chunk": {"shape": [3, -4]}}, ("read_chunk", "shape", 1)),
            ({"chunk": {"elements": 1}, "read_chunk": {"elements": 2}}, ("read_chunk",)),
        ],
    )
    def test_errors_have_the_path(self, json, path):
        with pytest.raises(SpecError) as caught:
            ChunkLayout(json)

        assert caught.value.path == path

    def test_properties(self):
        shards = ChunkLayout(
            grid_origin=[-8, 0, 5],
            write_chunk=GRID(shape=[32, 64, 15]),
            read_chunk=GRID(shape=[8, 0, 5]),
            codec_chunk=GRID(shape=[0, 4, 0]),
            inner_order=[2, 0, 1],
            finalize=True,
        )

        assert shards.rank == shards.ndim == 3
        assert shards.grid_origin == (-8, 0, 5)
        assert shards.inner_order == (2, 0, 1)
        assert shards.inner_order_soft_constraint is None
        # What is read together is, where nothing is said, what is written together.
        assert shards.read_chunk.shape == (8, 64, 5)
        assert shards.write_chunk.shape == (32, 64, 15)
        assert shards.codec_chunk.shape == (None, 4, None)
        for template, extents in [
            (shards.read_chunk_template, (8, 64, 5)),
            (shards.write_chunk_template, (32, 64, 15)),
        ]:
            assert template == IndexDomain(inclusive_min=[-8, 0, 5], shape=extents)
        for again in (ChunkLayout(shards), pickle.loads(pickle.dumps(shards))):
            assert again == shards

    def test_codec_chunk_shape_is_about_codec_chunks(self):
        layout = ChunkLayout(codec_chunk_shape=[2, 3], codec_chunk_aspect_ratio=[None, 2])

        assert layout.to_json() == {"codec_chunk": {"aspect_ratio": [None, 2.0], "shape": [2, 3]}}

    def test_templates_know_hard_constraints_only(self):
        soft = ChunkLayout(grid_origin_soft_constraint=[1, 2], chunk_shape=[3, None])

        assert repr(soft.read_chunk_template) == "{ (-inf, +inf), (-inf, +inf) }"
        assert repr(ChunkLayout(grid_origin=[1, 2], chunk_shape=[3, None]).read_chunk_template) == (
            "{ [1, 4), (-inf, +inf) }"
        )
        with pytest.raises(SpecError, match="Rank of chunk layout is unspecified"):
            _ = ChunkLayout().read_chunk_template

    def test_unknown_rank(self):
        assert ChunkLayout().rank == -1
        assert ChunkLayout().grid_origin is None
        assert ChunkLayout(rank=1).grid_origin == (None,)

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ({}, {}),
            ({"rank": 2}, {}),
            ({"chunk_elements": 1}, {"rank": 2, "chunk_elements": 1}),
            ({"chunk_elements": 1}, {"chunk_elements_soft_constraint": 1}),
            ({"chunk_shape": [1]}, {"chunk_shape": [1], "rank": 1}),
            ({"chunk_shape": [None]}, {"rank": 1}),
            ({"chunk_shape": [1]}, {"rank": 1}),
        ],
    )
    def test_equality_as_in_the_reference(self, one, other):
        expected = reference.ChunkLayout(**one) == reference.ChunkLayout(**other)

        assert expected == (ChunkLayout(**one) == ChunkLayout(**other))

    def test_update_is_all_or_nothing(self):
        layout = ChunkLayout(chunk_shape=[1, 2])

        with pytest.raises(MismatchError, match="read_chunk_shape"):
            layout.update(inner_order=[1, 0], read_chunk_shape=[1, 3])

        assert layout == ChunkLayout(chunk_shape=[1, 2])
        assert layout != 5
        with pytest.raises(TypeError, match='did you mean "read_chunk_shape"'):
            layout.update(read_chunk_shap=[1])  # type: ignore[call-arg]


Grid = ts.ChunkLayout.Grid


#: A volume whose depth is stated, whose width is wished for, and whose height is left open.
VOLUME: Any = {
    "shape": [16, None, None, None],
    "shape_soft_constraint": [None, 48, None, None],
    "aspect_ratio": [None, None, 4.0, None],
    "aspect_ratio_soft_constraint": [None, None, None, 0.5],
    "elements": 65536,
}


class TestGrid:
    def test_json(self):
        grid = Grid(VOLUME)

        for name in VOLUME:
            said, stated = getattr(grid, name), VOLUME[name]
            assert said == (tuple(stated) if isinstance(stated, list) else stated)
        assert grid.elements_soft_constraint is None
        assert grid.to_json() == VOLUME

    def test_members_are_arguments_and_it_travels(self):
        grid = Grid(VOLUME)

        assert Grid(**VOLUME) == grid
        assert pickle.loads(pickle.dumps(grid)) == grid

    def test_parts_of_an_unknown_or_unconstrained_grid(self):
        assert (Grid().rank, Grid().ndim, Grid().shape) == (None, None, None)
        assert Grid(rank=2).shape == (None, None)
        assert Grid(shape=[]).rank is None
        assert Grid(rank=0) != Grid()
        assert Grid() != 5

    def test_update_is_all_or_nothing(self):
        grid = Grid(shape=[2, 3, None])

        with pytest.raises(MismatchError):
            grid.update(shape=[None, None, 7], elements=5, grid=Grid(shape=[4, None, None]))

        assert grid == Grid(shape=[2, 3, None])

        grid.update(shape=[None, None, 7], elements_soft_constraint=9)

        assert grid.to_json() == {"elements_soft_constraint": 9, "shape": [2, 3, 7]}

    def test_another_grid_as_a_wish(self):
        grid = Grid(shape=[2, None], grid_soft_constraint=Grid(shape=[9, 9], elements=4))

        assert grid.to_json() == {
            "elements_soft_constraint": 4,
            "shape": [2, None],
            "shape_soft_constraint": [None, 9],
        }

    @pytest.mark.parametrize(
        ("json", "path"),
        [
            (5, ()),
            ({"shap": [1]}, ("shap",)),
            ({"shape": 1}, ("shape",)),
            ({"shape": None}, ("shape",)),
            ({"shape": [1, "a"]}, ("shape", 1)),
            ({"shape": [1.5]}, ("shape", 0)),
            ({"shape": [1, -2]}, ("shape", 1)),
            ({"shape": [1] * 33}, ("shape",)),
            ({"aspect_ratio": [-1]}, ("aspect_ratio", 0)),
            ({"aspect_ratio": ["1"]}, ("aspect_ratio", 0)),
            ({"elements": -5}, ("elements",)),
            ({"elements": None}, ("elements",)),
            ({"shape": [1], "aspect_ratio": [1, 2]}, ("aspect_ratio",)),
        ],
    )
    def test_json_errors(self, json, path):
        with pytest.raises(SpecError) as caught:
            Grid(json)

        assert caught.value.path == path

    @pytest.mark.parametrize(
        ("arguments", "error"),
        [
            ({"rank": 33}, SpecError),
            ({"rank": 2, "shape": [1]}, MismatchError),
            ({"shape": [-2]}, SpecError),
            ({"elements": -1}, SpecError),
            ({"shape": 5}, TypeError),
            ({"shape": "ab"}, TypeError),
            ({"shape": [1.5]}, TypeError),
            ({"elements": 1.5}, TypeError),
            ({"grid": {"shape": [1]}}, TypeError),
            ({"shpe": [1]}, TypeError),
        ],
    )
    def test_argument_errors(self, arguments, error):
        with pytest.raises(error):
            Grid(**arguments)


def unit_outcome(unit_class, args):
    try:
        unit = unit_class(*args)
    except TypeError:
        return TypeError
    return repr(unit), str(unit), unit.to_json()


class TestUnits:
    @pytest.mark.parametrize(
        "args",
        [
            (),
            ("4 nm",),
            ("4nm",),
            ("nm",),
            ("3e5",),
            ("",),
            ("  4.5  n m ",),
            ("-4nm",),
            ("4.nm",),
            (".5nm",),
            ("+4nm",),
            ("4e nm",),
            (4,),
            (4, "nm"),
            ((4, "nm"),),
            ([4, "nm"],),
            (1e20,),
            (1e-7,),
            (123456789.0, "x"),
            ("é\"'\\\n",),
            (float("inf"), "m"),
            (None,),
            ("a", "b"),
            (1, 2),
            (1, "a", 3),
        ],
        ids=repr,
    )
    def test_like_the_reference(self, args):
        assert unit_outcome(reference.Unit, args) == unit_outcome(Unit, args)

    @pytest.mark.parametrize(
        ("json", "path"),
        [(None, ()), (True, ()), ([4], ()), ([4, 5], (1,)), (["a", "b"], (0,)), ({}, ())],
    )
    def test_json_errors(self, json, path):
        with pytest.raises(SpecError) as caught:
            Unit(json=json)

        assert caught.value.path == path
        with pytest.raises(ValueError, match=r"xpected|length"):
            reference.Unit(json=json)

    def test_json(self):
        assert Unit(json="4nm") == Unit(json=[4, "nm"]) == Unit(4, "nm")
        assert Unit(json=4) == Unit(4)
        assert Unit(unit="4nm") == Unit(multiplier=4, base_unit="nm")
        with pytest.raises(TypeError):
            Unit(4, json=4)  # type: ignore[call-overload]
        with pytest.raises(TypeError):
            Unit(units="nm")  # type: ignore[call-overload]

    def test_arithmetic(self):
        assert Unit("4nm") * 3 == Unit(12, "nm")
        assert Unit("4nm") / 2 == Unit(2, "nm")
        assert (Unit("4nm") / 0).multiplier == float("inf")
        with pytest.raises(TypeError):
            Unit("4nm") * "x"  # type: ignore[operator]

    def test_values(self):
        unit = Unit("4nm")

        assert unit == copy.copy(unit) == pickle.loads(pickle.dumps(unit))
        assert unit != "4nm"
        assert Unit.like(unit) is unit
        with pytest.raises(TypeError, match="unhashable"):
            hash(unit)
