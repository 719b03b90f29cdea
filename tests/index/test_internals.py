"""The algebra's own parts: intervals, labels and frames; and how index expressions are read."""

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorstore_py import (
    Dim,
    IndexDomain,
    IndexingError,
    IndexTransform,
    OutOfRangeError,
    OutputIndexMap,
    d,
)
from tensorstore_py._index import apply_index, numpy_style, propagate_bounds
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
from tensorstore_py._index.numpy_style import (
    IndexTerm,
    index_frame,
    index_into,
    index_selected,
    try_basic_index,
    try_basic_selected,
)
from tensorstore_py._index.numpy_terms import ArrayTerm, MaskTerm, SliceTerm, parse_index
from tensorstore_py._index.operations import parse_implicit, parse_index_vector, parse_labels
from tensorstore_py._index.positions import completed, interval, numpy_index, position, wrapped
from tensorstore_py._index.selection import (
    DimRange,
    format_specs,
    new_dims,
    normalize_index,
    parse_specs,
    require_distinct,
    resolve,
    resolve_range,
)

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


def parse(index, mode="default", use="direct"):
    return parse_index(index, mode, use)


class TestNumpyTerms:
    def test_terms_and_counts(self) -> None:
        spec = parse((3, slice(1, 5, 2), None, ..., [1, 2], [[True, False]]))

        assert spec.terms[:4] == (3, SliceTerm(1, 5, 2), None, ...)
        assert spec.terms[4] == ArrayTerm(np.array([1, 2]))
        assert spec.terms[5] == MaskTerm((np.array([0]), np.array([0])), 1)
        assert (spec.consumed, spec.added, spec.produced) == (5, 1, 3)
        assert (spec.joint_shape, spec.has_ellipsis, spec.scalar) == ((2,), True, False)

    @pytest.mark.parametrize(
        ("index", "text", "scalar"),
        [
            (1, "1", True),
            ((1,), "1,", False),
            (np.int16(1), "1", True),
            (slice(None, 5), ":5", True),
            (slice((1, None), (7, 8), 2), "1:7:2,:8:2", False),
            (..., "...,", False),
            (None, "None", True),
            (np.array(3), "array(3)", True),
            ([1, 2], "array([1, 2]),", False),
            ([], "array([], dtype=int64),", False),
            (
                [[False, True], [True, False]],
                "array([[False,  True],\n       [ True, False]]),",
                False,
            ),
            ([False, False], "array([False]),", False),
            (True, "array(True),", False),
            ((), "", False),
        ],
    )
    def test_text_and_scalar(self, index, text, scalar) -> None:
        spec = parse(index)

        assert str(spec) == text
        assert spec.scalar is scalar
        assert pickle.loads(pickle.dumps(spec)) == spec

    def test_a_scalar_term_repeats(self) -> None:
        assert parse(slice(1, 2)).repeated(3).terms == (SliceTerm(1, 2, 1),) * 3
        assert parse((slice(1, 2),)).repeated(3).terms == (SliceTerm(1, 2, 1),)

    def test_joint_arrays_stay_in_place_while_they_are_neighbours(self) -> None:
        array = [1, 2]
        assert parse((..., array, 0, array)).joint_in_place
        assert not parse((array, ..., array)).joint_in_place
        assert not parse((array, None, array)).joint_in_place
        assert not parse((..., array), "vindex").joint_in_place
        assert not parse((..., True), use="initial").joint_in_place

    def test_oindex_arrays_have_dimensions_of_their_own(self) -> None:
        spec = parse(([1, 2], [[3], [4]], [True, False]), "oindex")

        assert (spec.produced, spec.joint_shape) == (4, ())

    @pytest.mark.parametrize("index", [1.5, [1.5], "x", {"a": 3}, [None], 2**70, [[1], [2, 3]]])
    def test_what_is_no_index(self, index) -> None:
        with pytest.raises(IndexingError):
            parse(index)

    @pytest.mark.parametrize("array", [np.array([1.0]), np.array(["x"])])
    def test_arrays_of_other_types(self, array) -> None:
        with pytest.raises(IndexingError, match="must be of integer"):
            parse(array)

    @pytest.mark.parametrize("index", [slice("a"), slice(None, 1.5), slice([1, "a"]), slice(2**63)])
    def test_slices_of_other_types(self, index) -> None:
        with pytest.raises(TypeError, match="slice indices must be integers"):
            parse(index)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (((..., 1, ...),), "single ellipsis"),
            ((([1, 2], [1, 2, 3]),), r"\{3\} vs \{2\}"),
            ((None, "default", "chained"), "not valid in chained"),
            ((True, "oindex", "initial"), "Zero-rank bool array"),
            ((slice((1, 2), (3, 4, 5)),), r"stop=\[3,4,5\] \(rank 3\) .* start=\[1,2\] \(rank 2\)"),
        ],
    )
    def test_expressions_that_contradict_themselves(self, arguments, message) -> None:
        with pytest.raises(IndexingError, match=message):
            parse(*arguments)

    def test_the_spec_owns_its_arrays(self) -> None:
        source = np.array([1, 2])
        spec = parse(source)
        source[0] = 9

        assert spec == parse([1, 2])
        assert spec != parse([1, 3])
        assert spec != parse([1, 2], "oindex")


