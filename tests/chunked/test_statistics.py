import numpy as np
import pytest

from tensorstore_py._chunked.selection import select
from tensorstore_py._chunked.statistics import count_stored
from tensorstore_py._runtime.start import start
from tensorstore_py.errors import DataLossError
from tests.chunked.arrays import Opened, WatchedStore, sharding


def count(opened, transform=None):
    axes = select(opened.identity if transform is None else transform).axes
    body = count_stored(opened.array, opened.source, axes)
    return start(opened.store.inline, lambda: body).result()


@pytest.mark.parametrize("inline", [True, False])
def test_chunks_that_a_selection_touches(inline):
    opened = Opened((10,), (2,), "uint8", store=WatchedStore(inline=inline))
    assert count(opened) == (0, 5)
    opened.write(1, opened.identity[3:7])
    assert count(opened) == (3, 5)
    assert count(opened, opened.identity[4:5]) == (1, 1)
    assert count(opened, opened.identity.oindex[[0, 9, 5]]) == (1, 3)


def test_inner_chunks_count_where_it_is_sharded():
    opened = Opened((16,), (8,), "uint8", sharding([2], ["bytes"]))
    opened.write([1, 1, 0, 0, 0, 0, 1, 1], opened.identity[:8])
    assert count(opened) == (2, 8)
    assert count(opened, opened.identity[1:5]) == (1, 3)
    assert count(opened, opened.identity[8:]) == (0, 4)


def test_no_chunk_is_read_for_it():
    opened = Opened((10,), (2,), "uint8")
    opened.write(np.arange(1, 11))
    opened.store.bytes_read = 0
    count(opened)
    assert opened.store.bytes_read == 0


def test_a_corrupt_index_is_named():
    opened = Opened((16,), (8,), "uint8", sharding([2], ["bytes"]))
    opened.write(np.arange(1, 17))
    shard = opened.store.entries["a/c/1"]
    for rotten in (shard[:10], shard[:-1] + b"!"):
        opened.store.poke("a/c/1", rotten)
        with pytest.raises(DataLossError, match='"a/c/1"'):
            count(opened)
