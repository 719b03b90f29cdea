import numpy as np
import pytest

from tensorstore_py._chunked.plan import make_plan
from tensorstore_py._chunked.selection import Gathered, Strided, select
from tensorstore_py._chunked.shard import (
    OpenShard,
    ShardChangedError,
    batches,
    c_strides,
    descend,
    inner_array,
    inner_grid,
)
from tensorstore_py._interface.byte_range import ByteRange
from tensorstore_py._runtime.inline import run_inline
from tensorstore_py.errors import DataLossError
from tests.chunked.arrays import Opened, sharding


@pytest.fixture
def opened():
    made = Opened((16,), (8,), "uint8", sharding([2], ["bytes"]), fill_missing=False)
    made.write([1, 2, 0, 0, 5, 6, 7, 8] * 2)
    return made


def open_shard(opened, cell=(0,)):
    return run_inline(OpenShard.open(opened.source, cell, opened.array.sharded))


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 3, 4), (5, 1, 1, 2)])
def test_strides_number_inner_chunks_in_c_order(shape):
    strides = c_strides(shape)
    for number, cell in enumerate(np.ndindex(*shape)):
        assert sum(a * b for a, b in zip(cell, strides, strict=True)) == number


def test_the_index_says_where_inner_chunks_are(opened):
    shard = open_shard(opened)
    assert [shard.extent_of((cell,)) for cell in range(4)] == [(0, 2), None, (2, 4), (4, 6)]


def test_no_shard(opened):
    opened.store.poke("a/c/1", None)
    assert open_shard(opened, (1,)) is None


def test_it_is_a_source_of_inner_chunks(opened):
    shard = open_shard(opened)
    assert run_inline(shard.read((2,))).value == b"\5\6"
    assert run_inline(shard.read((2,), ByteRange(1, 2))).value == b"\6"
    assert run_inline(shard.read((1,))).state == "missing"
    assert shard.describe((2,)) == 'inner chunk (2,) of shard "a/c/0"'


def test_a_shard_of_another_generation_is_never_mixed_in(opened):
    shard = open_shard(opened)
    opened.store.poke("a/c/0", opened.store.entries["a/c/0"])
    with pytest.raises(ShardChangedError):
        run_inline(shard.fetch(0, 2))
    opened.store.poke("a/c/0", None)
    with pytest.raises(ShardChangedError):
        run_inline(shard.fetch(0, 2))


def test_a_shard_too_short_for_its_index(opened):
    opened.store.poke("a/c/0", b"short")
    with pytest.raises(DataLossError, match="index"):
        open_shard(opened)


def test_an_inner_array_has_the_policies_of_the_outer_one(opened):
    sharded = opened.array.sharded
    inner = inner_array(opened.array, sharded, opened.source)
    assert (inner.fill_missing, inner.store_fill) == (False, False)
    assert [(axis.extent, axis.size(0)) for axis in inner_grid(sharded)] == [(8, 2)]


class TestDescending:
    def below(self, transform, cell):
        """The inner axes and the part of the view for one shard of 8 x 8."""
        opened = Opened((16, 16), (8, 8))
        selection = select(transform(opened.identity))
        plan = make_plan(selection.axes, opened.array.grid)
        (step,) = [each for each in plan.steps() if each.cell == cell]
        view = np.zeros(selection.shape)
        axes, part = descend(plan.axes, step, view)
        assert np.shares_memory(part, view)
        return axes, part.shape

    def test_boxes_are_relative_to_the_shard(self):
        axes, shape = self.below(lambda t: t[5:12, 9:15:2], (1, 1))
        assert axes == [Strided(0, 0, 1, 4), Strided(1, 1, 2, 3)]
        assert shape == (4, 3)

    def test_gathered_axes_keep_their_places_in_the_view(self):
        axes, shape = self.below(lambda t: t.oindex[[12, 3, 9], 2:4], (1, 0))
        gathered, strided = axes
        assert isinstance(gathered, Gathered)
        assert gathered.indices[0].tolist() == [4, 1]
        assert gathered.positions.tolist() == [0, 2]
        assert strided == Strided(1, 2, 1, 2)
        assert shape == (3, 2)


class TestBatches:
    def group(self, opened):
        shard = open_shard(opened)
        plan = make_plan([Strided(0, 0, 1, 8)], inner_grid(opened.array.sharded))
        return batches(shard, plan.steps())

    def test_neighbours_are_fetched_together_and_missing_ones_named(self, opened):
        (batch,), missing = self.group(opened)
        assert (batch.start, batch.stop, len(batch.members)) == (0, 6, 3)
        assert [step.cell for step in missing] == [(1,)]

    def test_in_the_order_of_their_bytes(self, opened):
        shard = open_shard(opened)
        plan = make_plan(
            [Gathered((0,), (np.array([7, 0, 4]),), np.arange(3))],
            inner_grid(opened.array.sharded),
        )
        (batch,), _ = batches(shard, list(plan.steps())[::-1])
        assert [start for _, start, _ in batch.members] == [0, 2, 4]

    def test_far_apart_means_apart(self, opened, monkeypatch):
        monkeypatch.setattr("tensorstore_py._chunked.shard._GAP_BYTES", 0)
        shard = open_shard(opened)
        plan = make_plan(
            [Gathered((0,), (np.array([0, 6]),), np.arange(2))],
            inner_grid(opened.array.sharded),
        )
        found, _ = batches(shard, plan.steps())
        assert [(batch.start, batch.stop) for batch in found] == [(0, 2), (4, 6)]
