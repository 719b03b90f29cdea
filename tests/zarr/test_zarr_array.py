"""Arrays of the zarr API: their members, selections, fields and views."""

import copy
import pickle
from typing import Any

import numcodecs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import tensorstore_py as ts
from tensorstore_py.zarr.described import human_size
from tensorstore_py.zarr.element import as_element
from tensorstore_py.zarr.form import of_field, whole_elements
from tensorstore_py.zarr.selection import (
    basic_selection,
    block_selection,
    coordinate_selection,
    mask_selection,
    orthogonal_selection,
    selection,
    split_fields,
    vector_selection,
)


@pytest.fixture
def z():
    return ts.zarr.array(np.arange(12).reshape(4, 3), chunks=(3, 2))


class TestSequence:
    def test_has_a_length(self, z):
        assert len(z) == 4
        with pytest.raises(TypeError, match="unsized"):
            len(ts.zarr.zeros(()))

    def test_is_iterated_over(self, z):
        np.testing.assert_array_equal(list(z), z[:])
        assert [row.tolist() for row in z.islice(1, -1)] == [[3, 4, 5], [6, 7, 8]]
        assert [row.tolist() for row in z.islice(-1)] == [[9, 10, 11]]
        assert list(z.islice(3, 1)) == []
        assert [int(each) for each in ts.zarr.array([1, 2, 3], chunks=2)] == [1, 2, 3]

    def test_has_no_truth_but_that_of_one_element(self, z):
        assert ts.zarr.array([3])
        assert not ts.zarr.array(0)
        with pytest.raises(ValueError, match="ambiguous"):
            bool(z)


class TestNumpy:
    def test_is_an_array_of_numpys(self, z):
        np.testing.assert_array_equal(np.asarray(z), np.arange(12).reshape(4, 3))
        assert np.asarray(z, "f4").dtype == np.float32
        assert np.sum(z) == 66
        with pytest.raises(ValueError, match="copying"):
            np.asarray(z, copy=False)

    def test_scalars_are_arrays_without_dimensions(self):
        assert np.asarray(ts.zarr.full((), 5)).shape == ()

    def test_is_read_as_another_type(self, z):
        seen = z.astype("f4")
        assert (seen.dtype, seen[1].tolist(), seen.shape) == (np.float32, [3.0, 4.0, 5.0], (4, 3))
        assert seen.read_only
        assert seen.is_view

    def test_has_what_dask_and_xarray_look_for(self, z):
        assert (z.shape, z.dtype, z.ndim, z.chunks) == ((4, 3), np.int64, 2, (3, 2))
        assert z[1:3, ::2].tolist() == [[3, 5], [6, 8]]


class TestSize:
    def test_resize(self, z):
        z.resize(5, 2)
        assert z.shape == z.ts.shape == (5, 2)
        assert z[:].tolist() == [[0, 1], [3, 4], [6, 7], [9, 10], [0, 0]]
        z.resize((2, 2))
        assert z.nchunks_initialized == 1

    @pytest.mark.parametrize("shape", [(3,), (1, 2, 3)])
    def test_the_number_of_dimensions_stays(self, z, shape):
        with pytest.raises(ValueError, match="2 dimensions"):
            z.resize(shape)

    def test_append(self, z):
        assert z.append(np.ones((2, 3))) == (6, 3)
        assert z.append([[7]] * 6, axis=1) == (6, 4)
        assert z[-1].tolist() == [1, 1, 1, 7]
        assert z.append(z) == (12, 4)
        assert z[6:].tolist() == z[:6].tolist()
        with pytest.raises(ValueError, match="extent"):
            z.append(np.ones((2, 5)))

    def test_appends_of_several_are_all_there(self, z):
        other = ts.zarr.Array(z.ts)
        z.append([[1, 1, 1]])
        other.append([[2, 2, 2]])
        assert other[-2:].tolist() == [[1, 1, 1], [2, 2, 2]]


