"""What differs between two versions, or two databases: found by going through both trees at once.

Where both have the same node in the same place, all below it is the same and is not read. So what
a comparison reads follows from what changed, not from how much there is. Nodes that are sure to be
needed are read ahead, many at a time, of both sides.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from itertools import islice
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._api.kvstore_spec import place as place_of
from tensorstore_py._compute.diff import diff as diff_arrays
from tensorstore_py._display.info import human_size
from tensorstore_py._interface.key_range import KeyRange, encode_key
from tensorstore_py._runtime.execution import start
from tensorstore_py._runtime.fan_out import within
from tensorstore_py._runtime.future import Future
from tensorstore_py._spec.context import Context
from tensorstore_py.errors import SpecError
from tensorstore_py.kvstores.ocdbt.btree import Leaf, Node, Value
from tensorstore_py.kvstores.ocdbt.references import Reference
from tensorstore_py.kvstores.ocdbt.spec import parse_version
from tensorstore_py.kvstores.ocdbt.versions import Version
from tensorstore_py.ocdbt.array_changes import ArrayChange, ArrayChanges
from tensorstore_py.ocdbt.place import FoundDatabase, found_database
from tensorstore_py.ocdbt.report import counted
from tensorstore_py.ocdbt.walk import Place, below, trunk
from tensorstore_py.plugin.kvstore import WHOLE, Buffer, fan_out

if TYPE_CHECKING:
    from tensorstore_py._compute.difference import Difference

__all__ = ["KeyChange", "VersionDiff", "diff"]

_SHOWN: Final = 20
#: How many pairs of values are compared at a time, and of how many bytes.
_PAIRS: Final = 64
_BYTES: Final = 16 << 20
#: How many nodes of each side are read at a time, and of how many bytes.
_NODES: Final = 32
_NODE_BYTES: Final = 16 << 20
#: How far ahead is looked for nodes that are needed.
_LOOKED: Final = 4096

What = Literal["added", "removed", "changed"]


class KeyChange(NamedTuple):
    """A key that is not the same on both sides.

    Attributes:
        key: from where the comparison begins.
        what: `"added"`, `"removed"` or `"changed"`.
        before: how many bytes its value has on the first side; None: there is none.
        after: on the second side.

    Example:
        >>> print(KeyChange(b"a", "changed", 1, 2000))
        changed a: 1 B, now 2.0 KiB
    """

    key: bytes
    what: What
    before: int | None
    after: int | None

    def to_json(self) -> dict[str, object]:
        """As JSON; the key as text."""
        return {**self._asdict(), "key": self.key.decode("utf-8", "backslashreplace")}

    def __str__(self) -> str:
        name = self.key.decode("utf-8", "backslashreplace")
        if self.before is not None and self.after is not None:
            return f"changed {name}: {human_size(self.before)}, now {human_size(self.after)}"
        return f"{self.what} {name}: {human_size((self.before or 0) + (self.after or 0))}"


class VersionDiff:
    """What differs between two versions or databases; true if anything does.

    Args:
        one: the first side.
        other: the second one.
        titles: how to name them.
        keys: the first keys that differ.
        counts: how many are added, removed and changed.
        arrays: which arrays and groups they belong to.
        others: how many keys belong to none.
        nodes: how many nodes were read.

    Attributes:
        keys: the first keys that differ, in order.
        added: how many keys only the second side has.
        removed: how many keys only the first side has.
        changed: how many have another value.
        arrays: which arrays and groups that concerns.
        others: how many of these keys are of no array or group.
        nodes: how many nodes were read.

    Example:
        >>> import tensorstore_py as ts
        >>> db = ts.KvStore.open("memory://|ocdbt:").result()
        >>> db["a"], db["b"] = b"1", b"2"
        >>> db["a"] = b"3"
        >>> found = ts.ocdbt.diff(ts.ocdbt.open(db, 3).result(), db).result()
        >>> print(found)
        memory://|ocdbt:@v3/ and memory://|ocdbt: differ: 0 keys added, 0 removed, 1 changed
          changed a: 1 B, now 1 B
    """

    def __init__(
        self,
        one: KvStore,
        other: KvStore,
        titles: tuple[str, str],
        keys: tuple[KeyChange, ...],
        counts: dict[What, int],
        arrays: tuple[ArrayChange, ...],
        others: int,
        nodes: int,
    ) -> None:
        self._one, self._other, self._titles = one, other, titles
        self.keys = keys
        self.added, self.removed = counts["added"], counts["removed"]
        self.changed = counts["changed"]
        self.arrays = arrays
        self.others = others
        self.nodes = nodes

    def elements(self, path: str, *, max_blocks: int = 100) -> Future[Difference]:
        """Compare the elements of an array that both sides have, as `ts.diff` does.

        Args:
            path: of the array, from where the comparison begins.
            max_blocks: of how many blocks to tell.

        Raises:
            NotFoundError: (by the Future) one side has no such array.

        Example:
            >>> import tensorstore_py as ts
            >>> db = ts.KvStore.open("memory://|ocdbt:").result()
            >>> spec = {"driver": "zarr3", "kvstore": db / "a/"}
            >>> array = ts.open(spec, create=True, dtype="int8", shape=[4]).result()
            >>> array[...] = 1
            >>> before = ts.ocdbt.open(db, next(iter(ts.ocdbt.versions(db))).generation).result()
            >>> array[2] = 7
            >>> found = ts.ocdbt.diff(before, db).result()
            >>> print(found.arrays[0])
            changed array /a: 1 chunk changed: c/0
            >>> print(found.elements("a").result())
            1 of 4 elements differs, in 1 block
             array /, [0:4]: 1 element in [2:3], first at (2,): 1 and 7; at most 6 apart
        """
        suffix = f"{path}/" if path else ""
        return diff_arrays(self._one / suffix, self._other / suffix, max_blocks=max_blocks)

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)

    def to_json(self) -> dict[str, object]:
        """As JSON."""
        return {
            "differs": bool(self),
            "one": self._titles[0],
            "other": self._titles[1],
            "added": self.added,
            "removed": self.removed,
            "changed": self.changed,
            "others": self.others,
            "nodes": self.nodes,
            "arrays": [each.to_json() for each in self.arrays],
            "keys": [each.to_json() for each in self.keys],
        }

    def __str__(self) -> str:
        one, other = self._titles
        if not self:
            return f"{one} and {other} are the same"
        added = f"{counted(self.added, 'key')} added"
        rest = f"{self.removed:,} removed, {self.changed:,} changed"
        lines = [f"{one} and {other} differ: {added}, {rest}"]
        lines += [f"  {each}" for each in self.arrays[:_SHOWN]]
        if len(self.arrays) > _SHOWN:
            lines.append(f"  and {len(self.arrays) - _SHOWN:,} more arrays and groups")
        if not self.arrays:
            lines += [f"  {each}" for each in self.keys[:_SHOWN]]
            total = self.added + self.removed + self.changed
            if total > min(_SHOWN, len(self.keys)):
                lines.append(f"  and {total - min(_SHOWN, len(self.keys)):,} more keys")
        elif self.others:
            lines.append(f"  {counted(self.others, 'key')} of no array or group")
        return "\n".join(lines)

    __repr__ = __str__


class _Entry(NamedTuple):
    """A key of a leaf, as a whole."""

    key: bytes
    value: Value


class _Side:
    """A tree that is gone through: what comes next is a subtree, or a key."""

    def __init__(
        self, found: FoundDatabase, version: Version, prefix: str, *, inline: bool
    ) -> None:
        self.database = found.database
        self._inline = inline  # the mode of the comparison; inline, if both sides are
        self._ahead: dict[Reference, Node] = {}
        self.first = encode_key(prefix)
        self._end = KeyRange.prefix(prefix).exclusive_max if prefix else b""
        root = trunk(version)
        self._waiting: list[Place | _Entry] = [] if root is None else [root]
        self.nodes = 0

    @property
    def head(self) -> Place | _Entry | None:
        """What comes next."""
        return self._waiting[-1] if self._waiting else None

    def skip(self) -> None:
        """Go on behind it."""
        self._waiting.pop()

    def begins(self, head: Place | _Entry) -> bytes:
        """The first key that it may have, from where the comparison begins."""
        return max(_key_of(head), self.first)[len(self.first) :]

    def needed(self, other: _Side) -> list[Reference]:
        """The next nodes that are sure to be entered: the other side does not have them, too.

        The other side may have a node that is lower than one of its own, somewhere in that. So of
        those within such a one nothing is sure.
        """
        theirs = _coming(other) if self.first == other.first else []
        known = [each for each in theirs if isinstance(each, Place)]
        same = {(each.branch.reference, each.branch.prefix) for each in known}
        last = _key_of(theirs[-1]) if len(theirs) == _LOOKED else None
        room = _NODES - len(self._ahead)
        found: list[Reference] = []
        size = sum(reference.length for reference in self._ahead)
        around = -1  # which of theirs a place may be in
        for place in _coming(self):
            if not isinstance(place, Place):
                continue
            key, reference = place.branch.key, place.branch.reference
            while around + 1 < len(known) and known[around + 1].branch.key <= key:
                around += 1
            if around >= 0 and _may_hold(known[around], place):
                break
            if (last is not None and key > last) or len(found) >= room:
                break
            if (reference, place.branch.prefix) in same or reference in self._ahead:
                continue
            size += reference.length
            if found and size > _NODE_BYTES:
                break
            found.append(reference)
        return found

    async def read_ahead(self, references: Sequence[Reference]) -> None:
        """Read nodes that are entered soon."""
        database, inline = self.database, self.database.inline
        wanted = list(dict.fromkeys(references))
        nodes = await within(self._inline, inline, lambda: database.nodes(wanted))
        self._ahead.update(zip(wanted, nodes, strict=True))

    def has(self, place: Place) -> bool:
        """Whether a node was read ahead."""
        return place.branch.reference in self._ahead

    async def bytes_of(self, values: Sequence[Value]) -> list[Buffer]:
        """Values."""
        database, inline = self.database, self.database.inline
        wanted = [(value, WHOLE) for value in values]
        return await within(self._inline, inline, lambda: database.bytes_of_several(wanted))

    def enter(self, place: Place) -> None:
        """What is in the next subtree, which was read ahead, comes next."""
        self._waiting.pop()
        node = self._ahead.pop(place.branch.reference)
        self.nodes += 1
        first, end = self.first, self._end
        if isinstance(node, Leaf):
            prefix = place.branch.prefix
            entries = [
                _Entry(prefix + key, value)
                for key, value in zip(node.keys, node.values, strict=True)
            ]
            inside = [each for each in entries if each.key >= first and (not end or each.key < end)]
            self._waiting += reversed(inside)
        else:
            self._waiting += [
                each
                for each in reversed(below(place, node))
                if (not each.end or each.end > first) and (not end or each.branch.key < end)
            ]


class _Pair(NamedTuple):
    """A key that is not known to be the same on both sides."""

    key: bytes
    before: Value | None
    after: Value | None

    @property
    def may_be_equal(self) -> bool:
        one, other = self.before, self.after
        if one is None or other is None or (isinstance(one, bytes) and isinstance(other, bytes)):
            return False
        return _size(one) == _size(other)


def _coming(side: _Side) -> list[Place | _Entry]:
    """What comes next, as much as is looked at."""
    return list(islice(reversed(side._waiting), _LOOKED))


def _key_of(head: Place | _Entry) -> bytes:
    return head.branch.key if isinstance(head, Place) else head.key


def _may_hold(theirs: Place, place: Place) -> bool:
    """Whether a subtree that does not begin behind a place may have that very place in it."""
    inside = not theirs.end or place.branch.key < theirs.end
    return theirs.height > place.height and inside


def _size(value: Value | None) -> int | None:
    if value is None:
        return None
    return value.length if isinstance(value, Reference) else len(value)


async def _pairs(one: _Side, other: _Side, *, inline: bool) -> AsyncGenerator[_Pair, None]:
    """The keys of which the two trees do not have the very same value, in order."""
    while True:
        here, there = one.head, other.head
        if here is None and there is None:
            return
        if one.first == other.first and _same(here, there):
            one.skip()
            other.skip()
            continue
        entered = _next_entered(one, other)
        if not entered:
            pair = _next_pair(one, other)
            if pair.before != pair.after:
                yield pair
            continue
        if not all(side.has(place) for side, place in entered):
            await _read_ahead(one, other, inline=inline)
        for side, place in entered:
            if not side.has(place):
                await side.read_ahead([place.branch.reference])
            side.enter(place)


def _next_entered(one: _Side, other: _Side) -> list[tuple[_Side, Place]]:
    """Which of the subtrees that come next are entered; none, if a key comes next."""
    here, there = one.head, other.head
    begin = None if here is None else one.begins(here)
    begin_there = None if there is None else other.begins(there)
    found = []
    # A higher one first: what is in it may be the other one.
    for side, head, key, another, its in (
        (one, here, begin, there, begin_there),
        (other, there, begin_there, here, begin),
    ):
        if not isinstance(head, Place) or key is None:
            continue
        holds = key == its and isinstance(another, Place) and another.height > head.height
        if (its is None or key <= its) and not holds:
            found.append((side, head))
    return found


async def _read_ahead(one: _Side, other: _Side, *, inline: bool) -> None:
    """Read what is needed next of both sides."""

    async def read(pair: tuple[_Side, _Side]) -> None:
        side, across = pair
        wanted = side.needed(across)
        if wanted:
            await side.read_ahead(wanted)

    await fan_out(inline, [(one, other), (other, one)], read, count=2)


def _same(here: object, there: object) -> bool:
    """Whether both are the same node in the same place."""
    return (
        isinstance(here, Place)
        and isinstance(there, Place)
        and here.branch.reference == there.branch.reference
        and here.branch.prefix == there.branch.prefix
    )


def _next_pair(one: _Side, other: _Side) -> _Pair:
    """What comes next of two sides; one of them begins with a key, and not behind the other."""
    here, there = one.head, other.head
    key = one.begins(here) if here is not None else None
    key_there = other.begins(there) if there is not None else None
    before = after = None
    if isinstance(here, _Entry) and (key_there is None or (key is not None and key <= key_there)):
        before = here.value
        one.skip()
    if isinstance(there, _Entry) and (key is None or (key_there is not None and key_there <= key)):
        after = there.value
        other.skip()
    found = key if before is not None else key_there
    assert found is not None
    return _Pair(found, before, after)


class _Comparison:
    """One comparison."""

    def __init__(
        self,
        sides: tuple[tuple[FoundDatabase, KvStore], tuple[FoundDatabase, KvStore]],
        *,
        values: bool,
        max_keys: int,
        inline: bool,
    ) -> None:
        self._sides = sides
        self._values = values
        self._max_keys = max_keys
        self._inline = inline
        self._keys: list[KeyChange] = []
        self._counts: dict[What, int] = {"added": 0, "removed": 0, "changed": 0}

    async def run(self) -> VersionDiff:
        (first, face), (second, other_face) = self._sides
        inline = self._inline
        versions = [
            await within(inline, each.database.inline, each.version) for each, _ in self._sides
        ]
        one = _Side(first, versions[0], face.path, inline=inline)
        other = _Side(second, versions[1], other_face.path, inline=inline)
        # Of the versions that are compared, whatever is committed meanwhile.
        stores = [
            side.at(version.generation).store
            for (side, _), version in zip(self._sides, versions, strict=True)
        ]
        arrays = ArrayChanges(
            stores[0], stores[1], (face.path, other_face.path), inline=self._inline
        )
        waiting: list[_Pair] = []
        size = 0
        async with aclosing(_pairs(one, other, inline=inline)) as pairs:
            async for pair in pairs:
                waiting.append(pair)
                size += 2 * (_size(pair.before) or 0) if pair.may_be_equal else 0
                if len(waiting) >= _PAIRS or size >= _BYTES:
                    await self._tell(one, other, waiting, arrays)
                    waiting, size = [], 0
        await self._tell(one, other, waiting, arrays)
        return VersionDiff(
            face,
            other_face,
            (place_of(face.model), place_of(other_face.model)),
            tuple(self._keys),
            self._counts,
            await arrays.result(),
            arrays.others,
            one.nodes + other.nodes,
        )

    async def _tell(
        self, one: _Side, other: _Side, pairs: list[_Pair], arrays: ArrayChanges
    ) -> None:
        equal = await self._equal(one, other, pairs) if self._values else set()
        unequal = [pair for pair in pairs if pair.key not in equal]
        await arrays.look_up([_text(pair.key) for pair in unequal])
        for pair in unequal:
            what: What = "changed"
            if pair.before is None or pair.after is None:
                what = "added" if pair.before is None else "removed"
            self._counts[what] += 1
            if len(self._keys) < self._max_keys:
                sizes = _size(pair.before), _size(pair.after)
                self._keys.append(KeyChange(pair.key, what, *sizes))
            await arrays.add(_text(pair.key), what)

    async def _equal(self, one: _Side, other: _Side, pairs: list[_Pair]) -> set[bytes]:
        """The keys that have the same value on both sides, stored in two places."""
        asked = [pair for pair in pairs if pair.may_be_equal]
        if not asked:
            return set()
        found: dict[_Side, list[Buffer]] = {}

        async def read(wanted: tuple[_Side, list[Value]]) -> None:
            side, values = wanted
            found[side] = await side.bytes_of(values)

        before = [pair.before for pair in asked if pair.before is not None]
        after = [pair.after for pair in asked if pair.after is not None]
        await fan_out(self._inline, [(one, before), (other, after)], read, count=2)
        values = zip(asked, found[one], found[other], strict=True)
        return {pair.key for pair, left, right in values if bytes(left) == bytes(right)}


def _text(key: bytes) -> str:
    return key.decode("utf-8", "surrogateescape")


def diff(
    one: object,
    other: object,
    *,
    values: bool = True,
    max_keys: int = 10_000,
    context: Context | None = None,
) -> Future[VersionDiff]:
    """What differs between two versions of a database, or between two databases.

    Subtrees that both have are not read. What the keys mean is told as well: which arrays and
    groups changed, in their metadata or in which chunks; `VersionDiff.elements` compares elements.

    Args:
        one: the first side, as for `versions`, with its version and a path that keys begin with; a
            generation, a name or a time means that version of the other side's database.
        other: the second side, likewise.
        values: values that were stored anew are read and compared, and are no difference if they
            are equal; False: a value that is somewhere else is another one.
        max_keys: of how many keys to tell; all are counted.
        context: shared resources; a fresh default `Context` if not given.

    Returns:
        A Future of a `VersionDiff`, which is true if anything differs.

    Raises:
        SpecError: (at once) a place is wrong.
        NotFoundError: (by the Future) there is no such database or version.
        DataLossError: (by the Future) a node that is needed is damaged; names the file.

    Example:
        >>> import tensorstore_py as ts
        >>> db = ts.KvStore.open("memory://|ocdbt:").result()
        >>> db["a"] = b"1"
        >>> db["b"] = b"2"
        >>> found = ts.ocdbt.diff(2, db).result()
        >>> bool(found), found.added, found.keys[0].key
        (True, 1, b'b')
    """
    if max_keys < 0:
        raise SpecError(f"expected 0 or more, not {max_keys!r}", ("max_keys",))
    if _is_version(one) and _is_version(other):
        raise SpecError("two versions, but of which database? Give a store for one of them")
    shared = Context() if context is None else context
    found = [None if _is_version(each) else found_database(each, shared) for each in (one, other)]
    known = found[0] or found[1]
    assert known is not None
    sides = []
    for each, given in zip(found, (one, other), strict=True):
        side = each or known._replace(model=known.model.replace(version=parse_version(given)))
        sides.append((side, side.at(None)))
    inline = all(side.database.inline for side, _ in sides)
    comparison = _Comparison((sides[0], sides[1]), values=values, max_keys=max_keys, inline=inline)
    return start(inline, comparison.run)


def _is_version(given: object) -> bool:
    if isinstance(given, int):
        return True
    return isinstance(given, str) and "://" not in given and given.lstrip()[:1] != "{"
