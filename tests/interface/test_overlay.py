import asyncio
import threading

import pytest

from tensorstore_py._interface.byte_range import ByteRange
from tensorstore_py._interface.generation import NO_VALUE, UNKNOWN
from tensorstore_py._interface.key_range import KeyRange
from tensorstore_py._interface.overlay import Overlay
from tensorstore_py._interface.update import Update
from tensorstore_py._runtime.inline import run_inline
from tensorstore_py.errors import AbortedError, FailedPreconditionError
from tensorstore_py.kvstores.memory import MemoryStore, SharedMap
from tensorstore_py.testing import CountingStore, FaultyStore, KvStoreSuite, LoopStore


class Append(Update):
    def __init__(self, tail, log=None):
        self.tail = tail
        self.log = log

    async def apply(self, stored):
        if self.log is not None:
            self.log.append(bytes(stored or b""))
        return bytes(stored or b"") + self.tail


def over(base, *, repeatable=False, atomic=False):
    return Overlay(base, repeatable=repeatable, atomic=atomic, check=lambda: None)


def memory(*, atomic=True):
    return MemoryStore(SharedMap(), atomic=atomic)


def get(store, key):
    result = run_inline(store.read(key))
    return bytes(result.value) if result.state == "value" else None


def put(store, key, value, **conditions):
    return run_inline(store.write(key, value, **conditions))


class TestOverlayOnMemory(KvStoreSuite):
    """Within a transaction a store keeps every promise."""

    @pytest.fixture
    def store(self):
        return over(memory())


class TestOverlayOnALoopStore(KvStoreSuite):
    @pytest.fixture
    def store(self):
        return over(LoopStore(memory(atomic=False)))


@pytest.fixture(params=[True, False], ids=["together", "one by one"])
def base(request):
    base = CountingStore(memory(atomic=request.param))
    for key in "abc":
        put(base, key, key.encode())
    base.reset()
    return base


def test_a_generation_that_is_not_known_is_no_condition(base):
    staged = over(base)
    put(staged, "a", b"mine", if_equal=UNKNOWN)
    put(base, "a", b"theirs")

    run_inline(staged.commit())

    assert get(base, "a") == b"mine"


def test_nothing_is_stored_before_the_commit(base):
    staged = over(base)
    put(staged, "a", b"new")
    put(staged, "b", None)
    run_inline(staged.update("c", Append(b"!")))
    put(staged, "d", b"more")
    assert [get(staged, key) for key in "abcd"] == [b"new", None, b"c!", b"more"]
    assert [get(base, key) for key in "abcd"] == [b"a", b"b", b"c", None]
    assert base.writes.total() == base.deletes.total() == 0

    run_inline(staged.commit())

    assert [get(base, key) for key in "abcd"] == [b"new", None, b"c!", b"more"]
    assert dict(base.writes) == {"a": 1, "c": 1, "d": 1}
    assert dict(base.deletes) == {"b": 1}


def test_updates_change_what_is_stored_by_then(base):
    one, other = over(base), over(base)
    run_inline(one.update("a", Append(b"1")))
    run_inline(other.update("a", Append(b"2")))
    assert get(one, "a") == b"a1"
    put(base, "a", b"A")
    assert get(one, "a") == b"A1"
    run_inline(one.commit())
    run_inline(other.commit())
    assert get(base, "a") == b"A12"


def test_an_update_is_not_made_again_for_every_read(base):
    log: list[bytes] = []
    staged = over(base)
    run_inline(staged.update("a", Append(b"1", log)))
    for _ in range(3):
        assert get(staged, "a") == b"a1"
    assert log == [b"a"]
    put(staged, "b", b"x")
    run_inline(staged.update("b", Append(b"1", log)))
    base.reset()
    for _ in range(3):
        assert get(staged, "b") == b"x1"
    assert len(log) == 2
    assert not base.reads


def test_ranges_of_what_is_staged(base):
    staged = over(base)
    put(staged, "a", b"0123456789")
    assert bytes(run_inline(staged.read("a", ByteRange(2, 5))).value) == b"234"


def test_a_condition_is_checked_at_once_and_at_the_end(base):
    staged = over(base)
    before = run_inline(base.read("a")).stamp.generation
    assert put(staged, "a", b"x", if_equal=b"other").generation == UNKNOWN
    assert put(staged, "new", b"x", if_equal=NO_VALUE).generation != UNKNOWN
    assert put(staged, "a", b"x", if_equal=before).generation != UNKNOWN
    put(staged, "c", b"free")
    put(base, "a", b"theirs")
    with pytest.raises(AbortedError, match='Error writing "a": it was changed by somebody else'):
        run_inline(staged.commit())
    assert [get(base, key) for key in ("a", "new", "c")] == [b"theirs", None, b"c"]


def test_conditions_within_the_transaction(base):
    staged = over(base)
    stamp = put(staged, "a", b"1")
    assert put(staged, "a", b"2", if_equal=b"old").generation == UNKNOWN
    stamp = put(staged, "a", b"2", if_equal=stamp.generation)
    put(staged, "a", None)
    assert put(staged, "a", b"3", if_equal=stamp.generation).generation == UNKNOWN
    assert put(staged, "a", b"3", if_equal=NO_VALUE).generation != UNKNOWN
    run_inline(staged.commit())
    assert get(base, "a") == b"3"


@pytest.mark.parametrize("key", ["a", "missing"])
def test_repeatable_reads(base, key):
    staged = over(base, repeatable=True)
    get(staged, key)
    put(staged, "b", b"mine")
    put(base, key, b"theirs")
    with pytest.raises(AbortedError, match=f'"{key}"'):
        get(staged, key)
    with pytest.raises(AbortedError, match=f'"{key}"'):
        run_inline(staged.commit())
    assert get(base, "b") == b"b"