class TestValue:
    def test_is_equal_if_it_is_the_same(self, tmp_path):
        make: dict[str, Any] = {"shape": 3, "dtype": "i4"}
        z = ts.zarr.open_array(tmp_path / "a", mode="w", **make)
        assert z == ts.zarr.open_array(tmp_path / "a")
        assert z != ts.zarr.open_array(tmp_path / "a", mode="r")
        assert z != ts.zarr.open_array(tmp_path / "b", mode="w", **make)
        assert z != 3
        assert ts.zarr.zeros(3) != ts.zarr.zeros(3)

    def test_survives_pickling(self, tmp_path):
        root = ts.zarr.open_group(tmp_path, mode="w")
        z = root.array("a/b", [1, 2, 3])
        again = pickle.loads(pickle.dumps(z))
        assert again == z
        assert (again.path, again[:].tolist(), again.store) == ("a/b", [1, 2, 3], root.store)
        again[0] = 5
        assert z[0] == 5

    def test_can_be_copied(self, z):
        assert copy.copy(z) == z

    def test_says_what_it_is(self, tmp_path):
        z = ts.zarr.zeros((2, 3), store=tmp_path, path="a", dtype="f4")
        expected = f"<Array {tmp_path.as_uri()}/a/ shape=(2, 3) dtype=float32>"
        assert repr(z) == expected


class TestZarrArray:
    async def test_is_asynchronous_by_its_tensorstore(self, z):
        future = z.ts[1].read()
        assert (await future).tolist() == [3, 4, 5]

    def test_is_made_of_nothing_else(self):
        wrong: Any = ts.zarr.MemoryStore()
        with pytest.raises(TypeError, match=r"call ts\.zarr\.open_array\(store"):
            ts.zarr.Array(wrong)
        with pytest.raises(TypeError, match=r"call ts\.zarr\.open_group\(store"):
            ts.zarr.Group(wrong)

    def test_is_made_of_a_tensorstore(self):
        spec = {"driver": "zarr3", "kvstore": "memory://"}
        store = ts.open(spec, create=True, dtype="int16", shape=[3]).result()
        z = ts.zarr.Array(store)
        z[-1] = 5
        assert store[2].read().result() == 5
        assert z.store == z.own_store

    def test_is_seen_through_a_transaction(self):
        z = ts.zarr.zeros(3, dtype=[("a", "i4"), ("b", "S2")])
        with ts.Transaction() as transaction:
            staged = z.with_transaction(transaction)
            staged["a"] = [1, 2, 3]
            assert staged[1].tolist() == (2, b"")
            assert z["a"].tolist() == [0, 0, 0]
        assert z["a"].tolist() == [1, 2, 3]


