"""What writing to OCDBT databases costs: counted in requests, bytes and copies, never in time."""

import itertools
import random
import tracemalloc
from typing import cast

import numpy as np
import pytest
import tensorstore as reference

import tensorstore_py as ts
from tensorstore_py.kvstores.memory import MemorySpec
from tensorstore_py.kvstores.ocdbt import OcdbtSpec, commits
from tensorstore_py.kvstores.ocdbt.btree import Leaf, decode_node, encode_node
from tensorstore_py.kvstores.ocdbt.references import DataFile, Reference
from tensorstore_py.kvstores.ocdbt.wire import Reader, Writer
from tensorstore_py.plugin.kvstore import GroupedWrite
from tensorstore_py.testing import CountingStore, LoopStore
from tests.internals import set_group_bytes

LARGE = b"large" * 1000
MIB = 1 << 20


def open_anew(library, folder, **members):
    base = {"driver": "file", "path": f"{folder}/"}
    spec = {"driver": "ocdbt", "base": base, **members}
    return library.KvStore.open(spec, context=library.Context()).result()


@pytest.fixture(params=[False, True], ids=["inline", "loop"])
def counted(request, monkeypatch):
    """A function that opens a database in memory, and gives it and the count of its files."""
    opened = MemorySpec.open
    counters: list[CountingStore] = []

    def open_counted(spec):
        if not counters:
            store = opened(spec)
            counters.append(CountingStore(LoopStore(store) if request.param else store))
        return counters[0]

    monkeypatch.setattr(MemorySpec, "open", open_counted)

    def database(**members):
        spec = {"driver": "ocdbt", "base": "memory://db/", **members}
        kv = ts.KvStore.open(spec).result()
        kv["first"] = b"1"
        counters[0].reset()
        return kv, counters[0]

    return database


class TestStaging:
    def test_a_staged_write_is_done_and_asks_nothing(self, counted):
        kv, files = counted()
        with ts.Transaction() as transaction:
            staged = kv.with_transaction(transaction)
            futures = [staged.write(f"k{number}", LARGE) for number in range(1000)]
            assert all(future.done() for future in futures), "nothing was to be begun"
            assert len({future.result().generation for future in futures}) == 1000
            assert not files.reads
            assert not files.writes

        assert files.writes["db/manifest.ocdbt"] == 1
        assert files.writes.total() == 2, "one data file, and the manifest"
        assert len(kv.list().result()) == 1001

    def test_what_cannot_be_staged_is_told_by_the_future_and_fails_the_commit(self, tmp_path):
        kv = ts.KvStore.open(f"file://{tmp_path}/").result()
        transaction = ts.Transaction(atomic=True)
        staged = kv.with_transaction(transaction)
        staged["a"] = b"1"
        future = staged.write("b", b"2")

        with pytest.raises(ts.FailedPreconditionError, match="one key at a time"):
            future.result()
        with pytest.raises(ts.AbortedError, match="one key at a time"):
            transaction.commit_sync()
        assert not list(tmp_path.iterdir())

    def test_nothing_is_staged_when_it_is_over(self):
        kv = ts.KvStore.open("memory://").result()
        transaction = ts.Transaction()
        staged = kv.with_transaction(transaction)
        transaction.commit_sync()
        with pytest.raises(ts.FailedPreconditionError, match="not open"):
            staged.write("a", b"1")

    def test_memory_that_the_caller_changes_is_not_staged(self):
        kv = ts.KvStore.open("memory://").result()
        value = bytearray(b"before")
        with ts.Transaction() as transaction:
            kv.with_transaction(transaction)["a"] = value
            value[:] = b"change"
        assert kv["a"] == b"before"


