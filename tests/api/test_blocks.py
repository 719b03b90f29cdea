"""Blocks of arrays: how dimensions are cut, what they make together, and how they are read anew."""

import json
import tracemalloc
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensorstore_py as ts
from tensorstore_py._api.blocks import Block, Blocks, Cut, chunk_edges
from tensorstore_py._api.blockwise import check_stored, read_anew, read_surely
from tensorstore_py._runtime.execution import run_inline
from tests.chunked.stores import Hooked, counting, created, opened, pool


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


def sharded(shape, shard, chunk):
    codec = {"name": "sharding_indexed", "configuration": {"chunk_shape": chunk}}
    grid = {"name": "regular", "configuration": {"chunk_shape": shard}}
    members = {"metadata": {"chunk_grid": grid, "codecs": [codec]}}
    return opened(counting(), path="s/", members=members, create=True, dtype="uint8", shape=shape)


def reaching(shape, chunk, most, **options):
    target = array(shape, chunk)
    edges = chunk_edges(target._driver, target._transform, chunk)
    return Blocks(target._transform, edges, edges, 1, most, **options)


class TestBlocks:
    @given(cases())
    def test_they_are_all_of_it_once_and_each_chunk_of_the_target_is_in_one(self, case):
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
            cells = {
                tuple(cell) for cell in np.stack(np.meshgrid(*touched), -1).reshape(-1, len(mine))
            }
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
    def test_they_grow_as_far_as_that_saves_decoding(self, mine, theirs, most, expected):
        found = blocks(array([24, 24], mine), array([24, 24], theirs), most)
        assert shapes(found)[0] == expected

    @pytest.mark.parametrize("stride", [1, 2, 3, 7, -1, -2, -3])
    def test_views_are_cut_where_chunks_begin(self, stride):
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

    def test_without_chunks_they_are_those_of_the_source(self):
        target = ts.array(np.zeros((9, 9), "uint8"))
        found = blocks(target, array([9, 9], [4, 9]), 40)
        assert sum(block.size for block in found) == 81
        assert max(block.size for block in found) <= 40

    def test_dimensions_that_an_index_array_arranges_are_cut_to_size(self):
        target = array([30], [10])
        view = target[[5, 3, 9, 11, 29, 0, 1, 2]]
        source = array([8], [8], "b/")
        found = Blocks.of_copy(
            target._driver, view._transform, source._driver, source._transform, least=1, most=3
        )
        assert max(block.size for block in found) <= 3

    def test_chunks_of_different_sizes(self):
        sizes = {"kind": "inline", "chunk_shapes": [[2, 5, 1, 4]]}
        grid = {"chunk_grid": {"name": "rectilinear", "configuration": sizes}}
        target = opened(
            counting(),
            path="t/",
            members={"metadata": grid},
            create=True,
            dtype="uint8",
            shape=[12],
        )
        found = blocks(target, array([12], [1]), 1)
        assert shapes(found) == [(2,), (5,), (1,), (4,)]

    @pytest.mark.parametrize(("most", "expected"), [(64, (8, 8)), (32, (8, 4)), (1, (2, 2))])
    def test_a_shard_is_read_in_few_parts(self, most, expected):
        array = sharded([16, 8], [8, 8], [2, 2])
        found = Blocks.of_read(array._driver, array._transform, least=1, most=most)
        assert shapes(found)[0] == expected
        assert found.chunks == 32

    def test_a_shard_is_written_in_one(self):
        array = sharded([16, 8], [8, 8], [2, 2])
        found = Blocks.of_write(array._driver, array._transform, least=1, most=1)
        assert shapes(found) == [(8, 8)] * 2
        assert found.chunks == 2

    @pytest.mark.parametrize(
        ("least", "expected"),
        [(1, (1, 1)), (5, (1, 5)), (24, (1, 24)), (96, (4, 24)), (999, (24, 24))],
    )
    def test_small_chunks_are_taken_together(self, least, expected):
        array = created(counting(), [24, 24], [1, 1])
        found = Blocks.of_write(array._driver, array._transform, least=least, most=10**6)
        assert shapes(found)[0] == expected

    def test_very_many_are_never_in_memory(self):
        shape = [10**7, 10**7]
        found = blocks(array(shape, [1000, 1000]), array(shape, [500, 2000], "b/"), 10**7)
        assert found.count == 10**8 // 2
        assert next(iter(found)).bounds == ((0, 1000), (0, 2000))

    def test_another_cut_into_as_many_blocks_is_another(self):
        whole = ts.IndexTransform(input_shape=[4, 4])

        rows = Blocks(whole, ([2], None), (None, None), least=1, most=8)
        columns = Blocks(whole, (None, [2]), (None, None), least=1, most=8)

        assert rows.count == columns.count
        assert rows.to_json() != columns.to_json()
        assert rows.to_json() == Blocks(whole, ([2], None), (None, None), least=1, most=8).to_json()

    @given(cases())
    def test_blocks_are_found_by_arithmetic(self, case):
        shape, (mine, theirs), most = case
        found = blocks(array(shape, mine), array(shape, theirs), most)

        assert [found[number] for number in range(found.count)] == list(found)
        assert [block.number for block in found] == list(range(found.count))

    @given(cases())
    def test_blocks_through_json_are_the_same(self, case):
        shape, (mine, theirs), most = case
        found = blocks(array(shape, mine), array(shape, theirs), most)

        again = Blocks.from_json(json.loads(json.dumps(found.to_json())))

        assert list(again) == list(found)
        assert again.to_json() == found.to_json()
        assert (again.count, again.chunks, again.size) == (found.count, found.chunks, found.size)

    @pytest.mark.parametrize("wrong", [3, [{}], [{"bounds": [0, 4], "edges": [2], "together": 0}]])
    def test_json_that_is_no_blocks_is_refused(self, wrong):
        with pytest.raises(ts.SpecError, match="expected"):
            Blocks.from_json(wrong)

    def test_there_is_no_block_beyond_the_last(self):
        found = blocks(array([4], [2]), array([4], [2]), 1)

        with pytest.raises(IndexError, match="2 blocks"):
            found[2]

    def test_fourteen_million_blocks_are_a_few_numbers(self):
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

    def test_dimensions_that_blocks_have_all_of(self):
        found = reaching([10, 12], [3, 4], 1, whole=[False, True])

        assert found.extents == (3, 12)
        assert shapes(found) == [(3, 12), (3, 12), (3, 12), (1, 12)]
        assert found.chunks == 12

    def test_blocks_grow_until_what_is_read_beyond_them_is_little(self):
        assert reaching([1000, 1000], [4, 4], 10**6, reach=[8, 0]).extents == (32, 4)
        assert reaching([1000, 1000], [4, 4], 10**6, reach=[8, 2]).extents == (32, 8)
        assert reaching([1000, 1000], [4, 4], 100, reach=[8, 8]).extents == (8, 8)
        assert reaching([6, 6], [4, 4], 10**6, reach=[100, 0]).extents == (6, 4)