class TestElement:
    @pytest.mark.parametrize(
        ("dtype", "name", "stored"),
        [
            ("i4", "int32", None),
            (np.uint8, "uint8", None),
            (float, "float64", None),
            (">f4", "float32", ">f4"),
            ("bfloat16", "bfloat16", None),
            (ts.bfloat16, "bfloat16", None),
            ("S5", "S5", None),
            ("V5", "V5", None),
            ("U5", "U5", None),
            (">U5", "U5", ">U5"),
            ("U", "ustring", None),
            (str, "ustring", None),
            ("str", "ustring", None),
            (np.dtypes.StringDType(), "ustring", None),
            (bytes, "string", None),
            ("M8[ns]", "datetime64[ns]", None),
            ("json", "json", None),
        ],
    )
    def test_has_a_name_in_the_engine(self, dtype, name, stored):
        found = as_element(dtype)
        assert found.data_type == ts.dtype(name)
        assert found.stored == stored

    @pytest.mark.parametrize("dtype", ["S1", "V1"])
    def test_single_bytes_are_only_said_by_the_format(self, dtype):
        found = as_element(dtype)
        assert (found.data_type, found.stored) == (None, f"|{dtype}")

    @pytest.mark.parametrize(
        ("codec", "name"),
        [(numcodecs.VLenUTF8(), "ustring"), ({"id": "vlen-bytes"}, "string"), ("json2", "json")],
    )
    def test_objects_are_what_their_codec_stores(self, codec, name):
        found = as_element(object, codec)
        assert found.data_type == ts.dtype(name)
        assert found.stored == "|O"

    def test_objects_must_be_known(self):
        with pytest.raises(ValueError, match="pass dtype=str for text"):
            as_element(object)

    @pytest.mark.parametrize("dtype", ["S", "V"])
    def test_bytes_have_a_length(self, dtype):
        with pytest.raises(ValueError, match="has no length"):
            as_element(dtype)

    @pytest.mark.parametrize(
        ("dtype", "value", "zarr_format", "expected"),
        [
            ("i4", None, 2, None),
            ("i4", ..., 2, 0),
            ("i4", ..., 3, None),
            ("i4", 1.0, 2, 1),
            ("S3", 0, 2, b""),
            ("U3", "abc", 3, "abc"),
            ("M8[D]", ..., 2, None),
            ("M8[D]", "2020-01-01", 2, np.datetime64("2020-01-01")),
            (str, 0, 2, None),
            (str, "x", 2, "x"),
        ],
    )
    def test_fill_values_are_of_the_type(self, dtype, value, zarr_format, expected):
        found = as_element(dtype).fill_value(value, ..., zarr_format)
        assert found == expected

    def test_fill_values_of_records(self):
        element = as_element([("a", "i4"), ("b", "S2")])
        for value, expected in ((0, (0, b"")), ((1, b"x"), (1, b"x")), (b"\1\0\0\0xy", (1, b"xy"))):
            assert np.asarray(element.fill_value(value, ..., 2)).tolist() == expected


DTYPE = [("well", "S3"), ("drug", "i4"), ("dose", "f8"), ("row", "S1")]


DATA = np.array([(b"A01", 1, 0.5, b"x"), (b"B07", 2, 0.25, b"y"), (b"H12", 3, 4.0, b"z")], DTYPE)


@pytest.fixture(params=[2, 3])
def records(request):
    return ts.zarr.array(DATA, chunks=2, zarr_format=request.param)


