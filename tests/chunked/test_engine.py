"""The engine against NumPy: any program of writes and reads, whatever the codecs and the store."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.chunked.stores import CODECS, Opened, WatchedStore, codecs_named, sharding
from tests.chunked.views import CHUNK, SHAPES, brute_coordinates, look_up, views


@st.composite
def layouts(draw, shape):
    """Chunk shape and codecs, sometimes sharded, sometimes twice."""
    inner = draw(st.tuples(*[CHUNK] * len(shape)))
    codecs = codecs_named(draw(st.sampled_from(sorted(CODECS))), len(shape))
    for _ in range(draw(st.sampled_from([0, 0, 1, 1, 2]))):
        location = draw(st.sampled_from(["start", "end"]))
        codecs = sharding(inner, codecs, location)
        inner = tuple(size * draw(st.integers(1, 3)) for size in inner)
        if draw(st.booleans()) and shape:
            order = draw(st.permutations(range(len(shape))))
            codecs = [{"name": "transpose", "configuration": {"order": order}}, *codecs]
            inner = tuple(inner[order.index(dim)] for dim in range(len(shape)))
    return inner, codecs


class ArrayMachine(RuleBasedStateMachine):
    """Writes and reads through random views; a NumPy array says what must come out."""

    @initialize(data=st.data(), inline=st.booleans(), fill=st.sampled_from([0, 7]))
    def create(self, data, inline, fill):
        shape = data.draw(SHAPES, "shape")
        chunks, codecs = data.draw(layouts(shape), "layout")
        store = WatchedStore(inline=inline)
        self.opened = Opened(shape, chunks, "int32", codecs, fill=fill, store=store)
        self.model = np.full(shape, fill, "int32")
        self.numbers = itertools.count(100)

    @rule(data=st.data(), order=st.sampled_from("CF"))
    def read(self, data, order):
        view = data.draw(views(self.model.shape), "view")
        found = self.opened.read(view, order)
        np.testing.assert_array_equal(found, look_up(self.model, view))

    @rule(data=st.data(), kind=st.sampled_from(["fresh", "scalar", "fill", "F"]))
    def write(self, data, kind):
        view = data.draw(views(self.model.shape, distinct=True), "view")
        shape = view.input_shape
        size = int(np.prod(shape))
        if kind == "scalar":
            values = np.full(shape, next(self.numbers))
            self.opened.write(values[(0,) * values.ndim] if size else 0, view)
        elif kind == "fill":
            values = np.full(shape, self.opened.fill)
            self.opened.write(values, view)
        else:
            values = np.array([next(self.numbers) for _ in range(size)], "int32").reshape(shape)
            self.opened.write(np.copy(values, order="F") if kind == "F" else values, view)
        where = brute_coordinates(view)
        self.model[tuple(np.moveaxis(where, -1, 0))] = values

    @invariant()
    def chunks_of_fill_values_are_not_stored(self):
        array = self.opened
        for key in array.store.entries:
            cell = map(int, key.split("/")[2:])
            part = self.model[
                tuple(slice(c * n, (c + 1) * n) for c, n in zip(cell, array.chunks, strict=False))
            ]
            assert (part != array.fill).any()

    def teardown(self):
        if hasattr(self, "opened"):
            np.testing.assert_array_equal(self.opened.read(), self.model)


ArrayMachine.TestCase.settings = settings(
    max_examples=settings().max_examples, stateful_step_count=8
)
TestArrayMachine = ArrayMachine.TestCase


@given(st.data())
def test_the_last_of_repeated_positions_wins_or_any_of_them(data):
    """A write that names an element twice stores one of the values given for it."""
    shape = data.draw(SHAPES.filter(len))
    opened = Opened(shape, data.draw(st.tuples(*[CHUNK] * len(shape))), "int32", fill=-1)
    view = data.draw(views(shape))
    values = np.arange(np.prod(view.input_shape)).reshape(view.input_shape)
    opened.write(values, view)
    found = opened.read()
    where = brute_coordinates(view).reshape(-1, len(shape))
    given_for: dict[tuple[int, ...], set[int]] = {}
    for position, value in zip(where.tolist(), values.ravel().tolist(), strict=True):
        given_for.setdefault(tuple(position), set()).add(value)
    for position in np.ndindex(*shape):
        assert int(found[position]) in given_for.get(position, {-1})


@pytest.mark.parametrize("codecs", sorted(CODECS))
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["uint8", "float64", "complex64", "bool"])
def test_whole_chunks_decoded_in_place_are_what_the_scratch_path_gives(codecs, order, dtype):
    opened = Opened((8, 6, 4), (4, 3, 2), dtype, codecs)
    values = np.arange(8 * 6 * 4).reshape(8, 6, 4) % 100
    values = (values % 3 == 0) if dtype == "bool" else values.astype(dtype)
    opened.write(values)
    direct = opened.read(order=order)
    np.testing.assert_array_equal(direct, values)
    # A flipped view is never a whole chunk in order: everything goes through scratch.
    flipped = opened.read(opened.identity[::-1, ::-1, ::-1], order=order)
    np.testing.assert_array_equal(flipped[::-1, ::-1, ::-1], direct)


@pytest.mark.parametrize("inline", [True, False])
def test_writers_of_parts_of_one_chunk_lose_nothing(inline):
    opened = Opened((64,), (64,), "int32", "zstd", store=WatchedStore(inline=inline))
    futures = [opened.start_write(n + 1, opened.identity[n]) for n in range(64)]
    for future in futures:
        future.result()
    assert opened.read().tolist() == list(range(1, 65))


@pytest.mark.parametrize("inline", [True, False])
def test_writers_of_parts_of_one_shard_lose_nothing(inline):
    codecs = sharding([4], codecs_named("zstd", 1))
    opened = Opened((64,), (64,), "int32", codecs, store=WatchedStore(inline=inline))
    futures = [opened.start_write(n + 1, opened.identity[n]) for n in range(64)]
    for future in futures:
        future.result()
    assert opened.read().tolist() == list(range(1, 65))


@pytest.mark.parametrize("sharded", [False, True])
def test_a_write_that_lost_a_race_begins_again_from_what_won(sharded):
    codecs = sharding([4], ["bytes"]) if sharded else "raw"
    opened = Opened((8,), (8,), "uint8", codecs)
    other = Opened((8,), (8,), "uint8", codecs)
    other.write(np.arange(1, 9))
    rival = other.store.entries["a/c/0"]
    races = iter(range(3))

    def interfere(operation, key):
        if operation == "write" and next(races, None) is not None:
            opened.store.poke(key, rival)

    opened.store.before = interfere
    opened.write(50, opened.identity[0])
    assert opened.read().tolist() == [50, 2, 3, 4, 5, 6, 7, 8]
    assert opened.store.counts["write"] == 4
