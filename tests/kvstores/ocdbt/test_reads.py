"""Reading OCDBT databases: nodes by columns, what is loaded once, and what is one request."""

import asyncio
import random

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py.errors import DataLossError
from tensorstore_py.kvstores.memory import MemorySpec
from tensorstore_py.kvstores.ocdbt import database as databases
from tensorstore_py.kvstores.ocdbt.btree import Leaf, decode_node, encode_node
from tensorstore_py.kvstores.ocdbt.references import DataFile, Reference
from tensorstore_py.plugin.kvstore import WHOLE, ByteRange, KvStore, read_ranges
from tensorstore_py.testing import CountingStore, LoopStore
from tensorstore_py.testing.kvstore_reads import drive

MOST = 1 << 20
SMALL_NODES = {"max_decoded_node_bytes": 600, "max_inline_value_bytes": 3}


def decoded(leaf):
    return decode_node(encode_node(leaf, None), b"", MOST)


def some_keys(source, count, longest):
    """Ascending keys that have much in common."""
    letters = "ab\0\xff"
    words = {"".join(source.choices(letters, k=source.randint(0, longest))) for _ in range(count)}
    return sorted(word.encode("latin-1") for word in words)


class TestNodesByColumns:
    @pytest.mark.parametrize("count", [1, 30, 4000])
    @pytest.mark.parametrize("longest", [3, 12, 64, 300])
    def test_every_key_and_value_is_there(self, count, longest):
        source = random.Random(count + longest)
        keys = some_keys(source, count, longest)
        file = DataFile(b"base/", b"name")
        values = [
            source.randbytes(source.randint(0, 20))
            if source.random() < 0.5
            else Reference(file, source.randrange(2**40), source.randrange(2**20))
            for _ in keys
        ]

        leaf = decoded(Leaf(keys, values))

        assert leaf == Leaf(keys, values)
        assert [leaf.find(key) for key in keys] == values
        assert [leaf.keys[place] for place in range(-len(keys), len(keys))] == [*keys, *keys]
        assert leaf.values[1:7:2] == values[1:7:2]
        known = set(keys)
        near = {key + b"\0" for key in keys} | {key[:-1] for key in keys}
        assert all(leaf.find(key) is None for key in near - known)

    @pytest.mark.parametrize("count", [3, 3000])
    @pytest.mark.parametrize("wrong", ["twice", "swapped", "shorter"])
    def test_keys_out_of_order_are_refused(self, count, wrong):
        keys = [b"key%06d" % number for number in range(count)]
        middle = count // 2
        if wrong == "twice":
            keys[middle] = keys[middle - 1]
        elif wrong == "swapped":
            keys[middle - 1 : middle + 1] = keys[middle - 1 : middle + 1][::-1]
        else:
            keys[middle] = keys[middle - 1][:-1]

        with pytest.raises(DataLossError, match="not above the one before"):
            decoded(Leaf(keys, [b""] * count))

    def test_a_small_node_does_not_become_a_large_one(self):
        keys = [b"p" * 60_000 + b"%04d" % number for number in range(200)]

        with pytest.raises(DataLossError, match="its keys have 12000800 bytes"):
            decoded(Leaf(keys, [b""] * len(keys)))


@pytest.fixture
def base(monkeypatch, request):
    """The store beneath, counted: the same one for all who open a memory store."""
    opened = MemorySpec.open
    counted: list[CountingStore] = []
    seen: list[KvStore] = []

    def counting(spec):
        if not seen:
            counted.append(CountingStore(opened(spec)))
            seen.append(LoopStore(counted[0]) if getattr(request, "param", False) else counted[0])
        return seen[0]

    monkeypatch.setattr(MemorySpec, "open", counting)
    ts.KvStore.open("memory://").result()
    return counted[0]


pytestmark = pytest.mark.usefixtures("base")
both_modes = pytest.mark.parametrize("base", [False, True], indirect=True, ids=["inline", "loop"])
loop_mode = pytest.mark.parametrize("base", [True], indirect=True, ids=["loop"])


