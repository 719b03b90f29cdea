"""Several processes write different parts of one chunk at once, and nothing is lost."""

import subprocess
import sys
import tempfile

import numpy as np

import tensorstore_py as ts

WRITERS = 4
ROWS = 8


def spec(directory: str) -> dict[str, object]:
    """Where the array is."""
    return {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{directory}/array/"}}


def write_rows(directory: str, writer: int) -> None:
    """What each process does: its own rows, one write after another, all in the same chunk."""
    store = ts.open(spec(directory)).result()
    for row in range(writer, WRITERS * ROWS, WRITERS):
        store[row] = writer + 1


def main() -> None:
    """Runs the example."""
    with tempfile.TemporaryDirectory() as directory:
        shape = [WRITERS * ROWS, 100]
        store = ts.open(spec(directory), create=True, dtype="uint8", shape=shape).result()
        print("one chunk of", store.chunk_layout.write_chunk.shape)

        # A part of a chunk is written by reading it, changing it, and storing it on the condition
        # that no other writer stored it in between; if one did, by doing so again.
        command = [sys.executable, __file__, directory]
        writers = [subprocess.Popen([*command, str(writer)]) for writer in range(WRITERS)]
        print("exit codes:", [writer.wait() for writer in writers])

        found = store.read().result()
        lost = sum(bool(np.any(found[row] != row % WRITERS + 1)) for row in range(len(found)))
        print("rows written:", len(found), "rows lost:", lost)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        write_rows(sys.argv[1], int(sys.argv[2]))
    else:
        main()
