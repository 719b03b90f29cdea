"""Parts of a level in physical coordinates."""

import numpy as np
import pytest

import tensorstore_py as ts


@pytest.fixture(scope="module")
def image():
    pixels = np.arange(600 * 400).reshape(600, 400)
    return ts.pyramid(
        pixels, "memory://", axes="yx", pixel_size=0.5, units="um", translation=(10, 0)
    ).result()


def test_centres_that_lie_within_are_taken(image):
    # y is at 10, 10.5, 11, ...
    part = image.sel(y=slice(10.2, 12), x=slice(None, 0.9)).result()

    assert part.domain.inclusive_min == (1, 0)
    assert part.shape == (4, 2)
    np.testing.assert_array_equal(part.read().result()[0], [400, 401])


def test_a_number_is_the_nearest_pixel(image):
    row = image.sel(y=10.6).result()

    assert row.domain.labels == ("x",)
    assert row[0].read().result() == 400


def test_the_same_place_in_two_levels(image):
    fine, coarse = (image.sel(level, y=slice(50, 60)).result() for level in (0, 1))

    assert fine.shape[0] == 21
    assert coarse.shape[0] == 10


def test_what_lies_outside(image):
    with pytest.raises(ts.OutOfRangeError, match="y="):
        image.sel(y=slice(0, 5)).result()
    with pytest.raises(ts.OutOfRangeError, match="x="):
        image.sel(x=1000).result()
    with pytest.raises(ts.SpecError, match="no axis 'z'"):
        image.sel(z=1)
