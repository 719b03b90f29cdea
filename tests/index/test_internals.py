"""The algebra's own parts: what they promise to each other."""

import numpy as np
import pytest

from tensorstore_py import (
    Dim,
    IndexDomain,
    IndexingError,
    IndexTransform,
    OutOfRangeError,
    OutputIndexMap,
)
from tensorstore_py._index import propagate_bounds
from tensorstore_py._index.dim import escape, find_label, merge_labels, quote, require_unique
from tensorstore_py._index.frame import MAX_RANK, Frame, check_rank, identity_maps
from tensorstore_py._index.interval import (
    INF,
    INF_SIZE,
    affine_domain,
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
from tensorstore_py._index.maps import array_map, constant, single

UNBOUNDED = (-INF, INF + 1)


class TestInterval:
    def test_format_marks_implicit_and_infinite_bounds(self) -> None:
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
    def test_constructions(self, check, arguments, expected) -> None:
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
    def test_what_is_no_interval_is_refused(self, check, arguments) -> None:
        with pytest.raises(ValueError, match=r"do not specify a valid .* index interval"):
            check(*arguments)

    def test_contains_takes_finite_indices_only(self) -> None:
        assert contains(0, 3, 2)
        assert not contains(0, 3, 3)
        assert contains(*UNBOUNDED, INF - 1)
        assert not contains(*UNBOUNDED, INF)

    def test_int64(self) -> None:
        assert int64_or_none(np.int32(7)) == 7
        assert int64_or_none(2**63 - 1) == 2**63 - 1
        assert [int64_or_none(x) for x in (2**63, 1.0, "1", None, np.array([1]))] == [None] * 5
        assert check_int64(-(2**63), "offset", 0) == -(2**63)
        with pytest.raises(IndexingError, match="computing offset for output dimension 2"):
            check_int64(2**63, "offset", 2)

    def test_intersection_and_hull_keep_the_flag_of_the_bound_that_wins(self) -> None:
        a, b = (0, 5, True, False), (2, 9, False, True)

        assert intersect(a, b) == (2, 5, False, False)
        assert hull(a, b) == (0, 9, True, True)
        assert intersect((0, 3, False, False), (5, 8, False, False)) == (5, 5, False, False)
        assert hull((0, 0, False, False), b) == (2, 9, False, True)
        assert intersect((0, 5, True, True), (0, 5, False, True)) == (0, 5, False, True)

    def test_an_explicit_bound_beats_an_implicit_one(self) -> None:
        loose, tight = (0, 10, False, False), (3, 5, True, True)

        assert intersect_preferring_explicit(loose, tight) == loose
        assert intersect_preferring_explicit(tight, loose) == loose
        assert intersect_preferring_explicit(tight, (4, 9, True, True)) == (4, 5, True, True)

    def test_shift_leaves_infinite_bounds(self) -> None:
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
    def test_affine_domain_is_the_preimage(self, lower, size, stride) -> None:
        offset = 1
        low, up = affine_domain(lower, lower + size, offset, stride)

        inside = [i for i in range(-20, 20) if lower <= offset + stride * i < lower + size]
        # A preimage between two multiples is empty; a range that is not empty may have that too.
        assert list(range(low, up)) == inside

    def test_affine_domain_of_infinite_intervals(self) -> None:
        assert affine_domain(*UNBOUNDED, 7, -3) == UNBOUNDED
        assert affine_domain(2, INF + 1, 0, -1) == (-INF, -1)
        with pytest.raises(IndexingError, match="overflow"):
            affine_domain(0, 5, -INF, 1)

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
    def test_slices_of_an_interval(self, index, expected) -> None:
        bounds = (1, 9, False, True)

        actual = slice_interval(
            bounds, index.start, index.stop, 1 if index.step is None else index.step
        )

        assert actual == expected

    @pytest.mark.parametrize("step", [-3, -2, -1, 1, 2, 3])
    def test_offset_and_step_give_the_old_index_back(self, step) -> None:
        start, stop = (-7, 8) if step > 0 else (8, -7)

        low, up, _, _, offset = slice_interval((-10, 10, False, False), start, stop, step)

        assert [offset + step * i for i in range(low, up)] == list(range(start, stop, step))

    def test_slices_outside_are_refused(self) -> None:
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


class TestLabels:
    def test_labels_that_are_not_empty_are_unique(self) -> None:
        require_unique(["x", "", "", "y"])
        with pytest.raises(IndexingError, match='"a", "b" not unique'):
            require_unique(["b", "a", "a", "b", "c"])

    def test_an_unlabeled_dimension_agrees_with_any(self) -> None:
        assert [merge_labels("x", ""), merge_labels("", "x"), merge_labels("x", "x")] == ["x"] * 3
        with pytest.raises(IndexingError, match='"x" and "y"'):
            merge_labels("x", "y")

    def test_find_label(self) -> None:
        assert find_label("y", ["x", "y"]) == 1
        with pytest.raises(IndexingError, match=r'Label "z" does not match one of \{"x", "y"\}'):
            find_label("z", ["x", "y"])
        with pytest.raises(IndexingError, match="empty label"):
            find_label("", ["x", ""])

    def test_quotes_escape(self) -> None:
        assert quote('a"b\\c\n') == '"a\\"b\\\\c\\n"'
        assert eval(f"'{escape(chr(39))}'") == "'"


def frame(*bounds):
    lower, upper, implicit_lower, implicit_upper = zip(*bounds, strict=True)
    return Frame(lower, upper, implicit_lower, implicit_upper, ("",) * len(bounds), ())


class TestFrame:
    def test_bounds_of_one_dimension(self) -> None:
        box = frame((0, 3, False, True), (-2, 5, True, False))

        assert box.rank == 2
        assert box.shape == (3, 7)
        assert box.bounds(1) == (-2, 5, True, False)
        assert box.effective(0) == (0, INF + 1)
        assert box.effective(1) == (-INF, 5)

    def test_only_explicit_bounds_make_a_domain_empty_for_good(self) -> None:
        assert frame((0, 3, False, False), (2, 2, False, False)).is_explicitly_empty()
        assert not frame((2, 2, True, False)).is_explicitly_empty()
        assert not frame((2, 2, False, True)).is_explicitly_empty()
        assert not frame((2, 3, False, False)).is_explicitly_empty()

    def test_same_domain_ignores_the_maps(self) -> None:
        box = frame((0, 3, False, True))

        assert box.same_domain(box.with_maps(identity_maps(1)))
        assert not box.same_domain(frame((0, 3, False, False)))

    def test_maps_of_an_identity_are_shared(self) -> None:
        assert identity_maps(2) == (single(0, 1, 0), single(0, 1, 1))
        assert identity_maps(2) is identity_maps(2)

    def test_rank_is_limited(self) -> None:
        assert check_rank(MAX_RANK) == 32
        with pytest.raises(IndexingError, match="Rank 33"):
            check_rank(33)

    def test_unchecked_constructors_agree_with_the_checked_one(self) -> None:
        assert constant(3) == OutputIndexMap(3)
        assert single(1, 2, 0) == OutputIndexMap(0, 1, 2)
        assert array_map(1, 2, np.array([3]), (0, 5)) == OutputIndexMap([3], 1, 2, Dim(5))


class TestPropagatedBounds:
    @pytest.mark.parametrize("label", ["", "x"])
    def test_propagation_names_what_lies_outside(self, label) -> None:
        domain = IndexDomain([Dim(0, 9, label=label)])
        where = r'0 \("x"\)' if label else "0"

        with pytest.raises(OutOfRangeError, match=rf"dimension {where} ends at 9, but \[5, 12\)"):
            propagate_bounds(domain, IndexTransform([Dim(5, 12, label=label)]))
        with pytest.raises(
            OutOfRangeError, match=rf"index 11 is outside \[0, 9\) of dimension {where}"
        ):
            propagate_bounds(domain, IndexTransform(1)[[3, 11]])

    def test_propagation_resolves_implicit_bounds(self) -> None:
        view = IndexTransform(2)[2:, ::-1].translate_by[1, 0]

        resolved = propagate_bounds(IndexDomain(shape=[5, 7]), view)

        assert resolved.domain == IndexDomain([Dim(3, 6), Dim(-6, 1)])

    def test_propagation_limits_index_arrays(self) -> None:
        view = IndexTransform(1).vindex[np.array([3, 8])]

        assert propagate_bounds(IndexDomain(shape=[9]), view).output[0].index_range == Dim(9)
        assert propagate_bounds(IndexDomain(shape=[9]), IndexTransform(1)[[]]).output == [
            OutputIndexMap(0)
        ]
