"""A tree of keys: looked up, listed, and changed by making new nodes beside the old ones.

A tree is a snapshot: its nodes are immutable, and a change makes new ones from the leaves that are
concerned up to the root. What one change makes of neighbouring nodes is divided anew, so that nodes
neither grow above the size that the database allows nor stay behind nearly empty.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from tensorstore_py.errors import DataLossError
from tensorstore_py.kvstores.ocdbt.btree import (
    LONGEST_KEY,
    Child,
    Interior,
    Leaf,
    Node,
    Statistics,
    Value,
    references_in,
)
from tensorstore_py.kvstores.ocdbt.columns import KeyColumn
from tensorstore_py.kvstores.ocdbt.references import MISSING, Reference, common_length
from tensorstore_py.plugin.kvstore import fan_out

__all__ = ["EMPTY", "Edits", "Stretch", "Tree", "TreeReader", "TreeWriter"]

#: What an entry takes in a node beside its key and value, at most, in bytes: lengths, places.
_LEAF_ENTRY: Final = 24
_INTERIOR_ENTRY: Final = 64
#: What its path takes in the table of data files.
_PATH: Final = 64
_NODE: Final = 64
_MOST_ENTRIES: Final = 1 << 20
#: How many nodes are loaded at a time, and held until it is their turn.
_TOGETHER: Final = 16


Load = Callable[[Reference], Coroutine[Any, Any, Node]]
Item = tuple[bytes, Value]
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


class Edits(NamedTuple):
    """What changes: first ranges are removed, then keys set or removed.

    Attributes:
        removed: ranges, ascending and apart from each other; an empty end means no end.
        keys: ascending.
        values: of each key; None removes it.
    """

    removed: list[tuple[bytes, bytes]]
    keys: list[bytes]
    values: list[Value | None]

    def __bool__(self) -> bool:
        return bool(self.removed or self.keys)

    def part(self, first: bytes, end: bytes) -> Edits:
        """What is about keys from `first` to before `end`; an empty end means no end."""
        begin = bisect_left(self.keys, first)
        stop = bisect_left(self.keys, end) if end else len(self.keys)
        removed = [
            (low, high)
            for low, high in self.removed
            if (not high or high > first) and (not end or low < end)
        ]
        return Edits(removed, self.keys[begin:stop], self.values[begin:stop])

    def removes_all(self, first: bytes, end: bytes) -> bool:
        """Whether no key from `first` to before `end` stays, and none is new."""
        return not self.keys and any(
            low <= first and (not high or (end != b"" and end <= high))
            for low, high in self.removed
        )

    def applied(self, items: list[Item]) -> list[Item]:
        """Keys and values after the change, ascending."""
        for low, high in self.removed:
            # A key alone comes before the key with its value.
            begin = bisect_left(items, (low,))
            end = bisect_left(items, (high,)) if high else len(items)
            items = items[:begin] + items[end:]
        pairs = zip(self.keys, self.values, strict=True)
        if not items:
            return [(key, value) for key, value in pairs if value is not None]
        found: list[Item] = []
        begin, count = 0, len(items)
        for key, value in pairs:
            place = bisect_left(items, (key,), begin)
            found += items[begin:place]
            begin = place + 1 if place < count and items[place][0] == key else place
            if value is not None:
                found.append((key, value))
        return found + items[begin:]


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
        elif branch.prefix + node.keys[0] < branch.key:
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
        branch, height = _trunk(tree), tree.height
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
            await self._find_in([_Part(_trunk(tree), list(keys))], tree.height, found)
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
        async for stretch in self._leaves([(_trunk(tree), b"")], tree.height, first, end):
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

    async def items(self, tree: Tree, first: bytes = b"", end: bytes = b"") -> AsyncIterator[Item]:
        """Keys from `first` to before `end` (empty: no end) and their values, ascending."""
        async for prefix, leaf, low, high in self.leaves(tree, first, end):
            for key, value in zip(leaf.keys[low:high], leaf.values[low:high], strict=True):
                yield prefix + key, value

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


def _trunk(tree: Tree) -> Branch:
    return Branch(b"", 0, tree.root, tree.statistics)


class Compute(Protocol):
    """Runs a function that computes something of so many entries, where such work is to be done."""

    def __call__(self, entries: int, function: Callable[[], T]) -> Coroutine[Any, Any, T]:
        """What the function returns."""


class TreeWriter(TreeReader):
    """Changes trees.

    Args:
        load: gives a node.
        add: stores a node with its keys, and says where.
        most: what a node may have at most before it is compressed, in bytes.
        compute: for what is more than looking up.
    """

    def __init__(
        self, load: Load, add: Callable[[Node], Reference], most: int, compute: Compute
    ) -> None:
        super().__init__(load)
        self._add = add
        self._most = max(1, most)
        self._compute = compute

    async def changed(self, tree: Tree, edits: Edits) -> Tree:
        """The tree after a change; the same one if nothing changes."""
        if tree.root is MISSING:
            return await self._compute(len(edits.keys), lambda: self._planted(0, edits.applied([])))
        found = await self._contents(_trunk(tree), tree.height, edits, b"", b"")
        if found is None:
            return tree
        height = tree.height
        while height and len(found) == 1:
            # A root with one child is no use.
            branch = found[0]
            height -= 1
            node = await self.node(branch, height)
            found = self._entries(branch, node)
        entries = found
        return await self._compute(len(entries), lambda: self._planted(height, entries))

    def _entries(self, branch: Branch, node: Node) -> list[Any]:
        if isinstance(node, Interior):
            return self.branches(branch, node)
        prefix = branch.prefix
        if not prefix:
            return list(zip(node.keys, node.values, strict=True))
        return [(prefix + key, value) for key, value in zip(node.keys, node.values, strict=True)]

    async def _contents(
        self, branch: Branch, height: int, edits: Edits, first: bytes, end: bytes
    ) -> list[Any] | None:
        """What a node is going to have: items of a leaf, else branches; None if nothing changes."""
        node = await self.node(branch, height, end)
        if isinstance(node, Leaf):
            leaf = node
            return await self._compute(
                len(leaf.keys) + len(edits.keys), lambda: self._edited(branch, leaf, edits)
            )
        children = self.branches(branch, node)
        bounds = [first, *(child.key for child in children[1:]), end]
        found: list[Branch] = []
        fresh: list[Any] = []
        changed = False
        for child, low, high in zip(children, bounds, bounds[1:], strict=False):
            part = edits.part(low, high)
            if part.removes_all(low, high):
                changed = True
                continue
            contents = await self._contents(child, height - 1, part, low, high) if part else None
            if contents is None:
                found += await self._divided(height - 1, fresh)
                fresh = []
                found.append(child)
            else:
                changed = True
                fresh += contents
        found += await self._divided(height - 1, fresh)
        return found if changed else None

    def _edited(self, branch: Branch, leaf: Leaf, edits: Edits) -> list[Any] | None:
        items = self._entries(branch, leaf)
        after = edits.applied(items)
        # Even what is set to what it is makes a version: who set it may look for that.
        new = any(value is not None for value in edits.values)
        return after if new or after != items else None

    def _planted(self, height: int, entries: list[Any]) -> Tree:
        """A tree of these entries, whose nodes are to have this height."""
        if not entries:
            return EMPTY
        while True:
            parts = list(_parts(entries, height, self._most))
            if len(parts) == 1:
                root = self._grown(height, entries, 0)
                return Tree(root.reference, height, root.statistics)
            entries = [self._grown(height, part, None) for part in parts]
            height += 1

    async def _divided(self, height: int, entries: list[Any]) -> list[Branch]:
        if not entries:
            return []
        parts = _parts(entries, height, self._most)
        return await self._compute(
            len(entries), lambda: [self._grown(height, part, None) for part in parts]
        )

    def _grown(self, height: int, entries: list[Any], shared: int | None) -> Branch:
        """A new node; `shared` is how many bytes are left out, as many as can be by default."""
        first, last = entries[0][0], entries[-1][0]
        if shared is None:
            shared = common_length(first, last)
            if height:
                shared = min(shared, *(branch.shared for branch in entries))
        keys = [entry[0][shared:] for entry in entries]
        node: Node
        if height:
            children = [
                Child(branch.shared - shared, branch.reference, branch.statistics)
                for branch in entries
            ]
            node = Interior(height, keys, children)
            below = Statistics.total([child.statistics for child in children])
        else:
            values = [value for _, value in entries]
            node = Leaf(keys, values)
            indirect = sum(value.length for value in references_in(values))
            below = Statistics(len(keys), 0, indirect)
        reference = self._add(node)
        return Branch(
            first, shared, reference, below._replace(tree_bytes=below.tree_bytes + reference.length)
        )


def _parts(entries: Sequence[Any], height: int, most: int) -> Iterator[list[Any]]:
    """Entries of one node after the other, about alike in size."""
    sizes = _sizes(entries, height)
    fewest = 2 if height else 1
    total = sum(sizes)
    if 0 < len(entries) <= _MOST_ENTRIES and total + _NODE <= most:
        yield list(entries)
        return
    begin = 0
    while begin < len(entries):
        nodes = max(-(-(total + _NODE) // most), -(-(len(entries) - begin) // _MOST_ENTRIES))
        target = total / nodes
        end, size = begin, 0
        while end < len(entries):
            following = size + sizes[end]
            if end - begin >= fewest and (following + _NODE > most or size >= target):
                break
            size = following
            end += 1
        if 0 < len(entries) - end < fewest:
            end = len(entries)
            size = sum(sizes[begin:end])
        yield list(entries[begin:end])
        total -= size
        begin = end


def _sizes(entries: Sequence[Any], height: int) -> list[int]:
    """What items, or branches, take in a node."""
    if height:
        return [len(branch.key) + _INTERIOR_ENTRY + _PATH for branch in entries]
    return [
        len(key) + (_PATH if isinstance(value, Reference) else len(value)) + _LEAF_ENTRY
        for key, value in entries
    ]
