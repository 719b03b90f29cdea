import pytest

from tensorstore_py._api.key_range import KeyRange
from tensorstore_py._api.kvstore_arguments import (
    as_byte_range,
    as_generation,
    as_range,
    as_value,
)
from tensorstore_py._interface.byte_range import WHOLE, ByteRange


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, WHOLE),
        (slice(None), WHOLE),
        (slice(2, 5), ByteRange(2, 5)),
        (slice(-3, None), ByteRange(-3)),
        (slice(None, 4), ByteRange(0, 4)),
    ],
)
def test_byte_ranges(given, expected):
    assert as_byte_range(given) == expected


@pytest.mark.parametrize(
    ("given", "error"),
    [(5, TypeError), (slice(0, 9, 2), TypeError), (slice(3, 2), ValueError),
     (slice(-3, 2), ValueError), (slice(0, -1), ValueError)],
)  # fmt: skip
def test_what_is_no_byte_range(given, error):
    with pytest.raises(error):
        as_byte_range(given)


def test_values_are_copied_unless_they_cannot_change():
    kept, changing = b"1", bytearray(b"1")

    assert as_value(kept) is kept
    assert type(as_value(changing)) is bytes
    assert (as_value("é"), as_value(None)) == ("é".encode(), None)
    with pytest.raises(TypeError, match="not int"):
        as_value(5)


def test_generations_and_ranges():
    assert as_generation("a", "x") == as_generation(b"a", "x") == b"a"
    with pytest.raises(TypeError, match="x must be a generation"):
        as_generation(5, "x")
    assert as_range(KeyRange("a", "b")).exclusive_max == b"b"
    with pytest.raises(TypeError, match="range must be"):
        as_range("a")