class TestFields:
    @pytest.mark.parametrize(
        ("item", "expected"),
        [
            ("well", DATA["well"]),
            ("row", DATA["row"]),
            (("well", "dose"), DATA[["well", "dose"]]),
            ((slice(1, 3), "drug"), DATA[1:3]["drug"]),
            ((0, "drug"), 1),
            (["drug"], DATA[["drug"]]),
        ],
    )
    def test_are_read(self, records, item, expected):
        np.testing.assert_array_equal(records[item], expected)

    def test_are_written_without_the_others(self, records):
        records["drug"] = 7
        records[1:, "dose"] = [1.5, 2.5]
        records["well", "drug"] = np.array([(b"x", 5)] * 3, [("well", "S3"), ("drug", "i4")])
        assert records[:].tolist() == [
            (b"x", 5, 0.5, b"x"),
            (b"x", 5, 1.5, b"y"),
            (b"x", 5, 2.5, b"z"),
        ]

    def test_in_every_selection(self, records):
        assert records.oindex[[0, 2], "drug"].tolist() == [1, 3]
        assert records.vindex[[0, 2], "drug"].tolist() == [1, 3]
        assert records.blocks[1, "drug"].tolist() == [3]
        assert records.get_basic_selection(0, fields="drug") == 1
        records.set_mask_selection(np.array([True, False, True]), 9, fields="drug")
        records.oindex[[1], "drug"] = 8
        assert records["drug"].tolist() == [9, 8, 9]

    @pytest.mark.parametrize("item", ["nope", ("drug", "nope")])
    def test_there_must_be_such_a_field(self, records, item):
        with pytest.raises(
            IndexError, match=r"no field 'nope'; there are \['well', 'drug', 'dose', 'row'\]"
        ):
            records[item]
        with pytest.raises(IndexError, match="no field 'nope'"):
            records[item] = 1

    def test_numbers_have_none(self):
        with pytest.raises(IndexError, match="elements of float64 have none"):
            ts.zarr.zeros(3)["a"]

    def test_a_field_is_a_tensorstore_of_its_own(self, records):
        assert of_field(records.ts, "drug").read().result().tolist() == [1, 2, 3]

    @pytest.mark.parametrize("zarr_format", [2, 3])
    @pytest.mark.parametrize("dtype", ["S3", "V3", "S1", "V1"])
    def test_bytes_are_single_elements(self, zarr_format, dtype, tmp_path):
        records = ts.zarr.zeros((2, 3), store=tmp_path, dtype=dtype, zarr_format=zarr_format)
        records[1, 2] = b"abc"[: records.itemsize]
        stored = ts.open(tmp_path).result()

        whole = whole_elements(stored)

        assert whole.shape == (2, 3)
        assert whole[1, 2].read().result()[()] == np.array(b"abc"[: records.itemsize], dtype)
        assert whole_elements(whole).shape == (2, 3)
        again = ts.zarr.open(tmp_path)
        again.resize(3, 3)
        assert again.shape == ts.zarr.open(tmp_path).shape == (3, 3)

    def test_a_field_that_was_opened_stays_one(self, tmp_path):
        ts.zarr.array(DATA, store=tmp_path, zarr_format=2)
        spec = {"driver": "zarr", "kvstore": tmp_path.as_uri(), "field": "drug"}
        records = ts.zarr.Array(ts.open(spec).result())
        assert (records.dtype.name, records[:].tolist()) == ("int32", [1, 2, 3])


SHAPE = (5, 6)


WHOLE = np.arange(30).reshape(SHAPE)


def taken(selected, data=WHOLE):
    """What the terms select, by NumPy, all positions being positive."""
    if selected.mode == "oindex":
        for axis, term in reversed(list(enumerate(selected.terms))):
            if isinstance(term, slice):
                term = _of(term)
            data = data[(slice(None),) * axis + (term,)]
        return data
    return data[tuple(_of(term) if isinstance(term, slice) else term for term in selected.terms)]


def _of(term):
    """A slice whose end may lie in front of position 0, as the engine's may."""
    stop = None if term.stop is not None and term.stop < 0 else term.stop
    return slice(term.start, stop, term.step)


