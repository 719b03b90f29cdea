"""Stores that suspend: the same calls, run on the library's own loop."""

import asyncio
import threading

import numpy as np
import pytest

import tensorstore_py as ts
from tests.api.loop_memory import WIDTH, LoopMemorySpec

SPEC = {"driver": "zarr3", "kvstore": {"driver": LoopMemorySpec.driver, "path": "a/"}}
VALUES = np.arange(1, 2001, dtype="int32").reshape(40, 50)


@pytest.fixture
def context():
    return ts.Context()


def create(context, **options):
    layout = ts.ChunkLayout(chunk_shape=[10, 10])
    options = {"chunk_layout": layout, "dtype": "int32", "shape": [40, 50], **options}
    return ts.open(SPEC, create=True, context=context, **options)


def traffic(context):
    return context["loop_memory_map"].value


SHARDED = ts.ChunkLayout(read_chunk_shape=[5, 5], write_chunk_shape=[20, 25])


@pytest.mark.parametrize("layout", [None, SHARDED])
def test_in_a_script(context, layout):
    options = {"chunk_layout": layout} if layout else {}
    store = create(context, **options).result()
    store[...] = VALUES
    store[3:7, 12:40] = 5
    expected = VALUES.copy()
    expected[3:7, 12:40] = 5
    np.testing.assert_array_equal(store.read().result(), expected)
    np.testing.assert_array_equal(
        store.oindex[[1, 39, 4], ::7].read().result(), expected[[1, 39, 4], ::7]
    )
    assert "tensorstore_py-loop" in {thread.name for thread in threading.enumerate()}


def test_in_two_loops_one_after_the_other(context):
    async def make():
        store = await create(context)
        await store.write(VALUES)
        return store

    async def use(store):
        return await asyncio.gather(*(store[row].read() for row in range(40)))

    store = asyncio.run(make())
    for _ in range(2):
        np.testing.assert_array_equal(np.stack(asyncio.run(use(store))), VALUES)


def test_as_many_requests_in_flight_as_the_store_likes(context):
    store = create(context).result()
    store[...] = VALUES
    traffic(context).most = 0
    store.read().result()
    assert 1 < traffic(context).most <= WIDTH


def test_resizing_and_listing(context):
    store = create(context).result()
    store[...] = VALUES
    store = store.resize(exclusive_max=[10, 10]).result()
    assert sorted(store.kvstore.list().result()) == [b"c/0/0", b"zarr.json"]
    np.testing.assert_array_equal(store.read().result(), VALUES[:10, :10])


def test_parts_of_one_chunk_written_at_once(context):
    store = create(context).result()
    futures = [store[0, column].write(column + 1) for column in range(10)]
    for future in futures:
        future.result()
    assert store[0, :10].read().result().tolist() == list(range(1, 11))


def test_an_error_on_the_way_reaches_the_asker_and_stops_the_rest(context):
    store = create(context).result()
    store[...] = VALUES
    traffic(context).broken = "c/0/1"
    before = traffic(context).begun
    with pytest.raises(ConnectionResetError, match="c/0/1"):
        store.read().result()
    assert traffic(context).begun - before <= 2 * WIDTH
    traffic(context).broken = ""
    np.testing.assert_array_equal(store.read().result(), VALUES)


async def test_cancelling_stops_the_requests(context):
    store = await create(context)
    await store.write(VALUES)
    traffic(context).held = True
    traffic(context).busy.clear()
    task = asyncio.ensure_future(_read(store))
    await asyncio.to_thread(traffic(context).busy.wait, 30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.to_thread(traffic(context).quiet.wait, 30)
    begun = traffic(context).begun
    traffic(context).held = False
    np.testing.assert_array_equal(await store[:10, :10].read(), VALUES[:10, :10])
    assert traffic(context).begun == begun + 1


async def _read(store):
    return await store.read()


def test_copied_between_a_local_and_a_loop_store(context):
    far = create(context).result()
    near = ts.open(
        {"driver": "zarr", "kvstore": "memory://b/"}, create=True, dtype="int32",
        shape=[40, 50], context=context,
    ).result()  # fmt: skip
    near[...] = VALUES
    far.write(near).result()
    near[...] = 0
    near[5:, 7:] = far[5:, 7:]
    np.testing.assert_array_equal(near[5:, 7:].read().result(), VALUES[5:, 7:])
    assert not near[:5].read().result().any()
