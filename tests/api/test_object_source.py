import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py._api.object_source import as_objects


@pytest.mark.parametrize(
    ("source", "rank", "shape"),
    [
        (5, 2, ()),
        ([1, 2], 0, ()),
        ([1, 2], 1, (2,)),
        ([[1, 2], [3, 4]], 1, (2,)),
        ([[1, 2], [3, 4]], 2, (2, 2)),
        ([[1, 2], [3]], 2, (2,)),
        (np.zeros((2, 3)), 0, ()),
        (np.zeros((2, 3)), 1, (2,)),
        (np.zeros((2, 3)), 2, (2, 3)),
        ([np.zeros(3), np.zeros(3)], 1, (2,)),
        ("text", 1, ()),
        ([], 1, (0,)),
    ],
)
def test_the_rank_decides_what_is_an_element(
    source: object, rank: int, shape: tuple[int, ...]
) -> None:
    assert as_objects(source, rank).shape == shape


def test_an_array_of_objects_is_taken_as_it_is() -> None:
    array = np.array([{1}, {2}], object)

    assert as_objects(array, 1) is array
    assert as_objects(array, 0).item() is array


def test_ragged_arrays_are_written_element_by_element() -> None:
    metadata = {"filters": [{"id": "vlen-array", "dtype": "<f8"}]}
    spec = {"driver": "zarr", "kvstore": "memory://", "metadata": metadata}
    store = ts.open(spec, create=True, dtype="object", shape=[3]).result()

    store[0] = np.arange(3.0)
    store[1:] = [np.arange(1.0), np.arange(1.0)]

    assert [each.tolist() for each in store.read().result()] == [[0.0, 1.0, 2.0], [0.0], [0.0]]
