"""Constraints on grids, layouts and schemas: how they merge, and what a transform makes of them."""

import pytest
import tensorstore as reference
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorstore_py as ours
from tensorstore_py import (
    ChunkLayout,
    Dim,
    IndexDomain,
    IndexTransform,
    MismatchError,
    OutOfRangeError,
    Schema,
    SpecError,
)
from tensorstore_py._spec.choose_chunks import (
    chunk_extents,
    common_chunks,
    nested_chunks,
    placed_chunks,
)
from tensorstore_py._spec.grid_constraints import (
    GridConstraints,
    PerDim,
    aspect_ratios,
    extents,
    json_array,
    json_integer,
    merge_dims,
    merge_elements,
    merge_rank,
    origins,
)
from tensorstore_py._spec.layout_constraints import (
    NO_LAYOUT,
    DimMapping,
    LayoutConstraints,
    finalized,
    input_order,
    output_order,
)
from tensorstore_py._spec.schema_constraints import (
    NO_SCHEMA,
    SchemaConstraints,
    domain_to_output,
    merge_domains,
)


class TestPerDim:
    def test_extents(self):
        assert extents([5, None, 0, -1], True) == PerDim(
            (5, None, None, -1), (True, False, False, False)
        )
        with pytest.raises(SpecError) as caught:
            extents([1, -2], True)
        assert caught.value.path == (1,)
        with pytest.raises(TypeError, match="dimension 0"):
            extents([1.5], True)
        with pytest.raises(TypeError):
            extents([True], True)

    def test_origins(self):
        assert origins([0, None, -5], False) == PerDim((0, None, -5), (False, False, False))
        with pytest.raises(SpecError, match="finite index"):
            origins([2**62], True)

    def test_aspect_ratios(self):
        assert aspect_ratios([1, 0, 2.5], True) == PerDim((1.0, None, 2.5), (True, False, True))
        for wrong in (-1, float("nan")):
            with pytest.raises(SpecError):
                aspect_ratios([wrong], True)
        with pytest.raises(TypeError):
            aspect_ratios(["1"], True)

    @pytest.mark.parametrize(
        ("mine", "theirs", "expected"),
        [
            (None, (5, False), (5, False)),
            ((5, False), (6, False), (5, False)),
            ((5, False), (6, True), (6, True)),
            ((5, True), (6, False), (5, True)),
            ((5, True), (5, True), (5, True)),
            ((5, True), (6, True), MismatchError),
        ],
    )
    def test_hard_and_soft(self, mine, theirs, expected):
        def per_dim(scalar):
            return PerDim.none(1) if scalar is None else PerDim((scalar[0],), (scalar[1],))

        if expected is MismatchError:
            with pytest.raises(MismatchError, match="does not match existing hard constraint"):
                merge_elements(mine, theirs)
            with pytest.raises(MismatchError, match="for dimension 0"):
                per_dim(mine).merged(per_dim(theirs))
            return

        assert merge_elements(mine, theirs) == expected
        assert per_dim(mine).merged(per_dim(theirs)) == per_dim(expected)

    def test_parts(self):
        both = extents([5, None, 3], True).merged(extents([7, 8, None], False))

        assert both.part(hard=True) == (5, None, 3)
        assert both.part(hard=False) == (None, 8, None)
        assert both.softened().part(hard=False) == (5, 8, 3)
        assert both.taken([2, None, 0]) == PerDim((3, None, 5), (True, False, True))
        assert not both.is_empty
        assert PerDim.none(3).is_empty