def database(context=None, **members):
    spec = {"driver": "ocdbt", "base": "memory://db/", **members}
    return ts.KvStore.open(spec, context=context or ts.Context()).result()


def filled(count=1000, size=20, config=SMALL_NODES):
    """Keys and values of a new database, in one version."""
    values = {f"k{number:05d}": b"%0*d" % (size, number) for number in range(count)}
    kv = database(config=config)
    with ts.Transaction() as transaction:
        staged = kv.with_transaction(transaction)
        for key, value in values.items():
            staged[key] = value
    return values


def read_together(kv, keys, since=None):
    """The values of keys that are asked for in one moment, where operations run."""

    def one(key):
        return kv.store.read(key) if since is None else kv.store.read_as_of(key, WHOLE, since)

    async def read():
        if kv.store.inline:
            return [await one(key) for key in keys]
        return await asyncio.gather(*map(one, keys))

    return [bytes(result.value) for result in drive(kv.store, read)]


def manifest_reads(base):
    return base.reads["db/manifest.ocdbt"]


def data_reads(base):
    return sum(count for key, count in base.reads.items() if not key.endswith("manifest.ocdbt"))


def count_nodes(monkeypatch):
    """Places of nodes, one for each time that one is decoded."""
    seen = []

    def counted(data, base, most):
        seen.append(data)
        return decode_node(data, base, most)

    monkeypatch.setattr(databases, "decode_node", counted)
    return seen


@both_modes
def test_a_thousand_reads_in_flight_load_each_node_once(monkeypatch):
    values = filled(config={**SMALL_NODES, "max_inline_value_bytes": 100})
    kv = database()
    nodes = count_nodes(monkeypatch)

    assert read_together(kv, values) == list(values.values())

    assert len(nodes) == len(set(nodes)) > 100


@loop_mode
def test_a_thousand_reads_in_flight_look_at_the_manifest_twice_at_most(base):
    values = filled()
    kv = database()
    base.reset()

    assert read_together(kv, values) == list(values.values())

    assert manifest_reads(base) <= 2


@both_modes
def test_all_who_open_a_database_in_one_context_share_it(monkeypatch):
    values = filled()
    context = ts.Context()
    first = database(context)
    key = next(iter(values))
    first.read(key).result()
    nodes = count_nodes(monkeypatch)

    for _ in range(10):
        assert database(context).read(key).result().value == values[key]

    assert nodes == []


@both_modes
def test_nothing_is_asked_while_an_old_answer_will_do(base):
    values = filled(config={"max_inline_value_bytes": 100})
    kv = database()
    kv.list().result()
    base.reset()

    found = [kv.read(key, staleness_bound=0).result().value for key in values]

    assert found == list(values.values())
    assert base.reads.total() == 0


@both_modes
def test_arrays_that_need_not_recheck_do_not_look_at_the_manifest(base):
    context = ts.Context()
    spec = {
        "driver": "zarr3",
        "kvstore": {"driver": "ocdbt", "base": "memory://db/", "path": "a/"},
    }
    data = np.arange(64, dtype="uint8").reshape(8, 8)
    layout = ts.ChunkLayout(chunk_shape=[2, 2])
    new = ts.open(spec, create=True, dtype="uint8", shape=[8, 8], chunk_layout=layout)
    new.result().write(data).result()
    bounds = {"recheck_cached_data": False, "recheck_cached_metadata": False}
    array = ts.open({**spec, **bounds}, context=context).result()
    base.reset()

    again = ts.open({**spec, **bounds}, context=context).result()
    for each in (array, again):
        assert np.array_equal(each.read().result(), data)

    assert manifest_reads(base) <= 1  # small neighbours are asked for by one call, as they are
    assert ts.open(spec, context=context).result() is not None
    assert manifest_reads(base) > 0