def parts(cut):
    return [cut.part(number) for number in range(cut.parts)]


class TestCut:
    @pytest.mark.parametrize("edges", [range(0, 20, 4), [0, 4, 8, 12, 16]])
    def test_parts_of_whole_chunks_within_the_bounds(self, edges):
        cut = Cut(2, 14, edges, None)
        cut.together = 2

        assert cut.chunks == 4
        assert parts(cut) == [(2, 8, 2), (8, 14, 2)]

    def test_nothing_is_cut_into_nothing(self):
        assert (Cut(3, 3, range(0, 9, 2), None).chunks, Cut(3, 3, None, None).parts) == (0, 0)

    def test_a_dimension_without_chunks_is_split_evenly(self):
        cut = Cut(0, 10**12, None, None)
        cut.split(10**3)

        assert cut.parts == 10**9
        assert cut.part(5) == (5000, 6000, 1)

    def test_split_further_where_others_begin(self):
        cut = Cut(0, 10, None, [4])
        cut.split(3)

        assert [low for low, _, _ in parts(cut)] == [0, 3, 4, 7]

    @pytest.mark.parametrize("edges", [range(4, 14, 4), [4, 5, 9], []])
    def test_json_and_back(self, edges):
        cut = Cut(2, 14, edges, None)
        cut.together = 2

        assert parts(Cut.from_json(cut.to_json())) == parts(cut)

    @pytest.mark.parametrize(
        "wrong",
        [
            7,
            {"bounds": [0, 4], "edges": {"from": 2, "step": 0}, "together": 1},
            {"bounds": [4, 0], "edges": [], "together": 1},
            {"bounds": [0, 4], "edges": [2, 2], "together": 1},
        ],
    )
    def test_what_is_no_cut_is_refused(self, wrong):
        with pytest.raises(ts.SpecError, match="how a dimension is cut"):
            Cut.from_json(wrong)

    def test_joined_it_is_one_part_however_many_chunks_there_are(self):
        cut = Cut(0, 10**7, range(1, 10**7), None)
        cut.join()

        assert (cut.parts, cut.chunks, cut.longest) == (1, 10**7, 10**7)


DATA = np.arange(64, dtype="uint8").reshape(8, 8)


GRID = {"name": "regular", "configuration": {"chunk_shape": [4, 4]}}


ZSTD = {"metadata": {"chunk_grid": GRID, "codecs": ["bytes", "zstd", "crc32c"]}}


SHARDS = {"metadata": {"chunk_grid": GRID, "codecs": [{
    "name": "sharding_indexed",
    "configuration": {"chunk_shape": [2, 4], "codecs": ["bytes", "crc32c"]},
}]}}  # fmt: skip


CHUNK = "a/c/1/0"


