"""What is read, written and held in memory, and what is refused."""

import asyncio

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py._api.blocks import Block
from tensorstore_py._runtime.inline import run_inline
from tests.chunked.stores import counting, created
from tests.compute import functions
from tests.compute.mapping import CHUNK, VALUES, mapped, stored


def test_each_chunk_is_read_and_written_once():
    store = counting()
    source = created(store, [12, 8], [4, 4], path="a/")
    source.write(np.ones((12, 8), "uint8")).result()
    target = created(store, [12, 8], [4, 4], path="b/")
    store.reset()

    ts.map_blocks(functions.double, source, target=target).result()

    chunks = [f"c/{row}/{column}" for row in range(3) for column in range(2)]
    assert {key: store.reads[f"a/{key}"] for key in chunks} == dict.fromkeys(chunks, 1)
    assert {key: store.writes[f"b/{key}"] for key in chunks} == dict.fromkeys(chunks, 1)
    assert not any(store.reads[f"b/{key}"] for key in chunks)


def test_only_what_a_block_needs_is_read():
    store = counting()
    source = created(store, [16, 16], [4, 4], path="a/")
    target = created(store, [16, 16], [4, 4], path="b/")
    store.reset()
    view = ts.d[:].translate_to[0]
    ts.map_blocks(
        functions.double, source[4:8, 12:][view], target=target[:4, :4], halo=4,
        boundary="reflect",
    ).result()  # fmt: skip
    assert [key for key in store.reads if key.startswith("a/c")] == ["a/c/1/3"]


def test_of_the_other_end_no_more_than_a_chunk_is_read():
    store = counting()
    source = created(store, [64, 4], [4, 4], path="a/")
    target = created(store, [64, 4], [4, 4], path="b/")
    made = ts.plan(
        ts.map_blocks, functions.double, source, target=target, halo={0: 2},
        boundary="periodic",
    ).result()  # fmt: skip
    store.reset()
    operation = made.steps[0].live
    assert operation is not None
    first = Block(((0, 4), (0, 4)), 1)
    run_inline(operation.run(first))
    assert sorted(key for key in store.reads if key.startswith("a/c")) == [
        "a/c/0/0", "a/c/1/0", "a/c/15/0",
    ]  # fmt: skip


def test_memory_is_bounded():
    running = most = 0

    async def watch(block):
        nonlocal running, most
        running += block.nbytes
        most = max(most, running)
        for _ in range(20):
            await asyncio.sleep(0)
        running -= block.nbytes
        return block

    context = ts.Context({"memory_limit": {"limit_bytes": 2**13}})
    source = stored(np.ones((64, 64)), (8, 8), context=context)
    mapped(watch, source, target="memory://b|zarr3:", context=context, dtype="float64")

    assert 512 < most <= 2**13 // 4  # half is for blocks, and of that half for what is made


def test_blocks_grow_where_the_halo_would_be_most_of_what_is_read():
    source = stored(np.zeros((256, 256), "int8"), (4, 4), context=ts.Context())
    target = stored(np.zeros((256, 256), "int8"), (4, 4), context=ts.Context(
        {"memory_limit": {"limit_bytes": 2**18}}))  # fmt: skip
    plan = ts.plan(ts.map_blocks, functions.double, source, target=target, halo=8).result()
    assert plan.bytes == 256**2
    assert plan.chunks == 64**2
    block = plan.steps[0].blocks[0]
    assert all(high - low >= 64 for low, high in block.bounds)
    assert plan.task_memory <= 2**15 * 1.1


def test_a_target_that_tasks_would_write_twice_is_refused():
    target = stored(np.zeros(9, "int32"), (3,))
    source = stored(VALUES, CHUNK)
    with pytest.raises(ts.SpecError, match="target: the target is a view by index arrays"):
        mapped(functions.double, source[0, :3], target=target.oindex[[0, 1, 1]])
    repeated = ts.IndexTransform(input_shape=[11, 9], output=[ts.OutputIndexMap(input_dimension=1)])
    with pytest.raises(ts.SpecError, match=r"target: each element .* stands at 11 positions"):
        mapped(functions.double, source, target=target[repeated])


def test_with_a_halo_both_shapes_are_named():
    target = stored(np.zeros_like(VALUES), CHUNK)
    with pytest.raises(ts.MismatchError, match=r"\(4, 3\), or \(6, 5\) with the halo"):
        ts.map_blocks(lambda block: block[:1], stored(VALUES, CHUNK), target=target, halo=1,
                      boundary=0).result()  # fmt: skip


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda block: block[:1], r"gave an array of shape \(1, 3\).*is of shape \(4, 3\)"),
        (lambda block: block.sum(), r"shape \(\).*named by drop="),
        (lambda _: None, "gave None"),
        (lambda block: block.astype("float32"), "gave float32, but the target is of int32"),
    ],
)
def test_what_a_function_may_not_give(function, message):
    target = stored(np.zeros_like(VALUES), CHUNK)
    with pytest.raises(ts.MismatchError, match=message) as caught:
        ts.map_blocks(function, stored(VALUES, CHUNK), target=target).result()
    assert str(caught.value).startswith("task ")
    assert '"/"[' in str(caught.value)
