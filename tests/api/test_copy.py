"""Copies from array to array, next to NumPy and to the reference; and what they cost."""

from typing import Any

import numpy as np
import pytest
import tensorstore as wheel
from hypothesis import given, note, settings
from hypothesis import strategies as st

import tensorstore_py as ts
from tensorstore_py.errors import DataLossError, MismatchError, PermissionDeniedError
from tensorstore_py.testing import FaultyStore
from tests.chunked.stores import counting, created, opened
from tests.chunked.views import SHAPES, brute_coordinates, look_up, views

DTYPES = ["uint8", "int16", "int32", "float32", "float64", "bool", "complex64"]


@st.composite
def term(draw, size):
    low = draw(st.integers(0, size - 1))
    high = draw(st.integers(low + 1, size))
    backward = f"{high - 1}:{low - 1}:-1" if low else f"{high - 1}::-1"
    return draw(
        st.sampled_from(
            [f"{low}:{high}", f"{low}:{high}:2", backward, f"{low}", ":", ":", "None, :"]
        )
    )


@st.composite
def arrays(draw, name, rank):
    """How to open an array and take a view of it: `(opening, view)`, as text."""
    shape = [draw(st.integers(1, 7)) for _ in range(rank)]
    chunks = [draw(st.integers(1, 4)) for _ in range(rank)]
    labels = draw(st.sampled_from([None, None, list("xyz")[:rank], list("zyx")[:rank]]))
    domain = f"labels={labels}, shape={shape}" if labels else f"shape={shape}"
    dtype = draw(st.sampled_from(DTYPES[:2] if name == "a" else DTYPES))
    opening = (
        f"ts.open(SPEC, create=True, dtype={dtype!r}, context=ts.Context(), "
        f"domain=ts.IndexDomain({domain}), chunk_layout=ts.ChunkLayout(chunk_shape={chunks}))"
        ".result()"
    )
    terms = [draw(term(size)) for size in shape]
    view = f"{name}[{', '.join(terms)}]"
    view += draw(st.sampled_from(["", "", ".T", ".translate_to[-2]"]))
    return opening, view, [*shape, *terms]


@st.composite
def copies(draw):
    ranks = draw(st.sampled_from([(1, 1), (2, 2), (2, 2), (1, 2), (2, 1), (3, 2)]))
    source, from_, form = draw(arrays("a", ranks[0]))
    target, to, other = draw(arrays("b", ranks[1]))
    if ranks[0] == ranks[1] and draw(st.booleans()):
        # Independent shapes seldom fit each other.
        target = target.replace(f"shape={other[: ranks[1]]}", f"shape={form[: ranks[0]]}")
        to = "b" + from_[1:]
    return source, from_, target, to


def run(library, case):
    source, from_, target, to = case
    names = {"ts": library, "SPEC": {"driver": "zarr3", "kvstore": "memory://"}}
    a, b = eval(source, names), eval(target, names)
    a[...] = (np.arange(a.size).reshape(a.shape) + 1).astype(a.dtype.numpy_dtype)
    try:
        eval(to, {"b": b}).write(eval(from_, {"a": a})).result()
    except Exception as error:
        return error
    return b.read().result()


@settings(max_examples=2 * settings().max_examples)
@given(copies())
def test_arrays_are_aligned_as_by_the_reference(case):
    mine, theirs = run(ts, case), run(wheel, case)
    note(f"ours: {mine!r}\nreference: {theirs!r}")
    if isinstance(theirs, Exception):
        assert isinstance(mine, type(theirs))
    else:
        np.testing.assert_array_equal(mine, theirs)


@st.composite
def same_shaped_views(draw):
    shape = draw(SHAPES)
    target = draw(views(shape, distinct=True))
    return shape, target, draw(views(target.input_shape))


