"""The two moments of a write: the source may change, and all is stored."""

import threading

import numpy as np
import pytest

import tensorstore_py as ts
from tests.chunked.stores import Hooked, counting, created


def blocked():
    """A store whose writes of chunks wait until the event is set."""
    go_on = threading.Event()
    store = Hooked()

    def wait(operation, key):
        if operation == "write" and "/c/" in key:
            assert go_on.wait(60)

    store.before = wait
    return store, go_on


def test_a_small_source_may_change_at_once():
    store, go_on = blocked()
    array = created(store, [8], [8])
    values = np.arange(1, 9, dtype="uint8")
    futures = array.write(values)
    assert futures.copy.done()
    values[:] = 0
    go_on.set()
    futures.result()
    assert array.read().result().tolist() == list(range(1, 9))


def test_a_large_one_when_all_of_it_is_encoded():
    store, go_on = blocked()
    gzip = {"metadata": {"codecs": ["bytes", "gzip"]}}
    array = created(store, [2**17], [2**17], members=gzip)
    values = np.ones(2**17, "uint8")
    futures = array.write(values)
    futures.copy.result(60)
    assert not futures.done()
    values[:] = 0
    go_on.set()
    futures.result()
    assert (array.read().result() == 1).all()


def test_or_when_it_is_stored_if_it_is_stored_as_it_is():
    store, go_on = blocked()
    array = created(store, [2**17], [2**17], members={"metadata": {"codecs": ["bytes"]}})
    futures = array.write(np.ones(2**17, "uint8"))
    with pytest.raises(TimeoutError):
        futures.copy.result(0.02)
    go_on.set()
    futures.copy.result(60)
    futures.result()


def test_asking_for_the_copy_begins_the_write():
    array = created(counting(), [2**17], [2**10])
    futures = array.write(np.ones(2**17, "uint8"))
    futures.copy.result()
    futures.result()


@pytest.mark.parametrize("inline", [True, False])
def test_a_write_that_fails_needs_its_source_no_more(inline):
    array = created(counting(inline), [2**17], [2**10])
    view = array[: 2**17]
    array.resize(exclusive_max=[5]).result()
    futures = view.write(np.ones(2**17, "uint8"))
    with pytest.raises(ts.OutOfRangeError):
        futures.copy.result()
    with pytest.raises(ts.OutOfRangeError):
        futures.result()


def test_in_a_transaction_it_is_staged():
    array = created(counting(), [2**17], [2**17])
    values = np.ones(2**17, "uint8")
    with ts.Transaction() as transaction:
        array.with_transaction(transaction).write(values).copy.result()
        values[:] = 0
    assert (array.read().result() == 1).all()


@pytest.mark.parametrize("inline", [True, False])
@pytest.mark.parametrize("source", [3, np.full(7, 3, "uint8"), [3] * 7])
@pytest.mark.parametrize("lasting", [False, True])
def test_a_read_in_the_transaction_sees_every_write_whose_copy_is_done(inline, source, lasting):
    array = created(counting(inline), [7], [3])
    with ts.Transaction() as transaction:
        staged = array.with_transaction(transaction)
        futures = staged.write(source, can_reference_source_data_indefinitely=lasting)
        futures.copy.result()
        assert staged.read().result().tolist() == [3] * 7
        assert array.read().result().tolist() == [0] * 7
    assert array.read().result().tolist() == [3] * 7


def test_so_it_does_if_the_source_is_another_array():
    array = created(counting(), [7], [3])
    with ts.Transaction() as transaction:
        staged = array.with_transaction(transaction)
        staged.write(ts.array(np.arange(7, dtype="uint8"))).copy.result()
        assert staged.read().result().tolist() == list(range(7))


def test_a_write_that_cannot_be_staged_fails_both_moments():
    array = created(counting(), [7], [3])
    view = array[:7]
    array.resize(exclusive_max=[5]).result()
    transaction = ts.Transaction()
    futures = view.with_transaction(transaction).write(1)
    with pytest.raises(ts.OutOfRangeError):
        futures.copy.result()
    with pytest.raises(ts.OutOfRangeError):
        futures.result()
    transaction.abort()
