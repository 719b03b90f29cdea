"""Which level is good enough."""

import pytest

import tensorstore_py as ts
from tensorstore_py.multiscale.axes import as_axes
from tensorstore_py.multiscale.choice import wanted_level
from tensorstore_py.multiscale.metadata import Dataset, ImageMetadata

IMAGE = ImageMetadata(
    "0.5",
    as_axes("zyx", 3),
    tuple(Dataset(str(n), (2.0, 0.5 * 2**n, 0.5 * 2**n), (0.0,) * 3) for n in range(4)),
)


@pytest.mark.parametrize(
    ("size", "level"),
    [(0.1, 0), (2, 2), (2.5, 2), (100, 3), ({"x": 1}, 1), ({"z": 0.5}, 0), ((2, 1, 4), 1)],
)
def test_by_pixel_size(size, level):
    assert wanted_level(IMAGE, size, None, None) == level


@pytest.mark.parametrize(
    ("shape", "level"), [((1, 100, 100), 3), ((1, 101, 1), 2), ((1, 800, 800), 0), ((11, 1, 1), 0)]
)
def test_by_shape(shape, level):
    assert wanted_level(IMAGE, None, shape, (10, 800, 800)) == level


def test_bad_wishes():
    with pytest.raises(ts.SpecError, match="no axis 'q'"):
        wanted_level(IMAGE, {"q": 1}, None, None)
    with pytest.raises(ts.SpecError, match="2 extents for 3"):
        wanted_level(IMAGE, None, (1, 2), (1, 1, 1))
    with pytest.raises(ts.SpecError, match="number"):
        wanted_level(IMAGE, "1", None, None)
