"""Finding out what a function gives."""

import numpy as np
import pytest

import tensorstore_py as ts
from tests.compute.mapping import VALUES, mapped


def planned(function, *sources, **options):
    return ts.plan(ts.map_blocks, function, *sources, target="memory://|zarr3:", **options).result()


def test_a_small_block_tells_the_data_type():
    shapes = []

    def seen(block, row):
        shapes.append((block.shape, row.shape))
        return (block.sum(axis=1) + row.mean()).astype("float32")

    source = np.zeros((20, 30, 4), "int8")
    plan = planned(seen, source, np.zeros((30, 1)), drop=1, halo={0: 1}, boundary=0)

    assert shapes == [((10, 30, 4), (30, 1))]
    assert plan.bytes == 20 * 4 * 4


def test_it_is_not_called_if_the_data_type_is_known():
    def never(_):
        raise AssertionError

    planned(never, VALUES, dtype="int8")
    planned(never, np.zeros((0, 3)), dtype="int8")


def test_what_goes_wrong_is_told_before_anything_is_made(tmp_path):
    for function, error in (
        (lambda block: block[:1], ts.MismatchError),
        (lambda _: 1 / 0, ZeroDivisionError),
    ):
        with pytest.raises(error) as caught:
            mapped(function, VALUES, target=tmp_path / "a.zarr")
        assert any("called with ones of shape (8, 8)" in note for note in caught.value.__notes__)
        assert not (tmp_path / "a.zarr").exists()


def test_values_that_are_only_tried_warn_nobody():
    plan = planned(lambda block, other: block / (block - other), VALUES, VALUES)
    assert plan.bytes == 8 * VALUES.size
