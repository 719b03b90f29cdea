"""Create an array in local files, write a part of it, open it again, read."""

import tempfile
from pathlib import Path

import numpy as np

import tensorstore_py as ts


def main() -> None:
    """Runs the example."""
    with tempfile.TemporaryDirectory() as directory:
        spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{directory}/heights/"}}

        created = ts.open(
            spec,
            create=True,
            dtype="float32",
            shape=[1000, 2000],
            chunk_layout=ts.ChunkLayout(chunk_shape=[250, 250]),
            fill_value=np.nan,
        ).result()
        print("created", created.domain, created.dtype, created.mode)

        # Assignment waits until the data is stored; write() returns a Future instead.
        created[100:300, 500:600] = 12.5
        created[0, :3].write([1, 2, 3]).result()

        # What exists needs no more than its place; the directory itself will do.
        opened = ts.open(Path(directory) / "heights", read=True).result()
        print(opened[0, :5].read().result())
        print("stored:", int(np.isfinite(opened).sum()), "of", opened.size, "elements")

        # Chunks that hold nothing but the fill value are not stored.
        files = sorted((Path(directory) / "heights" / "c").rglob("*"))
        print(
            "chunks:", [path.relative_to(directory).as_posix() for path in files if path.is_file()]
        )


if __name__ == "__main__":
    main()
