"""Copying keys from one place to another, encoded as they are.

Pages of a listing are copied one after the other, so what is in memory is a page of names, and
values of a bounded size. Documents that make a directory an array, a group or a database come
last, so that no reader takes a part for the whole. The invariants: a value that is at the target is
replaced only if that was asked for; the source is only read.

A store that refers to values of the source, or copies them itself, is left to do so. Where one
change costs as much as many (archives, databases), those of a batch are made together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from tensorstore_py._api.keys import copy_key
from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._interface.key_range import KeyRange, encode_key
from tensorstore_py._interface.kvstore import ListEntry
from tensorstore_py._interface.overlay import write_group
from tensorstore_py._interface.store_abilities import ReferenceCopy
from tensorstore_py._runtime.execution import start
from tensorstore_py._runtime.fan_out import fan_out, within
from tensorstore_py._runtime.future import OnInterrupt
from tensorstore_py._runtime.limiters import MemoryBudget
from tensorstore_py.cli.keys import entries_in, is_document
from tensorstore_py.errors import AbortedError, DataLossError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from tensorstore_py._interface import kvstore as promise
    from tensorstore_py._runtime.progress import Reporter
    from tensorstore_py.cli.keys import Keys

__all__ = ["Copied", "KeyCopy", "delete_keys", "delete_span"]

#: Bytes of values that are on their way; a larger value goes alone.
_IN_FLIGHT: Final = 2**28
#: What is counted of a value whose size the store does not say.
_ABOUT: Final = 2**24


class Copied(NamedTuple):
    """What was copied.

    Attributes:
        keys: how many.
        size: bytes of their values, as far as the store says.
        skipped: how many keys were left as they were, as they are at the target.
        other_size: how many of these have values of another size there.
    """

    keys: int = 0
    size: int = 0
    skipped: int = 0
    other_size: int = 0


class KeyCopy:
    """One copy.

    Args:
        source: what is copied.
        target: its path is the key, or what all keys of the tree are to begin with.
        skip: leave keys that are there as they are.
        verify: read each value back, and compare it.
        reporter: is told of each key that is copied.

    Attributes:
        done: what is copied so far.
    """

    def __init__(
        self, source: Keys, target: KvStore, reporter: Reporter, *, skip: bool, verify: bool
    ) -> None:
        self._source = source
        self._target = target
        self._skip = skip
        self._verify = verify
        self._reporter = reporter
        self._from, self._to = source.store.store, target.store
        self._inline = self._from.inline and self._to.inline
        self._budget = MemoryBudget(_IN_FLIGHT)
        self.done = Copied()

    def run(self) -> None:
        """Copy all of it.

        Raises:
            UnsupportedError: the source cannot list, or the target is read-only.
            DataLossError: a value that was read back is another one.
            TensorStoreError: what a store says.
        """
        documents: list[ListEntry] = []
        for page in self._pages():
            wanted = self._wanted(page)
            documents += [each for each in wanted if is_document(each.key)]
            self._copy([each for each in wanted if not is_document(each.key)])
        documents.sort(key=lambda each: (-each.key.count("/"), each.key))
        self._copy(documents)

    def check(self) -> None:
        """Compare names and sizes of what is at the source now with those at the target.

        Raises AbortedError: something is not there, or of another size.
        """
        for page in self._pages():
            there = self._there(page)
            for entry in page:
                size = there.get(self._renamed(entry.key))
                if size is None:
                    raise AbortedError(f'"{entry.key}" is not at the target')
                if size != entry.size and size >= 0 and entry.size >= 0:
                    raise AbortedError(
                        f'"{entry.key}" has {entry.size} bytes, and {size} at the target'
                    )

    def surplus(self) -> Iterator[list[str]]:
        """Whole keys of the target that the source has not, page by page."""
        for page in self._target_pages():
            names = [each.key[len(self._target.path) :] for each in page]
            here = {
                each.key[len(self._source.store.path) :]
                for found in entries_in(self._source.store, _span(self._source.store.path, names))
                for each in found
            }
            if found := [self._target.path + name for name in names if name not in here]:
                yield found

    def retract(self) -> None:
        """Delete the documents of the target, so that no reader takes a mixture for an array."""
        for page in self._target_pages():
            if documents := [each.key for each in page if is_document(each.key)]:
                delete_keys(self._to, documents)

    def _pages(self) -> Iterator[list[ListEntry]]:
        if not self._source.tree and not self._from.listable:
            yield [ListEntry(self._source.store.path)]
            return
        for page in self._source.pages():
            # Empty keys that end in "/" are what consoles of services show as directories.
            if kept := [each for each in page if each.size or not each.key.endswith("/")]:
                yield kept

    def _target_pages(self) -> Iterator[list[ListEntry]]:
        return entries_in(self._target, KeyRange.prefix(self._target.path))

    def _renamed(self, key: str) -> str:
        return self._target.path + key[len(self._source.store.path) :]

    def _there(self, page: list[ListEntry]) -> dict[str, int]:
        """The keys of a page that are at the target, by whole key there, with their sizes."""
        names = {self._renamed(each.key) for each in page}
        prefix = self._target.path
        span = _span(prefix, [name[len(prefix) :] for name in names])
        return {
            each.key: each.size
            for found in entries_in(self._target, span)
            for each in found
            if each.key in names
        }

    def _wanted(self, page: list[ListEntry]) -> list[ListEntry]:
        if not self._skip:
            return page
        there = self._there(page)
        sizes = {each.key: there.get(self._renamed(each.key)) for each in page}
        skipped = [each for each in page if sizes[each.key] is not None]
        other = sum(sizes[each.key] != each.size for each in skipped)
        done = self.done
        self.done = done._replace(
            skipped=done.skipped + len(skipped), other_size=done.other_size + other
        )
        self._report(skipped)
        return [each for each in page if sizes[each.key] is None]

    def _report(self, entries: list[ListEntry]) -> None:
        self._reporter.advance(sum(max(0, each.size) for each in entries), len(entries))

    def _copy(self, entries: list[ListEntry]) -> None:
        for batch in _batches(entries) if write_group(self._to) is not None else [entries]:
            if batch:
                self._run(partial(self._copy_batch, batch))
            if batch and self._verify:
                self._run(partial(self._each, batch, self._compare))

    def _run(self, body: Callable[[], Coroutine[object, object, None]]) -> None:
        start(self._inline, body, on_interrupt=OnInterrupt.CANCEL).result()

    async def _copy_batch(self, batch: list[ListEntry]) -> None:
        if await self._refer(batch):
            self._count(batch)
            return
        group = write_group(self._to)
        sink = self._to if group is None else group

        async def copy(entry: ListEntry) -> None:
            await copy_key(self._from, entry.key, sink, self._renamed(entry.key))
            if group is None:
                self._count([entry])

        await self._each(batch, copy)
        if group is not None:
            await within(self._inline, group.inline, group.commit)
            self._count(batch)

    async def _refer(self, batch: list[ListEntry]) -> bool:
        """Have the target refer to what is stored, if it can."""
        base = self._to
        if not isinstance(base, ReferenceCopy):
            return False
        names = {each.key for each in batch}
        span = _span("", names)
        found = await within(
            self._inline, base.inline, lambda: base.values_of(self._from, span, None)
        )
        if found is None:
            return False
        values = {self._renamed(key): value for key, value in found.items() if key in names}
        await within(self._inline, base.inline, lambda: base.write_batch(values, {}))
        return True

    async def _each(
        self,
        batch: list[ListEntry],
        work: Callable[[ListEntry], Coroutine[object, object, None]],
    ) -> None:
        async def bounded(entry: ListEntry) -> None:
            size = _weight(entry)
            await self._budget.acquire(self._inline, size)
            try:
                await work(entry)
            finally:
                self._budget.release(size)

        width = None if self._inline else max(self._from.width, self._to.width)
        await fan_out(self._inline, batch, bounded, count=len(batch), width=width)

    def _count(self, entries: list[ListEntry]) -> None:
        self._report(entries)
        size = sum(max(0, each.size) for each in entries)
        self.done = self.done._replace(
            keys=self.done.keys + len(entries), size=self.done.size + size
        )

    async def _compare(self, entry: ListEntry) -> None:
        copied = self._renamed(entry.key)
        one = await within(self._inline, self._from.inline, lambda: self._from.read(entry.key))
        other = await within(self._inline, self._to.inline, lambda: self._to.read(copied))
        if one.state != other.state or one.value != other.value:
            raise DataLossError(
                f"{self._to.describe_key(copied)} is not what was copied there; "
                "copy it again, and do not write to it meanwhile"
            )


def _weight(entry: ListEntry) -> int:
    return entry.size if entry.size >= 0 else _ABOUT


def _batches(entries: list[ListEntry]) -> Iterator[list[ListEntry]]:
    """As many together as memory should hold; a larger one is alone."""
    batch: list[ListEntry] = []
    size = 0
    for entry in entries:
        if batch and size + _weight(entry) > _IN_FLIGHT:
            yield batch
            batch, size = [], 0
        batch.append(entry)
        size += _weight(entry)
    yield batch


def _span(prefix: str, names: Iterable[str]) -> KeyRange:
    """The least range that has all of some keys."""
    keys = sorted(encode_key(prefix + name) for name in names)
    return KeyRange(keys[0], keys[-1] + b"\0")


def delete_keys(store: promise.KvStore, keys: list[str]) -> None:
    """Delete keys, several at a time."""
    group = write_group(store)
    sink = store if group is None else group

    async def delete(key: str) -> None:
        await sink.write(key, None)

    async def body() -> None:
        await fan_out(store.inline, keys, delete, count=len(keys), width=store.width)
        if group is not None:
            await group.commit()

    start(store.inline, body, on_interrupt=OnInterrupt.CANCEL).result()


def delete_span(store: promise.KvStore, keys: list[str]) -> None:
    """Delete all that is between the first and the last of some keys, which services do at once."""
    span = _span("", keys)
    start(store.inline, lambda: store.delete_range(span), on_interrupt=OnInterrupt.CANCEL).result()
