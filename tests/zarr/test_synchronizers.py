"""Synchronizers are accepted, and nothing is lost without."""

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import tensorstore_py as ts

ROOT = Path(__file__).absolute().parents[2]


@pytest.mark.parametrize(
    "synchronizer", [ts.zarr.ThreadSynchronizer(), ts.zarr.ProcessSynchronizer("nowhere.sync")]
)
def test_are_accepted_and_leave_nothing_behind(synchronizer, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    z = ts.zarr.open_array("a", mode="w", shape=4, chunks=2, dtype="i4", synchronizer=synchronizer)
    z[:] = 1
    group = ts.zarr.open_group("g", mode="w", synchronizer=synchronizer)
    group.zeros("b", 3, synchronizer=synchronizer)
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["a", "g"]


def test_threads_write_regions_that_fit_no_chunks_without_loss():
    z = ts.zarr.zeros(60, chunks=20, dtype="i4")

    def write(start):
        for place in range(start, start + 30):
            z[place] = place

    threads = [threading.Thread(target=write, args=[start]) for start in (0, 30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    np.testing.assert_array_equal(z[:], np.arange(60))


def test_processes_write_regions_that_fit_no_chunks_without_loss(tmp_path):
    path = tmp_path / "a.zarr"
    ts.zarr.open_array(path, mode="w", shape=60, chunks=20, dtype="i4", zarr_format=2)
    code = (
        "import sys; import tensorstore_py as ts; path, start = sys.argv[1], int(sys.argv[2])\n"
        "z = ts.zarr.open_array(path, mode='r+')\n"
        "for place in range(start, start + 30, 3): z[place : place + 3] = range(place, place + 3)\n"
    )

    writers = [
        subprocess.Popen([sys.executable, "-c", code, str(path), str(start)], cwd=ROOT)
        for start in (0, 30)
    ]
    codes = [writer.wait(timeout=240) for writer in writers]

    assert codes == [0, 0]
    np.testing.assert_array_equal(ts.zarr.open_array(path)[:], np.arange(60))
