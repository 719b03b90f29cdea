"""Arrays in the hands of many: whatever they do in turn, it is as if it were one NumPy array.

Several handles of several contexts, with cache pools and without, with every bound on staleness,
write, read, resize and append, and have transactions open at the same time. Time is simulated.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

import tensorstore_py as ts
from tensorstore_py._chunked import driver as driver_module
from tensorstore_py._chunked import pool as pool_module
from tensorstore_py._interface import generation as generation_module
from tensorstore_py.errors import AbortedError
from tensorstore_py.kvstores.memory import MemoryStore, NonAtomicMemoryStore, SharedMap
from tensorstore_py.testing import LoopStore
from tests.chunked.stores import opened, pool
from tests.state.model import Contents, History, Staged

MOST = (12, 6)
POOLS = [0, 10**6, 700]  # none, one for everything, one for a few chunks


class Clock:
    """Stands for the module `time`."""

    def __init__(self):
        self.now = 1000.0

    def time(self):
        return self.now


@dataclass
class Handle:
    store: ts.TensorStore
    context: int
    since: float  # what was current then may be read


@dataclass
class Open:
    transaction: ts.Transaction
    staged: Staged


regions = st.tuples(st.integers(0, 11), st.integers(1, 12), st.integers(0, 5), st.integers(1, 6))
extents = st.tuples(st.integers(1, MOST[0]), st.integers(1, MOST[1]))
picks = st.integers(0, 7)


class Machine(RuleBasedStateMachine):
    driver: str
    inline: bool

    def __init__(self):
        super().__init__()
        self.clock = Clock()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(pool_module, "time", self.clock)
        self.patch.setattr(driver_module, "time", self.clock)
        self.patch.setattr(generation_module, "_time", self.clock)
        self.counter = 0
        self.handles = []
        self.open = []
        self.size_number = 0  # how often the array was resized
        self.stored = {}  # how often a chunk was stored, or may have been
        self.contexts = [pool(size) for size in POOLS]
        self.knows_size = [0] * len(POOLS)
        self.own = [np.zeros(MOST, int) for _ in POOLS]  # the versions of a context's own writes

    def teardown(self):
        for each in self.open:
            each.transaction.abort()
        self.patch.undo()

    @initialize(
        shape=extents, chunk=st.tuples(st.integers(1, 5), st.integers(1, 4)), atomic=st.booleans()
    )
    def create(self, shape, chunk, atomic):
        memory = (MemoryStore if atomic else NonAtomicMemoryStore)(SharedMap())
        self.kvstore = memory if self.inline else LoopStore(memory)
        inner = [1 if size % 2 else size // 2 for size in chunk]
        layout = ts.ChunkLayout(write_chunk_shape=chunk)
        if self.driver == "zarr3":
            layout = ts.ChunkLayout(write_chunk_shape=chunk, read_chunk_shape=inner)
        opened(
            self.kvstore,
            driver=self.driver,
            create=True,
            dtype="int16",
            shape=shape,
            chunk_layout=layout,
        )
        self.history = History(Contents.empty(shape, chunk, MOST))
        self.another_handle(0, True, True)
        self.another_handle(1, True, True)

    @rule(
        context=st.integers(0, len(POOLS) - 1),
        data=st.sampled_from([True, True, False, "open", 2, 5]),
        metadata=st.sampled_from([True, "open"]),
    )
    def another_handle(self, context, data, metadata):
        self.tick()
        bound = data
        if data is not True and isinstance(data, int) and data > 1:
            bound = self.clock.now - data
        store = opened(
            self.kvstore,
            driver=self.driver,
            context=self.contexts[context],
            members={"recheck_cached_data": bound, "recheck_cached_metadata": metadata},
        )
        since = {True: float("inf"), False: float("-inf"), "open": self.clock.now}
        self.handles.append(Handle(store, context, since.get(bound, bound)))
        del self.handles[:-8]

    # What everybody sees at once.

    @rule(pick=picks, region=regions)
    def write(self, pick, region):
        handle = self.pick(pick)
        region = self.region(region, self.now.shape)
        values = self.new_values(region)
        handle.store[region].write(values).result()
        self.now.write(region, values, self.now.shape)
        self.changed(self.now.cells(region))
        self.own[handle.context][region] = self.history.number

    @rule(pick=picks, region=regions)
    def clear(self, pick, region):
        handle = self.pick(pick)
        region = self.region(region, self.now.shape)
        handle.store[region].write(0).result()
        self.now.write(region, 0, self.now.shape)
        self.changed(self.now.cells(region))
        self.own[handle.context][region] = self.history.number

    @rule(writes=st.lists(st.tuples(picks, regions), min_size=2, max_size=5))
    def write_at_the_same_time(self, writes):
        futures, taken, cells = [], np.zeros(MOST, bool), set()
        owners = []
        for pick, region in writes:
            handle = self.pick(pick)
            region = self.region(region, self.now.shape)
            if taken[region].any():
                continue
            taken[region] = True
            values = self.new_values(region)
            futures.append(handle.store[region].write(values))
            self.now.write(region, values, self.now.shape)
            cells |= self.now.cells(region)
            owners.append((handle.context, region))
        for future in futures:
            future.result()
        self.changed(cells)
        for context, region in owners:
            self.own[context][region] = self.history.number

    @rule(pick=picks, region=regions)
    def read(self, pick, region):
        handle = self.pick(pick)
        region = self.region(region, self.now.shape)
        found = handle.store[region].read().result()
        if handle.since == float("inf") or handle.context == 0:
            least = self.history.number
        else:
            least = np.maximum(self.history.at(handle.since), self.own[handle.context][region])
        self.history.check(region, found, least)

    @rule(pick=picks, shape=extents)
    def resize(self, pick, shape):
        handle = self.pick(pick)
        self.resized(handle, handle.store.resize(exclusive_max=shape).result(), shape)

    @rule(pick=picks, by=st.integers(1, 4))
    def append(self, pick, by):
        old = self.now.shape
        assume(old[0] + by <= MOST[0])
        handle = self.pick(pick)
        region = (slice(old[0], old[0] + by), slice(0, old[1]))
        values = self.new_values(region)
        grown = handle.store.append(values).result()
        self.resized(handle, grown, (old[0] + by, old[1]))
        self.now.write(region, values, self.now.shape)
        self.changed(self.now.cells(region))
        self.own[handle.context][region] = self.history.number

    def resized(self, handle, store, shape):
        assert store.shape == shape
        if shape == self.now.shape:
            return
        self.size_number += 1
        self.knows_size[handle.context] = self.size_number
        self.now.resize(shape)
        whole = (slice(0, MOST[0]), slice(0, MOST[1]))
        self.changed(self.now.cells(whole))

    # What is seen by everybody at the end.

    @precondition(lambda self: len(self.open) < 3)
    @rule(repeatable=st.booleans())
    def begin(self, repeatable):
        self.tick()
        transaction = ts.Transaction(repeatable_read=repeatable)
        self.open.append(Open(transaction, Staged(repeatable)))

    @precondition(lambda self: self.open)
    @rule(which=picks, pick=picks, region=regions)
    def stage(self, which, pick, region):
        mine, handle = self.within(which, pick)
        if mine is None:
            return
        shape = mine.staged.shape or self.now.shape
        region = self.region(region, shape)
        values = self.new_values(region)
        handle.store[region].write(values).result()
        mine.staged.steps.append(("write", region, values, shape))
        mine.staged.touched |= self.now.cells(region)
        mine.staged.owners.append((handle.context, region))

    @precondition(lambda self: self.open)
    @rule(which=picks, pick=picks, region=regions)
    def read_within(self, which, pick, region):
        mine, handle = self.within(which, pick)
        if mine is None:
            return
        staged = mine.staged
        region = self.region(region, staged.shape or self.now.shape)
        cells = self.now.cells(region)
        changed = any(
            self.stored.get(cell, 0) != staged.seen.get(cell, self.stored.get(cell, 0))
            for cell in cells
        )
        try:
            found = handle.store[region].read().result()
        except AbortedError:
            assert staged.repeatable
            assert changed
            self.give_up(mine)
            return
        if staged.repeatable:
            for cell in cells:
                staged.seen.setdefault(cell, self.stored.get(cell, 0))
        seen = staged.over(self.now, self.history.number)
        certain = seen.certain[region]
        np.testing.assert_array_equal(found[certain], seen.values[region][certain])

    @precondition(lambda self: self.open)
    @rule(which=picks, pick=picks, shape=extents)
    def resize_within(self, which, pick, shape):
        mine, handle = self.within(which, pick)
        if mine is None:
            return
        staged = mine.staged
        before = staged.shape or self.now.shape
        assert handle.store.resize(exclusive_max=shape).result().shape == shape
        if shape != before:
            if staged.metadata is None:
                staged.metadata = self.size_number
            staged.shape = shape
            staged.steps.append(("resize", shape, self.history.number))
            staged.owners.append((handle.context, None))

    @precondition(lambda self: self.open)
    @rule(which=picks)
    def commit(self, which):
        self.tick()
        mine = self.open.pop(which % len(self.open))
        staged = mine.staged
        resized_since = staged.metadata not in (None, self.size_number)
        stored_since = any(self.stored.get(cell, 0) != count for cell, count in staged.seen.items())
        try:
            mine.transaction.commit_sync()
        except AbortedError:
            assert resized_since or stored_since
            return
        assert not resized_since
        self.committed(staged)

    def committed(self, staged):
        if not staged.steps:
            return
        self.history.now = staged.over(self.now, self.history.number)
        cells = set(staged.touched)
        if staged.shape is not None:
            self.size_number += 1
            cells = self.now.cells((slice(0, MOST[0]), slice(0, MOST[1])))
        self.changed(cells)
        for context, region in staged.owners:
            if region is None:
                self.knows_size[context] = self.size_number
            else:
                self.own[context][region] = self.history.number

    @precondition(lambda self: self.open)
    @rule(which=picks)
    def abort(self, which):
        self.tick()
        self.open.pop(which % len(self.open)).transaction.abort()

    # How.

    @property
    def now(self):
        return self.history.now

    def tick(self):
        self.clock.now += 1

    def changed(self, cells):
        self.history.add(self.clock.now)
        for cell in cells:
            self.stored[cell] = self.stored.get(cell, 0) + 1

    def pick(self, pick):
        self.tick()
        handle = self.handles[pick % len(self.handles)]
        if self.knows_size[handle.context] != self.size_number:
            handle.store.resolve().result()  # as a caller does that knows of the change
            self.knows_size[handle.context] = self.size_number
        return handle

    def within(self, which, pick):
        """A transaction, and a handle within; None if what it rests on has changed."""
        mine = self.open[which % len(self.open)]
        handle = self.pick(pick)
        staged = mine.staged
        if staged.repeatable:
            if staged.metadata is None:
                staged.metadata = self.size_number
            if staged.metadata != self.size_number:
                self.give_up(mine)
                return None, None
        store = handle.store.with_transaction(mine.transaction)
        if staged.shape is None:
            store = store.resolve().result()
        return mine, Handle(store, handle.context, float("inf"))

    def give_up(self, mine):
        self.open.remove(mine)
        with pytest.raises(AbortedError):
            mine.transaction.commit_sync()

    def region(self, numbers, shape):
        region = []
        for (start, size), extent in zip((numbers[:2], numbers[2:]), shape, strict=True):
            low = start % extent
            region.append(slice(low, min(extent, low + size)))
        return tuple(region)

    def new_values(self, region):
        shape = [each.stop - each.start for each in region]
        self.counter += 1
        return (np.arange(np.prod(shape)).reshape(shape) + 100 * self.counter).astype("int16")


CASES = settings(
    max_examples=max(10, settings().max_examples // 2),
    stateful_step_count=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


def machine(driver, inline):
    kind: Any = type("Machine", (Machine,), {"driver": driver, "inline": inline})
    kind.TestCase.settings = CASES
    return kind.TestCase


TestZarrInline = machine("zarr", True)
TestZarrLoop = machine("zarr", False)
TestShardsInline = machine("zarr3", True)
TestShardsLoop = machine("zarr3", False)
