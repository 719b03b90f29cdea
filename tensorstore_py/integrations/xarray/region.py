"""Regions: which part of each dimension is written, said by slices or found by coordinates."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Literal, TypeAlias, cast

import numpy as np
import xarray as xr

__all__ = ["Region", "checked_region"]

#: As users say it.
Region: TypeAlias = 'Mapping[Hashable, slice | Literal["auto"]] | Literal["auto"]'


def checked_region(
    dataset: xr.Dataset,
    region: Region,
    *,
    mode: str,
    append_dim: Hashable | None,
    stored: Callable[[Hashable], xr.Variable | None],
) -> dict[Hashable, slice]:
    """The part of each dimension that a Dataset is written to.

    Args:
        dataset: what is written.
        region: slices, or `"auto"` for where its coordinates are.
        mode: of the writing.
        append_dim: the dimension that grows.
        stored: reads the coordinate of a dimension; None: it has none.

    Raises:
        TypeError: it is no mapping of slices.
        ValueError: it does not fit the Dataset, or its coordinates are not in one piece.
        KeyError: a coordinate is not there.
    """
    if isinstance(region, str) and region == "auto":
        region = dict.fromkeys(dataset.dims, "auto")
    if not isinstance(region, Mapping):
        raise TypeError(f"region must be a dict of slices, or 'auto', not {region!r}")
    if "auto" in [each for each in region.values() if isinstance(each, str)]:
        if mode not in ("r+", "a"):
            raise ValueError(f"region='auto' needs mode='r+' or mode='a', not mode={mode!r}")
        region = {
            dim: _found(dataset, dim, stored) if isinstance(each, str) and each == "auto" else each
            for dim, each in region.items()
        }
    found = cast("dict[Hashable, slice]", dict(region))
    _check(dataset, found)
    if append_dim in found:
        raise ValueError(
            f"cannot list the same dimension in both append_dim and region: {append_dim!r}; new "
            "positions are behind all that are there, so leave it out of region"
        )
    return found


def _check(dataset: xr.Dataset, region: Mapping[Hashable, slice]) -> None:
    for dim, part in region.items():
        if dim not in dataset.dims:
            raise ValueError(
                "all keys in ``region`` are not in Dataset dimensions: "
                f"{dim!r} is not in {list(dataset.dims)}"
            )
        if not isinstance(part, slice):
            raise TypeError(f"all values in region must be slice objects, but {dim!r} is {part!r}")
        if part.step not in (1, None):
            raise ValueError(
                f"step on all slices in region must be 1 or None, but {dim!r} is {part!r}"
            )
    apart = [name for name, each in dataset.variables.items() if not set(region) & set(each.dims)]
    if region and apart:
        raise ValueError(
            "with region= all variables in the dataset to write must have at least one dimension "
            f"in common with {list(region)}, since others would be written again and again; leave "
            f"out the others: .drop_vars({apart!r})"
        )


def _found(
    dataset: xr.Dataset, dim: Hashable, stored: Callable[[Hashable], xr.Variable | None]
) -> slice:
    if dim not in dataset.variables:
        return slice(0, dataset.sizes[dim])
    present = stored(dim)
    if present is None:
        raise KeyError(
            f"region='auto' looks for the coordinate {dim!r}, which is not stored; say a slice"
        )
    places = present.to_index().get_indexer(dataset.get_index(dim))
    if (places == -1).any():
        missing = dataset[dim].values[places == -1]
        raise KeyError(
            f"Not all values of coordinate {dim!r} are stored: {missing[:3]} is not; a region is "
            "a part of what is there, append_dim= makes it longer"
        )
    if (np.diff(places) != 1).any():
        raise ValueError(
            f"The auto-detected region of coordinate {dim!r} has non-contiguous indices: {places}; "
            "write each piece by itself"
        )
    return slice(int(places[0]), int(places[-1]) + 1) if len(places) else slice(0, 0)
