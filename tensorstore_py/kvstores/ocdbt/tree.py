"""A tree of keys: looked up and listed.

A tree is a snapshot: its nodes are immutable.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from tensorstore_py.errors import DataLossError
from tensorstore_py.kvstores.ocdbt.btree import (
    LONGEST_KEY,
    Interior,
    Leaf,
    Node,
    Statistics,
    Value,
)
from tensorstore_py.kvstores.ocdbt.columns import KeyColumn
from tensorstore_py.kvstores.ocdbt.references import MISSING, Reference
from tensorstore_py.plugin.kvstore import fan_out

__all__ = ["EMPTY", "Branch", "Stretch", "Tree", "TreeReader", "trunk"]

#: How many nodes are loaded at a time, and held until it is their turn.
_TOGETHER: Final = 16


Load = Callable[[Reference], Coroutine[Any, Any, Node]]
T = TypeVar("T")


class Tree(NamedTuple):
    """A snapshot of all keys.

    Attributes:
        root: its node; `MISSING` if there are no keys.
        height: of the root.
        statistics: of all of it.
    """

    root: Reference
    height: int
    statistics: Statistics


EMPTY: Final = Tree(MISSING, 0, Statistics(0, 0, 0))


class Branch(NamedTuple):
    """A subtree, with its whole key.

    Attributes:
        key: the first that may be in it.
        shared: how many first bytes of it all keys have in common.
        reference: where its node is.
        statistics: of all of it.
    """

    key: bytes
    shared: int
    reference: Reference
    statistics: Statistics

    @property
    def prefix(self) -> bytes:
        """What the keys of its node are relative to."""
        return self.key[: self.shared]


class Stretch(NamedTuple):
    """Neighbouring keys of a leaf.

    Attributes:
        prefix: what its keys are relative to.
        leaf: the node.
        low: the place of the first.
        high: the place after the last.
    """

    prefix: bytes
    leaf: Leaf
    low: int
    high: int

    def values(self) -> Sequence[Value]:
        """One of each."""
        return self.leaf.values[self.low : self.high]

    def keys(self, low: int, high: int, skipped: int) -> list[bytes]:
        """Whole keys from one place to before another, without so many first bytes."""
        keys, prefix = self.leaf.keys, self.prefix[skipped:]
        left_out = max(0, skipped - len(self.prefix))
        if isinstance(keys, KeyColumn):
            found = keys.cut(low, high, left_out)
        else:
            found = [key[left_out:] for key in keys[low:high]]
        return [prefix + key for key in found] if prefix else found


class _Part(NamedTuple):
    """A subtree, and keys that are looked for in it."""

    branch: Branch
    keys: list[bytes]


class TreeReader:
    """Looks keys up.

    Args:
        load: gives a node.
        inline: its execution mode, for several at a time; None: one after the other.
    """

    def __init__(self, load: Load, *, inline: bool | None = None) -> None:
        self._load = load
        self._inline = inline

    async def node(self, branch: Branch, height: int, end: bytes = b"") -> Node:
        """The node of a subtree whose keys are before `end`; empty: nothing is known of that.

        Raises:
            DataLossError: it is not of that height, or not about these keys.
        """
        node = await self._load(branch.reference)
        wrong = None
        if node.height != height:
            wrong = f"has the height {node.height}, its parent says {height}"
        elif branch.shared > LONGEST_KEY:
            wrong = f"is about keys of more than {LONGEST_KEY} bytes"
        elif branch.key and branch.prefix + node.keys[0] < branch.key:
            wrong = "begins before its parent says"
        elif end and branch.prefix + node.keys[-1] >= end:
            wrong = "ends behind the beginning of the next one"
        if wrong is not None:
            raise DataLossError(f"{branch.reference}: a B+tree node {wrong}")
        return node

    def branches(self, branch: Branch, node: Interior) -> list[Branch]:
        """The children of a node, with their whole keys."""
        prefix = branch.prefix
        return [
            Branch(prefix + key, len(prefix) + child.shared, child.reference, child.statistics)
            for key, child in zip(node.keys, node.children, strict=True)
        ]

    async def find(self, tree: Tree, key: bytes) -> Value | None:
        """The value of a key, or None."""
        if tree.root is MISSING:
            return None
        branch, height = trunk(tree), tree.height
        while True:
            node = await self.node(branch, height)
            prefix = branch.prefix
            if not key.startswith(prefix):
                return None
            relative = key[len(prefix) :]
            if isinstance(node, Leaf):
                return node.find(relative)
            place = node.find(relative)
            if place < 0:
                return None
            child = node.children[place]
            branch = Branch(
                prefix + node.keys[place],
                len(prefix) + child.shared,
                child.reference,
                child.statistics,
            )
            height -= 1

    async def find_several(self, tree: Tree, keys: Sequence[bytes]) -> dict[bytes, Value]:
        """The values of those keys that there are; each node is loaded once."""
        found: dict[bytes, Value] = {}
        if tree.root is not MISSING:
            await self._find_in([_Part(trunk(tree), list(keys))], tree.height, found)
        return found

    async def _find_in(
        self, parts: Sequence[_Part], height: int, found: dict[bytes, Value]
    ) -> None:
        """Look keys up in subtrees of one height."""
        below: list[_Part] = []

        async def look(part: _Part) -> None:
            branch, node = part.branch, await self.node(part.branch, height)
            skipped = len(branch.prefix)
            keys = [key for key in part.keys if key.startswith(branch.prefix)]
            if isinstance(node, Leaf):
                for key in keys:
                    value = node.find(key[skipped:])
                    if value is not None:
                        found[key] = value
                return
            by_child: dict[int, list[bytes]] = {}
            for key in keys:
                by_child.setdefault(node.find(key[skipped:]), []).append(key)
            children = self.branches(branch, node) if by_child else []
            below.extend(
                _Part(children[place], inside) for place, inside in by_child.items() if place >= 0
            )

        await self._each(parts, look)
        if below:
            await self._find_in(below, height - 1, found)

    async def leaves(
        self, tree: Tree, first: bytes = b"", end: bytes = b""
    ) -> AsyncIterator[Stretch]:
        """Leaves with keys from `first` to before `end` (empty: no end), ascending.

        Raises:
            DataLossError: a node is damaged or gone, or there are more keys than the tree says.
        """
        if tree.root is MISSING:
            return
        left = tree.statistics.keys
        async for stretch in self._leaves([(trunk(tree), b"")], tree.height, first, end):
            # The same node may be reached on any number of ways: few bytes have no end of keys.
            left -= len(stretch.leaf.keys)
            if left < 0:
                raise DataLossError(
                    f"{tree.root}: there are more keys than the {tree.statistics.keys} that "
                    "the tree is said to have"
                )
            if stretch.low < stretch.high:
                yield stretch

    async def _leaves(
        self, bounded: Sequence[tuple[Branch, bytes]], height: int, first: bytes, end: bytes
    ) -> AsyncIterator[Stretch]:
        """The leaves of subtrees, each of which is given with the end of its keys."""
        for begin in range(0, len(bounded), _TOGETHER):
            group = bounded[begin : begin + _TOGETHER]
            nodes: dict[int, Node] = {}

            async def load(
                numbered: tuple[int, tuple[Branch, bytes]], nodes: dict[int, Node] = nodes
            ) -> None:
                number, (branch, stop) = numbered
                nodes[number] = await self.node(branch, height, stop)

            await self._each(list(enumerate(group)), load)
            for number, (branch, bound) in enumerate(group):
                node = nodes.pop(number)
                if isinstance(node, Leaf):
                    low, high = _bounds(node.keys, branch.prefix, first, end)
                    yield Stretch(branch.prefix, node, low, high)
                    continue
                found = self.branches(branch, node)
                ends = [*(each.key for each in found[1:]), bound]
                wanted = [
                    (each, stop)
                    for each, stop in zip(found, ends, strict=True)
                    if (not end or each.key < end) and (not stop or stop > first)
                ]
                async for stretch in self._leaves(wanted, height - 1, first, end):
                    yield stretch

    async def _each(
        self, steps: Sequence[T], work: Callable[[T], Coroutine[Any, Any, None]]
    ) -> None:
        if self._inline is None or len(steps) == 1:
            for step in steps:
                await work(step)
        else:
            await fan_out(self._inline, steps, work, count=len(steps), width=_TOGETHER)


def _bounds(keys: Sequence[bytes], prefix: bytes, first: bytes, end: bytes) -> tuple[int, int]:
    """Places of the keys from `first` to before `end`, of keys that `prefix` stands before."""
    if first.startswith(prefix):
        low = bisect_left(keys, first[len(prefix) :])
    else:
        low = 0 if first <= prefix else len(keys)
    if not end:
        high = len(keys)
    elif end.startswith(prefix):
        high = bisect_left(keys, end[len(prefix) :])
    else:
        high = len(keys) if end > prefix else 0
    return low, high


def trunk(tree: Tree) -> Branch:
    """All of a tree, which has keys."""
    return Branch(b"", 0, tree.root, tree.statistics)
