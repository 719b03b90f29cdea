import asyncio
import copy
import pickle

import numpy as np
import pytest
import tensorstore as reference

from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._runtime.future import Future
from tensorstore_py._spec.context import Context
from tensorstore_py.errors import OutOfRangeError
from tensorstore_py.testing.fake_stores import CountingStore, LoopStore

NO_VALUE = b"\x02"


@pytest.fixture
def store():
    return KvStore.open("memory://").result()


@pytest.fixture(params=["ours", "reference"])
def either(request):
    """The same test on this library and on the reference."""
    return KvStore if request.param == "ours" else reference.KvStore


@pytest.fixture(params=["memory", "file"])
def url(request, tmp_path):
    return "memory://" if request.param == "memory" else f"file://{tmp_path}/root/"


def looped(store):
    return KvStore.of(store.model, LoopStore(store.store))


class TestLikeTheReference:
    def test_is_a_dictionary(self, either, url):
        store = either.open(url).result()
        store["a/x"] = b"1"
        store[b"b"] = "text"

        assert store["a/x"] == b"1"
        assert store["b"] == b"text"
        assert "a/x" in store
        assert b"c" not in store
        store["a/x"] = None
        del store["b"]
        del store["nothing"]
        assert store.list().result() == []
        with pytest.raises(KeyError):
            store["a/x"]

    def test_is_not_iterable_and_has_no_length(self, either):
        store = either.open("memory://").result()

        with pytest.raises(TypeError):
            iter(store)
        with pytest.raises(TypeError):
            len(store)
        with pytest.raises(TypeError):
            either()

    @pytest.mark.parametrize("key", [5, None, ["a"]])
    def test_keys_are_text_or_bytes(self, either, key):
        store = either.open("memory://").result()

        for use in (
            lambda: store.read(key),
            lambda: store.write(key, b""),
            lambda: store[key],
            lambda: key in store,
            lambda: store + key,
            lambda: store / key,
        ):
            with pytest.raises(TypeError):
                use()

    def test_values_are_bytes_text_or_none(self, either):
        store = either.open("memory://").result()

        for value in (5, ["a"], 1.5):
            with pytest.raises(TypeError):
                store.write("a", value)
        with pytest.raises(TypeError):
            store.write("a", b"", if_equal=5)
        with pytest.raises(TypeError):
            store.read("a", if_not_equal=5)

    def test_reads_give_state_value_and_stamp(self, either, url):
        store = either.open(url).result()
        stamp = store.write("a", b"12345").result()

        found, missing = store.read("a").result(), store.read("b").result()
        same = store.read("a", if_not_equal=stamp.generation).result()

        assert (found.state, found.value) == ("value", b"12345")
        assert found.stamp.generation == stamp.generation
        assert found.stamp.time >= stamp.time
        assert (missing.state, missing.value) == ("missing", b"")
        assert missing.stamp.generation == NO_VALUE
        assert (same.state, same.value) == ("unspecified", b"")

    @pytest.mark.parametrize(
        "byte_range",
        [slice(2, 5), slice(-3, None), slice(3, None), slice(None, 4), slice(0, 0), slice(10, 10),
         slice(10, None), slice(None), slice(np.int64(1), np.int32(3)), slice(True, None), None],
        ids=str,
    )  # fmt: skip
    def test_reads_slices(self, either, url, byte_range):
        store = either.open(url).result()
        store["a"] = b"0123456789"

        value = store.read("a", byte_range=byte_range).result().value

        assert value == (b"0123456789" if byte_range is None else b"0123456789"[byte_range])
        assert store.read("b", byte_range=byte_range).result().state == "missing"

    @pytest.mark.parametrize(
        "byte_range", [slice(3, 100), slice(100, None), slice(-100, None), slice(11, None)]
    )
    def test_slices_stay_inside_the_value(self, either, url, byte_range):
        store = either.open(url).result()
        store["a"] = b"0123456789"

        with pytest.raises(ValueError):
            store.read("a", byte_range=byte_range).result()

    @pytest.mark.parametrize("byte_range", [slice(-3, -1), slice(2, -1), slice(5, 2)])
    def test_refuses_slices_that_need_the_size(self, either, byte_range):
        store = either.open("memory://").result()

        with pytest.raises(ValueError, match="Unsupported byte_range slice"):
            store.read("a", byte_range=byte_range)

    @pytest.mark.parametrize("byte_range", [slice(0, 4, 2), slice(0, 4, 1), (0, 1), slice("a"), 3])
    def test_a_byte_range_is_a_slice_of_integers(self, either, byte_range):
        store = either.open("memory://").result()

        with pytest.raises(TypeError):
            store.read("a", byte_range=byte_range)

    def test_writes_on_conditions(self, either, url):
        store = either.open(url).result()

        created = store.write("a", b"1", if_equal=NO_VALUE).result().generation
        assert store.write("a", b"2", if_equal=NO_VALUE).result().generation == b""
        changed = store.write("a", b"3", if_equal=created).result().generation
        assert changed not in (b"", created)
        assert store.write("a", b"4", if_equal=created).result().generation == b""
        assert store.write("a", None, if_equal="other").result().generation == b""
        assert store["a"] == b"3"
        assert store.write("a", None, if_equal=changed).result().generation == NO_VALUE
        assert store.write("a", None).result().generation == NO_VALUE
        assert store.write("a", b"5", if_equal="").result().generation != b""

    def test_lists_relative_to_its_path(self, either, url):
        store = either.open(url).result()
        for key in ("a/1", "a/2", "ab", "b/1", "é"):
            store[key] = b"v"
        cls = either.KeyRange

        def listed(store, *args, **kwargs):
            return sorted(store.list(*args, **kwargs).result())

        assert listed(store) == [b"a/1", b"a/2", b"ab", b"b/1", "é".encode()]
        assert listed(store, cls("a/2", "b")) == [b"a/2", b"ab"]
        assert listed(store, cls("a", "a")) == []
        assert listed(store / "a/") == [b"1", b"2"]
        assert listed(store + "a") == [b"/1", b"/2", b"b"]
        assert listed(store + "a", cls("/2")) == [b"/2", b"b"]
        assert listed(store, range=cls("a/", "a0"), strip_prefix_length=2) == [b"1", b"2"]
        with pytest.raises(TypeError):
            store.list("a")
        with pytest.raises(TypeError):
            store.list(strip_prefix_length=-1)

    def test_deletes_ranges_relative_to_its_path(self, either, url):
        store = either.open(url).result()
        for key in ("a/1", "a/2", "ab", "b/1"):
            store[key] = b"v"
        cls = either.KeyRange

        assert (store / "a/").delete_range(cls("2")).result() is None
        assert sorted(store.list().result()) == [b"a/1", b"ab", b"b/1"]
        store.delete_range(cls()).result()
        assert store.list().result() == []
        with pytest.raises(TypeError):
            store.delete_range("a")
        with pytest.raises(TypeError):
            store.delete_range()

    @pytest.mark.parametrize("base", ["", "a", "a/"])
    @pytest.mark.parametrize("component", ["x", "/x", "x/", "", b"x"])
    def test_paths_are_added_and_joined(self, base, component):
        ours, theirs = (
            cls.open({"driver": "memory", "path": base}).result()
            for cls in (KvStore, reference.KvStore)
        )

        assert repr(ours + component) == repr(theirs + component)
        assert repr(ours / component) == repr(theirs / component)

    def test_a_copy_has_its_own_path(self, either):
        store = either.open("memory://a").result()

        for clone in (store.copy(), copy.copy(store), store.with_transaction(None)):
            clone.path = "b"
            assert (store.path, clone.path) == ("a", "b")
            assert clone != store
        with pytest.raises(TypeError):
            store.path = 5

    def test_has_no_base_and_no_transaction(self, either):
        store = either.open("memory://").result()

        assert store.base is None
        assert store.transaction is None
        store.transaction = None

    def test_is_printed_with_its_resources(self, url):
        ours, theirs = (cls.open(url).result() for cls in (KvStore, reference.KvStore))

        assert repr(ours) == repr(theirs)
        assert (ours.url, ours.path) == (theirs.url, theirs.path)
        for kwargs in ({}, {"retain_context": True}, {"unbind_context": True},
                       {"retain_context": True, "unbind_context": True}):  # fmt: skip
            assert repr(ours.spec(**kwargs)) == repr(theirs.spec(**kwargs))

    def test_what_it_returns_is_printed_alike(self):
        for ours, theirs in (
            (KvStore.ReadResult(), reference.KvStore.ReadResult()),
            (KvStore.ReadResult("value", "abc"), reference.KvStore.ReadResult("value", "abc")),
            (
                KvStore.TimestampedStorageGeneration("a", 1.5),
                reference.KvStore.TimestampedStorageGeneration("a", 1.5),
            ),
            (
                KvStore.TimestampedStorageGeneration(b"\xff", float("inf")),
                reference.KvStore.TimestampedStorageGeneration(b"\xff", float("inf")),
            ),
        ):
            assert repr(ours) == repr(theirs)
            assert repr(pickle.loads(pickle.dumps(ours))) == repr(ours)
            assert repr(copy.deepcopy(ours)) == repr(copy.copy(ours)) == repr(ours)

    def test_a_context_is_no_json(self, either):
        with pytest.raises(TypeError):
            either.open("memory://", context={"memory_key_value_store": {}}).result()


