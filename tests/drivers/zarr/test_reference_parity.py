"""The same specs to the reference implementations and to us: the same documents, the same data."""

import json
import shutil
from itertools import product
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import tensorstore as reference
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorstore_py as ts
from tensorstore_py.plugin.codec import dtype

SHAPE, CHUNKS = (5, 7), (3, 4)
COMPRESSORS: list[dict | None] = [
    None,
    {"id": "zlib", "level": 1},
    {"id": "gzip", "level": 5},
    {"id": "bz2", "level": 1},
    {"id": "zstd", "level": 3},
    {"id": "blosc"},
    {"id": "blosc", "cname": "zstd", "shuffle": 2, "clevel": 3},
]
NUMPY_TYPES = ["|b1", "|i1", "|u1", "<i2", ">u2", "<u4", ">i8", "<f2", ">f4", "<f8", "<c8", ">c16"]
OTHER_TYPES = ["bfloat16", "int4", "int2", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"]
FILL_VALUES: dict[str, list[object]] = {
    "|b1": [None, True, False, 1],
    "|u1": [None, 0, 255, 256, 3.0],
    ">i4": [None, -7, 1e3, "1"],
    "<f4": [None, 0.1, "NaN", "-Infinity", 1e300, True],
    "<c8": [None, [1, "NaN"], [1], "AAAAAAAAAAA="],
    "bfloat16": [None, 0.1, "Infinity"],
    "int4": [None, -8, 7],
    "|S2": [None, "aGk=", "abc"],
}


def sample(encoded: str) -> np.ndarray:
    """Values that every implementation can hold."""
    rng = np.random.default_rng(7)
    if encoded == "|b1":
        return rng.integers(0, 2, SHAPE).astype(bool)
    if encoded in OTHER_TYPES:
        values = [-2, -1, 0, 1] if encoded.startswith("int") else [0.5, 1, 2, 4]
        return rng.choice(values, SHAPE).astype(dtype(encoded).numpy_dtype)
    native = np.dtype(encoded).newbyteorder("=")
    if native.kind == "c":
        return (rng.normal(size=SHAPE) + 1j * rng.normal(size=SHAPE)).astype(native)
    return (rng.random(SHAPE) * 100).astype(native)


def same_bits(found: np.ndarray, expected: np.ndarray) -> bool:
    return found.dtype == expected.dtype and found.tobytes() == expected.tobytes()


def keys(folder: Path) -> list[str]:
    return sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    )


@pytest.mark.parametrize("compressor", COMPRESSORS, ids=json.dumps)
@pytest.mark.parametrize("encoded", NUMPY_TYPES + OTHER_TYPES)
def test_arrays_are_read_in_both_directions(
    tmp_path: Path, encoded: str, compressor: dict | None
) -> None:
    array = sample(encoded)
    for order, separator in ("C.", "F/"):
        ours, theirs = tmp_path / f"ours{order}{ord(separator)}", tmp_path / f"{order}{separator}x"
        metadata = {
            "shape": list(SHAPE),
            "chunks": list(CHUNKS),
            "dtype": encoded,
            "compressor": compressor,
            "order": order,
            "dimension_separator": separator,
        }
        for library, folder in ((ts, ours), (reference, theirs)):
            kvstore = {"driver": "file", "path": f"{folder}/"}
            spec = {"driver": "zarr", "kvstore": kvstore, "metadata": metadata}
            library.open(spec, create=True).result().write(array).result()
        assert keys(ours) == keys(theirs)
        assert (ours / ".zarray").read_bytes() == (theirs / ".zarray").read_bytes()
        for library, folder in ((ts, theirs), (reference, ours)):
            store = library.open(
                {"driver": "zarr", "kvstore": {"driver": "file", "path": f"{folder}/"}}
            ).result()
            assert same_bits(store.read().result(), array)
            assert same_bits(store[1:4, 2:6].read().result(), array[1:4, 2:6].copy())
        if encoded in NUMPY_TYPES:
            assert np.array_equal(zarr.open_array(ours, mode="r", zarr_format=2)[...], array)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("encoded", [*NUMPY_TYPES, "|S3"])
