"""An open array as NumPy has it: every expression gives what NumPy's array gives."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tensorstore_py as ts
from tests.api.counted_memory import counts


def stored(values, chunks, origin=None, **options):
    spec = {"driver": "zarr3", "kvstore": "memory://"}
    layout = ts.ChunkLayout(chunk_shape=chunks)
    store = ts.open(
        spec, create=True, dtype=values.dtype, shape=values.shape, chunk_layout=layout,
        context=ts.Context(), **options,
    ).result()  # fmt: skip
    store[...] = values
    return store if origin is None else store.translate_to[origin]


class Reads:
    """A function for `virtual_chunked` that remembers what it was asked for."""

    def __init__(self):
        self.domains = []

    def __call__(self, domain, into, _):
        self.domains.append(domain)
        into[...] = 1


@pytest.fixture
def values():
    return np.arange(60, dtype="int16").reshape(6, 10)


@pytest.fixture
def view(values):
    return stored(values, [4, 4], [-3, 7]).np


@st.composite
def arrays(draw):
    shape = draw(hnp.array_shapes(max_dims=4, max_side=5))
    values = np.arange(np.prod(shape), dtype="int32").reshape(shape)
    origin = draw(st.tuples(*(st.integers(-9, 9) for _ in shape)))
    if draw(st.booleans()):
        return values, ts.array(values.copy()).translate_to[origin].np
    chunks = draw(st.tuples(*(st.integers(1, extent) for extent in shape)))
    return values, stored(values, chunks, origin).np


@st.composite
def indices(draw, shape):
    """Any expression that NumPy takes for a shape."""
    terms, dim = [], 0
    joint = draw(hnp.array_shapes(max_dims=2, max_side=3))
    while dim < len(shape):
        extent = shape[dim]
        kind = draw(st.sampled_from(["int", "slice", "array", "mask", "list", "none", "flag"]))
        if kind == "int":
            terms.append(draw(st.integers(-extent, extent - 1)))
        elif kind == "slice":
            terms.append(draw(st.slices(extent)))
        elif kind == "array":
            sides = draw(st.sampled_from([joint, joint[-1:], (1,), ()]))
            places = hnp.arrays(np.int64, sides, elements=st.integers(-extent, extent - 1))
            terms.append(draw(places))
        elif kind == "list":
            at = draw(st.integers(-extent, extent - 1))
            terms.append([at])
        elif kind == "mask":
            rank = draw(st.integers(1, len(shape) - dim))
            mask = np.zeros(shape[dim : dim + rank], bool)
            mask.flat[draw(st.integers(0, mask.size - 1))] = True
            terms.append(mask)
            dim += rank
            continue
        else:
            terms.append(None if kind == "none" else draw(st.booleans()))
            continue
        dim += 1
        if draw(st.integers(0, 4)) == 0:
            break
    if draw(st.booleans()):
        terms.insert(draw(st.integers(0, len(terms))), ...)
    return tuple(terms) if len(terms) != 1 or draw(st.booleans()) else terms[0]


@given(st.data())
def test_every_expression_reads_what_numpy_reads(data):
    values, view = data.draw(arrays())
    item = data.draw(indices(values.shape))
    try:
        expected = values[item]
    except IndexError:  # arrays that do not broadcast
        with pytest.raises(IndexError):
            view[item]
        return
    found = view[item]
    assert type(found) is type(expected)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected, strict=True)


@given(st.data())
def test_every_expression_writes_what_numpy_writes(data):
    values, view = data.draw(arrays())
    item = data.draw(indices(values.shape))
    try:
        shape = values[item].shape
    except IndexError:
        return
    dropped = data.draw(st.integers(0, len(shape)))
    fits = [data.draw(st.sampled_from([1, extent])) for extent in shape[dropped:]]
    given: object = np.arange(np.prod(fits, dtype=int)).reshape(fits) - 100.5
    places = np.arange(values.size).reshape(values.shape)[item]
    if np.unique(places).size != np.size(places):
        given = np.float64(-7.5)  # of what is written to one place twice NumPy promises nothing
    values = values.copy()
    values[item] = given
    view[item] = given
    np.testing.assert_array_equal(view[...], values)


@pytest.mark.parametrize(
    "item", [6, -7, (0, 10), np.array([0, 6]), (slice(None), [-11]), np.zeros(5, bool), (0, 0, 0),
             "x", 1.5, [0.5], (..., ...), slice(0.5), np.zeros((6, 9), bool)],
)  # fmt: skip
def test_what_numpy_refuses_is_refused(view, values, item):
    with pytest.raises((IndexError, TypeError)) as theirs:
        values[item]
    for attempt in (lambda: view[item], lambda: view.__setitem__(item, 1)):
        with pytest.raises(theirs.type):
            attempt()


class TestWhatItSays:
    def test_is_what_numpy_says(self, view, values):
        for name in ("shape", "ndim", "size", "dtype", "itemsize", "nbytes"):
            assert getattr(view, name) == getattr(values, name), name
        assert len(view) == 6
        assert type(view.dtype) is type(values.dtype)
        assert repr(view) == "<NumpyView shape=(6, 10) dtype=int16>"

    def test_the_store_below_begins_at_zero(self, view, values):
        assert view.ts.origin == (0, 0)
        np.testing.assert_array_equal(view.ts[1:3, 2].read().result(), values[1:3, 2])

    def test_attributes(self, view):
        view.attrs["a"] = 3
        assert dict(view.attrs) == {"a": 3}

    @pytest.mark.parametrize(
        ("index", "chunks"),
        [
            (np.s_[...], (4, 4)),
            (np.s_[4:], (4, 4)),
            (np.s_[1:, 3:], (3, (1, 4, 2))),
            (np.s_[:, 5], (4,)),
            (np.s_[::2], (2, 4)),
            (np.s_[::-1], ((2, 4), 4)),
            (np.s_[None], (1, 4, 4)),
            (np.s_[[1, 3, 4]], (3, 4)),
        ],
    )
    def test_chunks_are_those_that_the_view_shows(self, values, index, chunks):
        view = stored(values, [4, 4])[index].np
        assert view.chunks == chunks
        assert view.shards is None

    def test_shards(self):
        codec = {"driver": "zarr3", "codecs": [{
            "name": "sharding_indexed", "configuration": {"chunk_shape": [2, 5]},
        }]}  # fmt: skip
        store = ts.open(
            {"driver": "zarr3", "kvstore": "memory://"}, create=True, dtype="uint8",
            shape=[16, 20], codec=codec, context=ts.Context(),
            chunk_layout=ts.ChunkLayout(write_chunk_shape=[8, 10]),
        ).result()  # fmt: skip
        assert (store.np.chunks, store.np.shards) == ((2, 5), (8, 10))
        assert store[4:].np.shards == ((4, 8), 10)

    def test_chunks_of_different_sizes(self):
        grid = {"name": "rectilinear", "configuration": {
            "kind": "inline", "chunk_shapes": [[10, 10, 30], 25]}}  # fmt: skip
        store = ts.open(
            {"driver": "zarr3", "kvstore": "memory://", "metadata": {"chunk_grid": grid}},
            create=True, dtype="uint8", shape=[50, 60], context=ts.Context(),
        ).result()  # fmt: skip
        assert store.np.chunks == ((10, 10, 30), 25)

    def test_an_array_without_chunks(self, values):
        assert (ts.array(values).np.chunks, ts.array(values).np.shards) == (None, None)

    def test_without_dimensions(self):
        view = ts.array(np.int64(5)).np
        assert (view.shape, view.chunks, view.size) == ((), None, 1)
        assert view[()] == 5
        assert type(view[()]) is np.int64
        assert view[...].shape == ()
        view[()] = 6
        view[...] += 1
        assert view[()] == 7
        with pytest.raises(TypeError, match="unsized"):
            len(view)

    def test_a_view_without_bounds_says_so(self):
        store = ts.virtual_chunked(Reads(), dtype="uint8", rank=1)
        with pytest.raises(IndexError, match=r"domain is .*choose a part of it first"):
            _ = store.np
        assert store[-3:5].np[-1] == 1

    def test_what_it_says_stays_true_when_the_array_grows(self):
        store = stored(np.arange(4), [2])
        view = store.np
        store.append([9, 9]).result()
        assert view.shape == (4,)
        assert view[...].tolist() == [0, 1, 2, 3]


class TestLazy:
    def test_another_order_of_dimensions_reads_nothing(self):
        values = np.arange(24, dtype="int16").reshape(2, 3, 4)
        view = ts.array(values).translate_to[5, 6, 7].np
        for found, expected in [
            (view.T, values.T),
            (view.transpose(), values.T),
            (view.transpose(1, 2, 0), values.transpose(1, 2, 0)),
            (view.transpose((0, -1, 1)), values.transpose((0, -1, 1))),
            (np.moveaxis(view, 0, -1), np.moveaxis(values, 0, -1)),  # type: ignore[type-var]
        ]:
            assert isinstance(found, ts.NumpyView)
            np.testing.assert_array_equal(found, expected)

    def test_a_pickle_is_of_the_spec(self, tmp_path, values):
        store = ts.open(
            {"driver": "zarr3", "kvstore": f"file://{tmp_path}/a/"}, create=True, dtype="int16",
            shape=[600, 1000],
        ).result()  # fmt: skip
        store[:6, :10] = values
        view = store[2:, 3:].np
        pickled = pickle.dumps(view)
        assert len(pickled) < 10_000
        again = pickle.loads(pickled)
        assert again.shape == (598, 997)
        assert again[3, 6] == values[5, 9]
        again[0, 0] = 77
        assert view[0, 0] == 77
        np.testing.assert_array_equal(copy.copy(view)[:4], view[:4])


class TestAssignment:
    def test_converts_as_numpy_does(self, view, values):
        values = values.copy()
        for target in (view, values):
            target[0] = 1.7
            target[1] = np.full((1, 1, 10), 2.9)
            target[2, :3] = ["1", "2", "3"]
            target[3] = True
            target[:, 9] = range(6)
        np.testing.assert_array_equal(view, values)

    def test_another_store_is_copied_whatever_its_positions_are(self, view, values):
        source = ts.array(np.arange(10.5, 20.5)).translate_to[100].label["t"]
        view[1] = source
        view[2:4] = view[4:6] * 0 + 5
        view[0] = source.np
        assert view[1].tolist() == view[0].tolist() == list(range(10, 20))
        assert (view[2:4] == 5).all()

    def test_what_does_not_broadcast_is_refused(self, view):
        with pytest.raises(ValueError, match="extent"):
            view[0] = [1, 2, 3]
        with pytest.raises(ValueError, match="extent"):
            view[0] = ts.array([1, 2, 3])

    def test_read_only(self, values):
        store = stored(values, [4, 4])
        view = ts.open(store.spec(retain_context=True), read=True, write=False).result().np
        with pytest.raises(ts.PermissionDeniedError, match="write=True"):
            view[0] = 1
        with pytest.raises(ts.PermissionDeniedError):
            view += 1

    def test_what_is_called_a_copy_is_no_way_to_change_the_store(self, values):
        store = stored(values, [4, 4])[2:]
        taken = store.copy()
        with pytest.raises(ts.PermissionDeniedError):
            taken[0] = 1
        np.testing.assert_array_equal(taken, values[2:])


class TestOperators:
    def test_give_arrays(self, view, values):
        pairs = [
            (view + 1, values + 1),
            (2.5 * view, 2.5 * values),
            (view > 7, values > 7),
            (-view, -values),
            (view == values, values == values),  # noqa: PLR0124
            (values - view, values - values),
            (view @ view.T, values @ values.T),
            (np.add.reduce(view), np.add.reduce(values)),
            (np.hypot(view, view), np.hypot(values, values)),
        ]
        for found, expected in pairs:
            assert type(found) is np.ndarray
            np.testing.assert_array_equal(found, expected, strict=True)

    def test_in_place_they_write(self, view, values):
        before, same = values.copy(), view
        view += 5
        view *= [[2]]
        assert view is same
        np.testing.assert_array_equal(view, (before + 5) * 2)
        np.add(view, 1, out=(view,))
        np.testing.assert_array_equal(view, (before + 5) * 2 + 1)
        with pytest.raises(TypeError, match="same_kind"):
            view /= 2

    def test_where_keeps_the_rest(self, view, values):
        np.multiply(view, 0, out=view, where=values > 10)
        np.testing.assert_array_equal(view, np.where(values > 10, 0, values))

    def test_astype_is_numpys(self, view, values):
        found = view.astype("float32")
        assert type(found) is np.ndarray
        np.testing.assert_array_equal(found, values.astype("float32"), strict=True)


class TestMethods:
    def test_are_numpys(self, view, values):
        for found, expected in [
            (view.reshape(-1, 5), values.reshape(-1, 5)),
            (view.flatten(order="F"), values.flatten(order="F")),
            (view.argmax(axis=1), values.argmax(axis=1)),
            (view.clip(3, 9), values.clip(3, 9)),
            (view.astype("float32", copy=True), values.astype("float32")),
            (np.ravel(view), np.ravel(values)),
        ]:
            np.testing.assert_array_equal(found, expected, strict=True)
        assert view.tolist() == values.tolist()
        assert "reshape" in dir(view)

    def test_what_only_memory_has_says_so(self, view):
        for name in ("strides", "copy", "ctypes", "nonsense"):
            with pytest.raises(AttributeError, match=rf"'{name}'; .*view\[\.\.\.\]"):
                getattr(view, name)


class TestRecords:
    @pytest.fixture
    def records(self):
        return np.array([(1, 2.5), (3, 4.5)], dtype=[("a", "<i4"), ("b", "<f8")])

    def test_fields(self, records):
        view = ts.array(records).np
        np.testing.assert_array_equal(view["b"], records["b"])
        np.testing.assert_array_equal(view[["a", "b"]], records[["a", "b"]])
        view[1] = (7, 8)
        assert view[1]["a"] == 7
        with pytest.raises(IndexError, match="can't be written by itself"):
            view["a"] = 1


def test_text_is_objects():
    view = ts.array(["a", "bc", "d"]).np
    assert view.dtype == object
    assert view[-1] == "d"
    view[0] = "longer"
    view[1:] = np.array(["x", "y"])
    assert view[:].tolist() == ["longer", "x", "y"]


def test_bfloat16():
    view = ts.array([1.5, 2.5], "bfloat16").np
    assert view.dtype == np.dtype(ts.bfloat16)
    assert float(view[1]) == 2.5
    view[0] = 3.0
    assert view.sum() == 5.5


class TestIteration:
    def test_gives_rows(self, view, values):
        np.testing.assert_array_equal(list(view), values)
        np.testing.assert_array_equal(next(iter(view.T)), values[:, 0])
        assert [int(each) for each in view[0]] == list(range(10))

    def test_reads_each_chunk_once_and_many_at_a_time(self):
        store = ts.open(
            {"driver": "zarr3", "kvstore": {"driver": "counted_memory"}}, create=True,
            dtype="uint16", shape=[1000], chunk_layout=ts.ChunkLayout(chunk_shape=[10]),
        ).result()  # fmt: skip
        store[...] = np.arange(1000, dtype="uint16")
        store = store[7:]
        requests = counts(store)
        assert [int(each) for each in store.np] == list(range(7, 1000))
        assert requests.reads == {f"c/{chunk}": 1 for chunk in range(100)}

    def test_reads_no_more_than_what_is_worth_it(self):
        store = ts.virtual_chunked(
            read := Reads(), dtype="uint8", shape=[100, 2**20],
            chunk_layout=ts.ChunkLayout(chunk_shape=[1, 2**20]),
        )  # fmt: skip
        first = next(iter(store.np))
        assert first.shape == (2**20,)
        assert len(read.domains) == 4