class TestBeyondTheReference:
    def test_answers_are_futures_for_any_loop(self, store):
        assert isinstance(store.write("a", b"1"), Future)

        async def use():
            await store.write("b", b"2")
            return (await store.read("b")).value, await store.list()

        for _ in range(2):
            assert asyncio.run(use()) == (b"2", [b"a", b"b"])

    def test_a_missing_key_is_named(self, store):
        with pytest.raises(KeyError, match="nothing"):
            store["nothing"]

    def test_strips_more_than_there_is(self, store):
        store["a"] = b"1"

        assert store.list(strip_prefix_length=9).result() == [b""]

    def test_errors_of_a_slice_are_typed(self, store):
        store["a"] = b"1"

        with pytest.raises(OutOfRangeError, match="outside a value of 1 bytes"):
            store.read("a", byte_range=slice(0, 2)).result()

    def test_a_buffer_may_be_changed_while_it_is_written(self, store):
        buffer = bytearray(b"123")
        written = store.write("a", buffer)
        buffer[:] = b"xxx"
        written.result()
        store["b"] = memoryview(b"456")

        assert (store["a"], store["b"]) == (b"123", b"456")

    def test_asking_whether_a_key_is_there_reads_no_bytes(self, store):
        counting = CountingStore(store.store)
        counted = KvStore.of(store.model, counting)
        counted["a"] = b"x" * 1000

        assert "a" in counted
        assert counting.bytes_read["a"] == 0

    def test_mapped_values_are_bytes_at_the_face(self, tmp_path):
        mapped = {"driver": "file", "path": f"{tmp_path}/", "file_io_mode": {"mode": "memmap"}}
        store = KvStore.open(mapped).result()
        store["a"] = b"123"

        assert type(store.read("a").result().value) is bytes

    def test_keys_may_be_any_bytes(self, tmp_path):
        store = KvStore.open(f"file://{tmp_path}/").result()
        store[b"a\xff"] = b"1"

        assert store.list().result() == [b"a\xff"]
        assert (store + b"a")[b"\xff"] == b"1"

    def test_shares_what_its_context_shares(self, store):
        context = Context()
        one, two = (KvStore.open("memory://", context=context).result() for _ in range(2))
        one["a"] = b"1"

        assert two["a"] == b"1"
        assert "a" not in store
        again = KvStore.open(one.spec(retain_context=True)).result()
        assert again["a"] == b"1"

    def test_a_pickled_store_opens_the_same_place(self, tmp_path):
        store = KvStore.open(f"file://{tmp_path}/").result() / "sub/"
        store["a"] = b"1"

        clone = pickle.loads(pickle.dumps(store))

        assert clone["a"] == b"1"
        assert repr(clone) == repr(store)

    def test_transactions_and_batches_must_be_such(self, store):
        for use in (
            lambda: KvStore.open("memory://", transaction=object()),  # type: ignore[arg-type]
            lambda: store.with_transaction(object()),
            lambda: setattr(store, "transaction", object()),
            lambda: store.read("a", batch=object()),
        ):
            with pytest.raises(TypeError, match=r"must be a (Transaction|Batch), not object"):
                use()
