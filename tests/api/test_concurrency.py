"""The resources that limit something limit it for everything that shares them."""

from threading import Event, Lock, Thread
from typing import Any

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py.kvstores.file import FileStore
from tensorstore_py.plugin.codec import CodecChain
from tests.chunked.stores import counting
from tests.chunked.stores import opened as opened_over
from tests.internals import count_helpers, watch_releases
from tests.runtime.processes import width

SHAPE = [64, 64, 64]


def opened(tmp_path, **context):
    spec = {
        "driver": "zarr3",
        "kvstore": {"driver": "file", "path": f"{tmp_path}/", "file_io_sync": False},
        "context": context,
    }
    layout = ts.ChunkLayout(chunk_shape=[32, 32, 32])
    return ts.open(spec, create=True, dtype="float64", shape=SHAPE, chunk_layout=layout).result()


@pytest.fixture
def asked_for(monkeypatch):
    """How many helpers a piece of work invites to its fan-outs."""
    invited = count_helpers(monkeypatch)

    def count(work):
        invited.clear()
        work()
        return len(invited)

    return count


@pytest.mark.parametrize("resource", ["data_copy_concurrency", "file_io_concurrency"])
def test_a_limit_of_one_keeps_an_operation_on_the_calling_thread(tmp_path, resource, asked_for):
    store = opened(tmp_path, **{resource: {"limit": 1}})
    data = np.random.default_rng(0).random(SHAPE)

    assert asked_for(lambda: store.write(data).result()) == 0
    assert asked_for(lambda: store.read().result()) == 0
    np.testing.assert_array_equal(store.read().result(), data)


def test_by_default_the_whole_pool_is_invited(tmp_path, asked_for):
    store = opened(tmp_path)
    data = np.random.default_rng(0).random(SHAPE)

    assert asked_for(lambda: store.write(data).result()) == width() - 1
    assert asked_for(lambda: store.read().result()) == width() - 1


def test_what_is_decoded_faster_than_a_thread_wakes_is_not_shared_out(tmp_path, asked_for):
    store = opened(tmp_path)
    store.write(1.5).result()

    assert asked_for(lambda: store[0, 0, 0].read().result()) == 0


class Inside:
    """Counts how many threads are inside a function at a time, and makes them meet there."""

    def __init__(self, monkeypatch, owner, name, hoped_for):
        self.highest = self.now = 0
        self.lock = Lock()
        self.hoped_for = hoped_for
        self.met = Event()
        plain = getattr(owner, name)

        def watched(*arguments, **options):
            with self.lock:
                self.now += 1
                self.highest = max(self.highest, self.now)
                if self.now == hoped_for:
                    self.met.set()
            # No thread leaves before as many are inside as may be.
            self.met.wait(30)
            try:
                return plain(*arguments, **options)
            finally:
                with self.lock:
                    self.now -= 1

        monkeypatch.setattr(owner, name, watched)


def read_together(stores):
    """Each store is read on a thread of its own, so that more threads want in than may."""
    results = []
    threads = [Thread(target=lambda s=store: results.append(s.read().result())) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(results) == len(stores)


def two_arrays(tmp_path, first, second):
    stores = []
    for name, context in (("a", first), ("b", second)):
        spec = {
            "driver": "zarr3",
            "kvstore": {"driver": "file", "path": f"{tmp_path}/{name}/", "file_io_sync": False},
        }
        layout = ts.ChunkLayout(chunk_shape=[4])
        store = ts.open(
            spec, create=True, dtype="uint8", shape=[8], chunk_layout=layout, context=context
        ).result()
        store[...] = 1
        stores.append(store)
    return stores


@pytest.mark.parametrize(
    ("resource", "owner", "name"),
    [
        ("file_io_concurrency", FileStore, "_read"),
        ("data_copy_concurrency", CodecChain, "decode_into"),
    ],
)
@pytest.mark.parametrize("limit", [1, 2])
def test_a_limit_holds_for_all_that_share_the_resource(
    tmp_path, monkeypatch, resource, owner, name, limit
):
    context = ts.Context({resource: {"limit": limit}})
    stores = two_arrays(tmp_path, context, context)
    inside = Inside(monkeypatch, owner, name, limit)
    read_together(stores * 2)
    assert inside.highest == limit


@pytest.mark.parametrize(
    ("resource", "owner", "name"),
    [
        ("file_io_concurrency", FileStore, "_read"),
        ("data_copy_concurrency", CodecChain, "decode_into"),
    ],
)
def test_resources_of_their_own_do_not_limit_each_other(
    tmp_path, monkeypatch, resource, owner, name
):
    contexts = [ts.Context({resource: {"limit": 1}}) for _ in range(2)]
    stores = two_arrays(tmp_path, *contexts)
    inside = Inside(monkeypatch, owner, name, 2)
    read_together(stores)
    assert inside.highest == 2


@pytest.fixture
def in_flight(monkeypatch):
    """How many bytes were in flight each time that some were given back."""
    return watch_releases(monkeypatch)


LIMIT = 48


def under_limit():
    return ts.Context({"memory_limit": {"limit_bytes": LIMIT}})


def limited(path, context, inline=True, **layout):
    """64 bytes in chunks of 16."""
    spec = {
        "driver": "zarr3",
        "kvstore": {"driver": "file", "path": f"{path}/", "file_io_sync": False},
    }
    options: dict[str, Any] = {
        "dtype": "uint8",
        "shape": [64],
        "chunk_layout": ts.ChunkLayout(write_chunk_shape=[16], **layout),
    }
    if inline:
        return ts.open(spec, create=True, context=context, **options).result()
    store = counting(inline=False)
    return opened_over(store, create=True, open=True, context=context, **options)


@pytest.mark.parametrize("inline", [True, False], ids=["inline", "loop"])
@pytest.mark.parametrize("layout", [{"read_chunk_shape": [4]}, {}], ids=["shards", "chunks"])
def test_memory_in_flight_stays_below_its_limit(tmp_path, in_flight, layout, inline):
    store = limited(tmp_path, under_limit(), inline, **layout)
    data = np.arange(64, dtype=np.uint8)
    store.write(data).result()
    written = len(in_flight)
    read_together([store] * 4)
    np.testing.assert_array_equal(store.read().result(), data)
    assert 0 < written < len(in_flight)
    assert 0 < max(in_flight) <= LIMIT


@pytest.mark.parametrize("inline", [True, False], ids=["inline", "loop"])
@pytest.mark.parametrize("outline", [True, False], ids=["to inline", "to loop"])
def test_blocks_being_copied_are_counted_with_their_chunks(tmp_path, in_flight, inline, outline):
    context = under_limit()
    source = limited(tmp_path / "a", context, inline)
    target = limited(tmp_path / "b", context, outline)
    data = np.arange(64, dtype=np.uint8)
    source.write(data).result()
    in_flight.clear()
    writes = [target.write(source) for _ in range(3)]
    for write in writes:
        write.result()
    np.testing.assert_array_equal(target.read().result(), data)
    assert 16 < max(in_flight) <= LIMIT


def test_a_chunk_larger_than_the_memory_limit_goes_alone(tmp_path):
    spec = {
        "driver": "zarr3",
        "kvstore": {"driver": "file", "path": f"{tmp_path}/", "file_io_sync": False},
        "context": {"memory_limit": {"limit_bytes": 1}},
    }
    store = ts.open(spec, create=True, dtype="uint8", shape=[64]).result()
    store.write(3).result()
    assert store.read().result().sum() == 192