class TestPositions:
    @given(st.integers(0, 9), st.slices(9))
    def test_a_slice_is_inside_and_takes_the_same(self, extent, term):
        values = np.arange(extent)
        found = interval(term, extent)
        assert 0 <= found.start <= extent
        np.testing.assert_array_equal(values[term], [values[at] for at in range(extent)[term]])
        expected = range(extent)[term]
        got = range(found.start, found.stop, found.step or 1)
        assert list(got) == list(expected)

    def test_positions_count_from_the_end_too(self):
        assert [position(at, 0, 3) for at in (-3, -1, 0, 2)] == [0, 2, 0, 2]
        assert wrapped(np.array([-3, -1, 0, 2], "int8"), 0, 3).tolist() == [0, 2, 0, 2]

    @pytest.mark.parametrize("at", [-4, 3])
    def test_a_position_outside_names_the_dimension(self, at):
        with pytest.raises(OutOfRangeError, match=f"index {at} .* dimension 5 with length 3"):
            position(at, 5, 3)
        with pytest.raises(OutOfRangeError, match=f"index {at} .* dimension 5 with length 3"):
            wrapped(np.array([0, at]), 5, 3)

    def test_what_is_not_mentioned_is_taken_whole(self):
        assert completed((1, ..., 2), (3, 3, 3, 3)) == [1, slice(None), slice(None), 2]
        assert completed((), (3,)) == [slice(None)]

    @pytest.mark.parametrize(
        ("item", "message"),
        [
            ((0, 0, 0), "too many indices for array; expected 2, got 3"),
            ((..., ...), "single ellipsis"),
            ("x", "are valid indices, not 'x'"),
            (1.0, "are valid indices, not 1.0"),
            (np.array([0.5]), "are valid indices"),
            ([[1], [1, 2]], "no index array"),
            (
                np.ones((2, 2), bool),
                r"mask of shape \(2, 2\) does not fit dimensions of shape \(2, 3\)",
            ),
            ((0, np.ones(2, bool)), "from dimension 1 on"),
        ],
    )
    def test_what_means_nothing_says_so(self, item, message):
        with pytest.raises(IndexingError, match=message):
            numpy_index(item, (2, 3))

    def test_the_terms_are_positions(self):
        mask = np.array([True, False, True])
        found = numpy_index((None, -1, ..., mask), (4, 5, 3))
        assert found[0] is None
        assert np.asarray(found[1]).tolist() == 3  # beside an array, NumPy takes an integer for one
        assert found[2] == slice(0, 5, 1)
        assert found[3] is mask
        assert numpy_index(slice(None, None, -1), (3,)) == (slice(2, -1, -1),)


