"""Sizes in the words of zarr."""

import pytest

from tensorstore_py.zarr.info import human_size


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (0, "0"),
        (1023, "1023"),
        (1024, "1.0K"),
        (22323, "21.8K"),
        (400_000_000, "381.5M"),
        (1_600_000_000, "1.5G"),
        (2**60, "1.0E"),
        (2**70, "1024.0E"),
    ],
)
def test_sizes_are_for_people(size, expected):
    assert human_size(size) == expected
