import json

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py._compute.comparison import Tolerance
from tensorstore_py._compute.diff_operation import DiffArrays, MergeFindings
from tensorstore_py._runtime.inline import run_inline


def operation(one, other, most=100):
    here, there = (
        ts.open(
            "memory://|zarr3:", create=True, dtype=each.dtype, shape=each.shape,
            chunk_layout=ts.ChunkLayout(chunk_shape=chunks),
            context=ts.Context({"memory_limit": {"limit_bytes": 400}}),
        ).result()
        for each, chunks in ((one, (2, 3)), (other, (3, 2)))
    )  # fmt: skip
    here[...], there[...] = one, other
    args = here._driver, here._transform, there._driver, there._transform
    return DiffArrays(*args, Tolerance(), most, "a/b")


def merged(task):
    merging = MergeFindings()
    partial = None
    for block in reversed(list(task.blocks)):
        run_inline(task.run(block))  # its result is lost
        found = run_inline(task.run(block))
        one = merging.from_json(json.loads(json.dumps(merging.to_json(found))))
        partial = one if partial is None else merging.merge(one, partial)
    return partial


@pytest.mark.parametrize("dtype", ["i2", "f4", "c16", "M8[s]", "S5", "bool"])
def test_a_task_may_run_anywhere_and_again(dtype):
    one = np.arange(60).reshape(10, 6).astype(dtype)
    other = one.copy()
    other[4, 1], other[9, 5] = one[1, 2], one[0, 0]
    task = operation(one, other)

    found = merged(task)

    assert task.blocks.count > 1
    count = int((one != other).sum())
    assert (found.differing, found.elements) == (count, 60)
    blocks = list(found.blocks.values())
    assert found.differing_blocks == len(blocks) == count
    first = blocks[0]
    assert (first.path, first.first, first.elements) == (
        "a/b",
        tuple(np.argwhere(one != other)[0]),
        1,
    )
    assert first.box == tuple((at, at + 1) for at in first.first)
    assert all(low <= at < high for (low, high), at in zip(first.bounds, first.first, strict=True))
    assert first.values == (one[first.first], other[first.first])


def test_lists_are_bounded_and_counts_are_not():
    one = np.zeros((20, 6), "i4")
    task = operation(one, one + 1, most=2)

    found = merged(task)

    assert list(found.blocks) == [0, 1]
    assert (found.differing_blocks, found.differing) == (task.blocks.count, 120)
    assert not merged(operation(one, one + 1, most=0)).blocks


@pytest.mark.parametrize("damaged", [[[1], 1, 1, 1, 1], 5, [[["a"]], 1], [[]]])
def test_damaged_results_are_refused(damaged):
    with pytest.raises(ts.SpecError, match="damaged"):
        MergeFindings().from_json(damaged)
