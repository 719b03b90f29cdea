"""Every call that can be planned gives the same on each kind of engine, and in parts by hand."""

import json
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import distributed
import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py.cli.main import main
from tests.plan.trees import IMAGE, SMALL, processes, tree

WIDE = np.arange(64 * 64, dtype="uint16").reshape(64, 64)


def copied(folder, **how):
    ts.copy(folder / "old", folder / "new", codec="gzip", **how).result()


def rechunked(folder, **how):
    ts.rechunk(folder / "old", folder / "new", chunks=3, **how).result()


def mapped(folder, **how):
    ts.map_blocks(
        np.negative, folder / "old/raw/image", target=folder / "new.zarr", dtype="uint16", **how
    ).result()  # fmt: skip


def pyramid(folder, **how):
    ts.pyramid(folder / "wide", folder / "new.zarr", axes="yx", levels=3, chunks=16, **how).result()


def reduced(folder, **how):
    found = ts.reduce(folder / "old/raw/image", ["min", "max", "mean", "std"], **how).result()
    assert found == {
        "min": 0, "max": 167, "mean": 83.5, "std": pytest.approx(IMAGE.std(), rel=1e-12)
    }  # fmt: skip


def digested(folder, **how):
    assert ts.digest(folder / "old", **how).result() == ts.digest(folder / "old").result()


def compared(folder, **how):
    assert not ts.diff(folder / "old/raw/image", folder / "old/raw/image", **how).result()


def is_copied(folder):
    assert not ts.diff(folder / "old", folder / "new").result()


def is_mapped(folder):
    found = ts.open(folder / "new.zarr").result().read().result()
    np.testing.assert_array_equal(found, np.negative(IMAGE))


def is_pyramid(folder):
    levels = ts.multiscale.open(folder / "new.zarr").result().levels
    np.testing.assert_array_equal(levels[0].read().result(), WIDE)
    for large, small in pairwise(levels):
        mean = ts.downsample(large, [2, 2], "mean").read().result()
        np.testing.assert_array_equal(small.read().result(), mean)


def nothing(_):
    pass


CALLS = {
    "copy": (copied, is_copied),
    "rechunk": (rechunked, is_copied),
    "map_blocks": (mapped, is_mapped),
    "pyramid": (pyramid, is_pyramid),
    "reduce": (reduced, nothing),
    "digest": (digested, nothing),
    "diff": (compared, nothing),
}


@pytest.fixture(scope="module")
def engines():
    with (
        processes(2) as pool,
        ThreadPoolExecutor(2) as threads,
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield {"this process": None, "processes": pool, "threads": threads, "dask": client}


@pytest.fixture
def folder(tmp_path):
    tree(tmp_path / "old")
    spec = {"driver": "zarr3", "kvstore": f"file://{tmp_path}/wide/"}
    layout = ts.ChunkLayout(chunk_shape=[16, 16])
    wide = ts.open(spec, create=True, dtype="uint16", shape=WIDE.shape, chunk_layout=layout)
    wide.result()[...] = WIDE
    return tmp_path


@pytest.mark.parametrize("manifest", [False, True])
@pytest.mark.parametrize("engine", ["this process", "processes", "threads", "dask"])
@pytest.mark.parametrize("name", CALLS)
def test_on_each_engine(name, engine, manifest, folder, engines):
    call, check = CALLS[name]
    kept = {"manifest": folder / "m.json"} if manifest else {}

    call(folder, executor=engines[engine], context=ts.Context(SMALL), **kept)

    check(folder)


STEPS: dict[str, dict[str, Any]] = {
    "copy": {"source": "old", "dest": "new", "codec": "gzip"},
    "rechunk": {"source": "old", "dest": "new", "chunks": 3},
    "map_blocks": {
        "function": "numpy:negative", "sources": ["old/raw/image"], "target": "new.zarr",
        "dtype": "uint16",
    },
    "pyramid": {
        "source": "wide", "target": "new.zarr", "axes": "yx", "levels": 3, "chunks": 16
    },
    "reduce": {"source": "old/raw/image", "reductions": ["mean"]},
    "digest": {"source": "old"},
    "diff": {"a": "old/raw/image", "b": "old/raw/image"},
}  # fmt: skip


@pytest.mark.parametrize("name", STEPS)
def test_in_parts_by_hand(name, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    job = {
        "tensorstore_py_job": 1,
        "steps": [{"operation": name, **STEPS[name]}],
        "context": SMALL,
    }
    (folder / "job.json").write_text(json.dumps(job))

    assert main(["plan", "job.json", "-o", "plan.json"]) == 0
    assert main(["run", "plan.json", "--part", "1/2", "--no-wait"]) in (0, 3)
    assert main(["run", "plan.json", "--part", "0/2", "--report", "report.json"]) == 0

    assert main(["status", "plan.json"]) == 0
    assert "done, 100%" in capsys.readouterr().out
    CALLS[name][1](folder)
    if name == "reduce":
        (step,) = json.loads((folder / "report.json").read_text())["steps"]
        assert step["result"] == {"mean": 83.5}
