import pickle

import numpy as np
import pytest

from tensorstore_py._index import Dim, IndexTransform, OutputIndexMap, OutputIndexMethod
from tensorstore_py._index.maps import UNBOUNDED, array_map, constant, single


@pytest.mark.parametrize(
    ("index_map", "text"),
    [
        (OutputIndexMap(), "OutputIndexMap(offset=0)"),
        (OutputIndexMap(7), "OutputIndexMap(offset=7)"),
        (OutputIndexMap(np.array(5)), "OutputIndexMap(offset=5)"),
        (OutputIndexMap(3, 4), "OutputIndexMap(offset=4, stride=1, input_dimension=3)"),
        (OutputIndexMap(3, stride=2), "OutputIndexMap(offset=0, stride=2, input_dimension=3)"),
        (
            OutputIndexMap([[1, 2]], 2, 3, Dim(0, 3)),
            "OutputIndexMap(offset=2, stride=3, index_array={{1, 2}}, index_range=[0, 3))",
        ),
        (
            OutputIndexMap(index_array=[1], offset=2),
            "OutputIndexMap(offset=2, stride=1, index_array={1}, index_range=(-inf, +inf))",
        ),
    ],
)
def test_forms(index_map, text) -> None:
    assert repr(index_map) == text
    assert pickle.loads(pickle.dumps(index_map)) == index_map


@pytest.mark.parametrize(
    ("args", "named"),
    [
        ((["a"],), {}),
        ((np.array([2**63], dtype=np.uint64),), {}),
        (([1.5],), {}),
        ((), {"stride": 2}),
        ((), {"input_dimension": 0, "index_array": [1]}),
        ((1,), {"offset": 1, "input_dimension": 2}),
        (([1],), {"index_range": 3}),
        ((1, "a"), {}),
        ((1, 2, 3, 4, 5), {}),
    ],
)
def test_arguments_that_fit_no_form(args, named) -> None:
    with pytest.raises(TypeError, match="OutputIndexMap"):
        OutputIndexMap(*args, **named)


def test_attributes_tell_the_method() -> None:
    maps = [OutputIndexMap(1), OutputIndexMap(0, 1, 2), OutputIndexMap([4], index_range=Dim(9))]

    assert [m.method for m in maps] == list(OutputIndexMethod)
    assert [m.stride for m in maps] == [None, 2, 1]
    assert [m.input_dimension for m in maps] == [None, 0, None]
    assert [m.index_array is None for m in maps] == [True, True, False]
    assert [m.index_range for m in maps] == [None, None, Dim(9)]
    assert [m.value_range for m in maps] == [UNBOUNDED, UNBOUNDED, (0, 9)]


def test_the_index_array_is_a_frozen_copy() -> None:
    source = np.array([1, 2], dtype=np.int32)
    frozen = OutputIndexMap(source).index_array
    source[0] = 9

    assert frozen is not None
    assert frozen.tolist() == [1, 2]
    assert frozen.dtype == np.int64
    with pytest.raises(ValueError, match="read-only"):
        frozen[0] = 3


def test_equality_looks_at_all_parts() -> None:
    base = OutputIndexMap([1, 2], 3, 4, Dim(9))

    assert base == OutputIndexMap([1, 2], 3, 4, Dim(9, implicit_upper=True))
    for other in (
        OutputIndexMap([1, 3], 3, 4, Dim(9)),
        OutputIndexMap([[1, 2]], 3, 4, Dim(9)),
        OutputIndexMap([1, 2], 0, 4, Dim(9)),
        OutputIndexMap([1, 2], 3, 0, Dim(9)),
        OutputIndexMap([1, 2], 3, 4),
        OutputIndexMap(3),
        3,
    ):
        assert base != other
    with pytest.raises(TypeError):
        hash(base)


def test_unchecked_constructors_agree_with_the_checked_one() -> None:
    assert constant(3) == OutputIndexMap(3)
    assert single(1, 2, 0) == OutputIndexMap(0, 1, 2)
    assert array_map(1, 2, np.array([3]), (0, 5)) == OutputIndexMap([3], 1, 2, Dim(5))


def test_method_is_the_reference_enumeration() -> None:
    assert [int(m) for m in OutputIndexMethod] == [0, 1, 2]
    assert repr(OutputIndexMethod(2)) == "<OutputIndexMethod.array: 2>"
    assert list(OutputIndexMethod.__members__) == ["constant", "single_input_dimension", "array"]
    assert [10, 20, 30][OutputIndexMethod.array] == 30


def test_maps_are_a_sequence() -> None:
    output = IndexTransform(3).output

    assert output.rank == len(output) == 3
    assert output[-1] == OutputIndexMap(2, 0)
    assert output[::-1] == list(reversed(output))
    assert output == [OutputIndexMap(i, 0) for i in range(3)]
    assert output != [OutputIndexMap(i, 0) for i in range(2)]
    assert repr(output[:1]) == "[OutputIndexMap(offset=0, stride=1, input_dimension=0)]"
    with pytest.raises(IndexError, match=r"Index 3 is outside valid range \[-3, 3\)"):
        output[3]


def test_large_index_arrays_print_short() -> None:
    assert repr(OutputIndexMap(np.arange(1000))).count(", ") == 1003
    assert "{0, 1, 2, ..., 998, 999, 1000}" in repr(OutputIndexMap(np.arange(1001)))
    matrix = repr(OutputIndexMap(np.arange(2400).reshape(600, 4)))
    assert "{8, 9, 10, 11}, ..., {2388, 2389, 2390, 2391}" in matrix
