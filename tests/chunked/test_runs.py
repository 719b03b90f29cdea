"""Runs of chunks against NumPy and single chunks: the same elements in fewer, longer copies."""

import itertools
from contextlib import contextmanager
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensorstore_py as ts
from tensorstore_py import IndexTransform
from tensorstore_py._chunked import decode, modify
from tensorstore_py._chunked import runs as runs_module
from tensorstore_py._chunked.plan import make_plan
from tensorstore_py._chunked.read import read_plan, reader_of
from tensorstore_py._chunked.runs import interleaved, run_length, runs, runs_of, staging
from tensorstore_py._chunked.selection import Strided, select
from tensorstore_py.errors import DataLossError, NotFoundError
from tensorstore_py.kvstores.file import FileStore
from tensorstore_py.plugin.driver import RegularAxis
from tensorstore_py.plugin.kvstore import BulkRead
from tests.chunked.stores import Opened, WatchedStore, codecs_named, counting, created, sharding
from tests.chunked.views import look_up
from tests.runtime.processes import start

SHAPES = st.lists(st.integers(1, 9), min_size=1, max_size=4).filter(
    lambda shape: np.prod(shape) <= 700
)
CODECS = {
    "zstd": ["bytes", "zstd"],
    "checked": ["bytes", "zstd", "crc32c"],
    "gzip": ["bytes", {"name": "gzip", "configuration": {"level": 1}}],
    "blosc": ["bytes", "blosc"],
    "raw": ["bytes"],
}


class Roomy(BulkRead, WatchedStore):
    """Puts values in the room that it is given, as far as that goes."""

    async def read_values(self, keys, room):
        found = []
        for key in keys:
            result = await self.read(key)
            value = result.value if result.state == "value" else None
            self.before("value", key)
            if value is not None and len(value) <= len(room):
                room[: len(value)] = value
                value, room = room[: len(value)], room[len(value) :]
            found.append(value)
        return found

    async def read_parts(self, key, ranges, size):
        return None


@contextmanager
def limits(run_bytes, shared=False):
    """Rows of so many bytes at most; 0 for none. Sharing them out is worth it, or is not."""
    with (
        mock.patch.object(runs_module, "RUN_BYTES", run_bytes),
        mock.patch("tensorstore_py._runtime.fan_out.worth_sharing", return_value=shared),
    ):
        yield


@st.composite
def blocks(draw, shape):
    """A block of an array, perhaps of every other element."""
    sides = []
    for extent in shape:
        # Many sides begin and end where the array does: then there are whole chunks.
        low = draw(st.one_of(st.just(0), st.integers(0, extent)))
        high = draw(st.one_of(st.just(extent), st.integers(low, extent)))
        sides.append(slice(low, high, draw(st.sampled_from([1, 1, 1, 1, 2, 3]))))
    return tuple(sides)


@st.composite
def cuts(draw):
    """A shape, its chunks, and a straight plan of a block of it."""
    shape = draw(SHAPES)
    chunks = draw(st.tuples(*[st.integers(1, 4)] * len(shape)))
    transform = IndexTransform(input_shape=shape)[draw(blocks(shape))]
    grid = [RegularAxis(*each) for each in zip(shape, chunks, strict=True)]
    plan = make_plan(select(transform).axes, grid)
    assert plan.straight
    return shape, chunks, plan


def plan_of(*axes):
    """A plan of whole axes, each given by its extent and chunk size."""
    strided = [Strided(dim, 0, 1, extent) for dim, (extent, _) in enumerate(axes)]
    return make_plan(strided, [RegularAxis(*each) for each in axes])


