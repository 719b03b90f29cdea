"""Laws of the blocks of a copy: they are the whole of it, and cost as little as they can."""

import json
import tracemalloc
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensorstore_py as ts
from tensorstore_py._api.blocks import Blocks, chunk_edges
from tests.chunked.stores import counting, created, opened


def blocks(target, source, most=10**6, to=None, from_=None):
    to = target.domain if to is None else target[to].domain
    from_ = source.domain if from_ is None else from_
    return Blocks.of_copy(
        target._driver,
        target._transform[to],
        source._driver,
        source._transform[from_],
        least=1,
        most=most,
    )


def array(shape, chunk, path="a/"):
    return created(counting(), shape, chunk, path=path)


def shapes(found):
    return [tuple(high - low for low, high in block.bounds) for block in found]


@st.composite
def cases(draw):
    shape = [draw(st.integers(1, 12)) for _ in range(draw(st.integers(1, 3)))]
    chunks = [[draw(st.integers(1, 5)) for _ in shape] for _ in range(2)]
    return shape, chunks, draw(st.integers(1, 200))


@given(cases())
def test_they_are_all_of_it_once_and_each_chunk_of_the_target_is_in_one(case):
    shape, (mine, theirs), most = case
    found = blocks(array(shape, mine), array(shape, theirs), most)
    count = np.zeros(shape, int)
    chunks: set[tuple[int, ...]] = set()
    for block in found:
        count[tuple(slice(*bounds) for bounds in block.bounds)] += 1
        assert block.size <= max(most, prod(mine))
        assert block.size <= found.largest
        touched = [
            range(low // size, -(-high // size))
            for (low, high), size in zip(block.bounds, mine, strict=True)
        ]
        cells = {tuple(cell) for cell in np.stack(np.meshgrid(*touched), -1).reshape(-1, len(mine))}
        assert len(cells) == block.chunks
        assert not cells & chunks
        chunks |= cells
    assert (count == 1).all()
    assert found.count == len(list(found))
    assert found.chunks == len(chunks)


@pytest.mark.parametrize(
    ("mine", "theirs", "most", "expected"),
    [
        ([4, 4], [4, 4], 999, (4, 4)),
        ([4, 4], [2, 1], 999, (4, 4)),
        ([2, 4], [8, 4], 999, (8, 4)),
        ([4, 4], [6, 4], 999, (12, 4)),
        ([2, 2], [8, 8], 999, (8, 8)),
        ([2, 2], [8, 8], 32, (8, 4)),
        ([8, 8], [2, 2], 10, (8, 8)),
    ],
)
def test_they_grow_as_far_as_that_saves_decoding(mine, theirs, most, expected):
    found = blocks(array([24, 24], mine), array([24, 24], theirs), most)
    assert shapes(found)[0] == expected


@pytest.mark.parametrize("stride", [1, 2, 3, 7, -1, -2, -3])
def test_views_are_cut_where_chunks_begin(stride):
    target = array([40], [6])
    view = target[::stride]
    source = array([view.shape[0]], [1], "b/")
    found = Blocks.of_copy(
        target._driver, view._transform, source._driver, source._transform, least=1, most=1
    )
    cells = [
        {
            (stride * i) // 6 if stride > 0 else (39 + stride * (i - low)) // 6
            for i in range(*bounds)
        }
        for low in [view.domain.inclusive_min[0]]
        for (bounds,) in [block.bounds for block in found]
    ]
    if stride in (1, -1):
        assert all(len(each) == 1 for each in cells)
    flat = [cell for each in cells for cell in each]
    assert len(flat) == len(set(flat))


def test_without_chunks_they_are_those_of_the_source():
    target = ts.array(np.zeros((9, 9), "uint8"))
    found = blocks(target, array([9, 9], [4, 9]), 40)
    assert sum(block.size for block in found) == 81
    assert max(block.size for block in found) <= 40


def test_dimensions_that_an_index_array_arranges_are_cut_to_size():
    target = array([30], [10])
    view = target[[5, 3, 9, 11, 29, 0, 1, 2]]
    source = array([8], [8], "b/")
    found = Blocks.of_copy(
        target._driver, view._transform, source._driver, source._transform, least=1, most=3
    )
    assert max(block.size for block in found) <= 3


def test_chunks_of_different_sizes():
    sizes = {"kind": "inline", "chunk_shapes": [[2, 5, 1, 4]]}
    grid = {"chunk_grid": {"name": "rectilinear", "configuration": sizes}}
    target = opened(
        counting(), path="t/", members={"metadata": grid}, create=True, dtype="uint8", shape=[12]
    )
    found = blocks(target, array([12], [1]), 1)
    assert shapes(found) == [(2,), (5,), (1,), (4,)]


def sharded(shape, shard, chunk):
    codec = {"name": "sharding_indexed", "configuration": {"chunk_shape": chunk}}
    grid = {"name": "regular", "configuration": {"chunk_shape": shard}}
    members = {"metadata": {"chunk_grid": grid, "codecs": [codec]}}
    return opened(counting(), path="s/", members=members, create=True, dtype="uint8", shape=shape)


@pytest.mark.parametrize(("most", "expected"), [(64, (8, 8)), (32, (8, 4)), (1, (2, 2))])
def test_a_shard_is_read_in_few_parts(most, expected):
    array = sharded([16, 8], [8, 8], [2, 2])
    found = Blocks.of_read(array._driver, array._transform, least=1, most=most)
    assert shapes(found)[0] == expected
    assert found.chunks == 32


def test_a_shard_is_written_in_one():
    array = sharded([16, 8], [8, 8], [2, 2])
    found = Blocks.of_write(array._driver, array._transform, least=1, most=1)
    assert shapes(found) == [(8, 8)] * 2
    assert found.chunks == 2


@pytest.mark.parametrize(
    ("least", "expected"), [(1, (1, 1)), (5, (1, 5)), (24, (1, 24)), (96, (4, 24)), (999, (24, 24))]
)
def test_small_chunks_are_taken_together(least, expected):
    array = created(counting(), [24, 24], [1, 1])
    found = Blocks.of_write(array._driver, array._transform, least=least, most=10**6)
    assert shapes(found)[0] == expected


def test_very_many_are_never_in_memory():
    shape = [10**7, 10**7]
    found = blocks(array(shape, [1000, 1000]), array(shape, [500, 2000], "b/"), 10**7)
    assert found.count == 10**8 // 2
    assert next(iter(found)).bounds == ((0, 1000), (0, 2000))


def test_another_cut_into_as_many_blocks_is_another():
    whole = ts.IndexTransform(input_shape=[4, 4])

    rows = Blocks(whole, ([2], None), (None, None), least=1, most=8)
    columns = Blocks(whole, (None, [2]), (None, None), least=1, most=8)

    assert rows.count == columns.count
    assert rows.to_json() != columns.to_json()
    assert rows.to_json() == Blocks(whole, ([2], None), (None, None), least=1, most=8).to_json()


@given(cases())
def test_blocks_are_found_by_arithmetic(case):
    shape, (mine, theirs), most = case
    found = blocks(array(shape, mine), array(shape, theirs), most)

    assert [found[number] for number in range(found.count)] == list(found)
    assert [block.number for block in found] == list(range(found.count))


@given(cases())
def test_blocks_through_json_are_the_same(case):
    shape, (mine, theirs), most = case
    found = blocks(array(shape, mine), array(shape, theirs), most)

    again = Blocks.from_json(json.loads(json.dumps(found.to_json())))

    assert list(again) == list(found)
    assert again.to_json() == found.to_json()
    assert (again.count, again.chunks, again.size) == (found.count, found.chunks, found.size)


@pytest.mark.parametrize("wrong", [3, [{}], [{"bounds": [0, 4], "edges": [2], "together": 0}]])
def test_json_that_is_no_blocks_is_refused(wrong):
    with pytest.raises(ts.SpecError, match="expected"):
        Blocks.from_json(wrong)


def test_there_is_no_block_beyond_the_last():
    found = blocks(array([4], [2]), array([4], [2]), 1)

    with pytest.raises(IndexError, match="2 blocks"):
        found[2]


def test_fourteen_million_blocks_are_a_few_numbers():
    shape = [14_000_000]
    target, source = array(shape, [1]), array(shape, [1], "b/")
    blocks(target, source, 1)

    tracemalloc.start()
    try:
        found = blocks(target, source, 1)
        text = json.dumps(found.to_json())
        middle = found[7_000_000]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert found.count == 14_000_000
    assert middle.bounds == ((7_000_000, 7_000_001),)
    assert peak < 2**21
    assert len(text) < 200


def reaching(shape, chunk, most, **options):
    target = array(shape, chunk)
    edges = chunk_edges(target._driver, target._transform, chunk)
    return Blocks(target._transform, edges, edges, 1, most, **options)


def test_dimensions_that_blocks_have_all_of():
    found = reaching([10, 12], [3, 4], 1, whole=[False, True])

    assert found.extents == (3, 12)
    assert shapes(found) == [(3, 12), (3, 12), (3, 12), (1, 12)]
    assert found.chunks == 12


def test_blocks_grow_until_what_is_read_beyond_them_is_little():
    assert reaching([1000, 1000], [4, 4], 10**6, reach=[8, 0]).extents == (32, 4)
    assert reaching([1000, 1000], [4, 4], 10**6, reach=[8, 2]).extents == (32, 8)
    assert reaching([1000, 1000], [4, 4], 100, reach=[8, 8]).extents == (8, 8)
    assert reaching([6, 6], [4, 4], 10**6, reach=[100, 0]).extents == (6, 4)
