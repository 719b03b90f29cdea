"""Stores as users hold them, beside the reference's: specs, keys, ranges, copies."""

import asyncio
import copy
import pickle
from threading import Event

import numpy as np
import pytest
import tensorstore as reference

import tensorstore_py as ts
from tensorstore_py import Context, Future, KvStore, OutOfRangeError, SpecError
from tensorstore_py.kvstores.memory import MemoryStore
from tensorstore_py.plugin.kvstore import (
    WHOLE,
    CachedRead,
    ListEntry,
    ReadResult,
    ServerCopy,
    TimestampedStorageGeneration,
)
from tensorstore_py.testing import CountingStore, LoopStore, StoreAround

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


KeyRange = ts.KvStore.KeyRange


BOTH = pytest.mark.parametrize("cls", [KeyRange, reference.KvStore.KeyRange])


class TestKeyRange:
    @BOTH
    def test_is_everything_by_default(self, cls):
        everything = cls()

        assert repr(everything) == "KvStore.KeyRange(b'', b'')"
        assert not everything.empty

    @BOTH
    @pytest.mark.parametrize(
        ("low", "high", "empty"),
        [("a", "b", False), ("a", "a", True), ("b", "a", True), ("b", "", False)],
    )
    def test_knows_when_no_key_is_inside(self, cls, low, high, empty):
        assert cls(low, high).empty is empty

    @BOTH
    def test_takes_text_and_bytes(self, cls):
        assert cls("é", b"\xff") == cls("é".encode(), b"\xff")
        assert repr(cls(inclusive_min="é", exclusive_max=b"\xff")) == (
            "KvStore.KeyRange(b'\\xc3\\xa9', b'\\xff')"
        )

    @BOTH
    def test_can_be_changed(self, cls):
        changed = cls("a")
        other = changed.copy()
        changed.inclusive_min = "q"
        changed.exclusive_max = b"z"

        assert (changed.inclusive_min, changed.exclusive_max) == (b"q", b"z")
        assert other == cls("a")
        with pytest.raises(TypeError):
            hash(changed)

    @BOTH
    def test_copies_are_equal(self, cls):
        original = cls("a", "b")

        for clone in (
            copy.copy(original),
            copy.deepcopy(original),
            pickle.loads(pickle.dumps(original)),
        ):
            assert clone == original
            assert clone is not original

    @BOTH
    @pytest.mark.parametrize("key", [5, None, ["a"]])
    def test_other_keys_are_type_errors(self, cls, key):
        with pytest.raises(TypeError):
            cls(key)

    def test_is_unequal_to_anything_else(self):
        assert KeyRange() != 5

    def test_the_error_says_which_argument(self):
        with pytest.raises(TypeError, match="exclusive_max must be str or bytes, not int"):
            KeyRange("a", 5)  # type: ignore[arg-type]


#: At most so many keys of a listing wait to be taken.
PAGE = 1000


class Endless(StoreAround):
    """Lists more keys than anybody wants, and counts those that it was asked for."""

    def __init__(self, base):
        super().__init__(base)
        self.listed = 0
        self.ended = Event()

    async def list(self, key_range=None):
        self.listed = 0
        try:
            while True:
                self.listed += 1
                yield ListEntry(f"p/{self.listed:08}")
        finally:
            self.ended.set()


@pytest.fixture(params=["inline", "loop"])
def empty_store(request):
    face = ts.KvStore.open("memory://").result()
    if request.param == "loop":
        return ts.KvStore.of(face.model, LoopStore(face.store))
    return face


def endless(empty_store):
    listed = Endless(empty_store.store)
    return ts.KvStore.of(empty_store.model, listed), listed


async def collected(keys):
    return [key async for key in keys]


