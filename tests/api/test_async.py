"""From scripts, from the user's own event loops, from threads: the same calls."""

import asyncio
import threading

import numpy as np
import pytest

import tensorstore_py as ts
from tests.runtime.processes import run_script

MEMORY = {"driver": "zarr3", "kvstore": "memory://a/"}


def create(context=None, **options):
    options = {"dtype": "int32", "shape": [40, 50], **options}
    layout = ts.ChunkLayout(chunk_shape=[10, 10])
    return ts.open(MEMORY, create=True, context=context, chunk_layout=layout, **options)


VALUES = np.arange(2000, dtype="int32").reshape(40, 50)


def test_in_a_script():
    store = create().result()
    store[...] = VALUES
    np.testing.assert_array_equal(store[5:20, 3].read().result(), VALUES[5:20, 3])


async def test_in_a_loop():
    store = await create()
    await store.write(VALUES)
    parts = await asyncio.gather(*(store[row].read() for row in range(40)))
    np.testing.assert_array_equal(np.stack(parts), VALUES)


def test_one_store_in_two_loops_one_after_the_other():
    async def make():
        store = await create()
        await store.write(VALUES)
        return store

    async def use(store):
        return await store.read()

    store = asyncio.run(make())
    for _ in range(2):
        np.testing.assert_array_equal(asyncio.run(use(store)), VALUES)
    np.testing.assert_array_equal(store.read().result(), VALUES)


def test_results_asked_for_in_a_running_loop():
    async def main():
        store = create().result()
        store[...] = VALUES
        return store.read().result()

    np.testing.assert_array_equal(asyncio.run(main()), VALUES)


def test_from_many_threads():
    store = create().result()
    failures: list[BaseException] = []

    def work(row):
        try:
            store[row] = VALUES[row]
            np.testing.assert_array_equal(store[row].read().result(), VALUES[row])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(row,)) for row in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    np.testing.assert_array_equal(store.read().result(), VALUES)


async def test_write_futures():
    store = await create()
    write = store.write(VALUES)
    assert isinstance(write, ts.WriteFutures)
    await write.copy
    await write.commit
    await write
    assert write.done()


async def test_a_source_may_change_once_it_is_copied():
    store = await create()
    values = VALUES.copy()
    write = store.write(values)
    await write.copy
    values[...] = 0
    await write
    np.testing.assert_array_equal(await store.read(), VALUES)


async def test_errors_are_raised_where_it_is_awaited():
    store = await create()
    with pytest.raises(IndexError):
        await store[39:45].read()
    with pytest.raises(ValueError, match="create=True"):
        await ts.open({"driver": "zarr3", "kvstore": "memory://none/"})


async def test_cancelling_a_task_leaves_whole_chunks():
    store = await create()
    task = asyncio.ensure_future(_write(store))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    found = await store.read()
    for row in range(0, 40, 10):
        for column in range(0, 50, 10):
            chunk = found[row : row + 10, column : column + 10]
            whole = VALUES[row : row + 10, column : column + 10]
            assert (chunk == whole).all() or (chunk == 0).all()


async def _write(store):
    await store.write(VALUES)


def test_callbacks():
    store = create().result()
    done = threading.Event()
    found: list[ts.Future] = []
    future = store.read()
    future.add_done_callback(found.append)
    future.add_done_callback(lambda _: done.set())
    assert done.wait(30)
    assert found == [future]


def test_local_stores_start_no_loop_thread_and_no_task(tmp_path):
    out = run_script(f"""
        import threading
        import tensorstore_py as ts
        for kvstore in ("memory://", {{"driver": "file", "path": {str(tmp_path / "a/")!r}}}):
            store = ts.open(
                {{"driver": "zarr3", "kvstore": kvstore}}, create=True, dtype="uint8", shape=[100]
            ).result()
            store[...] = 3
            print(store.read().result().sum())
        print("tensorstore_py-loop" in [thread.name for thread in threading.enumerate()])
    """)
    assert out == "300\n300\nFalse\n"


def test_writes_that_are_not_waited_for_are_stored_at_exit(tmp_path):
    run_script(f"""
        import tensorstore_py as ts
        store = ts.open(
            {{"driver": "zarr3", "kvstore": {{"driver": "file", "path": {str(tmp_path)!r}}}}},
            create=True, dtype="uint8", shape=[1000],
            chunk_layout=ts.ChunkLayout(chunk_shape=[10]),
        ).result()
        store.write(5)
    """)
    assert (ts.open(tmp_path).result().read().result() == 5).all()


def test_forked_children_read_and_write_too(tmp_path):
    out = run_script(f"""
        import multiprocessing
        import numpy as np
        import tensorstore_py as ts
        store = ts.open(
            {{"driver": "zarr3", "kvstore": {{"driver": "file", "path": {str(tmp_path)!r}}}}},
            create=True, dtype="uint8", shape=[40],
            chunk_layout=ts.ChunkLayout(chunk_shape=[5]),
        ).result()
        store[...] = 1
        def work(number):
            store[number * 10 : number * 10 + 10] = number + 2
            return int(store[number * 10].read().result())
        with multiprocessing.get_context("fork").Pool(4) as pool:
            print(pool.map(work, range(4)))
        print(np.unique(store.read().result()).tolist())
    """)
    assert out == "[2, 3, 4, 5]\n[2, 3, 4, 5]\n"