class RottenStore(Hooked):
    """Gives damaged bytes of a key, so many times."""

    def __init__(self):
        super().__init__()
        self.rotten = 0

    async def read(self, key, *args, **named):
        result = await super().read(key, *args, **named)
        return self._rotten(key, result)

    async def read_ranges(self, key, ranges):
        return [self._rotten(key, each) for each in await super().read_ranges(key, ranges)]

    def _rotten(self, key, result):
        if key == CHUNK and self.rotten and result.state == "value":
            self.rotten -= 1
            value = bytearray(result.value)
            value[-1] ^= 1
            return type(result)("value", bytes(value), result.stamp)
        return result


@pytest.fixture(params=[ZSTD, SHARDS], ids=["chunks", "shards"])
def array_of(request):
    def made(store, **options):
        array = created(store, (8, 8), None, members=request.param, **options)
        array[...] = DATA
        return array

    return made


def surely(view):
    return run_inline(read_surely(view._driver, view._transform))


class TestReread:
    @pytest.mark.parametrize("pooled", [False, True])
    def test_what_came_damaged_once_is_read_again(self, array_of, pooled):
        store = RottenStore()
        array_of(store)
        array = opened(store, context=pool() if pooled else None)
        store.rotten = 1

        np.testing.assert_array_equal(surely(array[2:6]), DATA[2:6])

        assert store.rotten == 0
        np.testing.assert_array_equal(array.read().result(), DATA)

    def test_what_stays_damaged_is_named(self, array_of):
        store = RottenStore()
        array = array_of(store)
        store.rotten = 100
        store.reset()

        with pytest.raises(ts.DataLossError, match=CHUNK):
            surely(array)

        assert 2 <= 100 - store.rotten <= 6  # of a shard its index, and chunks; and no more
        np.testing.assert_array_equal(surely(array[:4]), DATA[:4])

    @pytest.mark.parametrize(
        "over",
        [
            lambda array: array,
            lambda array: array[::-1, 3:],
            lambda array: array.astype("int16"),
            lambda array: ts.stack([array]),
            lambda array: ts.downsample(array, [2, 1], "max"),
            lambda array: ts.downsample(array, [2, 1], "stride").astype("float32"),
        ],
        ids=["array", "view", "cast", "stack", "downsample", "cast downsample"],
    )
    def test_nothing_that_a_cache_keeps_is_used(self, array_of, over):
        store = RottenStore()
        array = array_of(store, context=pool(), recheck_cached_data=False)
        view = over(array)
        read = view.read().result()
        store.reset()
        assert np.array_equal(view.read().result(), read)
        assert not any(key.startswith("a/c") for key in store.reads)

        again = run_inline(read_anew(view._driver, view._transform))

        np.testing.assert_array_equal(again, read)
        assert {key for key in store.reads if key.startswith("a/c")} == {
            "a/c/0/0", "a/c/0/1", "a/c/1/0", "a/c/1/1",
        }  # fmt: skip

    def test_a_cache_that_is_behind_is_passed(self):
        store = RottenStore()
        behind = created(
            store, (8, 8), None, members=ZSTD, context=pool(), recheck_cached_data=False
        )
        behind[...] = DATA
        behind.read().result()
        opened(store)[...] = 7
        assert behind[0, 1].read().result() == 1

        found = run_inline(read_anew(behind._driver, behind._transform))

        assert (found == 7).all()
        assert behind[0, 1].read().result() == 7

    def test_what_is_stored_is_what_was_written(self):
        array = ts.array(np.zeros((2, 3), "f8"))
        block = Block(((10, 12), (0, 3)), 1)
        written = np.array([[1.0, np.nan, 0.0]])

        check_stored(array._driver, block, written, np.repeat(written, 2, 0))
        other = np.repeat(written, 2, 0)
        other[1, 2] = -0.0
        with pytest.raises(ts.DataLossError) as raised:
            check_stored(array._driver, block, written, other)

        assert "[10:12, 0:3]" in str(raised.value)
        assert "1 of 6 elements, the first at [11, 2]: 0.0 was written, and -0.0" in str(
            raised.value
        )

    def test_text_that_is_stored(self):
        array = ts.array(np.array(["a", "b"], object), dtype="ustring")
        block = Block(((0, 2),), 1)
        written = np.array(["a", "b"], object)

        check_stored(array._driver, block, written, written.copy())
        with pytest.raises(ts.DataLossError, match="the first at \\[1\\]: b was written, and c"):
            check_stored(array._driver, block, written, np.array(["a", "c"], object))

    def test_chunks_of_a_function(self):
        made = []

        def read(domain, array, _):
            made.append(domain.origin)
            array[...] = len(made)

        layout = ts.ChunkLayout(chunk_shape=[2])
        array = ts.virtual_chunked(
            read, dtype="int64", shape=[6], chunk_layout=layout, context=pool()
        )
        first = array.read().result()
        assert array.read().result().tolist() == first.tolist()

        again = run_inline(read_anew(array._driver, array[1:3]._transform))

        assert sorted(made[3:]) == [(0,), (2,)]
        assert sorted(again.tolist()) == [4, 5]
