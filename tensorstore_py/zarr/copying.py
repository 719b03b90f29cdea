"""Whole arrays and groups by zarr-python's names: `save`, `load`, `copy` and `copy_all`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TextIO, TypeAlias

import numpy as np

from tensorstore_py.errors import AlreadyExistsError
from tensorstore_py.zarr.creation import array, like
from tensorstore_py.zarr.nodes import open as open_node
from tensorstore_py.zarr.nodes import open_group
from tensorstore_py.zarr.zarr_array import Array
from tensorstore_py.zarr.zarr_group import Group

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorstore_py.zarr.storage import StoreLike


__all__ = ["Copied", "copy", "copy_all", "load", "save", "save_array", "save_group"]

# Any: an Array or a Group, or what acts alike, such as h5py's.
Node: TypeAlias = Any
IfExists = Literal["raise", "replace", "skip", "skip_initialized"]
Log: TypeAlias = "Callable[[str], object] | TextIO | str | os.PathLike[str] | None"
_CHOICES = ("raise", "replace", "skip", "skip_initialized")


class Copied(NamedTuple):
    """How much was copied.

    Attributes:
        n_copied: arrays and groups.
        n_skipped: arrays that were there.
        n_bytes_copied: of the arrays' elements in memory.
    """

    n_copied: int = 0
    n_skipped: int = 0
    n_bytes_copied: int = 0

    def and_(self, other: Copied) -> Copied:
        """Both together."""
        return Copied(*map(int.__add__, self, other))


def copy(
    source: Node,
    dest: Group,
    name: str | None = None,
    shallow: bool = False,
    without_attrs: bool = False,
    log: Log = None,
    if_exists: IfExists = "raise",
    dry_run: bool = False,
    **create_kws: Any,
) -> Copied:
    """Copy an array, or a group with all that is in it, into a group.

    Arrays are copied chunk by chunk, so they may be larger than memory. The copy is laid out as its
    source, as far as the destination's version of the format can.

    Args:
        source: an array or a group: of `ts.zarr`, or what acts alike, such as h5py's.
        dest: a group.
        name: of the copy; that of the source if left out.
        shallow: of a group only the arrays right in it.
        without_attrs: leave the attributes out.
        log: a function, a file or the path of one that is told of each node.
        if_exists: what becomes of an array that is there: `"raise"`; `"replace"`; `"skip"`;
            `"skip_initialized"`: skipped if all its chunks are there, else replaced.
        dry_run: only say what would be copied.
        **create_kws: what is to be different in copies of arrays: keyword arguments of `create`.

    Raises:
        AlreadyExistsError: an array is there, and `if_exists` is `"raise"`.
        TypeError: the destination is no group, or the source no array or group.
        ValueError: there is no name.

    Example:
        >>> import tensorstore_py as ts
        >>> source = ts.zarr.group()
        >>> _ = source.array("foo/bar", [1, 2, 3], chunks=2)
        >>> dest = ts.zarr.group(zarr_format=2)
        >>> ts.zarr.copy(source["foo"], dest, log=print)
        copy /foo
        copy /foo/bar (3,) int64
        Copied(n_copied=2, n_skipped=0, n_bytes_copied=24)
        >>> dest["foo/bar"][:]
        array([1, 2, 3])
    """
    if not isinstance(dest, Group):
        raise TypeError(f"dest must be a Group, not {type(dest).__name__}; see ts.zarr.open_group")
    if if_exists not in _CHOICES:
        raise ValueError(f"if_exists must be one of {_CHOICES}, not {if_exists!r}")
    found = name or str(getattr(source, "name", None) or "").rpartition("/")[2]
    if not found:
        raise ValueError("the source has no name; pass name= for that of the copy")
    if not (_is_array(source) or hasattr(source, "keys")):
        raise TypeError(f"{source!r} is neither an array nor a group")
    with _lines_to(log) as tell:
        task = _Task(tell, shallow, without_attrs, if_exists, dry_run, create_kws)
        return task.copy(source, dest, found, top=True)


def copy_all(
    source: Node,
    dest: Group,
    shallow: bool = False,
    without_attrs: bool = False,
    log: Log = None,
    if_exists: IfExists = "raise",
    dry_run: bool = False,
    **create_kws: Any,
) -> Copied:
    """Copy everything in a group into another one, and its attributes.

    Args and errors are those of `copy`.
    """
    with _lines_to(log) as tell:
        total = Copied()
        for name, node in _members(source):
            total = total.and_(
                copy(
                    node, dest, name, shallow, without_attrs, tell, if_exists, dry_run, **create_kws
                )
            )
        if not (dry_run or without_attrs):
            _copy_attributes(source, dest)
        return total


class _Task(NamedTuple):
    """What `copy` was asked for."""

    tell: Callable[[str], object]
    shallow: bool
    without_attrs: bool
    if_exists: IfExists
    dry_run: bool
    create_kws: Mapping[str, Any]

    def copy(self, source: Node, dest: Group, name: str, *, top: bool = False) -> Copied:
        if _is_array(source):
            return self._copy_array(source, dest, name)
        if self.shallow and not top:
            return Copied()
        self.tell(f"copy {dest.name.rstrip('/')}/{name}")
        target = None if self.dry_run else dest.require_group(name)
        if target is not None and not self.without_attrs:
            _copy_attributes(source, target)
        total = Copied(1)
        for inner, node in _members(source):
            total = total.and_(self.copy(node, dest, f"{name}/{inner}"))
        return total

    def _copy_array(self, source: Node, dest: Group, name: str) -> Copied:
        where = f"{dest.name.rstrip('/')}/{name}"
        if name in dest and not self._replaces(dest[name], where):
            self.tell(f"skip {where}")
            return Copied(0, 1, 0)
        self.tell(f"copy {where} {tuple(source.shape)} {source.dtype}")
        if self.dry_run:
            return Copied(1, 0, 0)
        shape, given = like(source, {"zarr_format": dest.zarr_format, **self.create_kws})
        made = dest.create(name, shape, overwrite=True, **given)
        if isinstance(source, Array):
            made[...] = source
        else:
            for region in _blocks(made):
                made[region] = source[region]
        if not self.without_attrs:
            _copy_attributes(source, made)
        return Copied(1, 0, made.nbytes)

    def _replaces(self, there: Node, where: str) -> bool:
        if self.if_exists == "raise":
            raise AlreadyExistsError(
                f"{where} exists already; pass if_exists='replace', 'skip' or 'skip_initialized'"
            )
        if self.if_exists == "skip_initialized" and isinstance(there, Array):
            return there.nchunks_initialized < there.nchunks
        return self.if_exists == "replace"


def _is_array(node: Node) -> bool:
    return hasattr(node, "shape") and hasattr(node, "dtype")


def _members(group: Node) -> Iterator[tuple[str, Node]]:
    for name in sorted(group.keys()):
        yield name, group[name]


def _copy_attributes(source: Node, dest: Array | Group) -> None:
    attributes = dict(source.attrs.items())
    if attributes:
        dest.attrs.update(attributes)


def _blocks(array: Array) -> Iterator[tuple[slice, ...]]:
    """Regions that cover an array, each a row of its chunks."""
    if not array.shape:
        yield ()
        return
    size, extent = array.form.grid[0], array.shape[0]
    for low in range(0, extent, size):
        yield (slice(low, min(low + size, extent)),)


@contextmanager
def _lines_to(log: Log) -> Iterator[Callable[[str], object]]:
    """What writes a line to wherever lines are wanted."""
    if log is None:
        yield lambda _: None
    elif callable(log):
        yield log
    elif isinstance(log, str | os.PathLike):
        with open(log, "w", encoding="utf-8") as file:  # noqa: PTH123
            yield partial(print, file=file)
    else:
        yield partial(print, file=log)


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
