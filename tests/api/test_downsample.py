import numpy as np
import pytest
import tensorstore as reference

import tensorstore_py as ts


def test_open_arrays_and_specs():
    found = []
    frames = np.array([[[8, 0, 4], [0, 4, 12]], [[-2, 6, 1], [2, 2, 5]]], np.float64)
    for library in (ts, reference):
        film = library.array(frames)
        halved = library.downsample(film, [1, 2, 2], method="mean")
        asked = library.downsample(film.spec(), [1, 2, 2], method="mean")
        pixels = library.open(asked).result().read().result()
        np.testing.assert_array_equal(pixels, halved.read().result())
        found.append((halved.mode, str(halved), asked.to_json(), pixels.tolist()))
    assert found[0] == found[1]
    assert found[0][-1] == [[[3.0, 8.0]], [[2.0, 3.0]]]


@pytest.mark.parametrize(
    ("factors", "method", "error"),
    [([2], "mean", ts.SpecError), ([0, 2], "mean", ts.SpecError), ([2, 2], "foo", ts.SpecError)],
)
def test_errors(factors, method, error):
    with pytest.raises(error):
        ts.downsample(ts.array(np.zeros((2, 3))), factors, method)
    with pytest.raises(ValueError):
        reference.downsample(reference.array(np.zeros((2, 3))), factors, method)


def test_what_can_be_downsampled():
    spec = {"driver": "zarr3", "kvstore": "memory://"}
    for library in (ts, reference):
        with pytest.raises(TypeError):
            library.downsample(spec, [1], "mean")
        store = library.open(spec, create=True, open=True, dtype="int8", shape=[3], write=True)
        with pytest.raises(ValueError):
            library.downsample(store.result(), [1], "mean")


def test_a_factor_may_be_a_numpy_number():
    store = ts.downsample(ts.array([1, 2, 3, 4]), np.array([2]), "max")
    assert store.read().result().tolist() == [2, 4]


def test_of_an_array_that_is_seen_through_a_transaction():
    spec = {"driver": "zarr3", "kvstore": "memory://"}
    array = ts.open(spec, create=True, dtype="int32", shape=[4]).result()
    with ts.Transaction() as transaction:
        staged = array.with_transaction(transaction)
        smaller = ts.downsample(staged, [2], "max")
        assert smaller.transaction is transaction
        staged.write([1, 2, 3, 4]).copy.result()
        assert smaller.read().result().tolist() == [2, 4]
        assert ts.downsample(array, [2], "max").read().result().tolist() == [0, 0]
