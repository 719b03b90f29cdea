"""What a new target is like."""

import numpy as np
import pytest

import tensorstore_py as ts
from tests.compute import functions
from tests.compute.mapping import CHUNK, VALUES, stored


def test_the_target_is_like_the_first_source():
    units = ["4 nm", None]
    source = stored(VALUES, CHUNK, ["y", "x"], dimension_units=units)
    found = ts.map_blocks(np.sqrt, source, target="memory://|zarr3:").result()
    assert found.domain == source.domain
    assert found.dimension_units == source.dimension_units
    assert found.chunk_layout.read_chunk.shape == CHUNK
    assert found.dtype == ts.float64
    np.testing.assert_array_equal(found, np.sqrt(VALUES))


@pytest.mark.parametrize(
    ("form", "options", "read", "write"),
    [
        ("zarr3", {"chunks": {"x": 5}}, (4, 5), (4, 5)),
        ("zarr3", {"chunks": 2, "shards": (4, -1)}, (2, 2), (4, 10)),
        ("zarr2", {"chunks": -1}, (11, 10), (11, 10)),
        ("n5", {}, (4, 3), (4, 3)),
    ],
)
def test_the_target_may_have_other_chunks(form, options, read, write):
    values = np.arange(110).reshape(11, 10)
    source = stored(values, CHUNK, ["y", "x"])
    target = {"driver": form, "kvstore": "memory://a/"}
    found = ts.map_blocks(functions.double, source, target=target, **options).result()
    layout = found.chunk_layout
    assert (layout.read_chunk.shape, layout.write_chunk.shape) == (read, write)
    np.testing.assert_array_equal(found, 2 * values)


def test_a_spec_with_a_domain_tells_both():
    source = stored(VALUES, CHUNK, ["y", "x"])
    target = {
        "driver": "zarr3", "kvstore": "memory://", "dtype": "int64",
        "schema": {"domain": {"shape": [11], "labels": ["y"]},
                   "chunk_layout": {"write_chunk": {"shape": [6]}}},
    }  # fmt: skip
    found = ts.map_blocks(lambda block: block.sum(1), source, target=target).result()
    assert found.chunk_layout.write_chunk.shape == (6,)
    np.testing.assert_array_equal(found, VALUES.sum(1))
