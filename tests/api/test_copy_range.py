import pytest

from tensorstore_py._api.keys import PAGE
from tensorstore_py._api.kvstore import KvStore
from tensorstore_py.plugin import (
    WHOLE,
    ListEntry,
    ReadResult,
    TimestampedStorageGeneration,
)
from tensorstore_py.testing.fake_stores import LoopStore, StoreAround


@pytest.fixture
def store():
    return KvStore.open("memory://").result()


def looped(store):
    return KvStore.of(store.model, LoopStore(store.store))


class TestCopyRange:
    @pytest.fixture(params=["inline", "loop to inline", "inline to loop", "loop"])
    def pair(self, request, store):
        target = KvStore.open("memory://").result()
        if request.param in ("loop", "loop to inline"):
            store = looped(store)
        if request.param in ("loop", "inline to loop"):
            target = looped(target)
        return store, target

    def test_copies_keys_relative_to_both_paths(self, pair):
        source, target = pair
        for key in ("x/1", "x/2", "y"):
            source[key] = key.encode()

        (source / "x/").experimental_copy_range_to(target / "z/").result()

        assert sorted(target.list().result()) == [b"z/1", b"z/2"]
        assert target["z/2"] == b"x/2"

    def test_copies_a_range(self, pair):
        source, target = pair
        for key in ("1", "2", "3"):
            source[key] = b"v"

        source.experimental_copy_range_to(
            target, source_range=KvStore.KeyRange("2", "3"), source_staleness_bound=0.0
        ).result()

        assert target.list().result() == [b"2"]

    def test_copies_many(self, pair):
        source, target = pair
        for number in range(100):
            source[str(number)] = b"%d" % number

        source.experimental_copy_range_to(target).result()

        assert len(target.list().result()) == 100
        assert target["57"] == b"57"

    def test_lets_a_store_copy_by_itself_what_it_can(self, store, monkeypatch):
        store["a"], store["b"] = b"1", b"2"
        target = KvStore.open("memory://").result()
        asked = []

        async def copy_to(key, sink, copied):
            asked.append((key, sink, copied))
            return key == "a"

        monkeypatch.setattr(store.store, "copy_to", copy_to)

        store.experimental_copy_range_to(target / "to/").result()

        assert sorted(asked, key=str) == [
            ("a", target.store, "to/a"),
            ("b", target.store, "to/b"),
        ]
        assert target.list().result() == [b"to/b"]

    def test_copies_into_itself_once(self, store):
        store["a"] = b"1"

        store.experimental_copy_range_to(store / "copy/").result()

        assert store.list().result() == [b"a", b"copy/a"]

    def test_the_target_is_a_store(self, store):
        with pytest.raises(TypeError, match="must be a KvStore, not str"):
            store.experimental_copy_range_to("memory://")

    def test_memory_does_not_grow_with_the_range(self, pair):
        source, target = pair
        waiting = []

        class Watched(StoreAround):
            async def list(self, key_range=None):
                for number in range(3 * PAGE):
                    waiting.append(number)
                    yield ListEntry(f"k{number}")

            async def read(self, key, byte_range=WHOLE, **conditions):
                waiting.pop()
                return ReadResult("value", b"v")

        watched = KvStore.of(source.model, Watched(source.store))
        most = []

        class Sink(StoreAround):
            async def write(self, key, value, *, if_equal=None):
                most.append(len(waiting))
                return TimestampedStorageGeneration()

        watched.experimental_copy_range_to(KvStore.of(target.model, Sink(target.store))).result()

        assert len(most) == 3 * PAGE
        assert max(most) <= PAGE

    def test_a_copy_may_lie_in_what_is_copied(self, store):
        class Live(StoreAround):
            """Lists what is there by then, as services do."""

            async def list(self, key_range=None):
                seen: set[str] = set()
                while new := {k async for k in keys(self.base, key_range)} - seen:
                    seen |= new
                    for key in sorted(new):
                        yield ListEntry(key)

        async def keys(base, key_range):
            async for entry in base.list(key_range):
                yield entry.key

        live = KvStore.of(store.model, Live(store.store))
        live["a"] = b"1"

        live.experimental_copy_range_to(live / "copy/").result()

        assert sorted(store.list().result()) == [b"a", b"copy/a"]

    def test_an_old_value_will_do_where_that_is_said(self, store):
        asked = []

        class Cached(StoreAround):
            async def read_as_of(self, key, byte_range, staleness_bound, *, if_not_equal=None):
                asked.append(staleness_bound)
                return await self.read(key, byte_range)

        cached = KvStore.of(store.model, Cached(store.store))
        cached["a"] = b"1"

        cached.experimental_copy_range_to(store / "to/", source_staleness_bound=7.5).result()

        assert asked == [7.5]
        assert store["to/a"] == b"1"
