"""Whole arrays to a store and back, by zarr-python's names: `save` and `load`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tensorstore_py.zarr.creation import array
from tensorstore_py.zarr.nodes import open as open_node
from tensorstore_py.zarr.nodes import open_group
from tensorstore_py.zarr.zarr_array import Array

if TYPE_CHECKING:
    from tensorstore_py.zarr.storage import StoreLike

__all__ = ["load", "save", "save_array", "save_group"]

# Any: whatever NumPy makes an array of.
ArrayLike = Any
# Any: an array, or a dictionary of such; only what is stored tells.
Loaded: TypeAlias = Any


def save(store: StoreLike, *args: ArrayLike, path: str | None = None, **kwargs: ArrayLike) -> None:
    """Save an array, or several in a group; whatever is there is replaced.

    Args:
        store: as for `create`.
        *args: one array is saved by itself; several as `arr_0`, `arr_1` and so on in a group.
        path: in the store.
        **kwargs: arrays by the names that they get in a group.

    Raises:
        ValueError: there is nothing to save.

    Example:
        >>> import numpy as np
        >>> import tensorstore_py as ts
        >>> ts.zarr.save("saved.zarr", np.arange(3), squares=np.arange(3) ** 2)
        >>> sorted(ts.zarr.load("saved.zarr").items())
        [('arr_0', array([0, 1, 2])), ('squares', array([0, 1, 4]))]
    """
    if not args and not kwargs:
        raise ValueError("pass at least one array to save")
    if len(args) == 1 and not kwargs:
        save_array(store, args[0], path=path)
    else:
        save_group(store, *args, path=path, **kwargs)


def save_array(
    store: StoreLike, arr: ArrayLike, *, path: str | None = None, **arguments: Any
) -> None:
    """Save an array; whatever is there is replaced.

    Args:
        store: as for `create`.
        arr: the array.
        path: in the store.
        **arguments: those of `create`.
    """
    array(arr, store=store, path=path, overwrite=True, **arguments)


def save_group(
    store: StoreLike,
    *args: ArrayLike,
    path: str | None = None,
    zarr_format: int | None = None,
    **kwargs: ArrayLike,
) -> None:
    """Save arrays in a group; whatever is there is replaced.

    Args:
        store: as for `create`.
        *args: arrays that are called `arr_0`, `arr_1` and so on.
        path: in the store.
        zarr_format: 2 or 3.
        **kwargs: arrays by name.

    Raises:
        ValueError: there is nothing to save, or two arrays have one name.
    """
    if not args and not kwargs:
        raise ValueError("pass at least one array to save")
    named = {f"arr_{place}": each for place, each in enumerate(args)}
    twice = named.keys() & kwargs.keys()
    if twice:
        raise ValueError(f"{min(twice)!r} is the name of two arrays")
    group = open_group(store, "w", path=path, zarr_format=zarr_format)
    for name, each in {**named, **kwargs}.items():
        group.array(name, each)


def load(store: StoreLike, path: str | None = None, *, zarr_format: int | None = None) -> Loaded:
    """Load an array, or all arrays right in a group.

    Args:
        store: as for `create`.
        path: in the store.
        zarr_format: 2 or 3; whichever is there if left out.

    Returns:
        A NumPy array; a dictionary of those in a group, by name.

    Raises:
        NodeNotFoundError: nothing is there.
    """
    found = open_node(store, "r", path=path, zarr_format=zarr_format)
    if isinstance(found, Array):
        return np.asarray(found[...])
    return {name: np.asarray(each[...]) for name, each in found.arrays()}
