"""Regions: what is refused, and where coordinates are found."""

from collections.abc import Hashable

import numpy as np
import pytest
import xarray as xr

from tensorstore_py.integrations.xarray.region import checked_region

DATASET = xr.Dataset({"v": (("x", "y"), np.ones((2, 3)))}, coords={"x": [20, 30]})
STORED: dict[Hashable, xr.Variable] = {"x": xr.Variable("x", [10, 20, 30, 40])}


def stored(dim: Hashable) -> xr.Variable | None:
    return STORED.get(dim)


def region(said, dataset=DATASET, mode="r+", append_dim=None):
    return checked_region(dataset, said, mode=mode, append_dim=append_dim, stored=stored)


def test_slices_are_what_they_are() -> None:
    said = {"x": slice(2), "y": slice(1, None, 1)}

    assert region(said) == said


@pytest.mark.parametrize("said", ["auto", {"x": "auto", "y": slice(0, 3)}])
def test_coordinates_say_where(said) -> None:
    assert region(said) == {"x": slice(1, 3), "y": slice(0, 3)}


def test_nothing_is_nowhere() -> None:
    assert region({"x": "auto"}, DATASET.isel(x=slice(0, 0))) == {"x": slice(0, 0)}


@pytest.mark.parametrize(
    ("said", "more", "error", "message"),
    [
        (5, {}, TypeError, "must be a dict"),
        ({"x": [0, 1]}, {}, TypeError, "slice objects.*'x'"),
        ({"x": slice(0, 4, 2)}, {}, ValueError, "step.*'x'"),
        ({"z": slice(2)}, {}, ValueError, "'z'.*'x', 'y'"),
        ({"x": slice(2)}, {"append_dim": "x"}, ValueError, "both append_dim and region"),
        ("auto", {"mode": "a-"}, ValueError, "mode='a-'"),
        ("auto", {"dataset": DATASET.assign_coords(x=[20, 35])}, KeyError, "'x'.*35"),
        ("auto", {"dataset": DATASET.assign_coords(x=[40, 10])}, ValueError, "non-contiguous"),
        ("auto", {"dataset": DATASET.assign_coords(y=[1, 2, 3])}, KeyError, "'y'.*not stored"),
        ({"x": slice(2)}, {"dataset": DATASET.assign(z=1)}, ValueError, r"drop_vars\(\['z'\]\)"),
    ],
)
def test_mistakes_say_what_is_right(said, more, error, message) -> None:
    with pytest.raises(error, match=message):
        region(said, **more)