class TestSelection:
    @given(npst.basic_indices(SHAPE, allow_newaxis=False))
    def test_basic_selections_are_numpys(self, item):
        np.testing.assert_array_equal(taken(selection(item, SHAPE)), WHOLE[item])
        np.testing.assert_array_equal(taken(basic_selection(item, SHAPE)), WHOLE[item])

    @given(st.data())
    def test_positions_are_numpys(self, data):
        count = data.draw(st.integers(1, 4))
        item = tuple(
            np.array(data.draw(st.lists(st.integers(-n, n - 1), min_size=count, max_size=count)))
            for n in SHAPE
        )
        np.testing.assert_array_equal(taken(selection(item, SHAPE)), WHOLE[item])
        np.testing.assert_array_equal(taken(coordinate_selection(item, SHAPE)), WHOLE[item])

    @given(npst.arrays(bool, SHAPE))
    def test_masks_are_numpys(self, mask):
        for select in (selection, mask_selection, vector_selection):
            np.testing.assert_array_equal(taken(select(mask, SHAPE)), WHOLE[mask])

    @given(st.data())
    def test_orthogonal_selections_are_those_of_ix(self, data):
        rows = data.draw(st.lists(st.integers(-5, 4), min_size=1, max_size=4))
        columns = np.array(data.draw(st.lists(st.booleans(), min_size=6, max_size=6)))
        expected = WHOLE[np.ix_(rows, columns)]
        np.testing.assert_array_equal(taken(orthogonal_selection((rows, columns), SHAPE)), expected)
        np.testing.assert_array_equal(taken(selection((rows, columns), SHAPE)), expected)

    @pytest.mark.parametrize(
        ("item", "expected"),
        [
            (0, WHOLE[:2]),
            (-1, WHOLE[4:]),
            ((1, 0), WHOLE[2:4, :4]),
            ((slice(None), 1), WHOLE[:, 4:]),
            ((..., 0), WHOLE[:, :4]),
            (slice(1, 99), WHOLE[2:]),
            (slice(2, 1), WHOLE[:0]),
            ((), WHOLE),
        ],
    )
    def test_blocks_are_chunks(self, item, expected):
        np.testing.assert_array_equal(taken(block_selection(item, SHAPE, (2, 4))), expected)

    @pytest.mark.parametrize(
        ("item", "message"),
        [
            (5, "index 5 is out of bounds for dimension 0 with length 5"),
            ((0, -7), "index -7 is out of bounds for dimension 1"),
            ([0, 5], "index 5 is out of bounds for dimension 0"),
            (([0], [6]), "index 6 is out of bounds for dimension 1"),
            ((slice(None), [-7]), "index -7 is out of bounds for dimension 1"),
            ((0, 0, 0), "too many indices"),
            ((..., ...), "single ellipsis"),
            (None, "expected integer or slice"),
            (1.5, "expected integer or slice"),
            (True, "expected integer or slice"),
            (range(2), "expected integer or slice"),
            ([0.5], "expected integer or slice"),
            (WHOLE > 99, None),
            ((WHOLE > 3, 0), "1-dimensional only"),
            (np.ones((2, 2), bool), "of the array's shape"),
            ((slice(None), np.array([[0]])), "1-dimensional only"),
            (([0], ..., [0], [0]), r"oindex.* or with vindex"),
            ((slice(None), np.array([True])), "wrong length for dimension 1; expected 6, got 1"),
        ],
    )
    def test_what_selects_nothing_says_so(self, item, message):
        if message is None:
            assert taken(selection(item, SHAPE)).size == 0
            return
        with pytest.raises(IndexError, match=message):
            selection(item, SHAPE)

    @pytest.mark.parametrize("item", [0, [0], (slice(None), [0]), ..., ([0.5], [0]), ()])
    def test_vindex_takes_positions_in_all_dimensions(self, item):
        with pytest.raises(IndexError, match="use oindex"):
            vector_selection(item, SHAPE)

    def test_positions_broadcast(self):
        found = taken(vector_selection(([[0], [1]], [2, 3]), SHAPE))
        np.testing.assert_array_equal(found, [[2, 3], [8, 9]])
        with pytest.raises(ValueError, match="broadcast"):
            vector_selection(([0, 1], [1, 2, 3]), SHAPE)

    @pytest.mark.parametrize("item", [slice(None, None, 2), [0], 9, None])
    def test_blocks_are_integers_and_slices(self, item):
        with pytest.raises(IndexError, match=r"block indexing|out of bounds"):
            block_selection(item, SHAPE, (2, 4))

    @pytest.mark.parametrize(
        ("item", "expected"),
        [
            (3, (3, None)),
            ("a", (..., "a")),
            (["a", "b"], (..., ["a", "b"])),
            (("a", "b"), (..., ["a", "b"])),
            ((3, "a"), (3, "a")),
            ((3, slice(2), "a", "b"), ((3, slice(2)), ["a", "b"])),
        ],
    )
    def test_names_of_fields_are_taken_out(self, item, expected):
        assert split_fields(item) == expected


ELEMENTS = np.arange(30).reshape(5, 6)


@pytest.fixture
def array():
    return ts.zarr.array(ELEMENTS, chunks=(2, 4))