class TestCoalescing:
    @both_modes
    def test_small_values_side_by_side_are_one_request(self, base):
        values = filled(count=200)
        kv = database()
        kv.list().result()
        base.reset()

        if kv.store.inline:
            found = drive(kv.store, lambda: kv.store.read_values(list(values), memoryview(b"")))
        else:
            found = read_together(kv, values, since=0)

        assert list(map(bytes, found)) == list(values.values())
        assert data_reads(base) == 1

    @loop_mode
    def test_large_values_are_read_by_several_at_a_time(self, base):
        values = filled(count=4, size=2**20)
        kv = database()
        kv.list().result()
        base.reset()

        assert read_together(kv, values, since=0) == list(values.values())

        assert data_reads(base) == 4

    @loop_mode
    @pytest.mark.parametrize(
        ("options", "requests"),
        [
            ({"threshold_bytes": 30}, 1),
            ({"threshold_bytes": 10}, 10),
            ({"threshold_bytes": 30, "merged_bytes": 110}, 4),
            ({"merged_bytes": 110}, 10),
            ({"interval": "1ms"}, 10),
        ],
    )
    def test_options_say_what_is_read_together(self, base, options, requests):
        values = filled(count=20)
        members = {f"experimental_read_coalescing_{name}": said for name, said in options.items()}
        kv = database(**members)
        kv.list().result()
        base.reset()
        every_other = list(values)[::2]

        assert read_together(kv, every_other, since=0) == [values[key] for key in every_other]

        assert data_reads(base) == requests

    @loop_mode
    def test_within_the_interval_readers_wait_for_others(self, base):
        values = filled(count=20)
        kv = database(experimental_read_coalescing_interval="100ms")
        kv.list().result()
        base.reset()

        async def late(number, key):
            for _ in range(5 * number):
                await asyncio.sleep(0)
            return (await kv.store.read(key)).value

        async def read():
            return await asyncio.gather(*(late(*each) for each in enumerate(values)))

        assert list(map(bytes, drive(kv.store, read))) == list(values.values())
        assert data_reads(base) == 1

    @loop_mode
    def test_a_reader_that_gives_up_takes_nothing_from_the_others(self, base):
        values = filled(count=3)
        kv = database()
        kv.list().result()

        async def read():
            first, second, third = (asyncio.ensure_future(kv.store.read(key)) for key in values)
            for _ in range(4):
                await asyncio.sleep(0)
            second.cancel()
            return (await first).value, (await third).value

        first, _, third = values.values()
        assert tuple(map(bytes, drive(kv.store, read))) == (first, third)

    @both_modes
    def test_parts_of_a_value_are_one_request_where_they_are_close(self, base):
        value = random.Random(1).randbytes(100_000)
        kv = database()
        kv["a"] = value
        base.reset()
        ranges = [ByteRange(0, 10), ByteRange(50_000, 50_010), ByteRange(12, 20), ByteRange(3, 3)]

        results = drive(kv.store, lambda: read_ranges(kv.store, "a", ranges))

        assert [bytes(each.value) for each in results] == [
            value[:10], value[50_000:50_010], value[12:20], b"",
        ]  # fmt: skip
        assert base.bytes_read.total() - base.bytes_read["db/manifest.ocdbt"] == 30

    @both_modes
    def test_a_file_that_is_gone_is_named(self, base):
        values = filled(count=20)
        kv = database()
        kv.list().result()
        (name,) = [key for key in base.writes if "/d/" in key]
        drive(base, lambda: base.write(name, None))

        key, parts = next(iter(values)), [ByteRange(0, 1), ByteRange(2, 3)]
        for read in (lambda: kv.store.read(key), lambda: read_ranges(kv.store, key, parts)):
            with pytest.raises(DataLossError, match="the file is missing") as raised:
                drive(kv.store, read)
            assert name in str(raised.value)


