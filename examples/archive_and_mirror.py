"""Pack an array into a zip archive, read it there, and mirror a store into a local directory."""

import asyncio
import tempfile
import zipfile
from pathlib import Path

import numpy as np

import tensorstore_py as ts


async def main() -> None:
    """Runs the example."""
    with tempfile.TemporaryDirectory() as directory:
        archive = Path(directory, "volume.zip")
        z, y, x = np.ogrid[:32, :64, :64]
        volume = (1000 + 500 * np.sin(z / 9) * np.cos(y / 7) + x).astype("uint16")

        # An archive is replaced as a whole: in a transaction that happens once.
        with ts.Transaction() as transaction:
            packed = await ts.open(
                f"{archive.as_uri()}|zip:volume/|zarr3:",
                create=True,
                dtype=volume.dtype,
                shape=volume.shape,
                chunk_layout=ts.ChunkLayout(chunk_shape=[16, 32, 32]),
                transaction=transaction,
            )
            await packed.write(volume)
        print(len(zipfile.ZipFile(archive).namelist()), "entries")

        # From now on it is a store like any other, on a web server or in a bucket, too.
        found = await ts.open(f"{archive.as_uri()}|zip:volume/")
        assert np.array_equal(await found[10].read(), volume[10])

        # Files and stores, one into the other, without holding this event loop up.
        inside = await ts.KvStore.open(f"{archive.as_uri()}|zip:")
        print(await ts.download(inside, Path(directory, "files")), "files written")
        mirror = await ts.KvStore.open("memory://mirror/")
        print(await ts.upload(Path(directory, "files"), mirror), "values stored")
        async for key in mirror.keys(ts.KvStore.KeyRange("volume/z")):
            print(key)


if __name__ == "__main__":
    asyncio.run(main())
