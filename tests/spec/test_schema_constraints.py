import pytest

from tensorstore_py._index import IndexDomain, IndexTransform
from tensorstore_py._spec.chunk_layout import ChunkLayout
from tensorstore_py._spec.schema import Schema
from tensorstore_py._spec.schema_constraints import NO_SCHEMA, SchemaConstraints
from tensorstore_py.errors import MismatchError


def test_merging():
    one = Schema(dtype="int8", shape=[3]).constraints
    other = Schema(dtype="int8", fill_value=4, dimension_units=["4nm"]).constraints

    both = one.merged(other)

    assert (
        both == Schema(dtype="int8", shape=[3], fill_value=4, dimension_units=["4nm"]).constraints
    )
    assert NO_SCHEMA.merged(both) == both.merged(NO_SCHEMA) == both
    with pytest.raises(MismatchError, match="existing rank"):
        both.merged(SchemaConstraints(rank=2))


def test_fill_values_are_compared_by_value():
    assert Schema(fill_value=4).constraints == Schema(fill_value=4).constraints
    assert Schema(fill_value=4).constraints != Schema(fill_value=4.0).constraints


def test_rank_of_a_transform():
    with pytest.raises(MismatchError, match="Cannot transform schema of rank 1"):
        SchemaConstraints(rank=1).to_input(IndexTransform(input_rank=2))
    assert NO_SCHEMA.to_input(IndexTransform(input_rank=2)).rank == 2


class TestToOutput:
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
