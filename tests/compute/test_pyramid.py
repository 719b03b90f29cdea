"""What a step of a pyramid does: levels as `ts.downsample` makes them, each chunk decoded once."""

from collections import Counter
from itertools import pairwise
from threading import Lock

import numpy as np
import pytest

import tensorstore_py as ts
from tests.api.counted_memory import counts

METHODS = ("stride", "mean", "min", "max", "median", "mode")


def check_levels(image, method):
    """Each level is what `ts.downsample` makes of the level above it."""
    levels = list(image.levels)
    for above, level in pairwise(levels):
        ratios = [-(-a // b) for a, b in zip(above.shape, level.shape, strict=True)]
        expected = ts.downsample(above, ratios, method).read().result()
        np.testing.assert_array_equal(level.read().result(), expected)


def counted(values, chunk):
    """A source whose chunks are counted when they are decoded."""
    seen: Counter[tuple[int, ...]] = Counter()
    lock = Lock()

    def read(domain, out, _):
        with lock:
            seen[domain.inclusive_min] += 1
        out[...] = values[domain.index_exp]

    store = ts.virtual_chunked(
        read, dtype=values.dtype, shape=values.shape,
        chunk_layout=ts.ChunkLayout(read_chunk_shape=chunk),
    )  # fmt: skip
    return store, seen


@pytest.mark.parametrize("method", METHODS)
def test_levels_are_those_of_downsample(method):
    rng = np.random.default_rng(1)
    volume = rng.integers(0, 9, (2, 33, 70, 81), dtype="uint8")

    image = ts.pyramid(
        volume, "memory://", axes="czyx", levels=4, method=method, chunks=8,
    ).result()  # fmt: skip

    assert [level.shape for level in image.levels] == [
        (2, 33, 70, 81), (2, 17, 35, 41), (2, 9, 18, 21), (2, 5, 9, 11),
    ]  # fmt: skip
    np.testing.assert_array_equal(image.levels[0].read().result(), volume)
    check_levels(image, method)


@pytest.mark.parametrize(
    ("source", "chunks", "shards"),
    [
        ((16, 16, 16), 16, None),
        ((1, 96, 100), 16, None),
        ((8, 24, 20), 16, None),
        ((16, 16, 16), 16, 32),
        ((5, 7, 11), (10, 14, 11), None),
        ((40, 16, 16), 16, None),
    ],
)
def test_each_chunk_of_the_source_is_decoded_once(source, chunks, shards):
    values = np.random.default_rng(2).integers(0, 60_000, (40, 96, 100), dtype="uint16")
    store, seen = counted(values, source)

    image = ts.pyramid(
        store, "memory://", axes="zyx", levels=4, chunks=chunks, shards=shards
    ).result()

    assert set(seen.values()) == {1}
    check_levels(image, "mean")


def test_each_chunk_of_each_level_is_stored_once_and_few_are_read_again():
    context = ts.Context()
    spec = {"driver": "counted_memory", "path": "image/"}
    values = np.ones((1, 700, 900), "uint8")

    store = counts(ts.Group.open(spec, create=True, context=context).result())

    ts.pyramid(values, spec, axes="cyx", chunks=64, levels=4, context=context).result()

    chunks = {key: count for key, count in store.writes.items() if "/c/" in key}
    assert len(chunks) == 11 * 15 + 6 * 8 + 3 * 4 + 2 * 2
    assert set(chunks.values()) == {1}
    read = [key for key in store.reads if "image/0/c/" in key]
    assert read == []


def test_levels_that_need_further_steps_are_made_of_levels_just_written():
    context = ts.Context()
    spec = {"driver": "counted_memory", "path": "image/"}
    values = np.random.default_rng(3).integers(0, 255, (4096, 4096), dtype="uint8")
    plan = ts.plan(
        ts.pyramid, values, spec, axes="yx", chunks=256, levels=5, context=context
    ).result()

    store = counts(ts.Group.open(spec, create=True, context=context).result())
    image = plan.run().result()

    assert len(plan.stages) > 1
    check_levels(image, "mean")
    assert {count for key, count in store.writes.items() if "/c/" in key} == {1}


def test_memory_is_that_of_a_cell_of_each_level():
    store, _ = counted(np.zeros((64, 4096, 4096), "uint8"), (1, 512, 512))

    plan = ts.plan(
        ts.pyramid, store, "memory://", axes="zyx", scale={"y": 2, "x": 2}, chunks=(1, 512, 512)
    ).result()

    assert plan.task_memory <= 16 * 2**20
    assert plan.bytes >= 64 * 4096 * 4096


def test_a_damaged_chunk_is_named_and_all_else_is_done():
    group = ts.Group.open("memory://", create=True).result()
    source = group.create_array(
        "raw", dtype="uint8", shape=[128, 128], codec="zstd",
        chunk_layout=ts.ChunkLayout(chunk_shape=[64, 64]),
    ).result()  # fmt: skip
    source[...] = np.random.default_rng(0).integers(0, 255, (128, 128), dtype="uint8")
    group.kvstore["raw/c/1/1"] = b"no zstd"

    with pytest.raises(ts.DataLossError, match=r"64:128, 64:128|0:128, 0:128"):
        ts.pyramid(source, group.kvstore / "image/", axes="yx", levels=2, chunks=32).result()


def test_a_step_travels_as_json(tmp_path):
    group = ts.Group.open(tmp_path / "raw", create=True).result()
    raw = group.create_array("a", dtype="uint16", shape=[100, 90]).result()
    raw[...] = np.arange(9000, dtype="uint16").reshape(100, 90)
    plan = ts.plan(ts.pyramid, raw, tmp_path / "image", axes="yx", levels=3, chunks=32).result()

    image = ts.Plan.from_json(plan.to_json()).run().result()

    np.testing.assert_array_equal(image.levels[0].read().result(), raw.read().result())
    check_levels(image, "mean")
