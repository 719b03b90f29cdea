"""Byte ranges against Python's own slices."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorstore_py._interface.byte_range import WHOLE, ByteRange
from tensorstore_py.errors import OutOfRangeError


@st.composite
def ranges(draw):
    start = draw(st.integers(-12, 12))
    if start < 0:
        return ByteRange(start)
    stop = draw(st.one_of(st.none(), st.integers(start, start + 8)))
    return ByteRange(start, stop)


@given(ranges(), st.integers(0, 12))
def test_what_resolves_is_what_a_slice_takes(byte_range, size):
    value = bytes(range(size))
    reach = [abs(byte_range.start), byte_range.stop or 0]
    if max(reach) > size:
        with pytest.raises(OutOfRangeError):
            byte_range.resolve(size)
        return
    start, stop = byte_range.resolve(size)
    assert 0 <= start <= stop <= size
    assert value[start:stop] == value[slice(byte_range.start, byte_range.stop)]


@pytest.mark.parametrize(("start", "stop"), [(3, 2), (1, 0), (-3, 5), (-3, -1), (-1, 0), (0, -1)])
def test_what_is_no_range_is_refused(start, stop):
    with pytest.raises(ValueError, match=rf"\[{start}, {stop}\)"):
        ByteRange(start, stop)


@pytest.mark.parametrize(
    ("byte_range", "asked"),
    [(ByteRange(2, 9), r"\[2, 9\)"), (ByteRange(-9), r"\[-9, end\)"), (ByteRange(6), r"\[6, end")],
)
def test_the_error_names_the_range_and_the_size(byte_range, asked):
    with pytest.raises(OutOfRangeError, match=f"{asked}.*5 bytes"):
        byte_range.resolve(5)


def test_only_one_range_is_whole():
    assert WHOLE.is_whole
    assert ByteRange(0, None).is_whole
    assert not any(each.is_whole for each in (ByteRange(0, 0), ByteRange(1), ByteRange(-1)))


def test_ranges_are_values():
    assert ByteRange(1, 2) == ByteRange(1, 2)
    assert len({WHOLE, ByteRange(), ByteRange(0, 0)}) == 2