class TestRuns:
    @given(cuts(), st.integers(2, 5))
    def test_every_slice_is_in_one_run_and_in_order(self, cut, most):
        _, _, plan = cut
        found = list(runs(plan, most))
        assert [step for run in found for step in run.slices()] == list(plan.slices())
        for run in found:
            steps = list(run.slices())
            assert 1 <= len(steps) <= most
            assert run.cells() == [step.cell for step in steps]
            assert {run.whole} == {step.whole for step in steps}
            assert all(run.inside == step.inside for step in steps)

    @given(cuts(), st.integers(1, 5), st.data())
    def test_some_slices_make_runs_of_those_that_follow_each_other(self, cut, most, data):
        _, _, plan = cut
        kept = [step for step in plan.slices() if data.draw(st.sampled_from([True, True, False]))]
        found = list(runs_of(plan, kept, most))
        assert [step for run in found for step in run.slices()] == kept
        for run in found:
            assert 1 <= len(run.along) <= most
            for last, first in itertools.pairwise(run.along):
                assert last.whole
                assert first.whole
                assert isinstance(last.outside, slice)
                assert isinstance(first.outside, slice)
                assert last.outside.stop == first.outside.start

    def test_all_slices_make_the_same_runs_either_way_but_for_their_cuts(self):
        plan = plan_of((6, 2), (16, 2))
        assert list(runs(plan, 8)) == list(runs_of(plan, plan.slices(), 8))

    def test_parts_of_a_stretch_are_about_as_long_as_each_other(self):
        found = [len(run.along) for run in runs(plan_of((34, 2)), 8)]
        assert sorted(found) == [5, 6, 6]

    def test_runs_go_along_the_last_axis_that_has_several_chunks(self):
        found = list(runs(plan_of((4, 2), (6, 2), (3, 3)), 8))
        assert [run.cells() for run in found] == [
            [(first, second, 0) for second in range(3)] for first in range(2)
        ]

    def test_what_is_selected_in_part_is_a_run_of_one(self):
        plan = make_plan([Strided(0, 0, 2, 6)], [RegularAxis(12, 4)])
        assert [run.cells() for run in runs(plan, 8)] == [[(0,)], [(1,)], [(2,)]]

    def test_they_are_made_as_they_are_needed(self):
        plan = plan_of((10**4, 1), (10**3, 1), (10, 1))
        first = next(runs(plan, 4))
        assert [cell[:2] for cell in first.cells()] == [(0, 0)] * len(first.along)


class TestRunLength:
    def test_so_many_chunks_as_stay_in_the_cache(self):
        plan = plan_of((10**4, 1))
        assert run_length(plan, 2**14) == 32
        assert run_length(plan, 2**18) == 2

    def test_no_more_than_there_are_interleaved(self):
        # Sharing runs out goes by their number, and by how many chunks each has.
        assert run_length(plan_of((100, 1), (6, 2)), 8) == 3
        assert run_length(plan_of((100, 1), (2, 2)), 8) == 100

    @pytest.mark.parametrize("size", [2**18 + 1, 2**30])
    def test_large_chunks_stay_alone(self, size):
        assert run_length(plan_of((10**4, 1)), size) == 1

    def test_empty_chunks_make_no_runs(self):
        assert run_length(plan_of((10**4, 1)), 0) == 0

    def test_one_chunk_is_no_row(self):
        assert run_length(plan_of((5, 5)), 1) == 0
        assert run_length(plan_of((0, 5), (100, 1)), 1) == 0
        assert run_length(make_plan([], []), 1) == 0

    def test_there_are_no_runs_of_what_is_not_straight(self):
        grid = [RegularAxis(10, 1), RegularAxis(10, 1)]
        turned = [Strided(1, 0, 1, 10), Strided(0, 0, 1, 10)]
        chosen = select(IndexTransform(input_shape=[10, 10]).oindex[[3, 1, 2]]).axes
        assert [run_length(make_plan(axes, grid), 8) for axes in (turned, chosen)] == [0, 0]


def memories(shape):
    """Arrays of one shape, differently laid out, with two more axes before."""
    full = (2, 3, *shape)
    yield np.zeros(full, "int32")
    yield np.zeros(full, "int32", order="F")
    yield np.zeros(full[::-1], "int32").transpose()
    yield np.zeros([2 * extent + 1 for extent in full], "int32")[
        tuple(slice(1, 2 * extent + 1, 2) for extent in full)
    ]
    turned = np.zeros((*full[1:], full[0]), "int32")
    yield np.moveaxis(turned, -1, 0)


class TestInterleaved:
    @given(cuts(), st.integers(2, 5), st.integers(0, 4), st.integers(0, 2))
    def test_it_is_the_very_memory_chunks_first(self, cut, most, layout, free):
        _, _, plan = cut
        shape = tuple(axis.count for axis in plan.axes)
        view = next(itertools.islice(memories(shape), layout, None))[(0,) * (2 - free)]
        view[...] = np.arange(view.size).reshape(view.shape)
        for run in runs(plan, most):
            found = interleaved(view, run)
            steps = list(run.slices())
            for number, step in enumerate(steps):
                wanted = view[(..., *step.outside)]
                mine = found[(slice(None),) * free + (number,)]
                np.testing.assert_array_equal(mine, wanted)
                assert mine.size == 0 or np.shares_memory(mine, wanted)
        for run in runs(plan, most):
            part = interleaved(view, run)
            np.add(part, 10**6, out=part)
        # Each element once: none is missed, and none is in two runs.
        assert (view.ravel() == np.arange(view.size) + 10**6).all()

    def test_memory_that_must_not_change(self):
        plan = plan_of((8, 2))
        view = np.arange(8)
        view.flags.writeable = False
        (run,) = runs(plan, 4)
        found = interleaved(view, run)
        assert found.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
        assert not found.flags.writeable

    def test_one_value_for_all(self):
        (run,) = runs(plan_of((8, 2)), 4)
        found = interleaved(np.broadcast_to(np.array(5), (8,)), run)
        assert found.tolist() == [[5, 5]] * 4


