import numpy as np
import pytest

from tensorstore_py._api.source import as_source, taken
from tensorstore_py._spec.dtype import dtype
from tensorstore_py.errors import MismatchError

UINT8 = dtype("uint8")


def bytearray_view(array):
    return memoryview(bytearray(array))


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


class TestTaken:
    """What is the caller's memory is copied, or read under the eyes of who waits for it."""

    def of(self, source, *, lasting=False):
        array = as_source(source, UINT8, (3,))
        return array, *taken(source, array, lasting=lasting)

    @pytest.mark.parametrize("source", [7, [1, 2, 3], np.array([True, False, True])])
    def test_what_was_converted_is_nobody_elses(self, source):
        array, mine, copying = self.of(source)
        assert mine is array
        assert copying is None

    @pytest.mark.parametrize("make", [np.asarray, memoryview, bytearray_view])
    def test_a_little_is_copied(self, make):
        source = make(np.array([1, 2, 3], "uint8"))
        array, mine, copying = self.of(source)
        assert not np.may_share_memory(mine, array)
        assert mine.tolist() == [1, 2, 3]
        assert copying is None

    def test_in_the_order_that_it_is_in(self):
        source = np.zeros((3, 4), "uint8", order="F")
        mine, _ = taken(source, source, lasting=False)
        assert mine.flags.f_contiguous

    def test_much_is_waited_for(self):
        source = np.zeros(2**17, "uint8")
        mine, copying = taken(source, source, lasting=False)
        assert mine is source
        assert copying is not None

    def test_objects_may_change_themselves(self):
        source = np.array([[], {}], object)
        mine, copying = taken(source, source, lasting=False)
        assert mine is source
        assert copying is not None

    def test_what_lasts_is_used_as_it_is(self):
        source = np.array([1, 2, 3], "uint8")
        array, mine, copying = self.of(source, lasting=True)
        assert mine is array is source
        assert copying is None
