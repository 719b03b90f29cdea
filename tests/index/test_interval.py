import numpy as np
import pytest

from tensorstore_py._index.interval import (
    INF,
    INF_SIZE,
    affine_domain,
    affine_range,
    check_closed,
    check_half_open,
    check_int64,
    check_sized,
    contains,
    format_interval,
    hull,
    int64_or_none,
    intersect,
    intersect_preferring_explicit,
    shift,
    slice_interval,
)
from tensorstore_py.errors import IndexingError, OutOfRangeError

UNBOUNDED = (-INF, INF + 1)


def test_format_marks_implicit_and_infinite_bounds() -> None:
    assert format_interval(1, 4) == "[1, 4)"
    assert format_interval(-INF, 4, implicit_lower=True) == "(-inf*, 4)"
    assert format_interval(1, INF + 1, implicit_upper=True) == "[1, +inf*)"


@pytest.mark.parametrize(
    ("check", "arguments", "expected"),
    [
        (check_half_open, (3, 3), (3, 3)),
        (check_closed, (3, 2), (3, 3)),
        (check_sized, (3, 2), (3, 5)),
        (check_sized, (3, INF_SIZE), (3, INF + 1)),
    ],
)
def test_constructions(check, arguments, expected) -> None:
    assert check(*arguments) == expected


@pytest.mark.parametrize(
    ("check", "arguments"),
    [
        (check_half_open, (3, 2)),
        (check_half_open, (INF, INF + 1)),
        (check_half_open, (-INF, -INF + 1)),
        (check_closed, (3, 1)),
        (check_closed, (0, INF + 1)),
        (check_sized, (0, -1)),
        (check_sized, (INF - 1, 3)),
    ],
)
def test_what_is_no_interval_is_refused(check, arguments) -> None:
    with pytest.raises(ValueError, match=r"do not specify a valid .* index interval"):
        check(*arguments)


def test_contains_takes_finite_indices_only() -> None:
    assert contains(0, 3, 2)
    assert not contains(0, 3, 3)
    assert contains(*UNBOUNDED, INF - 1)
    assert not contains(*UNBOUNDED, INF)


def test_int64() -> None:
    assert int64_or_none(np.int32(7)) == 7
    assert int64_or_none(2**63 - 1) == 2**63 - 1
    assert [int64_or_none(x) for x in (2**63, 1.0, "1", None, np.array([1]))] == [None] * 5
    assert check_int64(-(2**63), "offset", 0) == -(2**63)
    with pytest.raises(IndexingError, match="computing offset for output dimension 2"):
        check_int64(2**63, "offset", 2)


def test_intersection_and_hull_keep_the_flag_of_the_bound_that_wins() -> None:
    a, b = (0, 5, True, False), (2, 9, False, True)

    assert intersect(a, b) == (2, 5, False, False)
    assert hull(a, b) == (0, 9, True, True)
    assert intersect((0, 3, False, False), (5, 8, False, False)) == (5, 5, False, False)
    assert hull((0, 0, False, False), b) == (2, 9, False, True)
    assert intersect((0, 5, True, True), (0, 5, False, True)) == (0, 5, False, True)


def test_an_explicit_bound_beats_an_implicit_one() -> None:
    loose, tight = (0, 10, False, False), (3, 5, True, True)

    assert intersect_preferring_explicit(loose, tight) == loose
    assert intersect_preferring_explicit(tight, loose) == loose
    assert intersect_preferring_explicit(tight, (4, 9, True, True)) == (4, 5, True, True)


def test_shift_leaves_infinite_bounds() -> None:
    assert shift(0, 3, 5) == (5, 8)
    assert shift(-INF, 3, 5) == (-INF, 8)
    assert shift(*UNBOUNDED, 2**62) == UNBOUNDED
    with pytest.raises(IndexingError, match="is outside valid range"):
        shift(0, 3, INF - 1)
    with pytest.raises(IndexingError, match="is outside valid range"):
        shift(-INF, 3, INF)


@pytest.mark.parametrize("lower", range(-4, 3))
@pytest.mark.parametrize("size", range(5))
@pytest.mark.parametrize("stride", [-3, -2, -1, 1, 2, 3])
def test_affine_domain_is_the_preimage(lower, size, stride) -> None:
    offset = 1
    low, up = affine_domain(lower, lower + size, offset, stride)

    inside = [i for i in range(-20, 20) if lower <= offset + stride * i < lower + size]
    # A preimage between two multiples is empty; a range that is not empty may have that too.
    assert list(range(low, up)) == inside


def test_affine_domain_of_infinite_intervals() -> None:
    assert affine_domain(*UNBOUNDED, 7, -3) == UNBOUNDED
    assert affine_domain(2, INF + 1, 0, -1) == (-INF, -1)
    with pytest.raises(IndexingError, match="overflow"):
        affine_domain(0, 5, -INF, 1)


def test_affine_range_is_the_hull_of_the_image() -> None:
    assert affine_range(0, 3, 1, 2) == (1, 6)
    assert affine_range(0, 3, 1, -2) == (-3, 2)
    assert affine_range(2, INF + 1, 0, -1) == (-INF, -1)
    assert affine_range(4, 4, 1, 2) == (9, 9)
    assert affine_range(4, 9, 1, 0) == (1, 2)


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (slice(None, None), (1, 9, False, True, 0)),
        (slice(2, 5), (2, 5, False, False, 0)),
        (slice(2, None), (2, 9, False, True, 0)),
        (slice(3, 8, 2), (1, 4, False, False, 1)),
        (slice(8, 3, -2), (-4, -1, False, False, 0)),
        (slice(None, None, -1), (-8, 0, True, False, 0)),
        (slice(4, 4), (4, 4, False, False, 0)),
        (slice(4, 20), (4, 20, False, False, 0)),
    ],
)
def test_slices_of_an_interval(index, expected) -> None:
    bounds = (1, 9, False, True)

    actual = slice_interval(
        bounds, index.start, index.stop, 1 if index.step is None else index.step
    )

    assert actual == expected


@pytest.mark.parametrize("step", [-3, -2, -1, 1, 2, 3])
def test_offset_and_step_give_the_old_index_back(step) -> None:
    start, stop = (-7, 8) if step > 0 else (8, -7)

    low, up, _, _, offset = slice_interval((-10, 10, False, False), start, stop, step)

    assert [offset + step * i for i in range(low, up)] == list(range(start, stop, step))


def test_slices_outside_are_refused() -> None:
    bounds = (0, 10, False, False)
    with pytest.raises(OutOfRangeError, match=r"\[5, 11\) is outside \[0, 10\)"):
        slice_interval(bounds, 5, 11, 1)
    with pytest.raises(IndexingError, match="Invalid stride 0"):
        slice_interval(bounds, 0, 5, 0)
    with pytest.raises(IndexingError, match="5:2 ends before it starts"):
        slice_interval(bounds, 5, 2, 1)
    with pytest.raises(IndexingError, match="finite start index"):
        slice_interval((*UNBOUNDED, True, True), None, 5, 2)
    with pytest.raises(IndexingError, match="Invalid start index"):
        slice_interval((*UNBOUNDED, True, True), -INF - 1, 5, 1)
