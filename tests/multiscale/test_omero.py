"""How to show an image: names, and windows of the values that there are."""

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py.multiscale.axes import as_axes
from tensorstore_py.multiscale.omero import omero_of, with_windows

AXES = as_axes("cyx", 3)


def test_windows_are_those_of_each_channel():
    level = np.stack([np.arange(100.0).reshape(10, 10), np.full((10, 10), 7.0)])
    level[0, 0, 0] = np.nan

    found = with_windows(omero_of(["a", "b"], AXES, level.shape), AXES, level)

    first, second = (channel["window"] for channel in found["channels"])
    assert (first["min"], first["max"]) == (1, 99)
    assert 1 <= first["start"] < 2
    assert second == {"min": 7, "max": 7, "start": 7, "end": 8}


def test_metadata_is_stored_as_it_is_given():
    given = {"channels": [{"label": "a", "window": {"min": 0, "max": 1, "start": 0, "end": 1}}]}

    assert with_windows(omero_of(given, AXES, (1, 2, 2)), AXES, np.zeros((1, 2, 2))) == given


def test_an_image_without_channels_has_one():
    axes = as_axes("yx", 2)

    found = omero_of(True, axes, (2, 2))

    assert [channel["label"] for channel in found["channels"]] == ["Channel 0"]
    assert with_windows(found, axes, np.zeros((0, 2)))["channels"][0]["window"]["end"] == 1


@pytest.mark.parametrize("given", [["a"], "ab", {"rdefs": {}}, [1, 2], 3])
def test_what_are_no_channels(given):
    with pytest.raises(ts.SpecError, match="omero"):
        omero_of(given, AXES, (2, 2, 2))
