import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py._api.blocks import Block
from tensorstore_py._api.reread import check_stored, read_anew, read_surely
from tensorstore_py._runtime.inline import run_inline
from tests.chunked.stores import Hooked, created, opened, pool

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


@pytest.mark.parametrize("pooled", [False, True])
def test_what_came_damaged_once_is_read_again(array_of, pooled):
    store = RottenStore()
    array_of(store)
    array = opened(store, context=pool() if pooled else None)
    store.rotten = 1

    np.testing.assert_array_equal(surely(array[2:6]), DATA[2:6])

    assert store.rotten == 0
    np.testing.assert_array_equal(array.read().result(), DATA)


def test_what_stays_damaged_is_named(array_of):
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
def test_nothing_that_a_cache_keeps_is_used(array_of, over):
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


def test_a_cache_that_is_behind_is_passed():
    store = RottenStore()
    behind = created(store, (8, 8), None, members=ZSTD, context=pool(), recheck_cached_data=False)
    behind[...] = DATA
    behind.read().result()
    opened(store)[...] = 7
    assert behind[0, 1].read().result() == 1

    found = run_inline(read_anew(behind._driver, behind._transform))

    assert (found == 7).all()
    assert behind[0, 1].read().result() == 7


def test_what_is_stored_is_what_was_written():
    array = ts.array(np.zeros((2, 3), "f8"))
    block = Block(((10, 12), (0, 3)), 1)
    written = np.array([[1.0, np.nan, 0.0]])

    check_stored(array._driver, block, written, np.repeat(written, 2, 0))
    other = np.repeat(written, 2, 0)
    other[1, 2] = -0.0
    with pytest.raises(ts.DataLossError) as raised:
        check_stored(array._driver, block, written, other)

    assert "[10:12, 0:3]" in str(raised.value)
    assert "1 of 6 elements, the first at [11, 2]: 0.0 was written, and -0.0" in str(raised.value)


def test_text_that_is_stored():
    array = ts.array(np.array(["a", "b"], object), dtype="ustring")
    block = Block(((0, 2),), 1)
    written = np.array(["a", "b"], object)

    check_stored(array._driver, block, written, written.copy())
    with pytest.raises(ts.DataLossError, match="the first at \\[1\\]: b was written, and c"):
        check_stored(array._driver, block, written, np.array(["a", "c"], object))


def test_chunks_of_a_function():
    made = []

    def read(domain, array, _):
        made.append(domain.origin)
        array[...] = len(made)

    layout = ts.ChunkLayout(chunk_shape=[2])
    array = ts.virtual_chunked(read, dtype="int64", shape=[6], chunk_layout=layout, context=pool())
    first = array.read().result()
    assert array.read().result().tolist() == first.tolist()

    again = run_inline(read_anew(array._driver, array[1:3]._transform))

    assert sorted(made[3:]) == [(0,), (2,)]
    assert sorted(again.tolist()) == [4, 5]
