import pytest

from tensorstore_py._index import IndexTransform
from tensorstore_py._spec.constraints import PerDim
from tensorstore_py._spec.dim_transform import DimMapping
from tensorstore_py.errors import MismatchError, OutOfRangeError


def transform(rank, *output):
    return IndexTransform(json={"input_rank": rank, "output": list(output)})


def hard(*values):
    return PerDim(values, tuple(value is not None for value in values))


FLIPPED = transform(1, {"input_dimension": 0, "stride": -2, "offset": 7})


def test_where_values_come_from():
    diagonal = transform(2, {"input_dimension": 0}, {"input_dimension": 0}, {"offset": 3})

    assert DimMapping.to_input(diagonal).sources == (None, None)
    assert DimMapping.to_output(diagonal).sources == ((0, 0, 1), (0, 0, 1), None)
    assert DimMapping.to_input(FLIPPED).sources == ((0, 7, -2),)
    mapping = DimMapping.to_output(diagonal)
    assert (mapping.from_rank, mapping.to_rank) == (2, 3)


def test_each_kind_of_value():
    inward, outward = DimMapping.to_input(FLIPPED), DimMapping.to_output(FLIPPED)

    assert inward.apply(hard(6), inward.extent, "shape") == hard(3)
    assert inward.apply(hard(3), inward.extent, "shape") == hard(3)
    assert outward.apply(hard(3), outward.extent, "shape") == hard(6)
    assert inward.apply(hard(3.0), inward.ratio, "ratio") == hard(1.5)
    assert outward.apply(hard(3.0), outward.ratio, "ratio") == hard(6.0)
    assert outward.apply(hard(4), outward.origin, "origin") == hard(1)
    assert inward.apply(hard(1), inward.origin, "origin") == hard(4)


def test_lost_and_overflowing_values():
    lost = DimMapping.to_output(transform(1, {"offset": 3}))
    far = DimMapping.to_output(transform(1, {"input_dimension": 0, "stride": 2**61}))

    with pytest.raises(MismatchError, match="shape: No output dimension corresponds"):
        lost.apply(hard(3), lost.extent, "shape")
    assert lost.apply(hard(3).softened(), lost.extent, "shape") == PerDim.none(1)
    with pytest.raises(OutOfRangeError, match="dimension 0"):
        far.apply(hard(4), far.extent, "shape")