class TestReadAhead:
    """Small values that are read one after the other by who blocks a thread."""

    def test_neighbours_come_by_blocks(self, base):
        values = filled(count=2000, size=100)
        kv = database()
        kv.list().result()
        base.reset()

        for key, value in values.items():
            assert kv.read(key, staleness_bound=0).result().value == value

        assert data_reads(base) <= 10

    def test_in_any_order_each_block_is_read_once(self, base):
        values = filled(count=4000, size=100)
        kv = database()
        kv.list().result()
        (name,) = [key for key in base.writes if "/d/" in key]
        blocks = -(-len(drive(base, lambda: base.read(name)).value) // 65536)
        base.reset()
        keys = list(values)
        random.Random(1).shuffle(keys)

        found = {key: kv.read(key, staleness_bound=0).result().value for key in keys}

        assert found == values
        assert data_reads(base) <= 3 * blocks

    def test_values_here_and_there_are_read_as_they_are(self, base):
        # 100 kB lie between two of them.
        values = filled(count=40, size=100_000)
        kv = database()
        kv.list().result()
        base.reset()

        for key in list(values)[::2]:
            part = kv.read(key, byte_range=slice(5, 25), staleness_bound=0).result().value
            assert part == values[key][5:25]

        assert base.bytes_read.total() == 20 * 20

    def test_what_many_small_values_and_large_ones_are_made_of(self, base):
        # Values that reach over the end of a block, into the next one and to the end of a file.
        source = random.Random(2)
        sizes = [source.choice([4, 700, 8000, 8192, 8193, 70_000]) for _ in range(300)]
        kv = database(config={"max_inline_value_bytes": 0})
        values = {f"{number:03d}": source.randbytes(size) for number, size in enumerate(sizes)}
        with ts.Transaction() as transaction:
            staged = kv.with_transaction(transaction)
            for key, value in values.items():
                staged[key] = value
        kv = database()

        for _ in range(2):
            for key, value in values.items():
                assert kv.read(key).result().value == value

    def test_a_new_version_is_seen(self, base):
        values = filled(count=100, size=100)
        kv = database()
        for key in values:
            assert kv[key] == values[key]

        database()["k00050"] = b"another value"

        assert kv["k00050"] == b"another value"
        assert kv["k00051"] == values["k00051"]

    def test_a_file_that_ends_too_early_is_named(self, base):
        values = filled(count=100, size=100)
        kv = database()
        kv.list().result()
        (name,) = [key for key in base.writes if "/d/" in key]
        whole = drive(base, lambda: base.read(name)).value
        drive(base, lambda: base.write(name, bytes(whole)[:5000]))

        there = list(values)[:40]
        assert [kv[key] for key in there] == [values[key] for key in there]
        for key in list(values)[60:]:
            with pytest.raises(DataLossError, match=f"{name}.*the file is shorter"):
                kv[key]
        assert [kv[key] for key in there] == [values[key] for key in there]


@both_modes
def test_a_listing_loads_each_node_once_and_keeps_to_its_range(monkeypatch):
    values = filled()
    nodes = count_nodes(monkeypatch)

    listed = (database() / "k004").list().result()

    assert sorted(listed) == [f"{number:02d}".encode() for number in range(100)]
    some = len(nodes)
    assert sorted(database().list().result()) == sorted(map(str.encode, values))
    assert 4 * some < len(nodes)
    assert len(nodes) - some == len(set(nodes[some:]))


def test_a_large_value_is_not_copied(tmp_path, monkeypatch):
    """What a file store reads is what the reader gets."""
    spec = {"driver": "ocdbt", "base": f"file://{tmp_path}/"}
    kv = ts.KvStore.open(spec).result()
    kv["a"] = bytes(range(256)) * 2**15
    from_file = []
    assert kv.base is not None
    store = kv.base.store
    read = type(store).read

    async def kept(self, *arguments, **options):
        result = await read(self, *arguments, **options)
        from_file.append(result.value)
        return result

    monkeypatch.setattr(type(store), "read", kept)

    result = drive(kv.store, lambda: kv.store.read("a"))

    assert result.value is from_file[-1]
