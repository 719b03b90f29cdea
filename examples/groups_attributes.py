"""A tree of arrays with attributes, counted in by several threads, and opened by one request.

    python examples/groups_attributes.py

prints the tree, what was counted, and what is told of the arrays without opening the tree again.
"""

import asyncio
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import tensorstore_py as ts

CHANNELS = ("red", "green")


def measure(root: ts.Group, channel: str) -> None:
    """Store an image of one channel, and count it."""
    image = root.create_array(
        f"raw/{channel}",
        dtype="uint16",
        domain=ts.IndexDomain(shape=[64, 64], labels=["y", "x"]),
        chunk_layout=ts.ChunkLayout(chunk_shape=[32, 32]),
        attributes={"channel": channel, "gain": np.float32(0.5)},
    ).result()
    image[...] = np.full((64, 64), len(channel), "uint16")
    root.attrs.change(lambda found: {**found, "images": found.get("images", 0) + 1}).result()


async def look(where: Path) -> None:
    """Tell what is there."""
    root = await ts.Group.open(where)
    async for path, image in root.arrays(max_depth=None):
        gain = (await image.attrs.read())["gain"]
        print(path, image.domain.labels, "gain", gain, "mean", (await image.read()).mean())


def main() -> None:
    """Measure in several threads, consolidate, and look."""
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder, "experiment")
        root = ts.Group.open(where, create=True, attributes={"title": "Run 7"}).result()
        root.create_group("raw").result()
        with ThreadPoolExecutor() as threads:
            list(threads.map(lambda channel: measure(root, channel), CHANNELS))
        print(root.tree().result())
        print(root.attrs.asdict())
        root.consolidate().result()
        asyncio.run(look(where))


if __name__ == "__main__":
    main()