class TestSelectable:
    @pytest.mark.parametrize(
        ("kind", "selection", "expected"),
        [
            ("basic", (slice(1, 3), -1), ELEMENTS[1:3, -1]),
            ("orthogonal", ([0, 2], [1, 3]), ELEMENTS[np.ix_([0, 2], [1, 3])]),
            ("coordinate", ([0, 2], [1, 3]), ELEMENTS[[0, 2], [1, 3]]),
            ("mask", ELEMENTS % 7 == 0, ELEMENTS[ELEMENTS % 7 == 0]),
            ("block", (0, 1), ELEMENTS[:2, 4:]),
            ("vector", ([0, 2], [1, 3]), ELEMENTS[[0, 2], [1, 3]]),
        ],
    )
    def test_each_selection_reads_and_writes(self, array, kind, selection, expected):
        get = getattr(array, f"get_{kind}_selection")
        np.testing.assert_array_equal(get(selection), expected)
        getattr(array, f"set_{kind}_selection")(selection, -np.asarray(expected))
        np.testing.assert_array_equal(get(selection), -expected)
        if kind != "vector":
            out = np.empty(expected.shape, "f8")
            assert get(selection, out=out) is out
            np.testing.assert_array_equal(out, -expected)

    def test_all_of_it_is_selected_by_nothing(self, array):
        np.testing.assert_array_equal(array.get_basic_selection(), ELEMENTS)
        np.testing.assert_array_equal(array[...], ELEMENTS)
        np.testing.assert_array_equal(array[()], ELEMENTS)

    @pytest.mark.parametrize("item", [(0, 0), (-1, -1), (np.int64(2), 3)])
    def test_one_element_is_a_scalar(self, array, item):
        assert isinstance(array[item], np.int64)
        assert array[item] == ELEMENTS[item]

    def test_slices_run_backwards_as_in_numpy(self, array):
        np.testing.assert_array_equal(array[::-2, 4:0:-3], ELEMENTS[::-2, 4:0:-3])
        array[::-1, 0] = [0, 1, 2, 3, 4]
        assert array[:, 0].tolist() == [4, 3, 2, 1, 0]

    def test_a_mask_selects_rows_as_in_numpy(self, array):
        rows = np.array([True, False, True, False, True])
        np.testing.assert_array_equal(array[rows], ELEMENTS[rows])

    def test_values_broadcast_as_in_numpy(self, array):
        array[:] = np.arange(6)
        array[:, :2] = [[7], [8], [9], [10], [11]]
        assert array[1].tolist() == [8, 8, 2, 3, 4, 5]

    @pytest.mark.parametrize("value", [np.arange(7), [1, 2], np.zeros((2, 6))])
    def test_values_of_another_shape_are_refused(self, array, value):
        with pytest.raises(ValueError, match="dimension"):
            array[0] = value
        np.testing.assert_array_equal(array[:], ELEMENTS)

    def test_what_is_read_has_the_order_that_is_stored(self):
        array = ts.zarr.array(ELEMENTS, chunks=(2, 4), order="F")
        assert array[:].flags.f_contiguous
        np.testing.assert_array_equal(array[:], ELEMENTS)

    def test_a_tensorstore_is_written_whatever_its_positions_and_labels(self, array):
        source = ts.open(
            {"driver": "zarr3", "kvstore": "memory://"},
            create=True,
            dtype="int16",
            domain=ts.IndexDomain(shape=[5, 6], labels=["x", "y"]),
        ).result()
        source[...] = 3
        array[1:3, :2] = source[3:, 4:6]
        assert array[:4, 1].tolist() == [1, 3, 3, 19]


@pytest.fixture
def whole():
    return ts.zarr.array(np.arange(30).reshape(5, 6), chunks=(2, 4))


