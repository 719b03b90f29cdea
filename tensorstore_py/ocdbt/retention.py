"""Which versions stay, and the tree of versions made of them.

The format has a rule that decides with us: a node of the tree of versions that is not the last one
of its kind ends with the last generation of its group (of 16, of 256, …). So for a version that is
kept, the last one of its group is kept as well.

Specification: "Version tree node format" of https://google.github.io/tensorstore/kvstore/ocdbt/
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from tensorstore_py.kvstores.ocdbt.manifest import Config, Manifest
from tensorstore_py.kvstores.ocdbt.references import Reference
from tensorstore_py.kvstores.ocdbt.versions import Version, VersionNode, VersionSubtree

__all__ = ["Retention", "manifest_of", "with_last_of_groups"]


class Retention(NamedTuple):
    """Which versions are wanted; all of them if nothing is said.

    Attributes:
        last: so many of the latest ones; None for no such rule.
        since_ns: those that were committed then or later, in ns since 1970; None likewise.
    """

    last: int | None = None
    since_ns: int | None = None

    def kept(self, versions: Sequence[Version], named: Iterable[int]) -> set[int]:
        """The generations that are wanted, of versions in their order; the latest one always is."""
        if self.last is None and self.since_ns is None:
            return {version.generation for version in versions}
        kept = {versions[-1].generation, *named}
        if self.last:
            kept |= {version.generation for version in versions[-self.last :]}
        if self.since_ns is not None:
            kept |= {each.generation for each in versions if each.time_ns >= self.since_ns}
        return kept


def with_last_of_groups(kept: set[int], latest: int, arity_log2: int) -> set[int]:
    """The generations that are kept, with those that the format asks for.

    Example:
        >>> sorted(with_last_of_groups({3, 98, 100}, 100, 4))
        [3, 16, 98, 100]
        >>> sorted(with_last_of_groups({3, 1000}, 1000, 4))
        [3, 16, 256, 1000]
        >>> sorted(with_last_of_groups({12, 18}, 18, 2))
        [12, 16, 18]
    """
    found = set(kept)
    for generation in kept:
        bits = arity_log2
        while (end := ((generation - 1 >> bits) + 1) << bits) <= latest:
            found.add(end)
            bits += arity_log2
    return found


def _ends(latest: int, arity_log2: int) -> list[int]:
    """The last generation that may be in the last node of each height, from 0 on."""
    ends = []
    height = 0
    while latest:
        ends.append(latest)
        bits = arity_log2 * (height + 1)
        latest = (latest - 1) >> bits << bits
        height += 1
    return ends


def _group(generation: int, arity_log2: int, height: int) -> int:
    return (generation - 1) >> arity_log2 * (height + 1)


class _Growing:
    """A tree of versions, built from its oldest version on."""

    def __init__(self, arity_log2: int, add: Callable[[VersionNode], Reference]) -> None:
        self._arity_log2 = arity_log2
        self._add = add
        self._versions: list[Version] = []
        self._subtrees: dict[int, list[VersionSubtree]] = {}

    def put(self, version: Version) -> None:
        older = self._versions
        if older and not self._alike(older[-1].generation, version.generation, 0):
            self._close()
        self._versions.append(version)

    def _alike(self, one: int, other: int, height: int) -> bool:
        arity = self._arity_log2
        return _group(one, arity, height) == _group(other, arity, height)

    def _close(self) -> None:
        versions, self._versions = self._versions, []
        node = VersionNode(self._arity_log2, 0, versions, [])
        first, last = versions[0], versions[-1]
        self._hang(
            VersionSubtree(last.generation, first.time_ns, len(versions), 0, self._add(node))
        )

    def _hang(self, child: VersionSubtree) -> None:
        height = child.height + 1
        others = self._subtrees.setdefault(height, [])
        if others and not self._alike(others[-1].generation, child.generation, height):
            self._hang(self._node(height))
            others = self._subtrees[height] = []
        others.append(child)

    def _node(self, height: int) -> VersionSubtree:
        children = self._subtrees.pop(height)
        node = VersionNode(self._arity_log2, height, [], children)
        return VersionSubtree(
            children[-1].generation,
            children[0].time_ns,
            sum(child.versions for child in children),
            height,
            self._add(node),
        )

    def finish(self) -> tuple[list[Version], list[VersionSubtree]]:
        ends = _ends(self._versions[-1].generation, self._arity_log2)
        height = 1
        while any(each >= height for each in self._subtrees):
            children = self._subtrees.get(height)
            # What is before the group that the next versions are going to be in, is complete.
            if children and (
                height >= len(ends)
                or not self._alike(children[-1].generation, ends[height], height)
            ):
                self._hang(self._node(height))
            height += 1
        found = [self._node(height) for height in sorted(self._subtrees, reverse=True)]
        return self._versions, found


def manifest_of(
    config: Config, versions: Iterable[Version], add: Callable[[VersionNode], Reference]
) -> Manifest:
    """The manifest of a database that has these versions, and no other ones.

    Args:
        config: of the database.
        versions: in their order; see `with_last_of_groups`.
        add: stores a node of the tree of versions, and says where.
    """
    growing = _Growing(config.version_tree_arity_log2, add)
    for version in versions:
        growing.put(version)
    return Manifest(config, *growing.finish())
