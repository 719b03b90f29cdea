"""What changed keys mean in the hierarchies of arrays that they are part of.

A key is that of a document of a node, of a chunk of the array that it is below, or of neither.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple

from tensorstore_py._chunked.format import ArrayFormat
from tensorstore_py._hierarchy.formats import formats
from tensorstore_py._hierarchy.node import Hierarchy, read_node
from tensorstore_py._interface.driver import DriverSpec
from tensorstore_py._interface.hierarchy import NodeKind
from tensorstore_py._interface.kvstore import KvStore
from tensorstore_py._runtime.fan_out import within
from tensorstore_py.errors import MismatchError, TensorStoreError
from tensorstore_py.plugin.kvstore import fan_out

__all__ = ["ArrayChange", "ArrayChanges"]

What = Literal["added", "removed", "changed"]

_CHUNKS: Final = 100
_DIRECTORIES: Final = 100_000
#: How many paths are looked at, at a time.
_TOGETHER: Final = 64
_CELL: Final = re.compile(r"(?:c[./])?(\d+(?:[./]\d+)*)", re.ASCII)


class ArrayChange(NamedTuple):
    """What changed of an array or a group.

    Attributes:
        path: of the node, from where the comparison begins.
        kind: `"array"` or `"group"`.
        what: the node was `"added"`, `"removed"` or `"changed"`.
        metadata: whether a document of it did.
        added: how many chunks are new.
        removed: how many are gone.
        changed: how many have another value.
        chunks: the names of the first ones, as in their keys.
        cells: the positions in the grid that they name.

    Example:
        >>> print(
        ...     ArrayChange("a", "array", "changed", False, 1, 0, 1, ("c/0", "c/1"), ((0,), (1,)))
        ... )
        changed array /a: 1 chunk added, 1 changed: c/0, c/1
    """

    path: str
    kind: Literal["array", "group"]
    what: What
    metadata: bool
    added: int
    removed: int
    changed: int
    chunks: tuple[str, ...]
    cells: tuple[tuple[int, ...], ...]

    def to_json(self) -> dict[str, object]:
        """As JSON."""
        return {**self._asdict(), "cells": [list(cell) for cell in self.cells]}

    def __str__(self) -> str:
        parts = ["metadata"] if self.metadata and self.what == "changed" else []
        counts = [("added", self.added), ("removed", self.removed), ("changed", self.changed)]
        told = [(word, count) for word, count in counts if count]
        for number, (word, count) in enumerate(told):
            noun = f" chunk{'s' * (count != 1)}" if not number else ""
            parts.append(f"{count:,}{noun} {word}")
        names = ""
        if self.chunks:
            shown = ", ".join(self.chunks[:8])
            names = f": {shown}" + ", …" * (sum(count for _, count in told) > 8)
        detail = f": {', '.join(parts)}{names}" if parts else ""
        return f"{self.what} {self.kind} /{self.path}{detail}"


class _Gathered:
    """What is known of one node so far."""

    def __init__(self) -> None:
        self.metadata = False
        self.counts: dict[What, int] = {"added": 0, "removed": 0, "changed": 0}
        self.chunks: list[str] = []


class ArrayChanges:
    """Gathers changes by node.

    Args:
        one: the store of the first side.
        other: of the second one.
        prefixes: what the keys of each begin with.
        inline: the execution mode of the caller; inline, if both stores are.

    Attributes:
        others: how many keys were added that are of no array or group.
    """

    def __init__(
        self, one: KvStore, other: KvStore, prefixes: tuple[str, str], *, inline: bool
    ) -> None:
        self._inline = inline
        forms = formats()
        self._sides = [
            [Hierarchy(store, prefix, form) for form in forms]
            for store, prefix in zip((one, other), prefixes, strict=True)
        ]
        self._documents = {
            key
            for form in forms
            for key in (*form.node_keys, form.attributes_key, form.consolidated_key)
            if key is not None
        }
        # Formats whose groups are not known here: the document of an array says that it is one.
        self._lone = {
            key: cls
            for cls in DriverSpec.detectable()
            for key in cls.detected_by
            if key not in self._documents
        }
        self._documents |= {*self._lone}
        # What is at a path, on each side; empty: nothing on either.
        self._kinds: dict[str, tuple[NodeKind | None, ...]] = {}
        self._found: dict[str, _Gathered] = {}
        self.others = 0

    async def add(self, key: str, what: What) -> None:
        """A key changed; it begins where the comparison does."""
        directory, _, name = key.rpartition("/")
        if name in self._documents:
            self._found.setdefault(directory, _Gathered()).metadata = True
            return
        owner = await self._owner(directory)
        if owner is None:
            self.others += 1
            return
        found = self._found.setdefault(owner, _Gathered())
        found.counts[what] += 1
        if len(found.chunks) < _CHUNKS:
            found.chunks.append(key[len(owner) + bool(owner) :])

    async def look_up(self, keys: Sequence[str]) -> None:
        """Find out what is at the directories of some keys, and above, for all at a time."""
        if len(self._kinds) >= _DIRECTORIES:
            self._kinds.clear()
        split = [key.rpartition("/") for key in keys]
        asked = {directory for directory, _, name in split if name not in self._documents}
        while asked:
            await self._find_kinds(asked)
            asked = {each.rpartition("/")[0] for each in asked if each and not self._kinds[each]}

    async def _find_kinds(self, paths: Iterable[str]) -> None:
        unknown = sorted({each for each in paths if each not in self._kinds})
        found: dict[tuple[str, int], NodeKind | None] = {}

        async def find(asked: tuple[str, int]) -> None:
            path, side = asked
            there = self._sides[side][0].store.inline
            found[asked] = await within(self._inline, there, lambda: self._kind(side, path))

        steps = [(path, side) for path in unknown for side in (0, 1)]
        await fan_out(self._inline, steps, find, count=len(steps), width=_TOGETHER)
        for path in unknown:
            kinds = (found[path, 0], found[path, 1])
            self._kinds[path] = kinds if any(kinds) else ()

    async def _owner(self, directory: str) -> str | None:
        """The array that a key of a directory is a chunk of; None if there is none."""
        while True:
            await self._find_kinds([directory])
            kinds = self._kinds[directory]
            if "array" in kinds:
                return directory
            if kinds or not directory:
                return None
            directory = directory.rpartition("/")[0]

    async def _kind(self, side: int, path: str) -> NodeKind | None:
        """What is at a path of a side; None: nothing."""
        for tree in self._sides[side]:
            node = await read_node(tree, path)
            if node is not None:
                return node.kind
        tree = self._sides[side][0]
        for key, cls in self._lone.items():
            result = await tree.store.read(tree.below(path) + key)
            if result.state == "value":
                return _kind_of(cls, bytes(result.value))
        return None

    async def result(self) -> tuple[ArrayChange, ...]:
        """What changed, by path."""
        found: list[ArrayChange] = []
        self._kinds.clear()
        await self._find_kinds(self._found)
        for path, gathered in sorted(self._found.items()):
            if not self._kinds[path]:
                continue
            before, after = self._kinds[path]
            kind = after or before
            assert kind is not None
            what: What = "changed"
            if before is None or after is None:
                what = "added" if before is None else "removed"
            counts = gathered.counts
            cells = [
                tuple(int(part) for part in re.split(r"[./]", match[1]))
                for name in gathered.chunks
                if (match := _CELL.fullmatch(name))
            ]
            found.append(
                ArrayChange(
                    path,
                    kind,
                    what,
                    gathered.metadata,
                    counts["added"],
                    counts["removed"],
                    counts["changed"],
                    tuple(gathered.chunks),
                    tuple(cells),
                )
            )
        return tuple(found)


def _kind_of(cls: type[DriverSpec], document: bytes) -> NodeKind:
    """What has a document that arrays of a format have: also an array whose document is damaged."""
    if issubclass(cls, ArrayFormat):
        try:
            cls.metadata_type.read(document)
        except MismatchError:
            return "group"
        except TensorStoreError:
            pass
    return "array"