class TestStaging:
    def test_chunks_stand_one_after_the_other(self):
        chunk = Opened((6, 4), (3, 2), "uint16").array.chain.chunk
        memory, chunks = staging(chunk, 5)
        assert (chunks.shape, chunks.dtype) == ((5, 3, 2), np.dtype("uint16"))
        assert memory.nbytes == 5 * chunk.size_bytes
        chunks[...] = 7
        memory[2 * chunk.size_bytes : 3 * chunk.size_bytes] = bytes(chunk.size_bytes)
        assert [int(each.max()) for each in chunks] == [7, 7, 0, 7, 7]


@st.composite
def arrays(draw):
    """An array that has some of its chunks, and what it holds."""
    shape = draw(SHAPES)
    chunks = draw(st.tuples(*[st.integers(1, 4)] * len(shape)))
    codecs = CODECS[draw(st.sampled_from(sorted(CODECS)))]
    if draw(st.sampled_from([False, False, True])):
        codecs = sharding(chunks, codecs)
        chunks = tuple(size * draw(st.integers(1, 3)) for size in chunks)
    store = draw(st.sampled_from([WatchedStore, Roomy]))()
    opened = Opened(shape, chunks, "int32", codecs, fill=-5, store=store)
    model = np.arange(np.prod(shape)).reshape(shape)
    counts = [-(-extent // size) for extent, size in zip(shape, chunks, strict=True)]
    for cell in np.ndindex(*counts):
        if draw(st.sampled_from([False, False, False, True])):
            where = tuple(slice(c * n, (c + 1) * n) for c, n in zip(cell, chunks, strict=True))
            model[where] = -5
    opened.write(model)
    return opened, model


def read_to(opened, transform, out):
    """Read to memory of any layout."""

    async def body():
        selection = select(transform)
        plan = make_plan(selection.axes, opened.array.grid)
        await read_plan(reader_of(opened.array), plan, selection.view(out))

    start(True, body).result()


RUN_BYTES_GIVEN = st.sampled_from([2**19, 200, 64, 32])


@given(arrays(), RUN_BYTES_GIVEN, st.booleans(), st.integers(0, 4), st.data())
def test_any_block_is_read_as_numpy_has_it(array, run_bytes, shared, layout, data):
    opened, model = array
    box = data.draw(blocks(model.shape))
    transform = opened.identity[box]
    if data.draw(st.booleans()):
        transform = transform[None]
    expected = look_up(model, transform)
    with limits(run_bytes, shared):
        for order in "CF":
            np.testing.assert_array_equal(opened.read(transform, order), expected)
        out = next(itertools.islice(memories(expected.shape), layout, None))[1, 2]
        read_to(opened, transform, out)
    np.testing.assert_array_equal(out, expected)
    with limits(0):
        np.testing.assert_array_equal(opened.read(transform), expected)


@given(arrays(), RUN_BYTES_GIVEN, st.booleans(), st.integers(0, 4), st.data())
def test_any_block_is_written_as_numpy_has_it(array, run_bytes, shared, layout, data):
    opened, model = array
    box = data.draw(blocks(model.shape))
    transform = opened.identity[box]
    values = next(itertools.islice(memories(transform.input_shape), layout, None))[1, 2]
    values[...] = 1000 + np.arange(values.size).reshape(values.shape)
    if data.draw(st.booleans()):
        values[..., : values.shape[-1] // 2] = -5
    before = dict(opened.store.entries)
    with limits(run_bytes, shared):
        opened.write(values, transform)
    model[box] = values
    np.testing.assert_array_equal(opened.read(), model)

    stored = dict(opened.store.entries)
    for key in stored.keys() | before.keys():
        opened.store.poke(key, before.get(key))
    with limits(0):
        opened.write(values, transform)
    assert dict(opened.store.entries) == stored


VALUES = np.arange(1, 6 * 40 + 1, dtype="uint16").reshape(6, 40)


def small(codecs="zstd", shape=(6, 40), chunks=(2, 4), **options):
    codecs = CODECS[codecs] if isinstance(codecs, str) else codecs
    opened = Opened(shape, chunks, "uint16", codecs, **options)
    opened.write(VALUES)
    opened.store.counts.clear()
    return opened


@pytest.fixture
def stagings(monkeypatch):
    """How many chunks were handled in each staging buffer."""
    counts: list[int] = []

    def counted(chunk, count):
        counts.append(count)
        return staging(chunk, count)

    monkeypatch.setattr(decode, "staging", counted)
    monkeypatch.setattr(modify, "staging", counted)
    return counts


class TestWhere:
    def test_small_compressed_chunks_are_read_in_runs(self, stagings):
        opened = small()
        stagings.clear()
        np.testing.assert_array_equal(opened.read(), VALUES)
        assert sorted(stagings) == [10, 10, 10]
        assert opened.store.counts == {"read": 30}

    def test_and_written(self, stagings):
        opened = small()
        assert sorted(stagings) == [10, 10, 10]
        assert len(opened.store.entries) == 30

    def test_inner_chunks_of_a_shard(self, stagings):
        opened = small(sharding([2, 4], CODECS["zstd"]), chunks=(6, 40))
        stagings.clear()
        np.testing.assert_array_equal(opened.read(), VALUES)
        assert sorted(stagings) == [10, 10, 10]

    def test_a_chunk_that_lands_where_it_is_wanted_is_decoded_there(self, stagings):
        opened = small(chunks=(1, 8))
        stagings.clear()
        np.testing.assert_array_equal(opened.read(), VALUES)
        assert stagings == []

    @pytest.mark.parametrize("codecs", ["raw", codecs_named("blosc", 2), codecs_named("big", 2)])
    def test_what_is_not_decompressed_in_its_order_is_read_by_itself(self, codecs, stagings):
        opened = small(codecs)
        stagings.clear()
        np.testing.assert_array_equal(opened.read(), VALUES)
        assert stagings == []

    def test_on_the_loop_there_are_none(self, stagings):
        opened = small(store=WatchedStore(inline=False))
        np.testing.assert_array_equal(opened.read(), VALUES)
        assert stagings == []

    def test_no_chunk_is_read_for_a_run_of_whole_ones(self):
        opened = small()
        opened.write(VALUES + 1)
        assert opened.store.counts == {"write": 30}

    def test_chunks_equal_to_the_fill_value_are_deleted(self):
        opened = small(fill=7)
        values = VALUES.copy()
        values[:, 8:20] = 7
        opened.write(values)
        assert len(opened.store.entries) == 3 * (10 - 3)
        np.testing.assert_array_equal(opened.read(), values)

    @pytest.mark.parametrize("codecs", ["raw", "zstd", "gzip", "blosc"])
    def test_files(self, codecs, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        opened = Opened((6, 40), (2, 4), "uint16", CODECS[codecs], store=FileStore(sync=False))
        values = VALUES.copy()
        values[:2, 4:8] = 0
        opened.write(values)
        # Bytes of small numbers: some values are longer than what they decode to, some are not.
        np.testing.assert_array_equal(opened.read(), values)
        assert not (tmp_path / "a/c/0/1").exists()
        opened.write(0)
        assert not opened.read().any()


@pytest.mark.parametrize("codecs", sorted(CODECS))
def test_what_a_transaction_holds_is_not_the_memory_of_a_run(codecs):
    array = created(counting(), [6, 40], [2, 4], "uint16", members={
        "metadata": {"codecs": CODECS[codecs]}
    })  # fmt: skip
    transaction = ts.Transaction()
    within = array.with_transaction(transaction)
    within.write(VALUES).result()
    np.testing.assert_array_equal(within.read().result(), VALUES)
    within[:, 20:].write(VALUES[:, :20]).result()
    transaction.commit_sync()
    expected = np.concatenate([VALUES[:, :20]] * 2, axis=1)
    np.testing.assert_array_equal(array.read().result(), expected)


@pytest.mark.parametrize("store", [WatchedStore, Roomy])
class TestFailure:
    @pytest.mark.parametrize("codecs", ["checked", "gzip", "blosc", "shard"])
    def test_a_corrupt_chunk_in_the_middle_of_a_run_is_named(self, codecs, store):
        if codecs == "shard":
            opened = small(sharding([2, 4], CODECS["checked"]), chunks=(2, 20), store=store())
        else:
            opened = small(codecs, store=store())
        key = "a/c/1/1"
        good = opened.store.entries[key]
        opened.store.poke(key, good[:5] + bytes([good[5] ^ 0x5A]) + good[6:-1])
        with pytest.raises(DataLossError, match=f'"{key}"'):
            opened.read()

    def test_a_missing_one_is_an_error_on_request_and_named(self, store):
        opened = small(store=store(), fill_missing=False)
        np.testing.assert_array_equal(opened.read(), VALUES)
        opened.store.poke("a/c/1/3", None)
        with pytest.raises(NotFoundError, match=r'"a/c/1/3".*fill_missing_data_reads'):
            opened.read()

    def test_an_error_of_the_store_is_the_outcome(self, store):
        opened = small(store=store())

        def broken(_operation, key):
            if key == "a/c/1/3":
                raise OSError("unplugged")

        opened.store.before = broken
        with pytest.raises(OSError, match="unplugged"):
            opened.read()
        with pytest.raises(OSError, match="unplugged"):
            opened.write(VALUES + 1)
