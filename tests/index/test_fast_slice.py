import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorstore_py._index import Dim, IndexTransform, OutputIndexMap, numpy_style
from tensorstore_py._index.fast_slice import try_basic_index, try_basic_selected
from tensorstore_py._index.interval import INF
from tensorstore_py._index.numpy_style import index_frame, index_selected
from tensorstore_py._index.numpy_terms import ArrayTerm, parse_index

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


@pytest.mark.timeout(1800)  # the nightly profile takes minutes
@settings(max_examples=4 * settings().max_examples)
@given(transforms(), TERMS.map(tuple) | TERMS.map(lambda terms: terms[0] if terms else ...))
def test_the_short_way_gives_what_the_long_way_gives(transform, index) -> None:
    frame = transform._frame
    result = try_basic_index(frame, index)
    if result is None:
        return

    expected = outcome(lambda: index_frame(frame, parse_index(index, "default", "direct")))

    assert IndexTransform._from_frame(result) == expected


@pytest.mark.timeout(1800)  # the nightly profile takes minutes
@settings(max_examples=2 * settings().max_examples)
@given(st.data())
def test_selected_dimensions_take_the_short_way_to_the_same_place(data) -> None:
    frame = data.draw(transforms())._frame
    dims = data.draw(st.permutations(range(frame.rank)))[: data.draw(st.integers(0, frame.rank))]
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


def test_common_expressions_take_the_short_way() -> None:
    frame = IndexTransform(input_shape=[10, 20, 30])._frame
    for index in (3, slice(1, 5), (slice(1, 5), 2), (..., 3), (None, slice(None)), slice(9, 1, -2)):
        assert try_basic_index(frame, index) is not None


def test_everything_else_is_left_to_the_long_way() -> None:
    frame = IndexTransform(input_shape=[10, 20])._frame
    for index in ([1, 2], True, 10, slice(5, 30), (1, 2, 3), (..., ...), "x", slice("a"), 1.5):
        assert try_basic_index(frame, index) is None
    assert try_basic_index(IndexTransform(1)[[1, 2]]._frame, 1) is None
    assert try_basic_index(frame, (None,) * 31) is None
    assert try_basic_selected(frame, (ArrayTerm(np.array([1])),), [0], 0) is None
