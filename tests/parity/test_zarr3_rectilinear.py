"""Chunks of rectilinear grids, one by one, in zarr-python and in the reference.

Neither has the grid (zarr-python from 3.2 on has, by a switch). But each chunk of one is the only
chunk of a regular array of its shape, and those they have: a chunk is put where such an array has
its own, and the other way round.
"""

import json
from itertools import product

import pytest
import zarr
import zarr.codecs
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.parity.libraries import ours, same, sample, spec_of, wheel

BYTES = {"name": "bytes", "configuration": {"endian": "little"}}
CHAINS = {
    "raw": [BYTES],
    "zstd": [BYTES, {"name": "zstd", "configuration": {"level": 1, "checksum": False}}],
    "transposed": [
        {"name": "transpose", "configuration": {"order": [1, 0]}},
        {"name": "bytes", "configuration": {"endian": "big"}},
        {"name": "crc32c"},
    ],
    "shards": [
        {
            "name": "sharding_indexed",
            "configuration": {
                "chunk_shape": [2, 3],
                "codecs": [BYTES, {"name": "gzip", "configuration": {"level": 1}}],
                "index_codecs": [BYTES, {"name": "crc32c"}],
                "index_location": "end",
            },
        }
    ],
}
ROWS, COLUMNS = [2, 4, 2, 6], [3, 9, 6]
SHAPE = (13, 17)
UNEVEN = {
    "name": "rectilinear",
    "configuration": {"kind": "inline", "chunk_shapes": [ROWS, COLUMNS]},
}


def metadata(shape, grid, chain):
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(shape),
        "data_type": "int16",
        "chunk_grid": grid,
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": -1,
        "codecs": CHAINS[chain],
        "attributes": {},
    }


def cells():
    """Each cell, and where it begins and ends."""
    for row, column in product(range(len(ROWS)), range(len(COLUMNS))):
        top, left = sum(ROWS[:row]), sum(COLUMNS[:column])
        yield row, column, slice(top, top + ROWS[row]), slice(left, left + COLUMNS[column])


def lone(folder, shape, chain):
    """An array of one chunk: its document, and where its chunk goes."""
    grid = {"name": "regular", "configuration": {"chunk_shape": list(shape)}}
    (folder / "c" / "0").mkdir(parents=True)
    (folder / "zarr.json").write_text(json.dumps(metadata(shape, grid, chain)))
    return folder / "c" / "0" / "0"


@pytest.mark.parametrize("chain", CHAINS)
def test_others_read_each_chunk_that_we_write(tmp_path, chain):
    values = sample("int16", SHAPE)
    asked = {**spec_of("zarr3", tmp_path / "a"), "metadata": metadata(SHAPE, UNEVEN, chain)}
    array = ours.open(asked, create=True).result()
    array.write(values).result()
    array[5:9, 2:14] = values[1:5, 2:14]
    values[5:9, 2:14] = values[1:5, 2:14].copy()
    for row, column, rows, columns in cells():
        folder = tmp_path / f"{row}-{column}"
        chunk = lone(folder, (ROWS[row], COLUMNS[column]), chain)
        chunk.write_bytes((tmp_path / "a" / "c" / str(row) / str(column)).read_bytes())
        expected = values[rows, columns]
        inside = tuple(map(slice, expected.shape))
        same(zarr.open_array(folder, mode="r")[inside], expected)
        same(wheel.open(spec_of("zarr3", folder)).result().read().result()[inside], expected)


@pytest.mark.parametrize("chain", CHAINS)
def test_we_read_each_chunk_that_zarr_writes(tmp_path, chain):
    values = sample("int16", SHAPE)
    (tmp_path / "a").mkdir()
    document = json.dumps(metadata(SHAPE, UNEVEN, chain))
    (tmp_path / "a" / "zarr.json").write_text(document)
    for row, column, rows, columns in cells():
        folder = tmp_path / f"{row}-{column}"
        chunk = lone(folder, (ROWS[row], COLUMNS[column]), chain)
        expected = values[rows, columns]
        zarr.open_array(folder, mode="r+")[tuple(map(slice, expected.shape))] = expected
        (tmp_path / "a" / "c" / str(row)).mkdir(parents=True, exist_ok=True)
        (tmp_path / "a" / "c" / str(row) / str(column)).write_bytes(chunk.read_bytes())
    array = ours.open(spec_of("zarr3", tmp_path / "a")).result()
    same(array.read().result(), values)
    same(array[::-3, [16, 0, 3]].read().result(), values[::-3, [16, 0, 3]])
    array.resize(exclusive_max=[14, 18], resize_metadata_only=True).result()
    assert json.loads((tmp_path / "a" / "zarr.json").read_text())["chunk_grid"] == UNEVEN


@settings(max_examples=settings().max_examples // 2)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=2), st.data())
def test_even_chunks_under_either_name(sizes, data):
    """What a regular array of the reference does, with the same chunks in another form does."""
    shape = [data.draw(st.integers(1, 12)) for _ in sizes]
    lists = [[[size, -(-extent // size)]] for size, extent in zip(sizes, shape, strict=True)]
    told = [
        data.draw(st.sampled_from([size, each])) for size, each in zip(sizes, lists, strict=True)
    ]
    stored = []
    for library, grid in [
        (wheel, {"name": "regular", "configuration": {"chunk_shape": sizes}}),
        (ours, {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": told}}),
    ]:
        asked = {
            "driver": "zarr3",
            "kvstore": "memory://",
            "metadata": {"shape": shape, "data_type": "uint8", "chunk_grid": grid,
                         "codecs": ["bytes"]},
        }  # fmt: skip
        array = library.open(asked, create=True, context=library.Context()).result()
        part = tuple(slice(extent // 3, extent - extent // 4) for extent in shape)
        array[part].write(7).result()
        chunks = {key: array.kvstore[key] for key in array.kvstore.list().result()}
        chunks.pop(b"zarr.json")
        stored.append((chunks, array.chunk_layout.to_json()))
    assert stored[0] == stored[1]