@settings(max_examples=settings().max_examples // 2)
@given(same_shaped_views(), st.booleans(), st.booleans(), st.data())
def test_any_view_is_copied_to_any_other(case, inline, outline, data):
    shape, to, from_ = case
    if from_.input_shape != to.input_shape:
        from_ = ts.IndexTransform(input_shape=to.input_shape)
    chunk = st.integers(1, 4)
    source = created(
        counting(inline), to.input_shape, [data.draw(chunk) for _ in to.input_shape], "int16"
    )
    target = created(counting(outline), shape, [data.draw(chunk) for _ in shape], "int16")
    values = np.arange(1, source.size + 1, dtype="int16").reshape(source.shape)
    source.write(values).result()
    target[to].write(source[from_]).result()
    expected = np.zeros(shape, "int16")
    where = tuple(np.moveaxis(brute_coordinates(to), -1, 0))
    expected[where] = look_up(values, from_)
    np.testing.assert_array_equal(target.read().result(), expected)


@pytest.fixture(params=["inline", "loop", "to loop", "from loop"])
def stores(request):
    return (
        counting(request.param in ("inline", "to loop")),
        counting(request.param in ("inline", "from loop")),
    )


class TestCosts:
    def test_target_chunks_are_written_once_and_never_read(self, stores):
        source, target = created(stores[0], [9, 11], [4, 3]), created(stores[1], [9, 11], [2, 5])
        source.write(np.arange(99, dtype="uint8").reshape(9, 11) + 1).result()
        stores[1].reset()
        target.write(source).result()
        chunks = {key: count for key, count in stores[1].writes.items() if "/c/" in key}
        assert chunks == {f"a/c/{i}/{j}": 1 for i in range(5) for j in range(3)}
        assert stores[1].reads.total() == 0

    def test_whole_chunks_are_read_once(self, stores):
        source, target = created(stores[0], [8, 8], [4, 2]), created(stores[1], [8, 8], [4, 2])
        source.write(1).result()
        stores[0].reset()
        target.write(source).result()
        assert set(stores[0].reads.values()) == {1}
        assert stores[0].reads.total() == 8

    @pytest.mark.parametrize("offset", [0, 1, 3])
    @pytest.mark.parametrize("backward", [False, True])
    def test_blocks_follow_the_target_s_chunks_wherever_the_view_begins(self, offset, backward):
        store = counting()
        source, target = created(store, [9], [9], path="s/"), created(store, [20], [4], path="t/")
        source.write(np.arange(1, 10, dtype="uint8")).result()
        view = target[offset : offset + 9][::-1] if backward else target[offset : offset + 9]
        store.reset()
        view.write(source).result()
        writes = {key: count for key, count in store.writes.items() if key.startswith("t/c/")}
        touched = range(offset // 4, (offset + 8) // 4 + 1)
        assert writes == {f"t/c/{number}": 1 for number in touched}
        assert view.read().result().tolist() == list(range(1, 10))

    @pytest.mark.parametrize("view", [np.s_[:], np.s_[::-1], np.s_[3:17], np.s_[16:2:-1]])
    @pytest.mark.parametrize("cast", [False, True])
    def test_blocks_follow_chunks_of_different_sizes(self, view, cast):
        store = counting()
        sizes = {"kind": "inline", "chunk_shapes": [[2, 5, 1, [4, 2], 9]]}
        grid = {"chunk_grid": {"name": "rectilinear", "configuration": sizes}}
        target = opened(
            store, path="t/", members={"metadata": grid}, create=True, dtype="uint8", shape=[20]
        )
        cells = np.repeat(np.arange(6), [2, 5, 1, 4, 4, 4])
        part = target[view]
        source = created(store, part.shape, [3], path="s/")
        values = np.arange(1, part.size + 1, dtype="uint8")
        source.write(values).result()
        store.reset()
        (part.astype("int16") if cast else part).write(source).result()
        writes = {key: count for key, count in store.writes.items() if key.startswith("t/c/")}
        assert writes == {f"t/c/{cell}": 1 for cell in np.unique(cells[view])}
        assert part.read().result().tolist() == values.tolist()

    def test_what_is_broadcast_is_not_read_at_full_size(self, stores):
        source, target = created(stores[0], [1, 6], [1, 6]), created(stores[1], [50, 6], [50, 6])
        source.write([[1, 2, 3, 4, 5, 6]]).result()
        stores[0].reset()
        target.write(source).result()
        assert stores[0].reads.total() == 1
        assert (target.read().result() == [1, 2, 3, 4, 5, 6]).all()

    def test_nothing_is_copied_for_nothing(self, stores):
        source, target = created(stores[0], [8], [4]), created(stores[1], [8], [4])
        for store in stores:
            store.reset()
        target[3:3].write(source[5:5]).result()
        assert [store.reads.total() + store.writes.total() for store in stores] == [0, 0]

    @pytest.mark.parametrize("backward", [False, True])
    def test_large_chunks_of_the_source_are_read_once(self, stores, backward):
        source, target = created(stores[0], [12, 8], [6, 8]), created(stores[1], [12, 8], [3, 2])
        source.write(np.arange(96, dtype="uint8").reshape(12, 8)).result()
        stores[0].reset()
        (target[::-1] if backward else target).write(source).result()
        assert stores[0].reads == {"a/c/0/0": 1, "a/c/1/0": 1}


@st.composite
def nested(draw, shape):
    """Members of a zarr3 spec whose chunks are shards in shards, or no shards at all."""
    chunk = [draw(st.integers(1, 3)) for _ in shape]
    codecs: list[Any] | None = None
    for _ in range(draw(st.integers(0, 2))):
        inner = {"chunk_shape": chunk, "codecs": codecs or ["bytes"]}
        codecs = [{"name": "sharding_indexed", "configuration": inner}]
        chunk = [size * draw(st.integers(1, 3)) for size in chunk]
    grid = {"name": "regular", "configuration": {"chunk_shape": chunk}}
    metadata = {"chunk_grid": grid, "shape": shape, "data_type": "int16"}
    return {"metadata": {**metadata, **({"codecs": codecs} if codecs else {})}}


@given(st.data(), st.lists(st.integers(1, 9), min_size=1, max_size=3), st.booleans())
def test_no_limit_is_too_small_for_a_copy(data, shape, shared):
    """Neither here nor there, whatever the chunks, and with two copies at a time."""
    limit = st.integers(1, 3000)
    contexts = [
        ts.Context({"memory_limit": {"limit_bytes": data.draw(limit)}}) for _ in range(2 - shared)
    ]
    arrays: list[Any] = []
    for path in ("a/", "b/", "c/"):
        store = counting(data.draw(st.booleans()))
        members = data.draw(nested(shape))
        context = contexts[len(arrays) % len(contexts)]
        arrays.append(opened(store, path=path, members=members, create=True, context=context))
    source, *targets = arrays
    values = np.arange(1, source.size + 1, dtype="int16").reshape(shape)
    source.write(values).result(timeout=60)
    copies = [target.write(source) for target in targets]
    for each, target in zip(copies, targets, strict=True):
        each.result(timeout=60)
        np.testing.assert_array_equal(target.read().result(timeout=60), values)
    for each in arrays:
        memory = each._driver.memory
        assert (memory.held, memory.blocks.held) == (0, 0)


class TestErrors:
    def test_extents_that_differ_are_named(self, stores):
        source, target = created(stores[0], [8, 5], [4, 5]), created(stores[1], [8, 6], [4, 6])
        with pytest.raises(
            MismatchError, match=r"source dimension 1 of extent 5 .*dimension 1 \(6"
        ):
            target.write(source).result()

    def test_a_dimension_too_many_is_named(self, stores):
        source, target = created(stores[0], [8, 5], [4, 5]), created(stores[1], [5], [5])
        with pytest.raises(MismatchError, match="dimension 0 of extent 8 has no counterpart"):
            target.write(source).result()

    def test_values_that_might_not_survive(self, stores):
        source, target = created(stores[0], [8], [4], "int16"), created(stores[1], [8], [4])
        with pytest.raises(MismatchError, match="int16 data to an array of uint8"):
            target.write(source).result()

    def test_a_source_must_be_readable(self, stores):
        created(stores[0], [8], [4])
        source, target = opened(stores[0], write=True), created(stores[1], [8], [4])
        with pytest.raises(PermissionDeniedError, match="source is not opened for reading"):
            target.write(source)

    def test_a_corrupt_chunk_of_the_source_is_named(self):
        store = FaultyStore(counting())
        source, target = created(store, [8], [4]), created(counting(), [8], [4])
        source.write(1).result()
        store.alter("a/c/1", lambda value: value[:-1])
        with pytest.raises(DataLossError, match='"a/c/1"'):
            target.write(source).result()


def test_an_array_can_be_copied_within_itself(stores):
    array = created(stores[0], [12], [3])
    array[:6].write(np.arange(1, 7, dtype="uint8")).result()
    array[6:].write(array[:6]).result()
    assert array.read().result().tolist() == [1, 2, 3, 4, 5, 6] * 2


def test_labels_say_which_dimension_is_which():
    values = np.arange(6, dtype="uint8").reshape(2, 3)
    source = created(counting(), [2, 3], [2, 2])
    target = created(counting(), [3, 2], [2, 2])
    source.write(values).result()
    target[ts.d[:].label["x", "y"]].write(source[ts.d[:].label["y", "x"]]).result()
    np.testing.assert_array_equal(target.read().result(), values.T)
