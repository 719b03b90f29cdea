"""A pyramid as a plan: told before it is done, run by any executor, with sources of any kind."""

import multiprocessing
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import pytest

import tensorstore_py as ts
from tests.multiscale.images import PIXELS

Options = dict[str, Any]


@pytest.fixture(scope="module")
def pool():
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as made:
        yield made


def stored(where):
    """An array in files."""
    group = ts.Group.open(where, create=True).result()
    layout = ts.ChunkLayout(chunk_shape=[1, 10, 100, 100])
    array = group.create_array(
        "a", dtype="uint16", shape=PIXELS.shape, chunk_layout=layout
    ).result()
    array[...] = PIXELS
    return array


def test_a_process_pool_makes_the_same_levels(tmp_path, pool):
    source = stored(tmp_path / "raw")
    options: Options = {"axes": "czyx", "levels": 3, "chunks": 50}

    here = ts.pyramid(source, tmp_path / "here", **options).result()
    there = ts.pyramid(source, tmp_path / "there", executor=pool, **options).result()

    for one, other in zip(here.levels, there.levels, strict=True):
        np.testing.assert_array_equal(one.read().result(), other.read().result())
    assert here.metadata == there.metadata


def test_a_plan_tells_and_changes_nothing(tmp_path):
    source = stored(tmp_path / "raw")

    plan = ts.plan(ts.pyramid, source, tmp_path / "new", axes="czyx", levels=3, chunks=50).result()

    assert (plan.operation, plan.bytes >= PIXELS.nbytes) == ("pyramid", True)
    assert plan.tasks > 1
    assert "levels 0 to" in str(plan)
    assert not (tmp_path / "new").exists()


def test_a_plan_goes_through_json(tmp_path):
    source = stored(tmp_path / "raw")
    plan = ts.plan(
        ts.pyramid, source, tmp_path / "new", ["c", "z", "y", ts.multiscale.Axis("x", "space")],
        levels=2, omero=["a", "b"], pixel_size=np.float64(2), codec="zstd", dtype="uint32",
    ).result()  # fmt: skip

    made = ts.Plan.from_json(plan.to_json()).run().result()

    assert made.levels[1].dtype.name == "uint32"
    assert [channel["label"] for channel in made.omero["channels"]] == ["a", "b"]
    assert made.scale(1) == {"c": 1, "z": 4, "y": 4, "x": 4}


def test_an_array_in_memory_does_not_travel(tmp_path, pool):
    with pytest.raises(ts.UnsupportedError, match="in this process"):
        ts.pyramid(PIXELS, tmp_path / "new", axes="czyx", executor=pool).result()

    assert not (tmp_path / "new").exists()


def test_more_memory_is_for_chunks_of_source_and_target_together():
    seen = []

    def read(domain, out, _):
        seen.append(domain.inclusive_min)
        out[...] = 1

    layout = ts.ChunkLayout(read_chunk_shape=[1, 2048, 2048])
    planes = ts.virtual_chunked(read, dtype="uint16", shape=[32, 2048, 2048], chunk_layout=layout)
    options: Options = {"axes": "zyx", "levels": 2, "chunks": (32, 64, 64)}

    little = ts.plan(ts.pyramid, planes, "memory://", memory=2**24, **options).result()
    much = ts.plan(ts.pyramid, planes, "memory://", memory=2**31, **options).result()
    much.run().result()

    assert little.task_memory <= 2**24
    assert little.task_memory < much.task_memory <= 2**31
    assert sorted(seen) == [(z, 0, 0) for z in range(32)]


def test_a_pyramid_that_was_cut_short_goes_on(tmp_path):
    done: Counter[tuple[int, ...]] = Counter()
    failing = True

    def read(domain, out, _):
        if failing and domain.inclusive_min == (0, 512, 512):
            raise ValueError("no such plane")
        done[domain.inclusive_min] += 1
        out[...] = domain.inclusive_min[1]

    layout = ts.ChunkLayout(read_chunk_shape=[1, 256, 256])
    source = ts.virtual_chunked(read, dtype="uint16", shape=[8, 1024, 1024], chunk_layout=layout)
    options: Options = {"axes": "zyx", "levels": 3, "chunks": (1, 256, 256), "scale": (1, 2, 2)}
    options["manifest"] = tmp_path / "manifest.json"
    with pytest.raises(ValueError, match="no such plane"):
        ts.pyramid(source, tmp_path / "image", **options).result()
    before = sum(done.values())

    failing = False
    image = ts.pyramid(source, tmp_path / "image", **options).result()
    after = sum(done.values())
    ts.pyramid(source, tmp_path / "image", **options).result()

    assert 0 < before < after < before + 8 * 16
    assert sum(done.values()) == after  # a finished one is a no-op
    assert set(np.unique(image.levels[2].read().result())) == {0, 256, 512, 768}
    (tmp_path / "image/1/zarr.json").unlink()
    with pytest.raises(ts.FailedPreconditionError, match='level "1" was deleted'):
        ts.pyramid(source, tmp_path / "image", **options).result()
