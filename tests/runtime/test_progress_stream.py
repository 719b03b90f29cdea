import asyncio

import pytest

import tensorstore_py as ts


async def array(**options):
    spec = {"driver": "zarr3", "kvstore": "memory://"}
    layout = ts.ChunkLayout(chunk_shape=[2])
    return await ts.open(spec, create=True, dtype="int8", shape=[8], chunk_layout=layout, **options)


async def test_the_events_of_a_copy_end_with_it(tmp_path):
    store = await array()
    stream = ts.ProgressStream()

    copying = ts.copy(store, tmp_path / "a", progress=stream)
    seen = [event async for event in stream]

    assert (await copying).bytes == 8
    assert seen[-1].bytes_done == seen[-1].bytes_total == 8
    assert [each.bytes_done for each in seen] == sorted(each.bytes_done for each in seen)


async def test_who_listens_late_gets_the_last_event():
    store = await array()
    stream = ts.ProgressStream()
    await store.read(progress=stream)

    assert [event.fraction async for event in stream] == [1.0]
    assert [event async for event in stream] == []


async def test_a_failure_ends_it():
    store = await array(context=ts.Context())
    stream = ts.ProgressStream()

    copying = ts.copy(store, "memory://x/y.zarr/", if_exists="raise", progress=stream, dtype="bool")
    async for _ in stream:
        pass

    with pytest.raises(ts.MismatchError):
        await copying


async def test_a_listener_that_is_cancelled_is_none():
    stream = ts.ProgressStream()
    listening = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    listening.cancel()
    await asyncio.wait([listening])

    stream(ts.Progress(1, 2, 0, 0))

    assert (await anext(stream)).bytes_done == 1


def test_news_from_a_loop_that_is_gone():
    stream = ts.ProgressStream()

    async def listen():
        asyncio.ensure_future(anext(stream)).add_done_callback(lambda each: each.cancelled())
        await asyncio.sleep(0)

    asyncio.run(listen())
    stream(ts.Progress(1, 2, 0, 0))
    stream.close()

    async def rest():
        return [event.bytes_done async for event in stream]

    assert asyncio.run(rest()) == [1]