class TestCommitting:
    def test_writes_in_flight_are_committed_together(self, counted):
        kv, files = counted()
        # What waits by then may be begun by a worker meanwhile: a few commits, not a thousand.
        futures = [kv.write(f"k{number:04d}", b"%d" % number) for number in range(1000)]
        stamps = [future.result() for future in futures]

        assert files.writes["db/manifest.ocdbt"] <= 100
        assert kv["k0999"] == b"999"
        assert stamps[7].generation == kv.read("k0007").result().stamp.generation

    def test_conditions_of_writes_that_are_committed_together(self, counted):
        kv, _ = counted()
        first = [kv.write("a", b"%d" % number, if_equal=b"\x02") for number in range(10)]
        assert sum(future.result().generation != b"" for future in first) == 1

    def test_what_was_asked_for_is_made_by_whoever_begins_unless_it_was_withdrawn(self):
        kv = ts.KvStore.open("memory://db/|ocdbt:").result()
        store = kv.store
        assert isinstance(store, GroupedWrite)
        wanted, unwanted = (store.register_write(key, b"2", None) for key in "bc")
        assert wanted is not None
        assert unwanted is not None
        unwanted.withdraw()
        kv["a"] = b"1"
        assert kv.list().result() == [b"a", b"b"]
        assert wanted.short

    def test_generations_are_made_for_who_asks(self, counted, monkeypatch):
        made = []
        original = commits.generation_of

        def count(value):
            made.append(value)
            return original(value)

        monkeypatch.setattr(commits, "generation_of", count)
        kv, _ = counted()
        with ts.Transaction() as transaction:
            staged = kv.with_transaction(transaction)
            for number in range(100):
                staged[f"k{number}"] = b"%d" % number
        made.clear()
        with ts.Transaction() as transaction:
            staged = kv.with_transaction(transaction)
            for number in range(100):
                staged[f"k{number}"] = b"%d" % number
        assert not made

    def test_large_nodes_are_encoded_in_places_of_data_copy_concurrency(self, monkeypatch):
        context = ts.Context({"data_copy_concurrency": {"limit": 3}})
        kv = ts.KvStore.open("memory://db/|ocdbt:", context=context).result()
        limiter = cast("OcdbtSpec", kv.model).data_copy_concurrency.value
        free = []

        def encode(*arguments):
            free.append(limiter.available)
            return encode_node(*arguments)

        monkeypatch.setattr(commits, "encode_node", encode)
        with ts.Transaction() as transaction:
            for number in range(1000):
                kv.with_transaction(transaction)[f"k{number}"] = b"1"
        assert free == [2]
        assert limiter.available == 3

    def test_only_leaves_that_change_are_written(self, counted):
        kv, files = counted(config={"max_decoded_node_bytes": 1000, "compression": None})
        with ts.Transaction() as transaction:
            staged = kv.with_transaction(transaction)
            for number in range(5000):
                staged[f"k{number:05d}"] = b"%050d" % number
        files.reset()
        kv["k02500"] = b"new"
        assert files.bytes_written.total() < 20 * 1000

    def test_nodes_that_change_are_loaded_a_level_by_one_request(self, counted):
        config = {"max_decoded_node_bytes": 1000}
        kv, files = counted(config=config)
        values = {f"k{number:05d}".encode(): b"%d" % number for number in range(3000)}
        with ts.Transaction() as transaction:
            staged = kv.with_transaction(transaction)
            for key, value in values.items():
                staged[key] = value
        spec = {"driver": "ocdbt", "base": "memory://db/", "config": config}
        anew = ts.KvStore.open(spec, context=ts.Context()).result()
        files.reset()

        changed = dict.fromkeys(list(values)[::20], b"changed")
        with ts.Transaction() as transaction:
            staged = anew.with_transaction(transaction)
            for key, value in changed.items():
                staged[key] = value

        reads = sum(count for name, count in files.reads.items() if "/d/" in name)
        version = ts.ocdbt.versions("memory://db/").result()[0]
        assert version.height >= 2
        assert reads == version.height + 1, "the root, and a request of each level below"
        found = {key: anew[key] for key in anew.list().result()}
        assert found == {b"first": b"1", **values, **changed}


class TestLargeValues:
    def test_a_value_is_not_copied_on_its_way(self, tmp_path):
        kv = open_anew(ts, tmp_path)
        kv["small"] = b"1"
        value = bytes(32 * MIB)
        tracemalloc.start()
        try:
            with ts.Transaction() as transaction:
                staged = kv.with_transaction(transaction)
                staged["a"], staged["b"] = value, value
            kv["c"] = value
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 4 * MIB
        assert len(open_anew(reference, tmp_path)["b"]) == len(value)

    def test_data_files_end_at_their_size(self, tmp_path):
        kv = open_anew(ts, tmp_path, value_data_prefix="v", target_data_file_size=3 * MIB)
        with ts.Transaction() as transaction:
            for number in range(8):
                kv.with_transaction(transaction)[f"k{number}"] = bytes([number]) * MIB
        sizes = sorted(file.stat().st_size for file in tmp_path.glob("v*"))
        assert sizes == [2 * MIB, 3 * MIB, 3 * MIB]
        read = open_anew(reference, tmp_path)
        assert [read[f"k{number}"][:1] for number in range(8)] == [b"%c" % n for n in range(8)]


def array_spec(folder):
    return {
        "driver": "zarr3",
        "kvstore": {"driver": "ocdbt", "base": f"file://{folder}/", "path": "a/"},
        "metadata": {
            "shape": [64, 64],
            "data_type": "uint8",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [16, 16]}},
        },
    }


def theirs(folder):
    kvstore = {"driver": "ocdbt", "base": f"file://{folder}/", "path": "a/"}
    return reference.open({"driver": "zarr3", "kvstore": kvstore}).result().read().result()


