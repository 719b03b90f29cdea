"""Arrays by NumPy's protocols, and handles on them."""

import copy
import operator
import pickle
import re
import shutil

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pytest
import tensorstore as reference

import tensorstore_py as ts
from tests.api.counted_memory import counts
from tests.chunked.stores import counting, created


def without_addresses(part):
    """The name of a case, the same in every process."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(part))


READ_ONLY = np.arange(3)


READ_ONLY.flags.writeable = False


class TestArray:
    def test_memory_is_shared(self):
        memory = np.zeros((2, 3), np.int16)
        store = ts.array(memory)
        store[1, 1:] = [4, 5]
        assert memory.tolist() == [[0, 0, 0], [0, 4, 5]]
        memory[0, 0] = 7
        assert store[0, 0].read().result() == 7
        assert not np.shares_memory(store.read().result(), memory)

    def test_a_read_only_array_is_a_read_only_store(self):
        memory = np.zeros(3)
        memory.flags.writeable = False
        assert ts.array(memory).mode == reference.array(memory).mode == "r"

    @pytest.mark.parametrize(
        "value",
        [
            [1, 2],
            [1.5],
            [b"a"],
            5,
            np.arange(6)[::2],
            np.asfortranarray(np.zeros((2, 3))),
            np.zeros((2, 3, 4)).transpose(1, 2, 0),
            None,
            {"a": 1},
            [True],
            np.array([1], ">i4"),
            np.array([1j]),
            np.broadcast_to(np.int8(3), (4,)),
        ],
        ids=repr,
    )
    def test_type_and_layout_as_the_reference(self, value):
        ours, theirs = ts.array(value), reference.array(value)
        assert ours.dtype.name == theirs.dtype.name
        assert ours.mode == theirs.mode
        assert str(ours.chunk_layout) == str(theirs.chunk_layout)
        assert str(ours.domain) == str(theirs.domain)

    def test_a_dtype_converts(self):
        assert ts.array([1, 2], dtype="uint8").read().result().dtype == np.uint8
        assert ts.array([1, 2], dtype=ts.json).read().result().tolist() == [1, 2]
        with pytest.raises(OverflowError):
            ts.array([300], dtype="uint8")
        with pytest.raises(ValueError):
            ts.array([1], dtype="uint9")

    def test_text_is_text(self):
        store = ts.array(["a", "bcd"])
        assert store.dtype == ts.ustring
        store[0] = "long enough"
        assert store.read().result().tolist() == ["long enough", "bcd"]

    async def test_in_an_event_loop(self):
        store = ts.array(np.arange(4))
        await store[1:3].write([8, 9])
        assert (await store.read()).tolist() == [0, 8, 9, 3]

    def test_a_copy_between_arrays(self):
        source, target = ts.array(np.arange(6).reshape(2, 3)), ts.array(np.zeros((2, 3), np.int64))
        target.write(source).result()
        assert target.read().result().tolist() == [[0, 1, 2], [3, 4, 5]]

    @pytest.mark.parametrize(
        ("source", "options", "mode", "shared"),
        [
            (np.arange(3), {}, "rw", True),
            (np.arange(3), {"copy": True}, "rw", False),
            (np.arange(3), {"copy": False}, "rw", True),
            (np.arange(3), {"write": False}, "r", True),
            (np.arange(3), {"write": True, "copy": False}, "rw", True),
            (np.arange(3), {"write": False, "copy": True}, "r", False),
            (READ_ONLY, {}, "r", True),
            (READ_ONLY, {"write": True}, "rw", False),
            (READ_ONLY, {"copy": True}, "rw", False),
            (memoryview(b"abc"), {}, "r", True),
            (memoryview(bytearray(b"abc")), {"copy": False}, "rw", True),
            (np.arange(3), {"dtype": "float64"}, "rw", False),
        ],
        ids=lambda part: type(part).__name__ if isinstance(part, memoryview) else str(part),
    )
    def test_sharing_and_access_as_the_reference(self, source, options, mode, shared):
        store = ts.array(source, **options)
        assert store.mode == reference.array(source, **options).mode == mode
        assert np.shares_memory(vars(store._driver)["_array"], np.asarray(source)) == shared

    @pytest.mark.parametrize(
        ("source", "options"),
        [
            ([1, 2], {"copy": False}),
            (5, {"copy": False}),
            (np.arange(3), {"copy": False, "dtype": "float64"}),
            (np.array([{}], object), {"copy": False}),
            (READ_ONLY, {"copy": False, "write": True}),
        ],
        ids=without_addresses,
    )
    def test_memory_that_cannot_be_shared(self, source, options):
        with pytest.raises(ValueError, match="Unable to avoid copy"):
            ts.array(source, **options)
        with pytest.raises((ValueError, TypeError)):
            reference.array(source, **options)

    @pytest.mark.parametrize(
        ("source", "dtype"),
        [
            (np.array([1.5]), "int32"),
            (np.array([1, "a"], object), "ustring"),
            ([object()], "json"),
            (np.array([object()]), None),
        ],
        ids=lambda part: type(part).__name__,
    )
    def test_elements_that_would_not_survive(self, source, dtype):
        for library in (ts, reference):
            with pytest.raises(TypeError):
                library.array(source, dtype=dtype)

    def test_json_elements_are_not_shared(self):
        element = {"a": [1]}
        source = np.array([element, 2], object)
        store = ts.array(source)
        element["a"].append(2)
        source[1] = 3
        store.read().result()[0]["a"].append(4)
        assert store.read().result().tolist() == [{"a": [1]}, 2]

    @pytest.mark.parametrize(
        "value",
        [
            [1, 2, 3],
            {"x": 1},
            [[1], [2, 3], None],
            [[1, 2], [3, 4], [5, 6]],
            [[1, 2, 3]],
            "abc",
            (1, "a", True),
            np.arange(3),
            np.array([{"a": 1}, None, [2]], object),
            [True, np.float32(2), np.str_("a")],
        ],
        ids=without_addresses,
    )
    def test_json_is_written_as_by_the_reference(self, value):
        found = []
        for library in (ts, reference):
            store = library.array([0, 0, 0], dtype="json")
            store.write(value).result()
            found.append(repr(store.read().result()))
        assert found[0] == found[1]

    @pytest.mark.parametrize(
        "value", [[1, 2], np.zeros((3, 2)), [object(), 1, 2], object()], ids=without_addresses
    )
    def test_json_that_does_not_fit(self, value):
        for library in (ts, reference):
            with pytest.raises((ValueError, TypeError)):
                library.array([0, 0, 0], dtype="json").write(value).result()


VALUES = np.arange(60, dtype="int16").reshape(6, 10)


def opened(values=VALUES, chunks=(4, 4)):
    store = ts.open(
        {"driver": "zarr3", "kvstore": {"driver": "counted_memory"}}, create=True,
        dtype=values.dtype, shape=values.shape, context=ts.Context(),
        chunk_layout=ts.ChunkLayout(chunk_shape=chunks),
    ).result()  # fmt: skip
    store[...] = values
    return store


def never(*_):
    raise AssertionError("it was read")


def as_store():
    return opened().translate_to[7, -2]


def as_view():
    return as_store().np


def as_zarr():
    return ts.zarr.array(VALUES, chunks=(4, 4))


@pytest.fixture(params=[as_store, as_view, as_zarr])
def array(request):
    return request.param()


@pytest.fixture(params=[as_store, as_view])
def computing(request):
    return request.param()


def only(value, dtype=None, shape=()):
    """One element, as each kind of array."""
    values = np.full(shape, value, dtype)
    return [ts.array(values), ts.array(values).np, ts.zarr.array(values)]


class TestConversion:
    def test_to_an_array(self, array):
        for found, expected in [
            (np.asarray(array), VALUES),
            (np.array(array, "float32"), VALUES.astype("float32")),
            (np.asarray(array, copy=True), VALUES),
            (array.__array__(np.dtype("int64")), VALUES.astype("int64")),
        ]:
            np.testing.assert_array_equal(found, expected, strict=True)

    def test_without_copying_it_is_refused(self, array):
        with pytest.raises(ValueError, match="leave copy=False out"):
            np.asarray(array, copy=False)

    def test_what_is_read_is_the_callers(self):
        memory = np.zeros(3)
        np.asarray(ts.array(memory))[:] = 1
        np.from_dlpack(ts.array(memory))[:] = 1
        assert memory.tolist() == [0, 0, 0]

    def test_to_a_series_of_the_right_length(self, array):
        first = array[array.origin[0]] if isinstance(array, ts.TensorStore) else array[0]
        assert pd.Series(first).tolist() == list(range(10))
        assert pd.DataFrame(np.asarray(array)).shape == (6, 10)


class TestDlpack:
    def test_gives_the_elements(self, array):
        found = np.from_dlpack(array)
        np.testing.assert_array_equal(found, VALUES, strict=True)
        assert array.__dlpack_device__() == (1, 0)
        assert array.__dlpack__(max_version=(1, 0), dl_device=(1, 0), copy=True) is not None

    def test_without_copying_it_is_refused(self, array):
        with pytest.raises(BufferError, match="leave copy=False out"):
            array.__dlpack__(copy=False)

    @pytest.mark.parametrize("dtype", ["bfloat16", "int4", "ustring", "M8[s]"])
    def test_what_has_no_type_there_says_what_to_do_and_reads_nothing(self, dtype):
        store = ts.virtual_chunked(never, dtype=dtype, shape=[3])
        with pytest.raises(BufferError, match="convert them first"):
            np.from_dlpack(store)


class TestSequence:
    def test_length(self, array):
        assert len(array) == 6
        for one in only(3):
            with pytest.raises(TypeError, match="unsized"):
                len(one)

    def test_iteration(self, array):
        rows = list(array)
        assert [type(row) for row in rows] == [np.ndarray] * 6
        np.testing.assert_array_equal(rows, VALUES)
        for one in only(3):
            with pytest.raises(TypeError, match="without dimensions"):
                iter(one)

    def test_iteration_reads_each_chunk_once(self):
        store = opened()
        requests = counts(store)
        assert len(list(store[:, 3])) == 6
        assert requests.reads == {"c/0/0": 1, "c/1/0": 1}

    def test_looking_for_an_element(self, array):
        assert 33 in array
        assert -1 not in array
        for one in only(3):
            assert 3 in one
            assert 4 not in one


class TestOneElement:
    @pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
    def test_is_converted(self, shape):
        for one in only(3, "int16", shape):
            assert (float(one), int(one), complex(one), bool(one)) == (3.0, 3, 3 + 0j, True)
            assert [type(kind(one)) for kind in (float, int, complex)] == [float, int, complex]
        for one in only(0, "float32", shape):
            assert not one
        for one in only(2.75, "float32", shape):
            assert (float(one), int(one)) == (2.75, 2)

    def test_is_an_index_without_dimensions_only(self):
        for one in only(3, "uint8"):
            assert operator.index(one) == 3
            assert VALUES[0][one] == 3
        for one in [*only(3, "uint8", (1,)), *only(3.0, "float32"), *only(True)]:
            with pytest.raises(TypeError, match="only an integer array without dimensions"):
                operator.index(one)

    def test_as_indices_arrays_stay_arrays(self):
        for each in only(3, "uint8", (1,)):
            assert VALUES[0][each].tolist() == [3]
            assert ts.array(VALUES)[0][each].read().result().tolist() == [3]

    @pytest.mark.parametrize("kind", [float, int, complex, bool, operator.index])
    def test_of_many_is_refused_before_anything_is_read(self, kind):
        store = opened()
        requests = counts(store)
        for array in (store, store.np, store[:0]):
            with pytest.raises((TypeError, ValueError), match=r"shape \[|without dimensions"):
                kind(array)
        assert not requests.reads

    def test_the_truth_of_many_names_the_way(self):
        with pytest.raises(ValueError, match="compare it to None, or read it and use any"):
            bool(opened())


class TestComputing:
    @pytest.mark.parametrize("name", ["min", "max", "sum", "mean", "std", "any", "all"])
    @pytest.mark.parametrize("axis", [None, 0, (0, 1)])
    def test_methods_and_functions_are_numpys(self, computing, name, axis):
        expected = getattr(VALUES, name)(axis)
        for found in (getattr(computing, name)(axis), getattr(np, name)(computing, axis=axis)):
            assert type(found) is type(expected)
            np.testing.assert_array_equal(found, expected, strict=True)

    def test_options_are_numpys(self, computing):
        out = np.empty(10, "float64")
        assert computing.mean(0, out=out) is out
        np.testing.assert_array_equal(out, VALUES.mean(0))
        assert computing.sum(dtype="float32", keepdims=True).shape == (1, 1)

    def test_universal_functions(self, computing):
        for found, expected in [
            (np.add(computing, 1), VALUES + 1),
            (VALUES * computing, VALUES * VALUES),
            (np.sqrt(computing), np.sqrt(VALUES)),
            (np.add.reduce(computing, 1), VALUES.sum(1)),
        ]:
            np.testing.assert_array_equal(found, expected)

    def test_what_is_given_twice_is_read_once(self):
        store = opened()
        requests = counts(store)
        np.testing.assert_array_equal(np.add(store, store), VALUES * 2)
        assert set(requests.reads.values()) == {1}

    def test_results_are_stored_where_they_are_to_go(self, computing):
        assert np.negative(VALUES, out=computing) is computing
        np.testing.assert_array_equal(computing, -VALUES)
        first, second = opened(), opened().np
        np.divmod(VALUES, np.int16(7), out=(first, second))
        np.testing.assert_array_equal(first, VALUES // 7)
        np.testing.assert_array_equal(second, VALUES % 7)

    def test_a_mask_is_read(self):
        mask = opened(VALUES > 30)
        for each in (mask, mask.np):
            out = np.zeros(VALUES.shape, "int16")
            np.add(VALUES, 1, out=out, where=each)
            np.testing.assert_array_equal(out, np.where(VALUES > 30, VALUES + 1, 0))

    def test_changes_of_single_elements_are_stored(self, computing):
        expected = VALUES.copy()
        for target in (computing, expected):
            np.add.at(target, ([0, 0, 5], [1, 1, 2]), 100)
        np.testing.assert_array_equal(computing, expected)

    def test_memory_is_changed_in_place(self, computing):
        memory = same = VALUES.copy()
        memory += computing
        assert memory is same
        np.testing.assert_array_equal(memory, VALUES * 2)

    def test_objects(self):
        text = ts.array(["b", "a"])
        assert text.max() == "b"
        np.testing.assert_array_equal(text.np == "a", [False, True])


class TestArrayProtocols:
    def test_sizes(self):
        assert (opened().nbytes, opened().itemsize) == (120, 2)
        assert (ts.array([1.5], "bfloat16").itemsize, ts.array(["a"]).itemsize) == (2, 8)


KNOWN = [
    "dtype", "schema", "chunk_layout", "codec", "fill_value", "dimension_units", "mode",
    "readable", "writable", "kvstore", "transaction", "domain", "rank", "shape",
]  # fmt: skip


class TestHandle:
    @pytest.mark.parametrize("inline", [True, False])
    @pytest.mark.parametrize("name", KNOWN)
    def test_asks_no_store(self, inline, name):
        store = counting(inline)
        array = created(store, [8], [4])
        store.reset()
        getattr(array, name)
        repr(array)
        array.spec()
        assert store.reads.total() + store.writes.total() == 0

    def test_all_of_it_is_as_the_view_sees_it(self):
        array = created(counting(), [8, 6], [4, 3], dimension_units=["4 nm", None])
        view = array[::2, 1].T
        assert view.dimension_units == (ts.Unit(8, "nm"),)
        assert view.schema.rank == 1
        assert view.mode == "rw"
        assert view.fill_value == np.uint8(0)

    def test_it_is_no_class_that_users_meet(self):
        array = created(counting(), [8], [4])
        assert type(array[2:]) is ts.TensorStore
        assert repr(array).startswith("TensorStore(")


@pytest.fixture
def store(tmp_path):
    spec = {"driver": "zarr3", "kvstore": f"{tmp_path.as_uri()}/array/"}
    store = ts.open(spec, create=True, dtype="uint8", shape=[6, 4]).result()
    store[...] = np.arange(24, dtype="uint8").reshape(6, 4)
    return store


def sent(store):
    return pickle.loads(pickle.dumps(store))


class TestHandles:
    def test_a_pickled_view_is_the_same_view(self, store):
        view = sent(store[2:4, 1])

        assert (view.domain, view.mode) == (store[2:4, 1].domain, "rw")
        assert view.read().result().tolist() == [9, 13]

    def test_a_pickled_handle_may_do_what_it_might(self, store):
        read_only = ts.open(store.spec(), read=True).result()

        assert sent(read_only).mode == "r"
        with pytest.raises(ts.PermissionDeniedError):
            sent(read_only)[0, 0] = 1

    def test_unpickling_reads_nothing(self, store, tmp_path):
        data = pickle.dumps(store)
        shutil.rmtree(tmp_path / "array")

        assert pickle.loads(data).shape == (6, 4)

    def test_a_pickled_handle_forgets_how_it_was_sent(self, store):
        assert sent(store).spec().to_json() == store.spec().to_json()

    def test_a_deep_copy_is_a_handle_on_the_same_array(self):
        spec = {"driver": "zarr3", "kvstore": "memory://"}
        store = ts.open(spec, create=True, dtype="uint8", shape=[2]).result()

        copy.deepcopy(store)[:] = 5

        assert store.read().result().tolist() == [5, 5]

    def test_a_deep_copy_remembers_by_itself(self, tmp_path):
        context = ts.Context({"cache_pool": {"total_bytes_limit": 1_000_000}})
        spec = {"driver": "zarr3", "kvstore": tmp_path.as_uri(), "recheck_cached_data": False}
        store = ts.open(spec, create=True, dtype="uint8", shape=[2], context=context).result()
        store[0] = 42
        apart = copy.deepcopy(store)
        assert [each[0].read().result() for each in (store, apart)] == [42, 42]

        store[0] = 43

        assert [each[0].read().result() for each in (store, apart)] == [43, 42]
        assert copy.copy(store) is store

    def test_what_was_resized_is_opened_with_its_bounds_of_today(self, store):
        store.resize(exclusive_max=[9, None]).result()

        assert store.shape == (6, 4)
        assert ts.open(store.spec()).result().shape == sent(store).shape == (9, 4)

    @pytest.mark.parametrize("index", [6, slice(0, 7), [1, 6], np.ones(7, bool)])
    def test_beyond_a_resizable_bound_a_view_may_be_made_but_has_no_data(self, store, index):
        view = store[index]

        limit = r"\[0, 6\)|ends at 6, but \[0, 7\) is asked for"
        with pytest.raises(ts.OutOfRangeError, match=limit):
            view.read().result()
        with pytest.raises(ts.OutOfRangeError, match=limit):
            view.write(1).result()
        with pytest.raises(ts.OutOfRangeError):
            view.write(view).result()
        assert len(store.kvstore.list().result()) == 2

    def test_fixed_bounds_must_hold_today(self, store):
        assert store[2:].resolve(fix_resizable_bounds=True).result().domain == ts.IndexDomain(
            inclusive_min=[2, 0], exclusive_max=[6, 4]
        )
        with pytest.raises(ts.OutOfRangeError, match="dimension 0"):
            store[:7].resolve(fix_resizable_bounds=True).result()

    def test_a_copy_that_could_lose_is_refused(self, store):
        target = ts.open("memory://|zarr3:", create=True, dtype="int8", shape=[6, 4]).result()

        with pytest.raises(ts.MismatchError, match="cannot copy uint8 data to an array of int8"):
            target.write(store).result()
