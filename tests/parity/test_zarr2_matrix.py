"""zarr version 2: every data type with every compressor, order, byte order and separator.

Each type meets each compressor, and both meet every form of the rest; at night, all meet at once.
"""

import itertools

import numpy as np
import pytest

from tests.parity.libraries import (
    COMMON,
    SMALL,
    document,
    few,
    numpy_dtype,
    ours,
    same,
    sample,
    spec_of,
    stored,
    wheel,
    with_zarr,
)

SHAPE = (7, 9)
COMPRESSORS = {
    "null": None,
    "zlib": {"id": "zlib", "level": 1},
    "gzip": {"id": "gzip", "level": 5},
    "bz2": {"id": "bz2", "level": 1},
    "zstd": {"id": "zstd", "level": 1},
    "blosc_shuffle": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0},
    "blosc_bit": {"id": "blosc", "cname": "zstd", "clevel": 1, "shuffle": 2, "blocksize": 0},
    "blosc_auto": {"id": "blosc", "cname": "lz4hc", "clevel": 1, "shuffle": -1, "blocksize": 0},
    "blosc_none": {"id": "blosc", "cname": "zlib", "clevel": 1, "shuffle": 0, "blocksize": 0},
}


def encoded_dtypes(name):
    """The names that the format has for a type: one for each byte order."""
    if name in SMALL:
        return [name]
    dtype = numpy_dtype(name)
    if dtype.itemsize == 1:
        return [dtype.str]
    return [dtype.newbyteorder(order).str for order in "<>"]


@pytest.mark.parametrize("compressor", COMPRESSORS)
@pytest.mark.parametrize("dtype", [*COMMON, *SMALL])
def test_matrix(tmp_path, dtype, compressor):
    forms = itertools.product(encoded_dtypes(dtype), "CF", "./")
    cell = [*COMMON, *SMALL].index(dtype) + list(COMPRESSORS).index(compressor)
    for number, (encoded, order, separator) in few(forms, cell, 1):
        asked = {
            "shape": list(SHAPE),
            "chunks": [3, 4],
            "dtype": encoded,
            "order": order,
            "compressor": COMPRESSORS[compressor],
            "dimension_separator": separator,
            "fill_value": None if number % 2 else 0.0 if "f" in encoded else 0,
            "filters": None,
        }
        if dtype == "float4_e2m1fn":
            asked["fill_value"] = None
        if dtype == "bool" and asked["fill_value"] is not None:
            asked["fill_value"] = False
        if "c" in encoded and asked["fill_value"] is not None:
            asked["fill_value"] = [0.0, 0.0]
        check(tmp_path / str(number), dtype, asked)


def check(path, dtype, asked):
    values = sample(dtype, SHAPE)
    values[3:6, 4:8] = np.zeros((), values.dtype)
    theirs = spec_of("zarr", path / "theirs", metadata=asked)
    mine = spec_of("zarr", path / "mine", metadata=asked)
    wheel.open(theirs, create=True).result()[...] = values
    ours.open(mine, create=True).result()[...] = values

    same(ours.open(theirs).result().read().result(), values)
    same(wheel.open(mine).result().read().result(), values)
    assert stored(path / "mine") == stored(path / "theirs")
    assert document(path / "mine", ".zarray") == document(path / "theirs", ".zarray")
    if dtype in COMMON:
        same(np.asarray(with_zarr(path / "mine", 2)[...]).astype(values.dtype), values)

    region = (slice(1, 6), slice(3, 9))
    change = sample(dtype, (5, 6), 1)
    values[region] = change
    wheel.open(mine).result()[region] = change
    ours.open(theirs).result()[region] = change
    same(ours.open(mine).result().read().result(), values)
    same(wheel.open(theirs).result().read().result(), values)
    if dtype in COMMON:
        change = sample(dtype, (6, 3), 2)
        values[0:6, 2:5] = change
        with_zarr(path / "mine", 2)[0:6, 2:5] = change
        same(ours.open(mine).result().read().result(), values)


FIELDS = [["a", "<i2"], ["b", "|S3"], ["c", ">f4", [2]]]


@pytest.mark.parametrize("compressor", ["null", "zlib", "blosc_shuffle"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_fields_of_structured_types(tmp_path, compressor, order):
    asked = {
        "shape": [5, 4], "chunks": [2, 3], "dtype": FIELDS, "order": order,
        "compressor": COMPRESSORS[compressor], "fill_value": None,
    }  # fmt: skip
    values = {"a": sample("int16", (5, 4)), "c": sample("float32", (5, 4, 2))}
    for writer, place in ((wheel, "theirs"), (ours, "mine")):
        for field, value in values.items():
            spec = spec_of("zarr", tmp_path / place, metadata=asked, field=field)
            writer.open(spec, create=True, open=True).result()[...] = value
    assert document(tmp_path / "mine", ".zarray") == document(tmp_path / "theirs", ".zarray")
    assert stored(tmp_path / "mine") == stored(tmp_path / "theirs")
    for reader, place in ((wheel, "mine"), (ours, "theirs")):
        for field, value in values.items():
            spec = spec_of("zarr", tmp_path / place, field=field)
            same(reader.open(spec).result().read().result(), value)


def test_changing_one_field_keeps_the_others(tmp_path):
    asked = {"shape": [4], "chunks": [2], "dtype": FIELDS, "compressor": None, "fill_value": None}
    letters = np.frombuffer(b"abcdefghijkl", "S1").reshape(4, 3)
    opened = ours.open(spec_of("zarr", tmp_path, metadata=asked, field="b"), create=True).result()
    opened[...] = letters
    change = np.arange(8, dtype="f4").reshape(4, 2)
    wheel.open(spec_of("zarr", tmp_path, field="c")).result()[...] = change
    same(ours.open(spec_of("zarr", tmp_path, field="b")).result().read().result(), letters)
    ours.open(spec_of("zarr", tmp_path, field="a")).result()[1:3] = 7
    same(wheel.open(spec_of("zarr", tmp_path, field="c")).result().read().result(), change)
    rows = np.fromfile(tmp_path / "1", [("a", "<i2"), ("b", "S3"), ("c", ">f4", 2)])
    assert rows["a"].tolist() == [7, 0]
    assert rows["b"].tolist() == [b"ghi", b"jkl"]
    assert rows["c"].tolist() == change[2:].tolist()


@pytest.mark.parametrize("encoded", ["|S5", "|V5"])
def test_fixed_strings_and_raw_bytes_are_one_more_dimension(tmp_path, encoded):
    """The wheel hands these out as elements of no size, so bytes on disk are compared."""
    asked = {"shape": [5], "chunks": [2], "dtype": encoded, "compressor": None, "fill_value": None}
    theirs = wheel.open(spec_of("zarr", tmp_path / "theirs", metadata=asked), create=True).result()
    mine = ours.open(spec_of("zarr", tmp_path / "mine", metadata=asked), create=True).result()
    assert document(tmp_path / "mine", ".zarray") == document(tmp_path / "theirs", ".zarray")
    assert mine.shape == theirs.shape == (5, 5)
    assert mine.dtype.name == theirs.dtype.name
    values = np.arange(65, 90, dtype="u1").reshape(5, 5).view(f"{encoded[:2]}1")
    mine[...] = values
    assert (tmp_path / "mine" / "1").read_bytes() == b"KLMNOPQRST"
    same(ours.open(spec_of("zarr", tmp_path / "mine")).result().read().result(), values)
