import pytest
import tensorstore as reference

from tensorstore_py._api.kvstore import KvStore as Face
from tensorstore_py._spec.context import Context
from tensorstore_py.kvstores.memory import MemoryStore, SharedMap
from tensorstore_py.testing import KvStoreSuite, drive


class TestMemoryStore(KvStoreSuite):
    odd_keys = (*KvStoreSuite.odd_keys, "", "/", "a//b", ".", "..", "a/", "\0", "\udcff")

    @pytest.fixture
    def store(self):
        return MemoryStore(SharedMap())

    def test_lists_in_key_order(self, store):
        keys = ("a", "a/b", "b", "é", "\udcff", "😀")
        self.filled(store, "", reversed(keys), b"")

        # By encoded bytes: a stray 0xff comes after every character.
        assert [entry.key for entry in self.entries(store)] == [
            "a", "a/b", "b", "é", "😀", "\udcff"
        ]  # fmt: skip

    def test_a_listing_is_a_snapshot(self, store):
        self.filled(store, "", ("a", "b", "c"), b"")

        async def list_and_delete():
            seen = []
            async for entry in store.list():
                seen.append(entry.key)
                await store.write("c", None)
            return seen

        assert drive(store, list_and_delete) == ["a", "b", "c"]

    def test_keeps_bytes_without_a_copy(self, store):
        value = b"immutable" * 100
        self.set(store, "a", value)

        assert self.get(store, "a").value is value

    def test_no_generation_comes_back(self, store):
        seen = set()
        for _ in range(50):
            seen.add(self.set(store, "a", b"same").generation)
            self.set(store, "a", None)

        assert len(seen) == 50


def test_specs_bound_to_one_context_share_the_map():
    context = Context()
    one, two = (Face.open("memory://", context=context).result() for _ in range(2))
    other = Face.open("memory://").result()

    one["a"] = b"1"

    assert two["a"] == b"1"
    assert "a" not in other


def test_named_resources_are_maps_of_their_own():
    context = Context({"memory_key_value_store#b": {}})
    spec = {"driver": "memory", "memory_key_value_store": "memory_key_value_store#b"}
    named = Face.open(spec, context=context).result()
    plain = Face.open("memory://", context=context).result()

    named["a"] = b"1"

    assert "a" not in plain
    assert Face.open(spec, context=context).result()["a"] == b"1"


def test_generations_are_those_of_the_reference():
    ours = Face.open("memory://").result()
    theirs = reference.KvStore.open("memory://").result()

    for value in (b"1", b"2"):
        mine = ours.write("a", value).result().generation
        assert len(mine) == len(theirs.write("a", value).result().generation)
        assert mine[:1] == b"\0"


def test_what_lasts_is_kept_by_reference():
    store = MemoryStore(SharedMap())
    value = bytearray(b"abc")

    async def body():
        await store.keep("a", memoryview(value))
        value[0] = ord("x")
        return bytes((await store.read("a")).value)

    assert drive(store, body) == b"xbc"