def test_repeatable_reads_of_what_is_changed_too(base):
    staged = over(base, repeatable=True)
    get(staged, "a")
    run_inline(staged.update("a", Append(b"1")))
    put(base, "a", b"theirs")
    with pytest.raises(AbortedError, match='"a"'):
        run_inline(staged.commit())
    assert get(base, "a") == b"theirs"


def test_without_changes_there_is_nothing_to_do(base):
    staged = over(base)
    get(staged, "a")
    base.reset()
    run_inline(staged.commit())
    assert not base.reads
    assert not base.writes


def test_an_atomic_store_changes_several_keys_while_others_do():
    base = CountingStore(memory())
    put(base, "a", b"a")
    staged = over(base, atomic=True)

    class Interfering(Append):
        async def apply(self, stored):
            if stored == b"a":
                put(base, "a", b"b")
            return await super().apply(stored)

    run_inline(staged.update("a", Interfering(b"1")))
    put(staged, "z", b"z")
    run_inline(staged.commit())
    assert (get(base, "a"), get(base, "z")) == (b"b1", b"z")


def test_another_store_changes_one_key_atomically():
    staged = over(memory(atomic=False), atomic=True)
    put(staged, "a", b"1")
    put(staged, "a", b"2")
    with pytest.raises(FailedPreconditionError, match='cannot change "a" and "b" in one atomic'):
        put(staged, "b", b"1")
    run_inline(staged.commit())
    assert get(staged.base, "a") == b"2"


def test_ranges_are_deleted_and_listed(base):
    staged = over(base)
    put(staged, "d", b"1")
    run_inline(staged.update("e", Append(b"22")))
    put(staged, "a", None)

    async def entries(store):
        return sorted([tuple(entry) async for entry in store.list()])

    assert run_inline(entries(staged)) == [("b", 1), ("c", 1), ("d", 1), ("e", 2)]
    run_inline(staged.delete_range(KeyRange(b"b", b"e")))
    assert run_inline(entries(staged)) == [("e", 2)]
    run_inline(staged.commit())
    assert run_inline(entries(base)) == [("e", 2)]


def test_conditional_keys_are_stored_last():
    base = FaultyStore(memory(atomic=False))
    base.fail("write", OSError("full"), key="chunk")
    staged = over(base)
    put(staged, "metadata", b"m", if_equal=NO_VALUE)
    put(staged, "chunk", b"c")
    with pytest.raises(OSError, match="full"):
        run_inline(staged.commit())
    assert get(base, "metadata") is None


def test_steps_afterwards(base):
    staged = over(base)
    done = []

    async def step():
        done.append(get(base, "a"))

    put(staged, "a", b"1")
    staged.afterwards(step)
    assert not done
    run_inline(staged.commit())
    assert done == [b"1"]


def test_threads_stage_updates_of_one_key(base):
    staged = over(base)
    begin = threading.Barrier(4)

    def work():
        begin.wait()
        for _ in range(100):
            run_inline(staged.update("a", Append(b".")))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    run_inline(staged.commit())
    assert get(base, "a") == b"a" + b"." * 400


async def test_on_a_loop():
    base = LoopStore(memory(atomic=False))
    staged = over(base)
    await asyncio.gather(*(staged.update(str(n % 3), Append(b".")) for n in range(30)))
    await staged.commit()
    assert [bytes((await base.read(key)).value) for key in "012"] == [b"." * 10] * 3


def test_what_was_only_listed_may_change():
    store = memory()
    overlay = over(store, repeatable=True)
    put(store, "k", b"1")
    run_inline(overlay.update("k", Append(b"+")))

    async def listed():
        return [entry async for entry in overlay.list()]

    assert run_inline(listed()) == [("k", 2)]
    put(store, "k", b"22")
    assert run_inline(listed()) == [("k", 3)]
    assert get(overlay, "k") == b"22+"
    put(store, "k", b"3")
    with pytest.raises(AbortedError, match='"k"'):
        run_inline(overlay.commit())
    assert get(store, "k") == b"3"


def test_whatever_becomes_of_a_commit_those_who_keep_what_it_changes_are_told():
    base = FaultyStore(memory(atomic=False))
    overlay = over(base)
    told = []
    overlay.changing(lambda: told.append(get(base, "a")))
    put(overlay, "a", b"1")
    put(overlay, "b", b"2")
    assert not told
    base.fail("write", OSError("full"), key="b")
    with pytest.raises(OSError, match="full"):
        run_inline(overlay.commit())
    assert told == [b"1"]


def test_what_was_dropped_is_gone():
    overlay = over(memory())
    put(overlay, "a", b"1")
    overlay.drop()
    assert overlay.changed == []
    assert get(overlay, "a") is None


def test_one_level_shows_what_is_staged_in_it():
    base = CountingStore(memory())
    for key in ("a/b/1", "a/c/1", "z/1"):
        run_inline(base.write(key, b"1"))
    store = over(base)

    async def names(prefix):
        return [name async for name in store.list_directory(prefix)]

    run_inline(store.write("a/b/1", None))
    run_inline(store.write("a/new", b"2"))

    run_inline(store.write("a/d/1", b"2"))
    run_inline(store.write("a/c/2", None))
    run_inline(store.write("z/1", None))

    assert sorted(run_inline(names("a/"))) == ["c/", "d/", "new"]
    assert sorted(run_inline(names(""))) == ["a/"]
    base.reset()
    assert run_inline(names("z/")) == []
    assert sorted(run_inline(names("a/d/"))) == ["1"]
    assert (base.directories, base.lists) == ({"z/": 1, "a/d/": 1}, {})