def test_arrays_that_zarr_python_made_are_read_and_written(
    tmp_path: Path, encoded: str, order: Literal["C", "F"]
) -> None:
    text = encoded == "|S3"
    array = np.full(SHAPE, b"abc", "S3") if text else sample(encoded)
    theirs = zarr.create_array(
        tmp_path, shape=SHAPE, chunks=CHUNKS, dtype=encoded, zarr_format=2, order=order
    )
    theirs[:4] = array[:4]

    store = ts.open(
        {"driver": "zarr", "kvstore": {"driver": "file", "path": f"{tmp_path}/"}}
    ).result()
    shown = array.view("S1").reshape(*SHAPE, 3) if text else array

    assert same_bits(store[:4].read().result(), shown[:4].copy())
    store[4:] = shown[4:]
    assert np.array_equal(theirs[...], array)


@pytest.mark.parametrize("order", ["C", "F"])
def test_fields_that_zarr_python_made_are_read_and_written(
    tmp_path: Path, order: Literal["C", "F"]
) -> None:
    record = np.dtype([("x", "<u2"), ("y", ">f4"), ("b", "|b1")])
    array = np.zeros(SHAPE, record)
    array["x"] = np.arange(35).reshape(SHAPE)
    array["y"] = np.arange(35).reshape(SHAPE) / 4
    theirs = zarr.create_array(
        tmp_path,
        shape=SHAPE,
        chunks=CHUNKS,
        dtype=record,
        zarr_format=2,
        order=order,
        fill_value=np.array((7, 2.5, True), record)[()],
    )
    theirs[:2] = array[:2]
    expected = np.full(SHAPE, np.array((7, 2.5, True), record))
    expected[:2] = array[:2]
    for field in record.names or ():
        store = ts.open(
            {
                "driver": "zarr",
                "kvstore": {"driver": "file", "path": f"{tmp_path}/"},
                "field": field,
            }
        ).result()
        assert np.array_equal(store.read().result(), expected[field])
        store[1:5, 2:6] = array[field][1:5, 2:6]
        expected[field][1:5, 2:6] = array[field][1:5, 2:6]

    assert np.array_equal(theirs[...], expected)


def test_fields_with_dimensions_are_shared_with_the_reference(tmp_path: Path) -> None:
    x = np.arange(35 * 6, dtype="u2").reshape(*SHAPE, 2, 3)
    y = np.arange(35, dtype="f4").reshape(SHAPE)
    metadata = {
        "shape": list(SHAPE),
        "chunks": list(CHUNKS),
        "dtype": [["x", "<u2", [2, 3]], ["y", ">f4"]],
        "fill_value": "AQACAAMABAAFAAYAP4AAAA==",
    }

    def opened(library: object, field: str) -> ts.TensorStore:
        kvstore = {"driver": "file", "path": f"{tmp_path}/"}
        spec = {"driver": "zarr", "kvstore": kvstore, "metadata": metadata, "field": field}
        return library.open(spec, create=True, open=True).result()  # type: ignore[attr-defined]

    for order, first, second in product("CF", (ts, reference), (ts, reference)):
        metadata["order"] = order
        shutil.rmtree(tmp_path)
        opened(first, "x")[:2].write(x[:2]).result()
        opened(second, "y")[1:, 2:].write(y[1:, 2:]).result()
        for field in "xy":
            ours = opened(ts, field).read().result()
            assert same_bits(ours, opened(reference, field).read().result())
        assert np.array_equal(opened(ts, "x")[:2].read().result(), x[:2])


def outcome(library: object, spec: dict) -> object:
    """The document, the spec and the schema of a new array; or that it cannot be created."""
    try:
        store = library.open(spec, create=True).result()  # type: ignore[attr-defined]
    except ValueError:
        return "refused"
    stored = bytes(store.kvstore[".zarray"])
    return (
        stored.decode(),
        store.spec().to_json(),
        repr_json(store.schema),
        store.codec.to_json(),
        str(store.domain),
    )


def repr_json(schema: object) -> object:
    try:
        return json.dumps(schema.to_json())  # type: ignore[attr-defined]
    except ValueError:
        return "no JSON"  # fill values of characters have none


