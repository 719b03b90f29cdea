"""Where a Dataset is written: whatever says so becomes a `ts.KvStore`, and maybe a format."""

from __future__ import annotations

import os
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from typing import Final

import tensorstore_py as ts

__all__ = ["Place", "as_place", "below", "parents"]

_FORMATS: Final[dict[object, int]] = {"zarr": 2, "zarr2": 2, "zarr3": 3}
#: Stores of which every change costs as much as the whole: their changes are made together.
_REWRITTEN: Final = "zip"


@dataclass(frozen=True)
class Place:
    """A place in a store.

    Attributes:
        kvstore: the directory of the outermost group, seen through the transaction if there is one.
        zarr_format: that was said with it; None: nothing was.
        context: what all arrays share.
        transaction: in which everything is written; None: there is none.
    """

    kvstore: ts.KvStore
    zarr_format: int | None
    context: ts.Context
    transaction: ts.Transaction | None

    @property
    def rewritten(self) -> bool:
        """Whether every change costs as much as the whole store."""
        return self.kvstore.spec().to_json().get("driver") == _REWRITTEN

    def within(self, transaction: ts.Transaction) -> Place:
        """The same place, seen through a transaction."""
        kvstore = self.kvstore.with_transaction(transaction)
        return Place(kvstore, self.zarr_format, self.context, transaction)

    def describe(self, path: str) -> str:
        """What to call a node in messages."""
        where = self.kvstore / path if path else self.kvstore
        try:
            return where.url
        except ts.UnsupportedError:
            return f'"/{path}"'


def as_place(
    target: object,
    *,
    zarr_format: int | None,
    context: ts.Context | None,
    transaction: ts.Transaction | None,
) -> Place:
    """The place that something says.

    Args:
        target: a local path, a URL, the JSON spec of a store or of an array's driver, a
            `ts.KvStore`, a group of `ts` or of `ts.zarr`, a store of `ts.zarr`, a dictionary of
            bytes, or whatever else `ts.KvStore.open` takes.
        zarr_format: 2, 3, or None for what the target says.
        context: shared resources.
        transaction: in which everything is written; by default the target's own.

    Raises:
        TypeError: it says no place.
        SpecError: something is wrong with a spec.
    """
    shared = ts.Context() if context is None else context
    said: int | None = None
    if isinstance(target, ts.zarr.Group):
        target = target.ts
    if isinstance(target, ts.Group):
        said, target = target.zarr_format, target.kvstore
    found = target if isinstance(target, ts.KvStore) else None
    if found is None:
        said, found = _opened(target, shared)
    if transaction is None:
        transaction = found.transaction
    elif found.transaction is not transaction:
        found = found.with_transaction(transaction)
    if found.path and not found.path.endswith("/"):
        found = found / "/"
    return Place(found, said if zarr_format is None else zarr_format, shared, transaction)


def _opened(target: object, context: ts.Context) -> tuple[int | None, ts.KvStore]:
    if _names_format(target):
        spec = ts.Spec(target)
        if spec.kvstore is None:
            raise TypeError(f"{target!r} names no store; it needs a kvstore")
        said = _FORMATS[spec.to_json()["driver"]]
        return said, ts.KvStore.open(spec.kvstore, context=context).result()
    if isinstance(target, ts.zarr.Store):
        return target.zarr_format, target.kvstore
    if isinstance(target, str | os.PathLike) and "://" not in str(target):
        whole = os.path.abspath(os.fspath(target))  # noqa: PTH100 - links stay as they are said
        if whole.endswith(".zip"):
            return None, ts.zarr.ZipStore(whole, context=context).kvstore
        return None, ts.zarr.LocalStore(whole, context=context).kvstore
    if isinstance(target, MutableMapping) and not isinstance(target.get("driver"), str):
        return None, ts.zarr.MemoryStore(target, context=context).kvstore
    return None, ts.KvStore.open(target, context=context).result()


def _names_format(target: object) -> bool:
    """Whether it is a spec, or a URL, that names the driver of an array and not only a store."""
    if isinstance(target, ts.Spec):
        return True
    if isinstance(target, str):
        return "://" in target and target.rpartition("|")[2].rstrip(":") in _FORMATS
    return isinstance(target, Mapping) and target.get("driver") in _FORMATS


def below(path: str, name: str) -> str:
    """The path of what has a name, or a path, in the node at a path.

    Example:
        >>> below("a", "b"), below("", "b"), below("a", "")
        ('a/b', 'b', 'a')
    """
    return f"{path}/{name}" if path and name else path or name


def parents(path: str) -> list[str]:
    """The paths of all nodes above one, the outermost first.

    Example:
        >>> parents("a/b/c"), parents("")
        (['', 'a', 'a/b'], [])
    """
    parts = path.split("/") if path else []
    return ["/".join(parts[:count]) for count in range(len(parts))]
