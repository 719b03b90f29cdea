"""Changes of a tree of keys: new nodes beside the old ones, from leaves up to the root.

Nodes are immutable. What one change makes of neighbouring nodes is divided anew, so that nodes
neither grow above the size that the database allows nor stay behind nearly empty. The keys that
change tell which nodes are needed; so these are loaded ahead, level by level, many at a time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from tensorstore_py.kvstores.ocdbt.btree import (
    Child,
    Interior,
    Leaf,
    Node,
    Statistics,
    Value,
    references_in,
)
from tensorstore_py.kvstores.ocdbt.references import MISSING, Reference, common_length
from tensorstore_py.kvstores.ocdbt.tree import EMPTY, Branch, Tree, TreeReader, trunk

__all__ = ["Edits", "TreeWriter"]

#: What an entry takes in a node beside its key and value, at most, in bytes: lengths, places.
_LEAF_ENTRY: Final = 24
_INTERIOR_ENTRY: Final = 64
#: What its path takes in the table of data files.
_PATH: Final = 64
_NODE: Final = 64
_MOST_ENTRIES: Final = 1 << 20
#: How much of a level is loaded ahead, as stored, in bytes; one node in any case.
_AHEAD: Final = 2 << 20

LoadSeveral = Callable[[Sequence[Reference]], Coroutine[Any, Any, list[Node]]]
T = TypeVar("T")


class _Entries(NamedTuple):
    """What a node has, or several one after the other.

    Attributes:
        keys: whole ones, ascending.
        contents: of each: a value, or a subtree (`Branch`).
    """

    keys: list[bytes]
    contents: list[Any]

    def cut(self, begin: int, end: int) -> _Entries:
        """Those from one place to before another."""
        return _Entries(self.keys[begin:end], self.contents[begin:end])

    def add(self, following: _Entries) -> None:
        """Put others behind."""
        self.keys.extend(following.keys)
        self.contents.extend(following.contents)

    @classmethod
    def of(cls, branches: Sequence[Branch]) -> _Entries:
        """Entries of a node above these."""
        return cls([branch.key for branch in branches], list(branches))


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
        stop = bisect_left(self.keys, end, begin) if end else len(self.keys)
        removed = self.removed and [
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

    def applied(self, items: _Entries) -> _Entries:
        """Keys and values after the change, ascending."""
        keys, values = items.keys, list(items.contents)
        for low, high in self.removed:
            begin = bisect_left(keys, low)
            end = bisect_left(keys, high) if high else len(keys)
            keys, values = keys[:begin] + keys[end:], values[:begin] + values[end:]
        found = _Entries([], [])
        begin = place = done = 0
        count = len(keys)
        for key, value in zip(self.keys, self.values, strict=True):
            place = bisect_left(keys, key, place)
            if place == count:
                break  # as all that follow
            done += 1
            there = keys[place] == key
            if there and value is not None:
                values[place] = value
            elif there or value is not None:
                if place > begin:
                    found.add(_Entries(keys[begin:place], values[begin:place]))
                begin = place + there
                if not there:
                    found.keys.append(key)
                    found.contents.append(value)
        found.add(_Entries(keys[begin:], values[begin:]))
        rest = self.values[done:]
        if None in rest:
            following = [
                (key, value)
                for key, value in zip(self.keys[done:], rest, strict=True)
                if value is not None
            ]
            found.keys.extend([key for key, _ in following])
            found.contents.extend([value for _, value in following])
        else:
            found.add(_Entries(self.keys[done:], rest))
        return found


class _Touched(NamedTuple):
    """A subtree that changes, or may change.

    Attributes:
        branch: which.
        edits: what changes in it; nothing, maybe.
        low: its keys are not before.
        high: its keys are before; empty: there is no end.
    """

    branch: Branch
    edits: Edits
    low: bytes
    high: bytes

    @property
    def vanishes(self) -> bool:
        """Whether nothing is left of it."""
        return self.edits.removes_all(self.low, self.high)


class Compute(Protocol):
    """Runs a function that computes something of so many entries, where such work is to be done."""

    def __call__(self, entries: int, function: Callable[[], T]) -> Coroutine[Any, Any, T]:
        """What the function returns."""


class TreeWriter(TreeReader):
    """Changes trees.

    Args:
        load: gives nodes.
        add: stores a node with its keys, and says where.
        most: what a node may have at most before it is compressed, in bytes.
        compute: for what is more than looking up.
    """

    def __init__(
        self, load: LoadSeveral, add: Callable[[Node], Reference], most: int, compute: Compute
    ) -> None:
        self._load_several = load
        self._add = add
        self._most = max(1, most)
        self._compute = compute
        self._ahead: dict[Reference, Node] = {}
        super().__init__(self._take)

    async def _take(self, reference: Reference) -> Node:
        """A node; from now on it is not held any more."""
        node = self._ahead.pop(reference, None)
        return (await self._load_several([reference]))[0] if node is None else node

    async def changed(self, tree: Tree, edits: Edits) -> Tree:
        """The tree after a change; the same one if nothing changes."""
        if tree.root is MISSING:
            entries = _Entries([], [])
            return await self._compute(
                len(edits.keys), lambda: self._planted(0, edits.applied(entries))
            )
        found = await self._contents(_Touched(trunk(tree), edits, b"", b""), tree.height)
        if found is None:
            return tree
        height = tree.height
        while height and len(found.keys) == 1:
            # A root with one child is no use.
            branch = found.contents[0]
            height -= 1
            node = await self.node(branch, height)
            found = self._entries(branch, node)
        entries = found
        return await self._compute(len(entries.keys), lambda: self._planted(height, entries))

    def _entries(self, branch: Branch, node: Node) -> _Entries:
        if isinstance(node, Interior):
            return _Entries.of(self.branches(branch, node))
        prefix = branch.prefix
        keys = [prefix + key for key in node.keys] if prefix else list(node.keys)
        return _Entries(keys, list(node.values))

    def _below(self, touched: _Touched, node: Interior) -> list[_Touched]:
        """The children of a node, and what changes in each."""
        children = self.branches(touched.branch, node)
        bounds = [touched.low, *(child.key for child in children[1:]), touched.high]
        return [
            _Touched(child, touched.edits.part(low, high), low, high)
            for child, low, high in zip(children, bounds, bounds[1:], strict=False)
        ]

    async def _go_ahead(self, several: Sequence[_Touched], height: int) -> None:
        """Load what changes of subtrees of one height, level by level: as much as may be held."""
        level = several
        while True:
            level = _within_bounds([each for each in level if each.edits and not each.vanishes])
            if not level:
                return
            references = [each.branch.reference for each in level]
            nodes = await self._load_several(references)
            self._ahead.update(zip(references, nodes, strict=True))
            if not height:
                return
            height -= 1
            level = [
                below
                for each, node in zip(level, nodes, strict=True)
                if isinstance(node, Interior)
                for below in self._below(each, node)
            ]

    async def _contents(self, touched: _Touched, height: int) -> _Entries | None:
        """What a node is going to have: items of a leaf, else branches; None if nothing changes."""
        branch, edits = touched.branch, touched.edits
        node = await self.node(branch, height, touched.high)
        if isinstance(node, Leaf):
            leaf = node
            return await self._compute(
                len(leaf.keys) + len(edits.keys), lambda: self._edited(branch, leaf, edits)
            )
        found: list[Branch] = []
        fresh = _Entries([], [])
        changed = False
        children = self._below(touched, node)
        for number, child in enumerate(children):
            if child.vanishes:
                changed = True
                continue
            contents = None
            if child.edits:
                if child.branch.reference not in self._ahead:
                    await self._go_ahead(children[number:], height - 1)
                contents = await self._contents(child, height - 1)
            if contents is None:
                found += await self._divided(height - 1, fresh)
                fresh = _Entries([], [])
                found.append(child.branch)
            else:
                changed = True
                fresh.add(contents)
        found += await self._divided(height - 1, fresh)
        return _Entries.of(found) if changed else None

    def _edited(self, branch: Branch, leaf: Leaf, edits: Edits) -> _Entries | None:
        items = self._entries(branch, leaf)
        after = edits.applied(items)
        # Even what is set to what it is makes a version: who set it may look for that.
        new = any(value is not None for value in edits.values)
        return after if new or after != items else None

    def _planted(self, height: int, entries: _Entries) -> Tree:
        """A tree of these entries, whose nodes are to have this height."""
        if not entries.keys:
            return EMPTY
        while True:
            parts = list(_parts(entries, height, self._most))
            if len(parts) == 1:
                root = self._grown(height, entries, 0)
                return Tree(root.reference, height, root.statistics)
            entries = _Entries.of([self._grown(height, part, None) for part in parts])
            height += 1

    async def _divided(self, height: int, entries: _Entries) -> list[Branch]:
        if not entries.keys:
            return []
        parts = _parts(entries, height, self._most)
        return await self._compute(
            len(entries.keys), lambda: [self._grown(height, part, None) for part in parts]
        )

    def _grown(self, height: int, entries: _Entries, shared: int | None) -> Branch:
        """A new node; `shared` is how many bytes are left out, as many as can be by default."""
        keys, contents = entries
        first, last = keys[0], keys[-1]
        if shared is None:
            shared = common_length(first, last)
            if height:
                shared = min(shared, *(branch.shared for branch in contents))
        if shared:
            keys = [key[shared:] for key in keys]
        node: Node
        if height:
            children = [
                Child(branch.shared - shared, branch.reference, branch.statistics)
                for branch in contents
            ]
            node = Interior(height, keys, children)
            below = Statistics.total([child.statistics for child in children])
        else:
            node = Leaf(keys, contents)
            indirect = sum(value.length for value in references_in(contents))
            below = Statistics(len(keys), 0, indirect)
        reference = self._add(node)
        return Branch(
            first, shared, reference, below._replace(tree_bytes=below.tree_bytes + reference.length)
        )


def _within_bounds(level: Sequence[_Touched]) -> list[_Touched]:
    """The first nodes of a level, as many as are loaded ahead."""
    found: list[_Touched] = []
    size = 0
    for each in level:
        size += each.branch.reference.length
        if found and size > _AHEAD:
            break
        found.append(each)
    return found


def _parts(entries: _Entries, height: int, most: int) -> Iterator[_Entries]:
    """Entries of one node after the other, about alike in size."""
    sizes = _sizes(entries, height)
    count = len(sizes)
    fewest = 2 if height else 1
    total = sum(sizes)
    if 0 < count <= _MOST_ENTRIES and total + _NODE <= most:
        yield entries
        return
    begin = 0
    while begin < count:
        nodes = max(-(-(total + _NODE) // most), -(-(count - begin) // _MOST_ENTRIES))
        target = total / nodes
        end, size = begin, 0
        while end < count:
            following = size + sizes[end]
            if end - begin >= fewest and (following + _NODE > most or size >= target):
                break
            size = following
            end += 1
        if 0 < count - end < fewest:
            end = count
            size = sum(sizes[begin:end])
        yield entries.cut(begin, end)
        total -= size
        begin = end


def _sizes(entries: _Entries, height: int) -> list[int]:
    """What items, or branches, take in a node."""
    keys, contents = entries
    if height:
        return [len(key) + _INTERIOR_ENTRY + _PATH for key in keys]
    if Reference in set(map(type, contents)):
        values = [_PATH if isinstance(value, Reference) else len(value) for value in contents]
    else:
        values = list(map(len, contents))
    return [key + value + _LEAF_ENTRY for key, value in zip(map(len, keys), values, strict=True)]
