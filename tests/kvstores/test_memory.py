import gc
import os
import pickle
import subprocess
import sys

import pytest
import tensorstore as reference

import tensorstore_py as ts
from tensorstore_py import Context
from tensorstore_py import KvStore as Face
from tensorstore_py.kvstores.memory import MemoryStore, SharedMap
from tensorstore_py.testing import KvStoreSuite, drive
from tests.runtime.processes import settle


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
        await store.write_segments("a", [memoryview(value)], owned=True)
        value[0] = ord("x")
        return bytes((await store.read("a")).value)

    assert drive(store, body) == b"xbc"


class TestPickled:
    def array(self):
        spec = {"driver": "zarr3", "kvstore": "memory://"}
        store = ts.open(spec, create=True, dtype="uint8", shape=[4]).result()
        store[...] = 7
        return store

    def test_in_the_same_process_it_is_the_same_data(self):
        store = self.array()

        again = pickle.loads(pickle.dumps(store))
        again[1] = 9

        assert store.read().result().tolist() == [7, 9, 7, 7]
        kvstore = pickle.loads(pickle.dumps(store.kvstore))
        assert kvstore.list().result() == store.kvstore.list().result()
        context, spec = pickle.loads(pickle.dumps((ts.Context(), store.spec(retain_context=True))))
        assert ts.open(spec, open=True, context=context).result()[1].read().result() == 9

    def test_once_the_data_is_gone_that_is_said(self):
        store = self.array()
        data = pickle.dumps(store)
        del store
        settle()
        gc.collect()

        with pytest.raises(ts.FailedPreconditionError, match="or gone with it"):
            pickle.loads(data).read().result()

    @pytest.mark.parametrize(
        "use",
        [
            "store.read().result()",
            "store.write(1).result()",
            "store.resize(exclusive_max=[5]).result()",
            "store.attrs.read().result()",
            "store.kvstore['k']",
            "store.kvstore.list().result()",
            "store.kvstore.write('k', b'').result()",
            "pickle.loads(pickle.dumps(store)).read().result()",
        ],
    )
    def test_in_another_process_that_is_said_with_the_remedy(self, use):
        program = (
            "import pickle, sys, tensorstore_py as ts\n"
            "store = pickle.load(sys.stdin.buffer)\n"
            f"try: print('no error', {use})\n"
            "except ts.FailedPreconditionError as error: print(error)\n"
        )

        told = subprocess.run(
            [sys.executable, "-c", program],
            input=pickle.dumps(self.array()),
            capture_output=True,
            check=True,
        ).stdout.decode()

        assert f"process that pickled the handle, {os.getpid()}," in told
        assert "use a store that both processes reach, such as file://" in told