class TestArrays:
    def test_all_that_a_transaction_writes_is_one_version(self, tmp_path):
        with ts.Transaction() as transaction:
            store = ts.open(array_spec(tmp_path), create=True, transaction=transaction).result()
            store[...] = 7
        assert (theirs(tmp_path) == 7).all()
        assert len(list((tmp_path / "d").iterdir())) == 1

    def test_chunks_of_one_write_are_stored_together(self, tmp_path):
        store = ts.open(array_spec(tmp_path), create=True).result()
        store[...] = 7
        assert len(list((tmp_path / "d").iterdir())) == 2, "one of the metadata, one of the chunks"
        store[8:56, 8:56] = 9  # parts of chunks
        assert len(list((tmp_path / "d").iterdir())) == 3
        wanted = np.full((64, 64), 7, np.uint8)
        wanted[8:56, 8:56] = 9
        assert np.array_equal(theirs(tmp_path), wanted)

    def test_but_only_so_many_bytes_of_them(self, tmp_path, monkeypatch):
        set_group_bytes(monkeypatch, 1000)
        store = ts.open(array_spec(tmp_path), create=True).result()
        data = np.random.default_rng(0).integers(0, 255, (64, 64), np.uint8)
        store[...] = data
        # 16 chunks of 256 bytes: four at a time; the threads that store may find more or fewer.
        assert 2 <= len(list((tmp_path / "d").iterdir())) - 1 <= 8
        assert np.array_equal(theirs(tmp_path), data)

    def test_parts_of_one_chunk_by_writers_at_once_are_all_kept(self, tmp_path):
        store = ts.open(array_spec(tmp_path), create=True).result()
        futures = [store[row, :].write(row + 1) for row in range(64)]
        for future in futures:
            future.result()
        assert np.array_equal(theirs(tmp_path)[:, 0], np.arange(1, 65))


class TestColumns:
    @pytest.mark.parametrize("seed", range(5))
    def test_numbers_are_as_one_by_one(self, seed):
        source = random.Random(seed)
        numbers = [source.getrandbits(source.randint(1, 64)) for _ in range(200)] + [0, 2**64 - 1]
        together, each = Writer(), Writer()
        together.varints(numbers)
        for number in numbers:
            each.varint(number)
        assert together.data == each.data
        assert Reader(bytes(together.data)).varints(len(numbers)) == numbers

    @pytest.mark.parametrize("alphabet", [b"\0", b"\0a", b"ab/", bytes(range(256))])
    @pytest.mark.parametrize("longest", [3, 40, 1200])
    def test_keys_share_what_they_have_in_common(self, alphabet, longest):
        source = random.Random(longest)
        keys = sorted(
            {
                bytes(source.choices(alphabet, k=source.randint(0, longest)))
                for _ in range(6000 if longest < 100 else 50)
            }
        )
        leaf = Leaf(keys, [key[:3] for key in keys])
        data = encode_node(leaf, None)
        assert decode_node(data, b"", 1 << 20) == leaf
        # The shortest form: each key has what the one before has in common with it only there.
        shared = [_common(one, two) for one, two in itertools.pairwise(keys)]
        assert len(b"".join(keys)) - sum(shared) <= len(data)
        assert sum(map(len, keys)) - sum(shared) == _suffix_bytes(data, len(keys))


@pytest.mark.parametrize("count", [1, 2, 40, 255, 256, 257, 1000])
def test_leaves_of_any_size_are_read_as_they_were(count):
    chance = random.Random(count)
    keys = sorted({b"group/%d" % chance.randrange(10**6) for _ in range(count)})
    file = DataFile(b"", b"d/file")
    values = [
        Reference(file, chance.randrange(10**9), number) if chance.random() < 0.3 else b"v" * number
        for number in range(len(keys))
    ]
    leaf = Leaf(keys, values)

    found = decode_node(encode_node(leaf, None), b"", MIB)

    assert isinstance(found, Leaf)
    assert list(found.keys) == keys
    assert list(found.values) == values
    for wrong in ([*keys, keys[-1]], keys[::-1] if count > 1 else [*keys, b""]):
        with pytest.raises(ts.DataLossError, match="not above the one before"):
            decode_node(encode_node(Leaf(wrong, [b""] * len(wrong)), None), b"", MIB)


def _common(one, two):
    count = 0
    while count < min(len(one), len(two)) and one[count] == two[count]:
        count += 1
    return count


def _suffix_bytes(data, count):
    """What the keys of a leaf without compression or data files take, without shared bytes."""
    reader = Reader(data, 14)
    assert (reader.byte(), reader.varint(), reader.varint()) == (0, 0, count)
    reader.varints(count - 1)
    return sum(reader.varints(count))
