import numpy as np
import pytest

from tensorstore_py._api.source import as_source
from tensorstore_py._spec.dtype import dtype
from tensorstore_py.errors import MismatchError

UINT8 = dtype("uint8")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (7, 7),
        (True, 1),
        (2.9, 2),
        ([1, 2, 3], [1, 2, 3]),
        (np.array([1, 2, 3], "uint8"), [1, 2, 3]),
        (np.array([True, False, True]), [1, 0, 1]),
        (np.uint8(7), 7),
        (np.int64(7), 7),
        (np.float32(2.9), 2),
        (np.bool_(True), 1),
    ],
)
def test_what_fits_is_converted(source: object, expected: object) -> None:
    array = as_source(source, UINT8, (3,))

    assert array.dtype == UINT8
    assert array.tolist() == expected


@pytest.mark.parametrize("source", [300, -1, np.int64(300), np.int8(-1)])
def test_a_number_that_does_not_fit_is_refused(source: object) -> None:
    with pytest.raises(OverflowError, match="out of bounds for uint8"):
        as_source(source, UINT8, ())


@pytest.mark.parametrize(
    "source", [np.arange(3), np.array(3), np.zeros(3, "float32"), np.str_("7"), np.ones(3, ">u2")]
)
def test_an_array_that_might_not_survive_is_refused(source: object) -> None:
    with pytest.raises(TypeError, match=r"cannot write .* convert it first"):
        as_source(source, UINT8, (3,))


@pytest.mark.parametrize("source", [np.complex64(1), np.float32("nan")])
def test_a_number_of_another_kind_is_refused(source: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        as_source(source, UINT8, ())


def test_memory_of_the_right_type_is_not_copied() -> None:
    source = np.zeros((3, 4), np.uint8)

    assert np.shares_memory(as_source(source, UINT8, (2, 3, 4)), source)


def test_extents_that_do_not_broadcast_are_named() -> None:
    with pytest.raises(MismatchError, match=r"source dimension 1 has extent 2, .*dimension 2 .* 4"):
        as_source(np.zeros((3, 2), np.uint8), UINT8, (5, 3, 4))


def test_too_many_dimensions_are_counted() -> None:
    with pytest.raises(ValueError, match="source has 2 dimensions"):
        as_source([[1]], UINT8, (4,))
