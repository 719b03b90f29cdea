"""Several transactions over one array, and over one store, at a time: against a model of each.

The reference implementation runs the same programs against the same models, so what both are held
to is one thing. What is under way may have happened or not; what is waited for has.
"""

from dataclasses import dataclass, field
from itertools import count, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorstore_py.kvstores.memory import MemoryStore, NonAtomicMemoryStore, SharedMap
from tensorstore_py.testing import LoopStore
from tests.chunked.stores import opened
from tests.parity.libraries import ours, wheel

SHAPE, CHUNK = (7, 5), (3, 2)
EVERYTHING = tuple(map(slice, (0, 0), SHAPE))
EVERYBODY = 0
WHO = st.integers(0, 3)


@dataclass
class Staged:
    """What a transaction of the model did."""

    transaction: object
    repeatable: bool
    values: np.ndarray
    mask: np.ndarray
    pending: list = field(default_factory=list)  # region, value, futures
    read: dict = field(default_factory=dict)  # what it saw of chunks that it had not touched
    touched: set = field(default_factory=set)
    changed: set = field(default_factory=set)  # chunks that others changed since it began

    def check(self, error):
        """Others changed what it rests on, and only a repeatable transaction rests on anything."""
        check_conflict(error, self.repeatable and self.changed & self.touched)


def chunks(region):
    axes = [
        range(each.start // size, -(-each.stop // size))
        for each, size in zip(region, CHUNK, strict=True)
    ]
    return set(product(*axes))


def cell(chunk):
    return tuple(slice(at * size, (at + 1) * size) for at, size in zip(chunk, CHUNK, strict=True))


def overlap(one, other):
    return all(a.start < b.stop and b.start < a.stop for a, b in zip(one, other, strict=True))


def check_conflict(error, expected):
    names = ("ABORTED", "ALREADY_EXISTS")  # the reference's
    assert isinstance(error, ours.AbortedError) or str(error).startswith(names), error
    assert expected, error


class Arrays:
    """An array, what it should hold, and the transactions that are open."""

    def __init__(self, library, array):
        self.library = library
        self.array = array
        self.values = np.zeros(SHAPE, "int32")
        self.open = {}
        self.numbers = count(1)

    def finish(self):
        for who in list(self.open):
            self.wait(who)
            self.commit(who)
        np.testing.assert_array_equal(self.array.read().result(), self.values)

    def begin(self, who, repeatable):
        if who != EVERYBODY and who not in self.open:
            transaction = self.library.Transaction(repeatable_read=repeatable)
            empty = np.zeros(SHAPE, "int32")
            self.open[who] = Staged(transaction, repeatable, empty, np.zeros(SHAPE, bool))

    def view(self, who):
        if who == EVERYBODY:
            return self.array
        self.begin(who, False)
        return self.array.with_transaction(self.open[who].transaction)

    def write(self, who, region, kind):
        value = 0 if kind == "fill" else next(self.numbers)
        if who == EVERYBODY:
            self.array[region].write(value).result()
            self.store(region, value)
            return
        view = self.view(who)
        staged = self.open[who]
        if any(overlap(region, other) for other, _, _ in staged.pending):
            self.wait(who)
        source: object = value
        if kind == "array":
            shape = tuple(each.stop - each.start for each in region)
            source = np.full(shape, value, "int32")
        staged.pending.append((region, value, view[region].write(source)))
        staged.touched |= chunks(region)

    def store(self, region, value, by=None):
        for chunk in chunks(region):
            for each in self.open.values():
                if each is not by:
                    each.changed.add(chunk)
        self.values[region] = value

    def copy(self, who):
        if who in self.open:
            self.wait(who)
            self.read(who, EVERYTHING)

    def wait(self, who):
        staged = self.open[who]
        pending, staged.pending = staged.pending, []
        for region, value, futures in pending:
            futures.copy.result()
            staged.values[region] = value
            staged.mask[region] = True

    def read(self, who, region):
        view = self.view(who)
        if who == EVERYBODY:
            np.testing.assert_array_equal(view[region].read().result(), self.values[region])
            return
        staged = self.open[who]
        try:
            found = view[region].read().result()
        except ValueError as error:
            staged.check(error)
            return
        finally:
            for chunk in chunks(region) - staged.touched:
                staged.read[chunk] = self.values[cell(chunk)].copy()
            staged.touched |= chunks(region)
        sure = np.ones(SHAPE, bool)
        right = np.full(SHAPE, fill_value=False)
        whole = np.zeros(SHAPE, "int32")
        whole[region] = found
        for other, value, _ in staged.pending:
            sure[other] = False
            right[other] = whole[other] == value
        seen = np.where(staged.mask, staged.values, self.values)
        # A repeatable read that another one changed fails at the commit at the latest.
        if not (staged.repeatable and staged.changed & chunks(region)):
            right |= whole == seen
            assert right[region].all(), f"{found} instead of {seen[region]}"
            assert (whole == seen)[region][sure[region]].all()

    def commit(self, who):
        if who not in self.open:
            return
        staged = self.open.pop(who)
        for region, value, _ in staged.pending:
            staged.values[region] = value
            staged.mask[region] = True
        try:
            staged.transaction.commit_async().result()
        except ValueError as error:
            staged.check(error)
            return
        for chunk, seen in staged.read.items() if staged.repeatable else ():
            np.testing.assert_array_equal(self.values[cell(chunk)], seen)
        for index in zip(*np.nonzero(staged.mask), strict=True):
            region = tuple(slice(int(each), int(each) + 1) for each in index)
            self.store(region, staged.values[index])

    def abort(self, who):
        if who in self.open:
            self.open.pop(who).transaction.abort()


@st.composite
def regions(draw):
    found = []
    for extent in SHAPE:
        start = draw(st.integers(0, extent - 1))
        found.append(slice(start, draw(st.integers(start + 1, extent))))
    return tuple(found)


STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("write"), WHO, regions(), st.sampled_from(["number", "array", "array", "fill"])
        ),
        st.tuples(st.just("read"), WHO, regions()),
        st.tuples(st.just("copy"), WHO),
        st.tuples(st.just("commit"), WHO),
        st.tuples(st.just("abort"), WHO),
        st.tuples(st.just("begin"), WHO, st.booleans()),
    ),
    min_size=4,
    max_size=30,
)