class TestViews:
    def test_oindex(self, whole):
        assert whole.oindex[[0, -1], 1:3].tolist() == [[1, 2], [25, 26]]
        whole.oindex[[0, -1], [0, 5]] = [[-1, -2], [-3, -4]]
        assert whole[[0, -1]][:, [0, 5]].tolist() == [[-1, -2], [-3, -4]]

    def test_vindex(self, whole):
        assert whole.vindex[[0, -1], [1, 2]].tolist() == [1, 26]
        whole.vindex[[0, -1], [1, 2]] = [-1, -2]
        whole.vindex[np.arange(30).reshape(5, 6) == 7] = -3
        assert (whole[0, 1], whole[-1, 2], whole[1, 1]) == (-1, -2, -3)

    def test_blocks(self, whole):
        assert whole.blocks[-1, 1].tolist() == [[28, 29]]
        whole.blocks[0, 1] = -1
        assert whole[:2, 3:].tolist() == [[3, -1, -1], [9, -1, -1]]

    def test_blocks_of_a_sharded_array_are_shards(self):
        whole = ts.zarr.array(np.arange(16).reshape(4, 4), chunks=(1, 1), shards=(2, 2))
        assert whole.blocks[1, 0].tolist() == [[8, 9], [12, 13]]


FORMATS = [2, 3]


@pytest.mark.parametrize("zarr_format", FORMATS)
class TestType:
    def test_of_the_same_size(self, zarr_format):
        data = np.random.default_rng(0).integers(0, 2, 1000).astype("u1")
        a = ts.zarr.array(data, chunks=100, zarr_format=zarr_format)
        v = a.view(dtype=bool)
        assert v.dtype == bool
        np.testing.assert_array_equal(v[:], data.view(bool))

    def test_of_another_size(self, zarr_format):
        data = np.arange(1000, dtype="<u2")
        a = ts.zarr.array(data, chunks=100, zarr_format=zarr_format)
        v = a.view(dtype="u1", shape=2000, chunks=200)
        assert v[:10].tolist() == [0, 0, 1, 0, 2, 0, 3, 0, 4, 0]
        np.testing.assert_array_equal(v[:], data.view("u1"))

    def test_other_fill_value(self, zarr_format):
        a = ts.zarr.full(1000, chunks=100, fill_value=-1, dtype="i1", zarr_format=zarr_format)
        assert a.view(fill_value=42)[5] == 42
        assert a.view(dtype="i1")[5] == -1

    def test_shape_and_chunks_of_shards(self, zarr_format):
        shards = 100 if zarr_format == 3 else None
        a = ts.zarr.array(np.arange(200), chunks=50, shards=shards, zarr_format=zarr_format)
        v = a.view(shape=150)
        np.testing.assert_array_equal(v[:], np.arange(150))
        assert a.shape == (200,)


class TestReadings:
    def test_past_a_filter(self):
        species = ["finch", "heron", "swift"]
        seen = np.array(["swift", "finch", "swift", "heron", "finch"] * 7)
        codes = [ts.zarr.Categorize(labels=species, dtype=seen.dtype, astype="u1")]
        log = ts.zarr.array(seen, chunks=6, filters=codes, zarr_format=2)

        stored = log.view(dtype="u1", filters=[])

        assert stored.is_view
        assert not log.is_view
        assert stored[:5].tolist() == [3, 1, 3, 2, 1]
        stored[stored[:] == 3] = 2  # all swifts were herons
        assert log[:5].tolist() == ["heron", "finch", "heron", "heron", "finch"]

    def test_size_is_not_changed_through_a_view(self):
        v = ts.zarr.zeros(1000, chunks=100).view()
        for change in (lambda: v.resize(20000), lambda: v.append([1.0])):
            with pytest.raises(PermissionError, match="not permitted for views"):
                change()

    def test_can_be_read_only(self):
        a = ts.zarr.zeros(10)
        assert a.view(read_only=True).read_only
        assert not a.view().read_only
        assert ts.zarr.array([1], read_only=True).view().read_only

    def test_the_array_stays_as_it_is(self):
        a = ts.zarr.full(10, fill_value=3, dtype="i4", chunks=5, zarr_format=2)
        before = a.hexdigest()
        assert a.view(fill_value=9)[:].tolist() == [9] * 10
        assert a.hexdigest() == before


