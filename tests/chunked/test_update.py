import numpy as np
import pytest

from tensorstore_py._chunked.plan import make_plan
from tensorstore_py._chunked.selection import select
from tensorstore_py._chunked.shard import descend
from tensorstore_py._chunked.update import ChunkPart, ChunkUpdate, ShardPart, ShardUpdate
from tensorstore_py._index import IndexTransform
from tensorstore_py._interface.update import Replace
from tensorstore_py._runtime.inline import run_inline
from tensorstore_py.errors import DataLossError
from tests.chunked.arrays import Opened

SHARDED = [{
    "name": "sharding_indexed",
    "configuration": {"chunk_shape": [2], "codecs": ["bytes"], "index_codecs": ["bytes"]},
}]  # fmt: skip


def update_of(opened, begin, values):
    """The update of chunk 0 that writes `values` from position `begin` on."""
    values = np.asarray(values, "uint16")
    transform = IndexTransform(input_rank=1)[begin : begin + len(values)]
    selection = select(transform.translate_to[0])
    axes, view = selection.axes, selection.view(values)
    plan = make_plan(axes, opened.array.grid)
    (step,) = plan.steps()
    if opened.array.sharded is None:
        part = ChunkPart(step, view[(..., *step.outside)])
        return ChunkUpdate(opened.array, opened.source, step.cell, (part,))
    return ShardUpdate(
        opened.array, opened.source, step.cell, (ShardPart(*descend(axes, step, view)),)
    )


def open_array(kind):
    return Opened([8], [8], codecs="raw" if kind == "chunk" else SHARDED, fill=9)


@pytest.mark.parametrize("kind", ["chunk", "shard"])
class TestUpdates:
    def test_can_be_made_again(self, kind):
        opened = open_array(kind)
        update = update_of(opened, 1, [1, 2, 3])
        first = run_inline(update.apply(None))
        again = run_inline(update.apply(None))
        assert bytes(first) == bytes(again)
        assert decoded(opened, first) == [9, 1, 2, 3, 9, 9, 9, 9]
        second = run_inline(update_of(opened, 3, [7, 8]).apply(first))
        assert decoded(opened, second) == [9, 1, 2, 7, 8, 9, 9, 9]

    def test_several_become_one_in_their_order(self, kind):
        opened = open_array(kind)
        update = update_of(opened, 0, [1, 1, 1])
        for begin, values in ((2, [2, 2, 2, 2]), (1, [3]), (7, [4])):
            update = update.then(update_of(opened, begin, values))
        assert isinstance(update, (ChunkUpdate, ShardUpdate))
        assert decoded(opened, run_inline(update.apply(None))) == [1, 3, 2, 2, 2, 2, 9, 4]

    def test_back_to_the_fill_value_is_nothing_to_store(self, kind):
        opened = open_array(kind)
        stored = run_inline(update_of(opened, 2, [1]).apply(None))
        assert run_inline(update_of(opened, 2, [9]).apply(stored)) is None

    def test_kept_is_independent_of_the_source(self, kind):
        opened = open_array(kind)
        values = np.array([1, 2, 3], "uint16")
        kept = update_of(opened, 1, values).kept()
        values[:] = 0
        assert decoded(opened, run_inline(kept.apply(None))) == [9, 1, 2, 3, 9, 9, 9, 9]

    def test_updates_of_another_array_stay_apart(self, kind):
        one, other = open_array(kind), open_array(kind)
        assert update_of(one, 0, [1]).then(update_of(other, 0, [1])) is None
        replace = Replace(b"")
        assert update_of(one, 0, [1]).then(replace) is replace

    def test_what_is_corrupt_is_named(self, kind):
        opened = open_array(kind)
        with pytest.raises(DataLossError, match=r'Error updating "a/c/0".*write the whole chunk'):
            run_inline(update_of(opened, 0, [1]).apply(b"12345"))


def decoded(opened, data):
    run_inline(opened.store.write(opened.source.key((0,)), data))
    return opened.read(IndexTransform(input_rank=1)[0:8]).tolist()