def layout(library, driver):
    if driver == "zarr3":
        return library.ChunkLayout(write_chunk_shape=CHUNK, read_chunk_shape=(1, 1))
    return library.ChunkLayout(chunk_shape=CHUNK)


def ours_in(kvstore):
    def create(driver):
        return opened(
            kvstore(),
            driver=driver,
            create=True,
            dtype="int32",
            shape=SHAPE,
            chunk_layout=layout(ours, driver),
        )

    return ours, create


def theirs():
    def create(driver):
        spec = {"driver": driver, "kvstore": {"driver": "memory"}}
        how = {"dtype": "int32", "shape": SHAPE, "chunk_layout": layout(wheel, driver)}
        return wheel.open(spec, create=True, **how).result()

    return wheel, create


PLACES = {
    "memory": ours_in(lambda: MemoryStore(SharedMap())),
    "one by one": ours_in(lambda: NonAtomicMemoryStore(SharedMap())),
    "loop": ours_in(lambda: LoopStore(NonAtomicMemoryStore(SharedMap()))),
    "reference": theirs(),
}


@pytest.mark.parametrize("driver", ["zarr", "zarr3", "n5"])
@pytest.mark.parametrize("place", PLACES)
def test_arrays(place, driver):
    library, create = PLACES[place]

    @settings(max_examples=25, deadline=None, database=None, derandomize=True)
    @given(STEPS)
    def check(steps):
        state = Arrays(library, create(driver))
        for name, *arguments in steps:
            getattr(state, name)(*arguments)
        state.finish()

    check()


KEYS = ("a", "a/b", "b", "c")


@dataclass
class StagedKeys:
    """What a transaction of the model did to keys, and what it rests on."""

    transaction: object
    values: dict = field(default_factory=dict)
    rests_on: dict = field(default_factory=dict)  # key: how often it had been stored