class TestKeys:
    def test_the_keys_of_a_listing(self, empty_store):
        for key in ("a/x", "a/y", "b"):
            empty_store[key] = b""

        for keys, expected in (
            (empty_store.keys(), [b"a/x", b"a/y", b"b"]),
            ((empty_store / "a/").keys(), [b"x", b"y"]),
            (empty_store.keys(ts.KvStore.KeyRange("b")), [b"b"]),
            (empty_store.keys(strip_prefix_length=2), [b"x", b"y", b""]),
        ):
            assert list(keys) == expected
            assert list(keys) == expected
            assert asyncio.run(collected(keys)) == expected
        assert dict(empty_store) == {b"a/x": b"", b"a/y": b"", b"b": b""}

    def test_a_page_is_held_and_no_more(self, empty_store):
        empty_store, listed = endless(empty_store)

        for number, key in enumerate(empty_store.keys(), start=1):
            assert key == b"p/%08d" % number
            assert listed.listed - number < PAGE
            if number > 2 * PAGE:
                break

    def test_a_loop_that_is_left_ends_the_listing(self, empty_store):
        empty_store, listed = endless(empty_store)

        async def some():
            keys = aiter(empty_store.keys())
            first = await anext(keys)
            await keys.aclose()
            return first

        assert asyncio.run(some()) == b"p/00000001"
        assert listed.ended.wait(60)
        listed.ended.clear()
        keys = iter(empty_store.keys())
        assert next(keys) == b"p/00000001"
        keys.close()
        assert listed.ended.wait(60)

    def test_errors_come_in_the_loop(self):
        empty_store = ts.KvStore.open("http://127.0.0.1:9/").result()

        with pytest.raises(TypeError, match="must be a KvStore"):
            empty_store.keys("a")  # type: ignore[arg-type]
        with pytest.raises(ts.UnsupportedError, match="cannot list"):
            list(empty_store.keys())

    def test_of_a_transaction_its_keys(self, empty_store):
        with ts.Transaction() as transaction:
            inside = empty_store.with_transaction(transaction)
            inside["a"] = b""
            assert list(inside.keys()) == [b"a"]
            assert list(empty_store.keys()) == []


Spec = ts.KvStore.Spec


EITHER = pytest.mark.parametrize("cls", [Spec, reference.KvStore.Spec])


WITH_CONTEXT = pytest.mark.parametrize(
    ("cls", "context"), [(Spec, Context), (reference.KvStore.Spec, reference.Context)]
)


JSON = [
    "memory://",
    "memory://a/b",
    "memory:///a",
    "memory://a%20b/%C3%A9",
    "file:///",
    "file:///a/b/",
    "file:///a%20b",
    {"driver": "memory"},
    {"driver": "memory", "path": "a b", "atomic": False},
    {"driver": "memory", "path": "a", "atomic": True},
    {"driver": "memory", "memory_key_value_store": "memory_key_value_store#a"},
    {"driver": "memory", "memory_key_value_store": {}},
    {"driver": "memory", "context": {"memory_key_value_store#a": {}}},
    {"driver": "file", "path": "/a"},
    {"driver": "file", "path": ""},
    {"driver": "file", "path": "/a", "file_io_sync": False, "context": {"file_io_mode": {}}},
]