class TestSelection:
    def test_parse_flattens(self) -> None:
        expected = (0, "x", DimRange(1, None, 1), 3, 4)

        assert parse_specs([0, "x", slice(1, None), d[3, 4]]) == expected
        assert parse_specs([[0, ["x", slice(1, None)]], (3, d[4])]) == expected
        for wrong in (1.5, None, [None], slice("a")):
            with pytest.raises(TypeError):
                parse_specs(wrong)

    def test_format(self) -> None:
        assert format_specs(()) == "()"
        assert format_specs((1, "x", DimRange(None, -1, 2))) == "1,'x',:-1:2"

    def test_resolve_against_labels(self) -> None:
        assert resolve(parse_specs(["z", -2, slice(None, None, -1)]), ["x", "y", "z"]) == [
            2,
            1,
            2,
            1,
            0,
        ]

    def test_positions(self) -> None:
        assert normalize_index(-1, 3) == 2
        with pytest.raises(
            IndexingError, match=r"Dimension index 3 is outside valid range \[-3, 3\)"
        ):
            normalize_index(3, 3)

    @pytest.mark.parametrize("spec", [(5, None, 1), (None, 5, 1), (2, 1, 1), (1, 2, -1), (0, 2, 0)])
    def test_ranges_are_not_clamped(self, spec) -> None:
        with pytest.raises(IndexingError):
            resolve_range(DimRange(*spec), 3)

    def test_repetition_is_refused(self) -> None:
        assert require_distinct([1, 0], 2) == [1, 0]
        with pytest.raises(IndexingError, match=r"\{1\} specified more than once"):
            require_distinct([1, 0, 1], 3)
        with pytest.raises(IndexingError, match=r"Number of dimensions \(2\) exceeds input rank"):
            require_distinct([0, 0], 1)

    @pytest.mark.parametrize(
        ("selection", "expected"),
        [
            (0, [0]),
            (-1, [3]),
            ([0, 2], [0, 2]),
            ([0, slice(-2, None)], [0, 4, 5]),
            (slice(2), [0, 1]),
            (slice(1, 3), [1, 2]),
            (slice(1, None, -1), [1, 0]),
            (slice(None, -3, -1), [4, 3]),
        ],
    )
    def test_new_dimensions_of_a_domain_of_rank_3(self, selection, expected) -> None:
        assert new_dims(parse_specs(selection), 3) == expected

    @pytest.mark.parametrize("selection", [slice(None), slice(1, None), slice(-1, 1), "x", [0, 0]])
    def test_new_dimensions_that_are_not_determined(self, selection) -> None:
        with pytest.raises(IndexingError):
            new_dims(parse_specs(selection), 3)


class TestSubscript:
    def test_a_helper_names_its_parent_and_does_not_iterate(self) -> None:
        assert repr(IndexDomain(1).label) == "{ (-inf*, +inf*) }.label"
        assert repr(d[0].translate_to) == "d[0].translate_to"
        assert repr(IndexTransform(0).vindex).endswith(".vindex")
        for helper in (IndexTransform(1).oindex, IndexDomain(1).label, d[0].stride):
            with pytest.raises(TypeError):
                iter(helper)

    def test_vectors(self) -> None:
        assert parse_index_vector(3) == 3
        assert parse_index_vector(None) is None
        assert parse_index_vector([1, None, np.int8(2)]) == (1, None, 2)
        assert parse_index_vector(()) == ()
        for wrong in ("a", 1.5, 2**63, ["a"], slice(1)):
            with pytest.raises(TypeError):
                parse_index_vector(wrong)

    def test_labels(self) -> None:
        assert parse_labels("ab") == ("ab",)
        assert parse_labels(["a", "b"]) == ("a", "b")
        for wrong in (3, ["a", None]):
            with pytest.raises(TypeError):
                parse_labels(wrong)

    def test_implicit_flags(self) -> None:
        assert parse_implicit(True) == (True, True)
        assert parse_implicit(slice(False, None)) == (False, None)
        assert parse_implicit(np.True_) == (True, True)
        assert parse_implicit(None) == (None, None)
        for wrong in ("a", slice(True, True, 1), 1.5):
            with pytest.raises(TypeError):
                parse_implicit(wrong)


FRAME = IndexTransform(input_shape=[4, 6])._frame


class TestApply:
    @pytest.mark.parametrize(
        "term",
        [
            (slice(1, 3), 2),
            [1, 2],
            IndexDomain([Dim(1, 3), Dim(2, 3)]),
            IndexTransform([Dim(2)]).T[None],
            d[0].translate_by[1],
        ],
    )
    def test_one_dispatch_point_for_all_terms(self, term) -> None:
        x = IndexTransform._from_frame(FRAME)
        if isinstance(term, IndexTransform):
            x = x[0]

        assert IndexTransform._from_frame(index_into(x._frame, term, "default")) == x[term]

    @pytest.mark.parametrize("term", [IndexTransform(2), IndexDomain(2), d[0].translate_by[1]])
    def test_other_modes_take_numpy_expressions_only(self, term) -> None:
        assert isinstance(term, IndexTerm)
        with pytest.raises(IndexingError, match="are valid indices"):
            index_into(FRAME, term, "oindex")

    @pytest.mark.parametrize("mode", ["default", "oindex", "vindex"])
    def test_apply_index_is_the_door_for_subclasses(self, mode) -> None:
        x = IndexTransform([Dim(1, 5, label="x"), Dim(0, 6, label="y")])
        faces: dict[str, Any] = {"default": x, "oindex": x.oindex, "vindex": x.vindex}
        expected = faces[mode][[1, 2], [0, 3]]

        assert apply_index(x, ([1, 2], [0, 3]), mode) == expected