class Keys:
    """A store, what it should hold, and the transactions that are open."""

    def __init__(self, library, store):
        self.library = library
        self.store = store
        self.values = {}
        self.times = dict.fromkeys(KEYS, 0)
        self.open = {}
        self.numbers = count(1)

    def finish(self):
        for who in list(self.open):
            self.commit(who)
        self.list(EVERYBODY)

    def view(self, who):
        if who == EVERYBODY:
            return self.store
        if who not in self.open:
            self.open[who] = StagedKeys(self.library.Transaction())
        return self.store.with_transaction(self.open[who].transaction)

    def seen(self, who):
        staged = {} if who == EVERYBODY else self.open[who].values
        return {key: value for key, value in {**self.values, **staged}.items() if value is not None}

    def put(self, who, key, value):
        if who != EVERYBODY:
            self.open[who].values[key] = value
            return
        if value is not None or key in self.values:
            self.times[key] += 1
        self.values[key] = value
        if value is None:
            del self.values[key]

    def value(self, kind):
        return None if kind == "delete" else str(next(self.numbers)).encode()

    def write(self, who, key, kind):
        value = self.value(kind)
        self.view(who).write(key, value).result()
        self.put(who, key, value)

    def create(self, who, key):
        """Write unless something is there."""
        view, value = self.view(who), self.value("number")
        if key in self.seen(who):
            return  # the reference finds that out at the commit
        mine = self.open.get(who)
        if mine is not None and key not in mine.values:
            mine.rests_on[key] = self.times[key]
        nothing = view.read(key).result().stamp.generation
        view.write(key, value, if_equal=nothing).result()
        self.put(who, key, value)

    def change(self, who, key):
        """Write unless it was changed since it was read."""
        view, value = self.view(who), self.value("number")
        found = view.read(key).result()
        if found.state != "value":
            return
        mine = self.open.get(who)
        if mine is not None and key not in mine.values:
            mine.rests_on[key] = self.times[key]
        view.write(key, value, if_equal=found.stamp.generation).result()
        self.put(who, key, value)

    def read(self, who, key):
        found = self.view(who).read(key).result()
        value = self.seen(who).get(key)
        assert (found.state, found.value) == (
            ("missing", b"") if value is None else ("value", value)
        )

    def list(self, who):
        view = self.view(who)
        assert sorted(view.list().result()) == sorted(each.encode() for each in self.seen(who))

    def commit(self, who):
        mine = self.open.pop(who, None)
        if mine is None:
            return
        conflict = any(self.times[key] != before for key, before in mine.rests_on.items())
        try:
            mine.transaction.commit_async().result()
        except ValueError as error:
            check_conflict(error, conflict)
            return
        # What was made and deleted again is as it was.
        assert not conflict or all(
            mine.values[key] is None or key not in self.values for key in mine.rests_on
        )
        for key, value in mine.values.items():
            self.put(EVERYBODY, key, value)

    def abort(self, who):
        if who in self.open:
            self.open.pop(who).transaction.abort()


KEY = st.sampled_from(KEYS)
KEY_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), WHO, KEY, st.sampled_from(["number", "number", "delete"])),
        st.tuples(st.sampled_from(["create", "change", "read"]), WHO, KEY),
        st.tuples(st.sampled_from(["list", "commit", "abort"]), WHO),
    ),
    min_size=4,
    max_size=30,
)


# Where the reference stores key after key, it does so before it finds a conflict.
@pytest.mark.parametrize(
    ("library", "atomic"),
    [(ours, False), (ours, True), (wheel, True)],
    ids=["ours, one by one", "ours", "reference"],
)
def test_keys(library, atomic):
    @settings(max_examples=60, deadline=None, database=None, derandomize=True)
    @given(KEY_STEPS)
    def check(steps):
        spec = {"driver": "memory", "atomic": atomic}
        state = Keys(library, library.KvStore.open(spec).result())
        for name, *arguments in steps:
            getattr(state, name)(*arguments)
        state.finish()

    check()