class TestGridConstraints:
    def test_parse_knows_the_rank(self):
        json = {"shape": (1, 2)}

        assert GridConstraints.parse(json, 2).rank == 2
        with pytest.raises(SpecError) as caught:
            GridConstraints.parse(json, 3)
        assert caught.value.path == ("shape",)

    def test_empty(self):
        empty = GridConstraints(shape=extents([None, 0], True))

        assert empty.is_empty
        assert empty.bare() == GridConstraints()
        assert not GridConstraints(elements=(0, True)).is_empty

    def test_softened(self):
        grid = GridConstraints.parse(
            {"shape": (1, -1), "aspect_ratio": (2.0, None), "elements": 3}, None
        )

        assert grid.softened().to_json() == {
            "aspect_ratio_soft_constraint": [2.0, None],
            "elements_soft_constraint": 3,
            "shape_soft_constraint": [1, -1],
        }

    def test_merge_rank_and_dims(self):
        assert merge_rank(None, None) is None
        assert merge_rank(2, None) == merge_rank(None, 2) == merge_rank(2, 2) == 2
        with pytest.raises(MismatchError):
            merge_rank(2, 3)
        with pytest.raises(SpecError, match="outside valid range"):
            merge_rank(None, -1)
        one = extents([1], True)
        assert merge_dims(None, one) is merge_dims(one, None) is one
        assert merge_dims(one, extents([], True)) is one

    def test_json_values(self):
        assert json_integer(5.0) == 5
        assert json_array((1, 2)) == (1, 2)
        for wrong in (True, "5", 5.5, None):
            with pytest.raises(SpecError, match="expected an integer"):
                json_integer(wrong)
        with pytest.raises(SpecError, match="expected an array"):
            json_array({})


def constraints(**arguments):
    return ChunkLayout(**arguments).constraints


class TestTransforms:
    layout = ChunkLayout(
        chunk_shape=[6, 8, 10],
        chunk_aspect_ratio=[1, 2, 3],
        inner_order=[2, 0, 1],
        grid_origin=[4, 5, 6],
    )

    def to_input(self, transform):
        return ChunkLayout.of(self.layout.constraints.to_input(transform))

    def test_permuted_and_strided(self):
        transform = IndexTransform(input_rank=3)[2:20:4, ::1, 3].transpose()
        with pytest.raises(Exception, match=r"finite|bound"):
            IndexTransform(input_rank=3)[::4]

        moved = self.to_input(transform)

        assert moved.read_chunk.shape == (8, 3)
        assert moved.read_chunk.aspect_ratio == (2, 0.25)
        assert moved.inner_order == (1, 0)

    def test_diagonals_and_new_dimensions_are_unconstrained(self):
        json = {
            "input_rank": 3,
            "output": [{"input_dimension": 0}, {"input_dimension": 0}, {"input_dimension": 1}],
        }

        moved = self.to_input(IndexTransform(json=json))

        assert moved.read_chunk.shape == (None, 10, None)
        assert moved.inner_order == (1, 0, 2)

    def test_there_and_back(self):
        json = {
            "input_rank": 3,
            "output": [
                {"input_dimension": 2, "offset": 5},
                {"input_dimension": 0, "stride": -1, "offset": 3},
                {"input_dimension": 1},
            ],
        }
        transform = IndexTransform(json=json)

        back = self.to_input(transform).constraints.to_output(transform)

        assert ChunkLayout.of(back) == self.layout

    def test_a_hard_constraint_must_not_get_lost(self):
        transform = IndexTransform(json={"input_rank": 3, "output": [{"input_dimension": 0}]})

        with pytest.raises(MismatchError, match="No output dimension corresponds"):
            self.layout.constraints.to_output(transform)

        soft = self.layout.constraints.softened().to_output(transform)
        assert ChunkLayout.of(soft).write_chunk.shape_soft_constraint == (6,)

    def test_rank(self):
        with pytest.raises(MismatchError, match="Cannot transform constraints of rank 3"):
            self.to_input(IndexTransform(input_rank=2))
        unranked = ChunkLayout(chunk_elements=3).constraints
        assert unranked.to_input(IndexTransform(input_rank=2)) is unranked