@pytest.fixture(params=[2, 3])
def stored(request):
    return ts.zarr.create(
        (10, 20),
        chunks=(3, 8),
        dtype="<i4",
        fill_value=7,
        compressors=ts.zarr.GZip(1),
        path="a/b",
        attributes={"x": 1},
        zarr_format=request.param,
    )


class TestDescribed:
    def test_shape_and_type(self, stored):
        assert (stored.shape, stored.ndim, stored.size, stored.itemsize, stored.nbytes) == (
            (10, 20),
            2,
            200,
            4,
            800,
        )
        assert (stored.dtype, stored.fill_value, stored.order) == ("int32", 7, "C")
        assert (stored.chunks, stored.shards, stored.cdata_shape, stored.nchunks) == (
            (3, 8),
            None,
            (4, 3),
            12,
        )
        assert len(stored) == 10

    def test_codecs(self, stored):
        assert stored.compressor == ts.zarr.GZip(1)
        assert stored.compressors == (ts.zarr.GZip(1),)
        assert stored.filters == (None if stored.zarr_format == 2 else ())
        assert (stored.serializer is None) == (stored.zarr_format == 2)
        assert ts.zarr.zeros(3, compressors=None).compressor is None
        several = ts.zarr.zeros(3, compressors=[ts.zarr.GZip(1), ts.zarr.GZip(1)])
        with pytest.raises(TypeError, match="several compressors"):
            _ = several.compressor

    def test_place(self, stored):
        assert (stored.path, stored.name, stored.basename) == ("a/b", "/a/b", "b")
        assert stored.own_store.kvstore.path == "a/b/"
        assert stored.own_store == ts.zarr.Store(stored.store.kvstore / "a/b")

    def test_attributes(self, stored):
        assert stored.attrs.asdict() == {"x": 1}
        stored.attrs["foo"] = "bar"
        assert stored.update_attributes({"baz": 42}) is stored
        assert dict(stored.attrs.items()) == {"x": 1, "foo": "bar", "baz": 42}
        assert ts.zarr.open_array(stored.store, path="a/b").attrs["foo"] == "bar"

    def test_the_document_has_the_present_shape(self, stored):
        stored.resize(5, 20)
        assert stored.metadata["shape"] == [5, 20]
        assert stored.metadata["zarr_format"] == stored.zarr_format

    def test_info(self, stored):
        stored[0, 0] = 1
        info = stored.info
        assert info["Name"] == "/a/b"
        assert info["Type"] == "Array"
        assert info["Chunk shape"] == (3, 8)
        assert info["No. bytes"] == "800"
        assert info["No. bytes stored"] == str(stored.nbytes_stored())
        assert info["Storage ratio"] == f"{800 / stored.nbytes_stored:.1f}"
        assert info["Chunks initialized"] == "1/12"
        assert repr(stored.info_complete()) == repr(info)

    def test_info_of_an_array_that_is_all_of_its_store(self):
        stored = ts.zarr.zeros((10000, 10000), chunks=(1000, 1000), shards=(2000, 2000), dtype="i4")
        assert stored.info["Shard shape"] == (2000, 2000)
        assert stored.info["No. bytes"] == "400000000 (381.5M)"
        with pytest.raises(KeyError):
            _ = stored.info["Name"]


class TestInfo:
    @pytest.mark.parametrize(
        ("size", "expected"),
        [
            (0, "0"),
            (1023, "1023"),
            (1024, "1.0K"),
            (22323, "21.8K"),
            (400_000_000, "381.5M"),
            (1_600_000_000, "1.5G"),
            (2**60, "1.0E"),
            (2**70, "1024.0E"),
        ],
    )
    def test_sizes_are_for_people(self, size, expected):
        assert human_size(size) == expected
