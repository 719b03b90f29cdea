import pytest

from tensorstore_py._index import IndexTransform
from tensorstore_py._spec.chunk_layout import ChunkLayout
from tensorstore_py._spec.layout_constraints import NO_LAYOUT, LayoutConstraints, finalized
from tensorstore_py.errors import MismatchError, SpecError


def constraints(**arguments):
    return ChunkLayout(**arguments).constraints


def test_merging():
    both = constraints(chunk_shape=[1, None]).merged(constraints(inner_order=[1, 0]))

    assert both == constraints(chunk_shape=[1, None], inner_order=[1, 0])
    assert both.needs_rank
    assert not constraints(rank=2, chunk_elements=3).needs_rank
    with pytest.raises(MismatchError, match="Rank 3 does not match existing rank 2"):
        both.merged(LayoutConstraints(rank=3))
    with pytest.raises(MismatchError, match="inner_order"):
        both.merged(constraints(inner_order=[0, 1]))


def test_softened():
    soft = constraints(chunk_shape=[1, 2], inner_order=[1, 0], grid_origin=[0, 0]).softened()

    assert soft.merged(constraints(inner_order=[0, 1])).inner_order == ((0, 1), True)
    assert soft == constraints(
        chunk_shape_soft_constraint=[1, 2],
        inner_order_soft_constraint=[1, 0],
        grid_origin_soft_constraint=[0, 0],
    )


def test_json():
    json = {"rank": 2, "write_chunk": {"elements": 3}}

    assert LayoutConstraints.parse(json).to_json() == json
    assert NO_LAYOUT.to_json() == {}


def test_finalized_refuses_overflow():
    with pytest.raises(SpecError, match="dimension 0"):
        finalized(constraints(grid_origin=[2**62 - 2], chunk_shape=[5]))


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
