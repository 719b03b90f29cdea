"""The same calls in an event loop: await them, gather them, give them up."""

import asyncio

import numpy as np

import tensorstore_py as ts


async def mean_of_plane(store: ts.TensorStore, z: int) -> float:
    """Reads one plane; the loop is free for others while it waits."""
    return float(np.mean(await store[z].read()))


async def main() -> None:
    """Runs the example."""
    store = await ts.open(
        {"driver": "zarr3", "kvstore": "memory://"},
        create=True,
        dtype="uint16",
        shape=[16, 512, 512],
        chunk_layout=ts.ChunkLayout(chunk_shape=[1, 256, 256]),
    )
    for z in range(16):
        await store[z].write(z)

    means = await asyncio.gather(*(mean_of_plane(store, z) for z in range(16)))
    print("means:", means[:4], "…", means[-1])

    # `copy` is done when the source array may be changed again, `commit` when all is stored.
    plane = np.full((512, 512), 7, dtype=np.uint16)
    writing = store[3].write(plane)
    await writing.copy
    plane[:] = 0
    await writing.commit
    print("plane 3:", await mean_of_plane(store, 3))

    # Timeouts and cancellation reach the read itself.
    async with asyncio.timeout(10):
        corner = await store[:, 0, 0].read()
    print("corner:", corner.tolist())


if __name__ == "__main__":
    asyncio.run(main())
    asyncio.run(main())  # a second loop is no trouble: nothing belongs to the first
