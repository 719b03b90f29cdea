import pytest

from tensorstore_py._spec.constraints import (
    PerDim,
    aspect_ratios,
    extents,
    merge_elements,
    origins,
)
from tensorstore_py.errors import MismatchError, SpecError


def test_extents():
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


def test_origins():
    assert origins([0, None, -5], False) == PerDim((0, None, -5), (False, False, False))
    with pytest.raises(SpecError, match="finite index"):
        origins([2**62], True)


def test_aspect_ratios():
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
def test_hard_and_soft(mine, theirs, expected):
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


def test_parts():
    both = extents([5, None, 3], True).merged(extents([7, 8, None], False))

    assert both.part(hard=True) == (5, None, 3)
    assert both.part(hard=False) == (None, 8, None)
    assert both.softened().part(hard=False) == (5, 8, 3)
    assert both.taken([2, None, 0]) == PerDim((3, None, 5), (True, False, True))
    assert not both.is_empty
    assert PerDim.none(3).is_empty
