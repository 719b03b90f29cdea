"""oindex, vindex and blocks, for reading and writing."""

import numpy as np
import pytest

import tensorstore_py as ts


@pytest.fixture
def z():
    return ts.zarr.array(np.arange(30).reshape(5, 6), chunks=(2, 4))


def test_oindex(z):
    assert z.oindex[[0, -1], 1:3].tolist() == [[1, 2], [25, 26]]
    z.oindex[[0, -1], [0, 5]] = [[-1, -2], [-3, -4]]
    assert z[[0, -1]][:, [0, 5]].tolist() == [[-1, -2], [-3, -4]]


def test_vindex(z):
    assert z.vindex[[0, -1], [1, 2]].tolist() == [1, 26]
    z.vindex[[0, -1], [1, 2]] = [-1, -2]
    z.vindex[np.arange(30).reshape(5, 6) == 7] = -3
    assert (z[0, 1], z[-1, 2], z[1, 1]) == (-1, -2, -3)


def test_blocks(z):
    assert z.blocks[-1, 1].tolist() == [[28, 29]]
    z.blocks[0, 1] = -1
    assert z[:2, 3:].tolist() == [[3, -1, -1], [9, -1, -1]]


def test_blocks_of_a_sharded_array_are_shards():
    z = ts.zarr.array(np.arange(16).reshape(4, 4), chunks=(1, 1), shards=(2, 2))
    assert z.blocks[1, 0].tolist() == [[8, 9], [12, 13]]