INTEGERS = st.integers(-12, 12)


@st.composite
def dims(draw):
    low, size = draw(INTEGERS), draw(st.integers(0, 12))
    return Dim(
        draw(st.sampled_from([low, low, None])),
        draw(st.sampled_from([low + size, low + size, None])),
        label="",
        implicit_lower=draw(st.booleans()),
        implicit_upper=draw(st.booleans()),
    )


@st.composite
def transforms(draw):
    domain = draw(st.lists(dims(), min_size=1, max_size=3))
    single = st.builds(
        OutputIndexMap,
        st.integers(0, len(domain) - 1),
        INTEGERS,
        st.sampled_from([1, 1, -2, 2**60]),
    )
    return IndexTransform(
        domain, draw(st.lists(single | st.builds(OutputIndexMap, INTEGERS), max_size=4))
    )


BOUNDS = st.none() | INTEGERS | st.sampled_from([INF, -INF, INF - 1, 2**63, True])


STEPS = st.sampled_from([None, None, 1, 2, 3, -1, -2, 0])


TERMS = st.lists(
    INTEGERS | st.builds(slice, BOUNDS, BOUNDS, STEPS) | st.none() | st.just(...), max_size=4
)


def outcome(function):
    try:
        return IndexTransform._from_frame(function())
    except Exception as problem:
        return type(problem)


class TestFastSlice:
    @pytest.mark.timeout(1800)  # the nightly profile takes minutes
    @settings(max_examples=4 * settings().max_examples)
    @given(transforms(), TERMS.map(tuple) | TERMS.map(lambda terms: terms[0] if terms else ...))
    def test_the_short_way_gives_what_the_long_way_gives(self, transform, index) -> None:
        frame = transform._frame
        result = try_basic_index(frame, index)
        if result is None:
            return

        expected = outcome(lambda: index_frame(frame, parse_index(index, "default", "direct")))

        assert IndexTransform._from_frame(result) == expected

    @pytest.mark.timeout(1800)  # the nightly profile takes minutes
    @settings(max_examples=2 * settings().max_examples)
    @given(st.data())
    def test_selected_dimensions_take_the_short_way_to_the_same_place(self, data) -> None:
        frame = data.draw(transforms())._frame
        dims = data.draw(st.permutations(range(frame.rank)))[
            : data.draw(st.integers(0, frame.rank))
        ]
        index = data.draw(TERMS)
        try:
            spec = parse_index(tuple(index), "default", "chained")
            short = index_selected(frame, spec, list(dims))
        except (IndexError, TypeError):
            return

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(numpy_style, "try_basic_selected", lambda *_: None)
            long = index_selected(frame, spec, list(dims))

        assert IndexTransform._from_frame(short[0]) == IndexTransform._from_frame(long[0])
        assert short[1] == long[1]

    def test_common_expressions_take_the_short_way(self) -> None:
        frame = IndexTransform(input_shape=[10, 20, 30])._frame
        for index in (
            3,
            slice(1, 5),
            (slice(1, 5), 2),
            (..., 3),
            (None, slice(None)),
            slice(9, 1, -2),
        ):
            assert try_basic_index(frame, index) is not None

    def test_everything_else_is_left_to_the_long_way(self) -> None:
        frame = IndexTransform(input_shape=[10, 20])._frame
        for index in ([1, 2], True, 10, slice(5, 30), (1, 2, 3), (..., ...), "x", slice("a"), 1.5):
            assert try_basic_index(frame, index) is None
        assert try_basic_index(IndexTransform(1)[[1, 2]]._frame, 1) is None
        assert try_basic_index(frame, (None,) * 31) is None
        assert try_basic_selected(frame, (ArrayTerm(np.array([1])),), [0], 0) is None