class TestLayoutConstraints:
    def test_merging(self):
        both = constraints(chunk_shape=[1, None]).merged(constraints(inner_order=[1, 0]))

        assert both == constraints(chunk_shape=[1, None], inner_order=[1, 0])
        assert both.needs_rank
        assert not constraints(rank=2, chunk_elements=3).needs_rank
        with pytest.raises(MismatchError, match="Rank 3 does not match existing rank 2"):
            both.merged(LayoutConstraints(rank=3))
        with pytest.raises(MismatchError, match="inner_order"):
            both.merged(constraints(inner_order=[0, 1]))

    def test_softened(self):
        soft = constraints(chunk_shape=[1, 2], inner_order=[1, 0], grid_origin=[0, 0]).softened()

        assert soft.merged(constraints(inner_order=[0, 1])).inner_order == ((0, 1), True)
        assert soft == constraints(
            chunk_shape_soft_constraint=[1, 2],
            inner_order_soft_constraint=[1, 0],
            grid_origin_soft_constraint=[0, 0],
        )

    def test_json(self):
        json = {"rank": 2, "write_chunk": {"elements": 3}}

        assert LayoutConstraints.parse(json).to_json() == json
        assert NO_LAYOUT.to_json() == {}

    def test_finalized_refuses_overflow(self):
        with pytest.raises(SpecError, match="dimension 0"):
            finalized(constraints(grid_origin=[2**62 - 2], chunk_shape=[5]))


class TestSchemaToOutput:
    transform = IndexTransform(
        json={
            "input_rank": 2,
            "output": [{"input_dimension": 1, "offset": 5}, {"input_dimension": 0}],
        }
    )

    def test_every_part_moves(self):
        schema = Schema(
            shape=[2, 3],
            fill_value=[1, 2, 3],
            dimension_units=["4nm", None],
            chunk_layout=ChunkLayout(chunk_shape=[4, 5]),
        )

        moved = Schema.of(schema.constraints.to_output(self.transform))

        assert moved == Schema(
            domain=IndexDomain(inclusive_min=[5, 0], shape=[3, 2]),
            fill_value=[[1], [2], [3]],
            dimension_units=[None, "4nm"],
            chunk_layout=ChunkLayout(chunk_shape=[5, 4]),
        )

    def test_refused(self):
        with pytest.raises(MismatchError, match="Cannot transform schema of rank 1"):
            Schema(rank=1).constraints.to_output(self.transform)
        lost = IndexTransform(json={"input_rank": 2, "output": [{"input_dimension": 0}]})
        with pytest.raises(MismatchError, match="No output dimension corresponds"):
            Schema(dimension_units=["4nm", "4nm"]).constraints.to_output(lost)


class TestSchemaConstraints:
    def test_merging(self):
        one = Schema(dtype="int8", shape=[3]).constraints
        other = Schema(dtype="int8", fill_value=4, dimension_units=["4nm"]).constraints

        both = one.merged(other)

        assert (
            both
            == Schema(dtype="int8", shape=[3], fill_value=4, dimension_units=["4nm"]).constraints
        )
        assert NO_SCHEMA.merged(both) == both.merged(NO_SCHEMA) == both
        with pytest.raises(MismatchError, match="existing rank"):
            both.merged(SchemaConstraints(rank=2))

    def test_fill_values_are_compared_by_value(self):
        assert Schema(fill_value=4).constraints == Schema(fill_value=4).constraints
        assert Schema(fill_value=4).constraints != Schema(fill_value=4.0).constraints

    def test_rank_of_a_transform(self):
        with pytest.raises(MismatchError, match="Cannot transform schema of rank 1"):
            SchemaConstraints(rank=1).to_input(IndexTransform(input_rank=2))
        assert NO_SCHEMA.to_input(IndexTransform(input_rank=2)).rank == 2


def transform(rank, *output):
    outputs = [{} if dim is None else {"input_dimension": dim} for dim in output]
    return IndexTransform(json={"input_rank": rank, "output": outputs})


class TestDimOrder:
    @pytest.mark.parametrize(
        ("rank", "output", "order", "expected"),
        [
            (2, [0, 1], (1, 0), (1, 0)),
            (2, [1, 0], (1, 0), (0, 1)),
            (3, [2, None], (1, 0), (2, 0, 1)),
            (2, [0, 1, 0], (2, 1, 0), (0, 1)),
        ],
    )
    def test_to_the_input(self, rank, output, order, expected):
        assert input_order(transform(rank, *output), order) == expected

    @pytest.mark.parametrize(
        ("rank", "output", "order", "expected"),
        [
            (2, [0, 1], (1, 0), (1, 0)),
            (2, [1, 0], (1, 0), (0, 1)),
            (2, [None, 1], (0, 1), (1, 0)),
            (2, [0, 1, 0], (1, 0), (1, 0, 2)),
        ],
    )
    def test_to_the_output(self, rank, output, order, expected):
        assert output_order(transform(rank, *output), order) == expected


