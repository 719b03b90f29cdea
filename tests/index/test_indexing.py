"""Indexing as NumPy does it, by domains, and of all that can be indexed."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tensorstore_py import (
    Dim,
    Indexable,
    IndexDomain,
    IndexingError,
    IndexTransform,
    OutOfRangeError,
    OutputIndexMap,
    d,
)


def apply_to(view, array):
    """What reading `array` through `view` gives, element by element."""
    out = np.empty(view.shape, array.dtype)
    for position in np.ndindex(*view.shape):
        source = view([i + low for i, low in zip(position, view.origin, strict=True)])
        out[position] = array[source]
    return out


SHAPE = (3, 4, 5)


ARRAY = np.arange(60).reshape(SHAPE)


class TestNumpyStyle:
    @given(
        hnp.basic_indices(SHAPE, allow_newaxis=True, max_dims=5)
        | hnp.integer_array_indices(SHAPE, result_shape=hnp.array_shapes(max_dims=2))
    )
    def test_like_numpy_where_indices_count_from_zero(self, index) -> None:
        terms = index if isinstance(index, tuple) else (index,)
        non_negative = []
        for position, term in enumerate(terms):
            # Positions count from the front or, after an ellipsis, from the back.
            dim = sum(t is not None for t in terms[:position])
            if ... in [t for t in terms[:position] if not isinstance(t, np.ndarray)]:
                dim = 3 - sum(t is not None for t in terms[position:])
            if isinstance(term, slice):
                # NumPy writes "to the very start" as a negative stop, an empty slice in many ways.
                selected = range(SHAPE[dim])[term]
                stop = selected.stop if selected.stop >= 0 else None
                term = slice(selected.start, stop, selected.step) if selected else slice(0, 0)
            elif isinstance(term, np.ndarray):
                term = term % SHAPE[dim]
            elif isinstance(term, int):
                term %= SHAPE[dim]
            non_negative.append(term)

        view = IndexTransform(input_shape=SHAPE)[tuple(non_negative)]

        np.testing.assert_array_equal(apply_to(view, ARRAY), ARRAY[index])

    @given(st.data())
    def test_oindex_and_vindex_like_numpy(self, data) -> None:
        rows, columns = (data.draw(st.lists(st.integers(0, n - 1), min_size=1)) for n in SHAPE[:2])
        x = IndexTransform(input_shape=SHAPE)

        outer = apply_to(x.oindex[rows, columns], ARRAY)
        size = min(len(rows), len(columns))
        joint = apply_to(x.vindex[rows[:size], :, columns[:size]], ARRAY)

        np.testing.assert_array_equal(outer, ARRAY[np.ix_(rows, columns)])
        np.testing.assert_array_equal(joint, ARRAY[rows[:size], :, columns[:size]])

    def test_masks_like_numpy(self) -> None:
        x = IndexTransform(input_shape=SHAPE)
        mask = ARRAY[..., 0] % 3 == 0

        np.testing.assert_array_equal(apply_to(x[mask], ARRAY), ARRAY[mask])
        np.testing.assert_array_equal(apply_to(x[:, mask[0]], ARRAY), ARRAY[:, mask[0]])
        assert x[True].shape == (1, *SHAPE)
        assert x[False].shape == (0, *SHAPE)

    def test_coordinates_are_kept(self) -> None:
        x = IndexTransform([Dim(10, 20, label="x")])

        assert x[12:15].domain == IndexDomain([Dim(12, 15, label="x")])
        assert x[12:][12] == x[12]
        assert x[12:18:2].origin == (6,)
        with pytest.raises(OutOfRangeError):
            x[-1]

    def test_implicit_bounds_do_not_bind(self) -> None:
        x = IndexTransform([Dim(0, 10, implicit_upper=True)])

        assert x[5:20].domain == IndexDomain([Dim(5, 20)])
        assert x[5:].domain == IndexDomain([Dim(5, 10, implicit_upper=True)])
        assert x[20].output == [OutputIndexMap(20)]

    @pytest.mark.parametrize(
        ("index", "error", "message"),
        [
            ((1, 2, 3), IndexingError, "requires 3 dimensions, and cannot be applied to a domain"),
            (
                (slice(1, 11),),
                OutOfRangeError,
                r'slice for dimension 0 \("x"\): \[1, 11\) is outside \[0, 10\)',
            ),
            ((slice(5, 2),), IndexingError, "5:2 ends before it starts"),
            ((10,), OutOfRangeError, r'index 10 is outside \[0, 10\) of dimension 0 \("x"\)'),
            ((None,) * 31, IndexingError, "Rank 33"),
        ],
    )
    def test_expressions_that_do_not_fit(self, index, error, message) -> None:
        with pytest.raises(error, match=message):
            IndexTransform([Dim(10, label="x"), Dim(5)])[index]

    def test_selected_dimensions_are_consumed_in_the_order_of_the_selection(self) -> None:
        x = IndexTransform(input_shape=SHAPE, input_labels=["a", "b", "c"])

        view = x[d["c", "a"][1:3, 2]]

        assert view.domain == IndexDomain([Dim(4, label="b"), Dim(1, 3, label="c")])
        assert view([3, 2]) == (2, 3, 2)

    def test_one_term_stands_for_all_selected_dimensions(self) -> None:
        x = IndexTransform(input_shape=SHAPE)

        assert x[d[:][1:3]].shape == (2, 2, 2)
        assert x[d[0, 2][1]].output[2] == OutputIndexMap(1)
        with pytest.raises(IndexingError, match="requires 1 dimensions but selection has 3"):
            x[d[:][(slice(1, 3),)]]

    def test_new_dimensions_take_their_place_among_the_selected(self) -> None:
        x = IndexTransform(input_shape=SHAPE, input_labels=["a", "b", "c"])

        assert x[d[0, -1][None]].domain.labels == ("", "a", "b", "c", "")
        assert x[d[1, 3][None, 2:4]].shape == (3, 1, 4, 2)
        assert x[d["b", 0][..., None]].domain.labels == ("", "a", "b", "c")

    @pytest.mark.parametrize(
        ("expression", "message"),
        [
            (d[0, "b"][None, None], "cannot be used with newaxis"),
            (d[1, 1][...], "Dimension 1 specified more than once"),
            (d[0, 2, "b"][None, ...], "Dimension 2 specified more than once"),
            (d[:][None], "not a valid specification for new dimensions"),
            (d["z"][2], 'Label "z"'),
            (d[5:][...], r"Dimension index 5 is outside valid range \[-3, 3\)"),
        ],
    )
    def test_selections_that_do_not_fit(self, expression, message) -> None:
        x = IndexTransform(input_shape=SHAPE, input_labels=["a", "b", "c"])
        with pytest.raises(IndexingError, match=message):
            x[expression]

    def test_a_chained_ellipsis_takes_what_is_selected(self) -> None:
        x = IndexTransform(input_shape=SHAPE)

        assert x[d[:][...][...]] == x
        assert x[d[0, 2].translate_by[1][..., 2]] == x[d[0].translate_by[1]][:, :, 1]

    def test_arrays_over_selected_dimensions(self) -> None:
        x = IndexTransform(input_shape=SHAPE, input_labels=["a", "b", "c"])

        in_place = x[d["b", "c"][[0, 1], [2, 3]]]
        in_front = x[d["c", "b"].vindex[[2, 3], [0, 1]]]
        outer = x[d["c", "a"].oindex[[4, 3], [2, 1]]]

        np.testing.assert_array_equal(apply_to(in_place, ARRAY), ARRAY[:, [0, 1], [2, 3]])
        np.testing.assert_array_equal(apply_to(in_front, ARRAY), ARRAY[:, [0, 1], [2, 3]].T)
        np.testing.assert_array_equal(apply_to(outer, ARRAY), ARRAY[[2, 1]][:, :, [4, 3]])


@dataclass(frozen=True, eq=False)
class View(Indexable):
    """The smallest thing that can be indexed: it notes what is assigned."""

    transform: IndexTransform
    written: list = field(default_factory=list)

    def _get_transform(self):
        return self.transform

    def _with_transform(self, transform):
        return View(transform, self.written)

    def __setitem__(self, index, source):
        self._assign_index(index, "default", source)

    def _assign(self, transform, source):
        self.written.append((transform, source))


@pytest.fixture
def view():
    return View(IndexTransform([Dim(1, 5, label="x"), Dim(0, 6, label="y")]))


class TestIndexable:
    def test_the_face_of_a_view(self, view) -> None:
        assert (view.rank, view.ndim, view.origin, view.shape, view.size) == (
            2,
            2,
            (1, 0),
            (4, 6),
            24,
        )
        assert view.domain == view.transform.domain
        with pytest.raises(TypeError):
            iter(view)

    @pytest.mark.parametrize(
        "operation",
        [
            lambda x: x[2, 1:3],
            lambda x: x[IndexDomain([Dim(2, 3, label="y")])],
            lambda x: x[IndexTransform(2)],
            lambda x: x[d["y"].translate_to[7]],
            lambda x: x.oindex[[1, 2], [0]],
            lambda x: x.vindex[[1, 2], [0]],
            lambda x: x.translate_to[0],
            lambda x: x.translate_by[1, None],
            lambda x: x.translate_backward_by[1],
            lambda x: x.label["a", "b"],
            lambda x: x.mark_bounds_implicit[:True],
            lambda x: x.transpose(["y", 0]),
            lambda x: x.T,
        ],
    )
    def test_every_operation_gives_a_new_view(self, view, operation) -> None:
        result = operation(view)

        assert type(result) is View
        assert result.transform == operation(view.transform) != view.transform

    def test_assignment_gets_the_transform_that_the_index_means(self, view) -> None:
        view[2, 1:3] = "a"
        view.oindex[[1, 2], 0] = "b"
        view.vindex[[1, 2], [0, 3]] = "c"

        x = view.transform
        expected = [x[2, 1:3], x.oindex[[1, 2], 0], x.vindex[[1, 2], [0, 3]]]
        assert view.written == list(zip(expected, "abc", strict=True))

    def test_what_cannot_be_written_says_so(self) -> None:
        with pytest.raises(
            TypeError, match="'IndexTransform' object does not support item assignment"
        ):
            IndexTransform(1).oindex[0] = 1

    @pytest.mark.parametrize("axes", [[0], [0, 0], ["y"], 0, [0, 1, 1]])
    def test_axes_must_be_a_permutation(self, view, axes) -> None:
        with pytest.raises(ValueError, match="is not a valid dimension permutation for rank 2"):
            view.transpose(axes)


@pytest.fixture
def x():
    return IndexTransform([Dim(1, 5, label="x"), Dim(0, 6, label="y")])


class TestRestriction:
    def test_restriction_matches_dimensions_by_label(self, x) -> None:
        view = x[IndexDomain([Dim(2, 4, label="y")])]

        assert view.domain == IndexDomain([Dim(1, 5, label="x"), Dim(2, 4, label="y")])
        assert x[IndexDomain([Dim(2, 4), Dim(3)])].shape == (2, 3)
        assert IndexTransform(1)[IndexDomain([Dim(3, label="q")])].input_labels == ("q",)

    def test_restriction_crops_index_arrays(self) -> None:
        view = IndexTransform(2)[[5, 6, 7, 8]]

        cropped = view[IndexDomain([Dim(1, 3), Dim(9)])]

        assert cropped.output[0] == OutputIndexMap([[6], [7]])
        assert cropped([2, 4]) == (7, 4)
        assert view[IndexDomain([Dim(1, 1), Dim(9)])].output[0] == OutputIndexMap(0)

    @pytest.mark.parametrize(
        ("dims", "message"),
        [
            ([Dim(0, 3, label="x")], r'target dimension 0 \{"x": \[1, 5\)\} .* dimension 0'),
            ([Dim(2, label="z")], 'Label "z"'),
            ([Dim(2)], r"Rank of index domain \(1\) must match"),
            ([Dim(2, label="x"), Dim(2)], "exceeds number of unlabeled"),
        ],
    )
    def test_restrictions_that_do_not_fit(self, x, dims, message) -> None:
        with pytest.raises(IndexError, match=message):
            x[IndexDomain(dims)]

    def test_restriction_by_a_partly_labeled_domain(self) -> None:
        target = IndexTransform([Dim(9, label="x"), Dim(9), Dim(9)])

        with pytest.raises(IndexingError, match=r"Rank \(2\) of index domain containing unlabeled"):
            target[IndexDomain([Dim(3, label="x"), Dim(4)])]
        assert target[IndexDomain([Dim(4), Dim(3, label="x"), Dim(5)])].shape == (3, 4, 5)
