import pickle

import numpy as np
import pytest

from tensorstore_py._index.numpy_terms import ArrayTerm, MaskTerm, SliceTerm, parse_index
from tensorstore_py.errors import IndexingError


def parse(index, mode="default", use="direct"):
    return parse_index(index, mode, use)


def test_terms_and_counts() -> None:
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
        ([[False, True], [True, False]], "array([[False,  True],\n       [ True, False]]),", False),
        ([False, False], "array([False]),", False),
        (True, "array(True),", False),
        ((), "", False),
    ],
)
def test_text_and_scalar(index, text, scalar) -> None:
    spec = parse(index)

    assert str(spec) == text
    assert spec.scalar is scalar
    assert pickle.loads(pickle.dumps(spec)) == spec


def test_a_scalar_term_repeats() -> None:
    assert parse(slice(1, 2)).repeated(3).terms == (SliceTerm(1, 2, 1),) * 3
    assert parse((slice(1, 2),)).repeated(3).terms == (SliceTerm(1, 2, 1),)


def test_joint_arrays_stay_in_place_while_they_are_neighbours() -> None:
    array = [1, 2]
    assert parse((..., array, 0, array)).joint_in_place
    assert not parse((array, ..., array)).joint_in_place
    assert not parse((array, None, array)).joint_in_place
    assert not parse((..., array), "vindex").joint_in_place
    assert not parse((..., True), use="initial").joint_in_place


def test_oindex_arrays_have_dimensions_of_their_own() -> None:
    spec = parse(([1, 2], [[3], [4]], [True, False]), "oindex")

    assert (spec.produced, spec.joint_shape) == (4, ())


@pytest.mark.parametrize("index", [1.5, [1.5], "x", {"a": 3}, [None], 2**70, [[1], [2, 3]]])
def test_what_is_no_index(index) -> None:
    with pytest.raises(IndexingError):
        parse(index)


@pytest.mark.parametrize("array", [np.array([1.0]), np.array(["x"])])
def test_arrays_of_other_types(array) -> None:
    with pytest.raises(IndexingError, match="must be of integer"):
        parse(array)


@pytest.mark.parametrize("index", [slice("a"), slice(None, 1.5), slice([1, "a"]), slice(2**63)])
def test_slices_of_other_types(index) -> None:
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
def test_expressions_that_contradict_themselves(arguments, message) -> None:
    with pytest.raises(IndexingError, match=message):
        parse(*arguments)


def test_the_spec_owns_its_arrays() -> None:
    source = np.array([1, 2])
    spec = parse(source)
    source[0] = 9

    assert spec == parse([1, 2])
    assert spec != parse([1, 3])
    assert spec != parse([1, 2], "oindex")