def inverse(rank, *output):
    return IndexTransform(json={"input_rank": rank, "output": list(output)})


def hard(*values):
    return PerDim(values, tuple(value is not None for value in values))


FLIPPED = inverse(1, {"input_dimension": 0, "stride": -2, "offset": 7})


class TestDimTransform:
    def test_where_values_come_from(self):
        diagonal = inverse(2, {"input_dimension": 0}, {"input_dimension": 0}, {"offset": 3})

        assert DimMapping.to_input(diagonal).sources == (None, None)
        assert DimMapping.to_output(diagonal).sources == ((0, 0, 1), (0, 0, 1), None)
        assert DimMapping.to_input(FLIPPED).sources == ((0, 7, -2),)
        mapping = DimMapping.to_output(diagonal)
        assert (mapping.from_rank, mapping.to_rank) == (2, 3)

    def test_each_kind_of_value(self):
        inward, outward = DimMapping.to_input(FLIPPED), DimMapping.to_output(FLIPPED)

        assert inward.apply(hard(6), inward.extent, "shape") == hard(3)
        assert inward.apply(hard(3), inward.extent, "shape") == hard(3)
        assert outward.apply(hard(3), outward.extent, "shape") == hard(6)
        assert inward.apply(hard(3.0), inward.ratio, "ratio") == hard(1.5)
        assert outward.apply(hard(3.0), outward.ratio, "ratio") == hard(6.0)
        assert outward.apply(hard(4), outward.origin, "origin") == hard(1)
        assert inward.apply(hard(1), inward.origin, "origin") == hard(4)

    def test_lost_and_overflowing_values(self):
        lost = DimMapping.to_output(inverse(1, {"offset": 3}))
        far = DimMapping.to_output(inverse(1, {"input_dimension": 0, "stride": 2**61}))

        with pytest.raises(MismatchError, match="shape: No output dimension corresponds"):
            lost.apply(hard(3), lost.extent, "shape")
        assert lost.apply(hard(3).softened(), lost.extent, "shape") == PerDim.none(1)
        with pytest.raises(OutOfRangeError, match="dimension 0"):
            far.apply(hard(4), far.extent, "shape")


DIMS = [
    {},
    {"label": "x"},
    {"label": "y"},
    {"inclusive_min": 0, "exclusive_max": 5},
    {"inclusive_min": 0, "exclusive_max": 6},
    {"inclusive_min": 1, "exclusive_max": 5, "label": "x"},
    {"inclusive_min": 0, "exclusive_max": 5, "implicit_upper": True},
    {"inclusive_min": 0, "exclusive_max": 5, "implicit_lower": True, "label": "y"},
    {"inclusive_min": 0},
    {"exclusive_max": 5},
    {"implicit_lower": False, "implicit_upper": False},
]


class TestDomainToOutput:
    def test_moved_and_flipped(self):
        domain = IndexDomain([Dim(2, 7, label="x", implicit_upper=True), Dim(label="y")])
        transform = IndexTransform(
            json={
                "input_rank": 2,
                "output": [
                    {"input_dimension": 1, "stride": -3, "offset": 4},
                    {"input_dimension": 0, "stride": -1, "offset": 10},
                ],
            }
        )

        assert repr(domain_to_output(domain, transform)) == '{ "y": (-inf*, +inf*), "x": [4*, 9) }'

    @pytest.mark.parametrize(
        ("output", "problem"),
        [
            ([{"offset": 3}], "constant output index map"),
            ([{"input_dimension": 0}, {"input_dimension": 0}], "same input dimension"),
            ([{"input_dimension": 0, "stride": 2}], "non-unit-stride"),
        ],
    )
    def test_refused(self, output, problem):
        transform = IndexTransform(json={"input_rank": 1, "output": output})

        with pytest.raises(MismatchError, match=problem):
            domain_to_output(IndexDomain(shape=[5]), transform)


