"""Arrays and groups copied into a group, by zarr-python's names: `copy` and `copy_all`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TextIO, TypeAlias

from tensorstore_py.errors import AlreadyExistsError
from tensorstore_py.zarr.creation import like
from tensorstore_py.zarr.zarr_array import Array
from tensorstore_py.zarr.zarr_group import Group

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Copied", "copy", "copy_all"]

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
    with _Teller(log) as tell:
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
    with _Teller(log) as tell:
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


def _silent(line: str) -> None:
    """Tells nobody."""


class _Teller:
    """Writes lines to wherever they are wanted."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._file: TextIO | None = None

    def __enter__(self) -> Callable[[str], object]:
        log = self._log
        if log is None:
            return _silent
        if callable(log):
            return log
        if isinstance(log, str | os.PathLike):
            self._file = log = open(log, "w", encoding="utf-8")  # noqa: PTH123
        target = log
        return lambda line: print(line, file=target)

    def __exit__(self, *error: object) -> None:
        if self._file is not None:
            self._file.close()