#: (members of the spec, members of its metadata, inner dimensions) that settle the data type.
TYPES: st.SearchStrategy[tuple[dict, dict, list]] = st.one_of(
    st.sampled_from(sorted(FILL_VALUES)).flatmap(
        lambda encoded: st.tuples(
            st.just({}),
            st.fixed_dictionaries(
                {"dtype": st.just(encoded)},
                optional={"fill_value": st.sampled_from(FILL_VALUES[encoded])},
            ),
            st.just([2] if encoded == "|S2" else []),
        )
    ),
    st.sampled_from(["x", "y", "z"]).flatmap(
        lambda field: st.tuples(
            st.just({"field": field}),
            st.fixed_dictionaries(
                {
                    "dtype": st.just([["x", "<u2", [2, 3]], ["y", ">f4"]]),
                    "fill_value": st.sampled_from([None, "AQACAAMABAAFAAYAP4AAAA==", "AA=="]),
                }
            ),
            st.just([2, 3] if field == "x" else []),
        )
    ),
    st.tuples(
        st.fixed_dictionaries(
            {"dtype": st.sampled_from(["uint16", "float64", "bool", "int4", "char"])}
        ),
        st.just({}),
        st.just([]),
    ),
)


@st.composite
def specs(draw: st.DrawFn) -> dict:
    """Specs of new arrays, some of which cannot be."""
    shape = draw(st.lists(st.integers(0, 1500), max_size=3))
    rank = len(shape)
    members, metadata, inner = draw(TYPES)
    schema: dict[str, object] = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "fill_value": st.sampled_from([0, 1, True, 2.5]),
                "codec": st.fixed_dictionaries(
                    {"driver": st.just("zarr"), "compressor": st.sampled_from(COMPRESSORS)}
                ),
                "chunk_layout": layouts(rank + len(inner)),
            },
        )
    )
    more = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "chunks": st.lists(st.integers(1, 40), min_size=rank, max_size=rank),
                # The reference cannot create Fortran order where it is the same as C order.
                "order": st.sampled_from("CF" if rank > 1 else "C"),
                "compressor": st.sampled_from(COMPRESSORS),
                "dimension_separator": st.sampled_from("./"),
            },
        )
    )
    metadata = {**metadata, **more}
    if draw(st.booleans()):
        metadata["shape"] = shape
    else:
        schema["domain"] = {"shape": [*shape, *inner]}
    key_encoding = draw(st.sampled_from([{}, {}, {"key_encoding": "/"}]))
    base = {"driver": "zarr", "kvstore": {"driver": "memory"}}
    return {**base, **members, **key_encoding, "metadata": metadata, "schema": schema}


@st.composite
def layouts(draw: st.DrawFn, rank: int) -> dict:
    """Chunk layout constraints."""
    layout: dict[str, object] = {}
    if draw(st.integers(0, 3)) == 0:
        order = draw(st.sampled_from(["inner_order", "inner_order_soft_constraint"]))
        layout[order] = draw(
            st.sampled_from([list(range(rank)), list(reversed(range(rank)))])
            | st.permutations(range(rank))
        )
    if draw(st.booleans()):
        grid: dict[str, object] = {}
        if draw(st.integers(0, 3)) == 0:
            soft = draw(st.sampled_from(["", "_soft_constraint"]))
            extents = st.integers(-1, 60)
            grid[f"shape{soft}"] = draw(st.lists(extents, min_size=rank, max_size=rank))
        if draw(st.booleans()):
            grid["elements"] = draw(st.integers(1, 10**6))
        if draw(st.booleans()):
            ratios = st.sampled_from([0, 1, 2, 2.5])
            grid["aspect_ratio"] = draw(st.lists(ratios, min_size=rank, max_size=rank))
        layout[draw(st.sampled_from(["chunk", "chunk", "read_chunk", "write_chunk"]))] = grid
    return layout


@settings(max_examples=3 * settings().max_examples)
@given(specs())
def test_new_arrays_are_as_the_reference_makes_them(spec: dict) -> None:
    assert outcome(ts, spec) == outcome(reference, spec)