class TestDomainMerge:
    @pytest.mark.parametrize("a", DIMS, ids=repr)
    @pytest.mark.parametrize("b", DIMS, ids=repr)
    def test_as_the_reference_merges(self, a, b):
        def merged(package, schema):
            return schema(
                package.IndexDomain([package.Dim(**a)]), package.IndexDomain([package.Dim(**b)])
            )

        def by_schema(one, other):
            return reference.Schema(domain=one, schema=reference.Schema(domain=other)).domain

        try:
            expected = merged(reference, by_schema)
        except ValueError as error:
            what = str(error).rpartition(": ")[2]
            with pytest.raises(MismatchError, match=what):
                merged(ours, merge_domains)
            return
        assert repr(expected) == repr(merged(ours, merge_domains))

    def test_nothing_and_ranks(self):
        domain = IndexDomain(shape=[3])

        assert merge_domains(None, domain) is domain
        assert merge_domains(domain, None) is domain
        with pytest.raises(MismatchError, match="Ranks do not match"):
            merge_domains(domain, IndexDomain(rank=2))


VOLUME = IndexDomain(shape=[1000, 2000, 3000])


EXTENTS = st.one_of(st.integers(0, 20), st.integers(0, 5000))


@st.composite
def layouts(draw):
    """A shape, and constraints that do not contradict themselves at once."""
    shape = draw(st.lists(EXTENTS, min_size=1, max_size=4))
    rank = len(shape)

    def vector(values):
        return st.lists(st.one_of(st.none(), values), min_size=rank, max_size=rank)

    kinds = {
        "shape": vector(st.one_of(st.just(-1), st.integers(1, 60), st.integers(1, 9000))),
        "aspect_ratio": vector(st.one_of(st.integers(1, 5), st.floats(0.01, 10))),
        "elements": st.one_of(st.integers(0, 1000), st.integers(1, 10**9)),
    }
    arguments = {}
    for usage in ("chunk", "read_chunk", "write_chunk"):
        for kind, values in kinds.items():
            if draw(st.integers(0, 3)) == 0:
                soft = draw(st.sampled_from(["", "_soft_constraint"]))
                arguments[f"{usage}_{kind}{soft}"] = draw(values)
    return shape, arguments


def chosen_by_the_reference(driver, shape, layout):
    spec = {"driver": driver, "kvstore": "memory://"}
    store = reference.open(
        spec, create=True, dtype="uint8", shape=shape, chunk_layout=layout
    ).result()
    return store.chunk_layout.read_chunk.shape, store.chunk_layout.write_chunk.shape


