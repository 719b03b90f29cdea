"""A handle is a value: it survives copies, other processes and changes of what it stands for."""

import copy
import pickle
import shutil

import numpy as np
import pytest

import tensorstore_py as ts


@pytest.fixture
def store(tmp_path):
    spec = {"driver": "zarr3", "kvstore": f"{tmp_path.as_uri()}/array/"}
    store = ts.open(spec, create=True, dtype="uint8", shape=[6, 4]).result()
    store[...] = np.arange(24, dtype="uint8").reshape(6, 4)
    return store


def sent(store):
    return pickle.loads(pickle.dumps(store))


def test_a_pickled_view_is_the_same_view(store):
    view = sent(store[2:4, 1])

    assert (view.domain, view.mode) == (store[2:4, 1].domain, "rw")
    assert view.read().result().tolist() == [9, 13]


def test_a_pickled_handle_may_do_what_it_might(store):
    read_only = ts.open(store.spec(), read=True).result()

    assert sent(read_only).mode == "r"
    with pytest.raises(ts.PermissionDeniedError):
        sent(read_only)[0, 0] = 1


def test_unpickling_reads_nothing(store, tmp_path):
    data = pickle.dumps(store)
    shutil.rmtree(tmp_path / "array")

    assert pickle.loads(data).shape == (6, 4)


def test_a_pickled_handle_forgets_how_it_was_sent(store):
    assert sent(store).spec().to_json() == store.spec().to_json()


def test_a_deep_copy_is_a_handle_on_the_same_array():
    spec = {"driver": "zarr3", "kvstore": "memory://"}
    store = ts.open(spec, create=True, dtype="uint8", shape=[2]).result()

    copy.deepcopy(store)[:] = 5

    assert store.read().result().tolist() == [5, 5]


def test_a_deep_copy_remembers_by_itself(tmp_path):
    context = ts.Context({"cache_pool": {"total_bytes_limit": 1_000_000}})
    spec = {"driver": "zarr3", "kvstore": tmp_path.as_uri(), "recheck_cached_data": False}
    store = ts.open(spec, create=True, dtype="uint8", shape=[2], context=context).result()
    store[0] = 42
    apart = copy.deepcopy(store)
    assert [each[0].read().result() for each in (store, apart)] == [42, 42]

    store[0] = 43

    assert [each[0].read().result() for each in (store, apart)] == [43, 42]
    assert copy.copy(store) is store


def test_what_was_resized_is_opened_with_its_bounds_of_today(store):
    store.resize(exclusive_max=[9, None]).result()

    assert store.shape == (6, 4)
    assert ts.open(store.spec()).result().shape == sent(store).shape == (9, 4)


@pytest.mark.parametrize("index", [6, slice(0, 7), [1, 6], np.ones(7, bool)])
def test_beyond_a_resizable_bound_a_view_may_be_made_but_has_no_data(store, index):
    view = store[index]

    limit = r"\[0, 6\)|ends at 6, but \[0, 7\) is asked for"
    with pytest.raises(ts.OutOfRangeError, match=limit):
        view.read().result()
    with pytest.raises(ts.OutOfRangeError, match=limit):
        view.write(1).result()
    with pytest.raises(ts.OutOfRangeError):
        view.write(view).result()
    assert len(store.kvstore.list().result()) == 2


def test_fixed_bounds_must_hold_today(store):
    assert store[2:].resolve(fix_resizable_bounds=True).result().domain == ts.IndexDomain(
        inclusive_min=[2, 0], exclusive_max=[6, 4]
    )
    with pytest.raises(ts.OutOfRangeError, match="dimension 0"):
        store[:7].resolve(fix_resizable_bounds=True).result()


def test_a_copy_that_could_lose_is_refused(store):
    target = ts.open("memory://|zarr3:", create=True, dtype="int8", shape=[6, 4]).result()

    with pytest.raises(ts.MismatchError, match="cannot copy uint8 data to an array of int8"):
        target.write(store).result()
