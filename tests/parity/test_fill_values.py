"""Fill values: what missing chunks read as, how metadata writes them, what is not stored."""

import math

import numpy as np
import pytest

from tests.parity.libraries import document, numpy_dtype, ours, same, spec_of, stored, wheel

ZARR3 = [
    ("bool", False), ("bool", True), ("int8", -128), ("uint64", 2**64 - 1), ("int64", -(2**63)),
    ("float16", 1.5), ("float32", "NaN"), ("float32", "Infinity"), ("float32", "-Infinity"),
    ("float32", "0x7fc00001"), ("float32", "0x80000000"), ("float64", -0.0), ("float64", 1e300),
    ("float64", "0x7ff8000000000123"), ("float64", "NaN"), ("float16", "NaN"), ("float32", 0.1),
    ("bfloat16", "NaN"), ("bfloat16", "0x7fc1"), ("bfloat16", 1.5), ("float8_e5m2", "Infinity"),
    ("float8_e4m3fn", "0x7f"), ("complex64", [1.5, "NaN"]), ("complex64", ["-Infinity", 0.0]),
    ("complex128", ["0x7ff8000000000001", -0.0]), ("int4", 7), ("int2", 1),
]  # fmt: skip
ZARR2 = [
    ("|b1", False), ("|b1", True), ("|i1", -128), ("<u8", 2**64 - 1), (">i8", -(2**63)),
    ("<f2", 1.5), ("<f4", "NaN"), (">f4", "Infinity"), ("<f4", "-Infinity"), ("<f8", -0.0),
    ("<f8", 1e300), ("<f8", "NaN"), ("<c8", [1.5, "NaN"]), ("<c16", ["-Infinity", 0.0]),
    ("bfloat16", 2.0), ("float8_e5m2", "NaN"), ("<f4", None), ("<i4", None), ("<f4", 0.1),
]  # fmt: skip


def zarr3(dtype, fill):
    return "zarr3", "zarr.json", {
        "shape": [5], "data_type": dtype, "fill_value": fill,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
    }  # fmt: skip


def zarr2(dtype, fill):
    return "zarr", ".zarray", {
        "shape": [5], "dtype": dtype, "fill_value": fill, "chunks": [2], "compressor": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("form", "dtype", "fill"),
    [(zarr3, *case) for case in ZARR3] + [(zarr2, *case) for case in ZARR2],
)
def test_fill_value(tmp_path, form, dtype, fill):
    driver, name, asked = form(dtype, fill)
    theirs = wheel.open(spec_of(driver, tmp_path / "theirs", metadata=asked), create=True).result()
    mine = ours.open(spec_of(driver, tmp_path / "mine", metadata=asked), create=True).result()
    assert repr(document(tmp_path / "mine", name)) == repr(document(tmp_path / "theirs", name))
    expected = theirs.read().result()
    same(mine.read().result(), expected)
    same(ours.open(spec_of(driver, tmp_path / "theirs")).result().read().result(), expected)
    assert (mine.fill_value is None) == (theirs.fill_value is None)
    if theirs.fill_value is not None:
        same(mine.fill_value, theirs.fill_value)
    assert repr(mine.schema.to_json()) == repr(theirs.schema.to_json())

    # What equals it is not stored, by the same measure.
    for candidate in candidates(expected):
        for array in (mine, theirs):
            array[...] = candidate
        assert stored(tmp_path / "mine") == stored(tmp_path / "theirs"), candidate
        same(mine.read().result(), np.full(5, candidate, expected.dtype))


def candidates(filled):
    """The fill value itself, and values that compare equal to it without being it."""
    yield filled[0]
    dtype = filled.dtype
    if dtype.kind in "fc" or "float" in dtype.name:
        yield np.zeros((), dtype)[()]
        if "e4m3b11fnuz" not in dtype.name:
            yield (-np.zeros((), dtype))[()]
        if dtype.name not in {"int2", "int4"}:
            yield np.full((), math.nan, dtype)[()]
    else:
        yield np.ones((), dtype)[()]


@pytest.mark.parametrize("dtype", ["bool", "uint8", "float32", "complex64", "bfloat16"])
@pytest.mark.parametrize("driver", ["zarr", "zarr3"])
def test_by_keyword(tmp_path, driver, dtype):
    fill = np.ones((), numpy_dtype(dtype))
    for library, place in ((ours, "mine"), (wheel, "theirs")):
        library.open(
            spec_of(driver, tmp_path / place), dtype=dtype, shape=[3], fill_value=fill, create=True
        ).result()
    name = "zarr.json" if driver == "zarr3" else ".zarray"
    assert document(tmp_path / "mine", name) == document(tmp_path / "theirs", name)


@pytest.mark.parametrize("driver", ["zarr", "zarr3"])
def test_store_data_equal_to_fill_value(tmp_path, driver):
    for library, place in ((ours, "mine"), (wheel, "theirs")):
        spec = spec_of(driver, tmp_path / place, store_data_equal_to_fill_value=True)
        array = library.open(spec, dtype="uint8", shape=[5], create=True).result()
        array[...] = 0
    assert stored(tmp_path / "mine") == stored(tmp_path / "theirs")
    assert len(stored(tmp_path / "mine")) == 2


@pytest.mark.parametrize("driver", ["zarr", "zarr3"])
def test_missing_chunks_are_an_error_on_request(tmp_path, driver):
    for library in (ours, wheel):
        spec = spec_of(driver, tmp_path / library.__name__, fill_missing_data_reads=False)
        array = library.open(
            spec, dtype="uint8", shape=[4], chunk_layout=library.ChunkLayout(chunk_shape=[2]),
            create=True,
        ).result()  # fmt: skip
        array[:2] = 1
        same(array[:2].read().result(), np.ones(2, "u1"))
        with pytest.raises(ValueError, match="missing"):
            array.read().result()