class TestChooseChunks:
    # The worked examples of the two driver documents.
    @pytest.mark.parametrize(
        ("constraints", "expected"),
        [
            ({}, (101, 101, 101)),
            ({"chunk_shape": [100, 200, 300]}, (100, 200, 300)),
            ({"chunk_aspect_ratio": [1, 2, 2]}, (64, 128, 128)),
            ({"chunk_aspect_ratio": [1, 2, 2], "chunk_elements": 2000000}, (79, 159, 159)),
        ],
    )
    def test_one_kind_of_chunk(self, constraints, expected):
        layout = ChunkLayout(**constraints).constraints

        assert common_chunks(layout, VOLUME) == ((0, 0, 0), expected)

    @pytest.mark.parametrize(
        ("constraints", "read", "write"),
        [
            ({}, (101, 101, 101), (101, 101, 101)),
            (
                {
                    "chunk_aspect_ratio": [2, 1, 1],
                    "read_chunk_elements": 2000000,
                    "write_chunk_elements": 1000000000,
                },
                (200, 100, 100),
                (1000, 1000, 1000),
            ),
            ({"write_chunk_shape": [100, 0, 0], "read_chunk_shape": [30, 0, 0]}, None, None),
            (
                {"write_chunk_shape_soft_constraint": [100, 4, 4], "read_chunk_shape": [30, 4, 4]},
                (30, 4, 4),
                (90, 4, 4),
            ),
            (
                {"write_chunk_shape": [100, 4, 4], "read_chunk_shape_soft_constraint": [30, 4, 4]},
                (25, 4, 4),
                (100, 4, 4),
            ),
        ],
    )
    def test_read_chunks_divide_write_chunks(self, constraints, read, write):
        layout = ChunkLayout(**constraints).constraints

        if read is None:
            with pytest.raises(MismatchError, match="100 are not made of whole read chunks of 30"):
                nested_chunks(layout.read_chunk, layout.write_chunk, VOLUME)
            return
        assert nested_chunks(layout.read_chunk, layout.write_chunk, VOLUME) == (
            read,
            write,
        )

    def test_the_search_proceeds_as_in_the_reference(self):
        # An exact search would find 137 x 100, which is nearer to a million elements.
        layout = ChunkLayout(chunk_aspect_ratio=[2.75405507306722, 2, 1, 1]).constraints

        assert chunk_extents(layout.read_chunk, IndexDomain(shape=[4704, 2869, 19, 4])) == (
            137,
            99,
            19,
            4,
        )

    def test_the_full_extent(self):
        grid = ChunkLayout(chunk_shape=[-1, 5]).read_chunk.constraints

        assert chunk_extents(grid, IndexDomain(shape=[0, 7])) == (1, 5)
        assert chunk_extents(grid, IndexDomain(shape=[30, 7])) == (30, 5)
        with pytest.raises(SpecError, match="dimension 0"):
            chunk_extents(grid, IndexDomain(rank=2))

    def test_the_grid_is_aligned_with_the_domain_unless_it_says_where(self):
        grid = ChunkLayout(chunk_shape=[10, 10, 10]).constraints
        domain = IndexDomain(inclusive_min=[25, -3, -(2**62) + 1], exclusive_max=[50, 50, 50])

        assert placed_chunks(None, grid.read_chunk, domain)[0] == (5, 7, 0)

        placed = ChunkLayout(grid_origin=[None, 2, None], chunk_shape=[10, 10, 10]).constraints

        assert placed_chunks(placed.grid_origin, placed.read_chunk, domain)[0] == (5, 2, 0)

    @pytest.mark.parametrize(
        "ratios", [[1e-300, 1e300], [1e-320, 1.0], [1e308, 1e308], [5e-324, 5e-324]]
    )
    def test_extreme_ratios_end(self, ratios):
        grid = ChunkLayout(chunk_aspect_ratio=ratios).read_chunk.constraints

        for domain in (IndexDomain(shape=[5000, 5000]), IndexDomain(rank=2)):
            shape = chunk_extents(grid, domain)

            assert all(1 <= extent <= 2**20 for extent in shape)

    @pytest.mark.parametrize(
        "constraints",
        [
            {"chunk_shape": [1, 2]},
            {"chunk_aspect_ratio": [1]},
            {"grid_origin": [0], "chunk_elements": 4},
        ],
    )
    def test_another_rank(self, constraints):
        layout = ChunkLayout(**constraints).constraints

        with pytest.raises(SpecError, match="but the array has 3"):
            common_chunks(layout, VOLUME)

    def test_read_and_write_chunks_that_cannot_be_one(self):
        layout = ChunkLayout(read_chunk_shape=[1, 1, 1], write_chunk_shape=[2, 2, 2]).constraints

        with pytest.raises(MismatchError, match="not compatible"):
            common_chunks(layout, VOLUME)

    @given(layouts())
    @settings(max_examples=2 * settings().max_examples)
    def test_as_the_reference_chooses(self, case):
        shape, arguments = case
        try:
            theirs = reference.ChunkLayout(**arguments)
        except ValueError:
            with pytest.raises(MismatchError, match="constraint"):
                ChunkLayout(**arguments)
            return
        layout = ChunkLayout(**arguments).constraints
        domain = IndexDomain(shape=shape)

        def joint():
            return nested_chunks(layout.read_chunk, layout.write_chunk, domain)

        def single():
            return (common_chunks(layout, domain)[1],) * 2

        for driver, choose in (("zarr3", joint), ("zarr", single)):
            try:
                expected = chosen_by_the_reference(driver, shape, theirs)
            except ValueError:
                continue
            assert choose() == expected
