"""Copy a zarr v2 array to a sharded zarr3 array block by block, and compare."""

import tempfile
from pathlib import Path

import numpy as np

import tensorstore_py as ts


def main() -> None:
    """Runs the example."""
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory).as_uri()
        z, y, x = np.ogrid[:96, :128, :128]
        volume = (1000 + 500 * np.sin(z / 9) * np.cos(y / 7) + x).astype("uint16")

        old = ts.open(
            f"{place}/old/|zarr2:",
            create=True,
            dtype=volume.dtype,
            shape=volume.shape,
            chunk_layout=ts.ChunkLayout(chunk_shape=[16, 16, 16]),
        ).result()
        old.write(volume).result()

        # A shard is one file (the write chunk) of chunks that can be read one by one.
        new = ts.open(
            f"{place}/new/|zarr3:",
            create=True,
            domain=old.domain,
            dtype=old.dtype,
            chunk_layout=ts.ChunkLayout(
                write_chunk_shape=[64, 64, 64], read_chunk_shape=[16, 16, 16]
            ),
            codec=ts.CodecSpec({"driver": "zarr3", "codecs": ["blosc"]}),
        ).result()

        # Reads and writes go shard by shard; the whole array is never in memory.
        new.write(old).result()

        for name, store in (("old", old), ("new", new)):
            files = [path for path in (Path(directory) / name).rglob("*") if path.is_file()]
            stored = sum(path.stat().st_size for path in files)
            print(f"{name}: {store.chunk_layout.read_chunk.shape} chunks,", end=" ")
            print(f"{len(files)} files, {stored:,} of {volume.nbytes:,} bytes")
        print("equal:", np.array_equal(new.read().result(), volume))


if __name__ == "__main__":
    main()