class TestKvstoreSpec:
    @pytest.mark.parametrize("json", JSON, ids=str)
    def test_prints_as_the_reference_does(self, json):
        ours, theirs = Spec(json), reference.KvStore.Spec(json)

        assert repr(ours) == repr(theirs)
        assert ours.path == theirs.path
        assert ours.to_json() == theirs.to_json()
        assert ours.to_json(include_defaults=True) == theirs.to_json(include_defaults=True)
        assert ours.base is None
        assert repr(Spec(ours.to_json())) == repr(theirs)

    @pytest.mark.parametrize(
        "json", [json for json in JSON if json != {"driver": "file", "path": ""}]
    )
    def test_has_the_urls_of_the_reference(self, json):
        assert Spec(json).url == reference.KvStore.Spec(json).url

    @pytest.mark.parametrize(
        "json",
        ["", "nothing", "memory:", "memory://a?b", "memory://a#b", "memory://%FF", "other://a",
         "file://host/a", "memory://a|memory://b", {}, None, 5, {"driver": "other"}, {"driver": 5},
         {"driver": "memory", "path": 5}, {"driver": "memory", "other": 1},
         {"driver": "memory", "memory_key_value_store": None}, {"driver": "file", "path": "/a//b"}],
        ids=str,
    )  # fmt: skip
    def test_refuses_what_the_reference_refuses(self, json):
        with pytest.raises(ValueError):
            reference.KvStore.Spec(json)
        with pytest.raises(SpecError):
            Spec(json)

    @EITHER
    def test_a_spec_of_a_spec_is_a_copy(self, cls):
        spec = cls("memory://a")
        copies = [cls(spec.to_json()), spec.copy(), copy.copy(spec), copy.deepcopy(spec),
                  pickle.loads(pickle.dumps(spec))]  # fmt: skip
        spec.path = "b"

        assert [each.path for each in copies] == ["a"] * 5
        assert all(each == copies[0] for each in copies)
        assert spec != copies[0]
        with pytest.raises(TypeError):
            hash(spec)

    @EITHER
    @pytest.mark.parametrize("base", ["", "a", "a/", "a/b"])
    @pytest.mark.parametrize("component", ["x", "/x", "x/", "", b"x"])
    def test_paths_are_added_and_joined(self, cls, base, component):
        spec = cls({"driver": "memory", "path": base})
        text = component.decode() if isinstance(component, bytes) else component

        assert (spec + component).path == base + text
        joined = f"{base}/{text}".replace("//", "/") if base and text else base + text
        assert (spec / component).path == joined
        assert spec.path == base

    @WITH_CONTEXT
    def test_can_be_bound_unbound_and_stripped(self, cls, context):
        spec = cls({"driver": "memory", "path": "a", "context": {"memory_key_value_store": {}}})

        spec.update(context=context())
        assert "['memory_key_value_store']" in repr(spec)
        spec.update(unbind_context=True)
        assert spec.to_json() == {
            "driver": "memory",
            "path": "a",
            "context": {"memory_key_value_store": {}},
        }
        spec.update(strip_context=True)
        assert spec.to_json() == {"driver": "memory", "path": "a"}

    @EITHER
    def test_a_context_is_no_json(self, cls):
        with pytest.raises(TypeError):
            cls("memory://").update(context={"memory_key_value_store": {}})

    @WITH_CONTEXT
    def test_a_pickled_spec_keeps_its_binding(self, cls, context):
        spec = cls("memory://a")
        spec.update(context=context())

        assert repr(pickle.loads(pickle.dumps(spec))) == repr(spec)

    def test_an_unknown_driver_is_named_with_the_nearest(self):
        with pytest.raises(SpecError, match=r'driver: .*"memry".*did you mean "memory"'):
            Spec({"driver": "memry"})

    def test_an_unknown_member_is_named_with_the_nearest(self):
        with pytest.raises(SpecError, match=r'atomik.*did you mean "atomic"'):
            Spec({"driver": "memory", "atomik": True})

    def test_is_unequal_to_anything_else(self):
        assert Spec("memory://") != "memory://"

    def test_what_belongs_to_a_store_says_so(self):
        for name in ("KeyRange", "ReadResult", "Spec", "TimestampedStorageGeneration"):
            ours, theirs = getattr(ts.KvStore, name), getattr(reference.KvStore, name)
            assert ours.__qualname__ == theirs.__qualname__
            assert ours.__module__ == ts.__name__
        key_range = ts.KvStore.KeyRange("a", "b")
        assert pickle.loads(pickle.dumps(key_range)) == key_range


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

        class Copying(ServerCopy, MemoryStore):
            async def copy_to(self, key, target, target_key):
                asked.append((key, target, target_key))
                return key == "a"

        monkeypatch.setattr(store.store, "__class__", Copying)

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

        class Cached(CachedRead, StoreAround):
            async def read_as_of(
                self, key, byte_range, staleness_bound, *, if_equal=None, if_not_equal=None
            ):
                asked.append(staleness_bound)
                return await self.read(key, byte_range)

        cached = KvStore.of(store.model, Cached(store.store))
        cached["a"] = b"1"

        cached.experimental_copy_range_to(store / "to/", source_staleness_bound=7.5).result()

        assert asked == [7.5]
        assert store["to/a"] == b"1"
