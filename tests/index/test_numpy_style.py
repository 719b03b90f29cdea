import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tensorstore_py._index import Dim, IndexDomain, IndexTransform, OutputIndexMap, d
from tensorstore_py.errors import IndexingError, OutOfRangeError


def apply_to(view, array):
    """What reading `array` through `view` gives, element by element."""
    out = np.empty(view.shape, array.dtype)
    for position in np.ndindex(*view.shape):
        source = view([i + low for i, low in zip(position, view.origin, strict=True)])
        out[position] = array[source]
    return out


SHAPE = (3, 4, 5)
ARRAY = np.arange(60).reshape(SHAPE)


@given(
    hnp.basic_indices(SHAPE, allow_newaxis=True, max_dims=5)
    | hnp.integer_array_indices(SHAPE, result_shape=hnp.array_shapes(max_dims=2))
)
def test_like_numpy_where_indices_count_from_zero(index) -> None:
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
def test_oindex_and_vindex_like_numpy(data) -> None:
    rows, columns = (data.draw(st.lists(st.integers(0, n - 1), min_size=1)) for n in SHAPE[:2])
    x = IndexTransform(input_shape=SHAPE)

    outer = apply_to(x.oindex[rows, columns], ARRAY)
    size = min(len(rows), len(columns))
    joint = apply_to(x.vindex[rows[:size], :, columns[:size]], ARRAY)

    np.testing.assert_array_equal(outer, ARRAY[np.ix_(rows, columns)])
    np.testing.assert_array_equal(joint, ARRAY[rows[:size], :, columns[:size]])


def test_masks_like_numpy() -> None:
    x = IndexTransform(input_shape=SHAPE)
    mask = ARRAY[..., 0] % 3 == 0

    np.testing.assert_array_equal(apply_to(x[mask], ARRAY), ARRAY[mask])
    np.testing.assert_array_equal(apply_to(x[:, mask[0]], ARRAY), ARRAY[:, mask[0]])
    assert x[True].shape == (1, *SHAPE)
    assert x[False].shape == (0, *SHAPE)


def test_coordinates_are_kept() -> None:
    x = IndexTransform([Dim(10, 20, label="x")])

    assert x[12:15].domain == IndexDomain([Dim(12, 15, label="x")])
    assert x[12:][12] == x[12]
    assert x[12:18:2].origin == (6,)
    with pytest.raises(OutOfRangeError):
        x[-1]


def test_implicit_bounds_do_not_bind() -> None:
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
            r'slice of dimension 0 \("x"\): \[1, 11\) is outside \[0, 10\)',
        ),
        ((slice(5, 2),), IndexingError, "5:2 ends before it starts"),
        ((10,), OutOfRangeError, r'index 10 is outside \[0, 10\) of dimension 0 \("x"\)'),
        ((None,) * 31, IndexingError, "Rank 33"),
    ],
)
def test_expressions_that_do_not_fit(index, error, message) -> None:
    with pytest.raises(error, match=message):
        IndexTransform([Dim(10, label="x"), Dim(5)])[index]


def test_selected_dimensions_are_consumed_in_the_order_of_the_selection() -> None:
    x = IndexTransform(input_shape=SHAPE, input_labels=["a", "b", "c"])

    view = x[d["c", "a"][1:3, 2]]

    assert view.domain == IndexDomain([Dim(4, label="b"), Dim(1, 3, label="c")])
    assert view([3, 2]) == (2, 3, 2)


def test_one_term_stands_for_all_selected_dimensions() -> None:
    x = IndexTransform(input_shape=SHAPE)

    assert x[d[:][1:3]].shape == (2, 2, 2)
    assert x[d[0, 2][1]].output[2] == OutputIndexMap(1)
    with pytest.raises(IndexingError, match="requires 1 dimensions but selection has 3"):
        x[d[:][(slice(1, 3),)]]


def test_new_dimensions_take_their_place_among_the_selected() -> None:
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
def test_selections_that_do_not_fit(expression, message) -> None:
    x = IndexTransform(input_shape=SHAPE, input_labels=["a", "b", "c"])
    with pytest.raises(IndexingError, match=message):
        x[expression]


def test_a_chained_ellipsis_takes_what_is_selected() -> None:
    x = IndexTransform(input_shape=SHAPE)

    assert x[d[:][...][...]] == x
    assert x[d[0, 2].translate_by[1][..., 2]] == x[d[0].translate_by[1]][:, :, 1]


def test_arrays_over_selected_dimensions() -> None:
    x = IndexTransform(input_shape=SHAPE, input_labels=["a", "b", "c"])

    in_place = x[d["b", "c"][[0, 1], [2, 3]]]
    in_front = x[d["c", "b"].vindex[[2, 3], [0, 1]]]
    outer = x[d["c", "a"].oindex[[4, 3], [2, 1]]]

    np.testing.assert_array_equal(apply_to(in_place, ARRAY), ARRAY[:, [0, 1], [2, 3]])
    np.testing.assert_array_equal(apply_to(in_front, ARRAY), ARRAY[:, [0, 1], [2, 3]].T)
    np.testing.assert_array_equal(apply_to(outer, ARRAY), ARRAY[[2, 1]][:, :, [4, 3]])
