"""Documents as other writers leave them: each row is one oddity, said in a least document.

All hold the numbers 1 to 4 in two chunks. Each is opened, read, written and read again; what the
document had beside the members of the format is still there then.
"""

import bz2
import gzip
import json
import lzma
import struct
import zlib
from collections.abc import Callable
from typing import Any

import google_crc32c
import numpy as np
import pytest
from numcodecs import blosc, lz4, zstd

import tensorstore_py as ts
from tensorstore_py.errors import TensorStoreError

Json = dict[str, Any]
Encode = Callable[[bytes], bytes]
GONE = object()
NAMES = {"zarr3": "zarr.json", "zarr": ".zarray", "n5": "attributes.json"}
BASE: dict[str, Json] = {
    "zarr3": {
        "zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "uint16",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0, "attributes": {},
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
    },
    "zarr": {
        "zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "<u2", "compressor": None,
        "fill_value": 0, "order": "C", "filters": None,
    },
    "n5": {
        "dimensions": [4], "blockSize": [2], "dataType": "uint16", "compression": {"type": "raw"},
    },
}  # fmt: skip
LITTLE = BASE["zarr3"]["codecs"][0]


def _blosc(data: bytes) -> bytes:
    found: bytes = blosc.compress(data, b"lz4", 5, 1, 0, 2)
    return found


def _snappy(data: bytes) -> bytes:
    """A buffer of blosc, by bytes, whose only stream is Snappy: one literal, and one copy."""
    columns = np.frombuffer(data, np.uint8).reshape(-1, 2).T.tobytes()
    stream = bytes([len(data), (len(data) - 1) << 2]) + columns
    flags = 1 | 2 << 5
    header = (2, 1, flags, 2, len(data), len(data), 16 + 4 + 4 + len(stream))
    return struct.pack("<BBBBIIIIi", *header, 20, len(stream)) + stream


def _stream(data: bytes) -> bytes:
    """What lz4-java makes of it: a compressed block, and the empty one at the end."""
    body = lz4.compress(data)[4:]
    end = struct.pack("<8sBiiI", b"LZ4Block", 0x16, 0, 0, 0)
    return struct.pack("<8sBiiI", b"LZ4Block", 0x26, len(body), len(data), 7) + body + end


def _checked(data: bytes) -> bytes:
    return data + struct.pack("<I", google_crc32c.value(data))


def _shuffled(data: bytes) -> bytes:
    return zlib.compress(np.frombuffer(data, np.uint8).reshape(-1, 2).T.tobytes())


def _plain(data: bytes) -> bytes:
    return data


def _blosc_of(**members: Any) -> Json:
    return {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "blocksize": 0, **members}


def _after(*codecs: Any) -> Json:
    return {"codecs": [LITTLE, *codecs]}


def _named(name: str, /, **configuration: Any) -> Json:
    return {"name": name, "configuration": configuration}


#: writer, driver, what differs from the base, how chunks are encoded
ROWS: dict[str, tuple[str, Json, Encode]] = {
    # version 3
    "icechunk, zarr-python 3 beta: no names": ("zarr3", {"dimension_names": None}, _plain),
    "attributes null": ("zarr3", {"attributes": None}, _plain),
    "attributes left out": ("zarr3", {"attributes": GONE}, _plain),
    "transformers null": ("zarr3", {"storage_transformers": None}, _plain),
    "zarr-python 3: transformers []": ("zarr3", {"storage_transformers": []}, _plain),
    "draft of version 3: extensions": ("zarr3", {"extensions": []}, _plain),
    "zarr-python 3: consolidated null": ("zarr3", {"consolidated_metadata": None}, _plain),
    "may be ignored": ("zarr3", {"lab": {"must_understand": False, "by": "them"}}, _plain),
    "zarrita.js: no codecs": ("zarr3", {"codecs": []}, _plain),
    "bytes without byte order": ("zarr3", {"codecs": [{"name": "bytes"}]}, _plain),
    "bytes by name": ("zarr3", {"codecs": ["bytes"]}, _plain),
    "byte order null": ("zarr3", {"codecs": [_named("bytes", endian=None)]}, _plain),
    "zarrita: endian": ("zarr3", {"codecs": [_named("endian", endian="little")]}, _plain),
    "zarrita: order F": ("zarr3", {"codecs": [_named("transpose", order="F"), LITTLE]}, _plain),
    "zarrita: order C": ("zarr3", {"codecs": [_named("transpose", order="C"), LITTLE]}, _plain),
    "tensorstore: no separator": ("zarr3", {"chunk_key_encoding": {"name": "default"}}, _plain),
    "zarr-python 3 alpha: separator outside": (
        "zarr3", {"chunk_key_encoding": {"name": "default", "separator": "/"}}, _plain,
    ),
    "key encoding by name": ("zarr3", {"chunk_key_encoding": "default"}, _plain),
    "fill value null": ("zarr3", {"fill_value": None}, _plain),
    "fill value left out": ("zarr3", {"fill_value": GONE}, _plain),
    "data type as object": ("zarr3", {"data_type": {"name": "uint16"}}, _plain),
    "gzip without level": ("zarr3", _after(_named("gzip")), gzip.compress),
    "gzip level null": ("zarr3", _after(_named("gzip", level=None)), gzip.compress),
    "zstd without checksum": ("zarr3", _after(_named("zstd", level=3)), zstd.compress),
    "crc32c with configuration": ("zarr3", _after(_named("crc32c")), _checked),
    "zarr-python 3 alpha: typesize null": (
        "zarr3", _after(_named("blosc", **_blosc_of(typesize=None))), _blosc,
    ),
    "zarr-python 3: large typesize": (
        "zarr3", _after(_named("blosc", **_blosc_of(typesize=400, shuffle="noshuffle"))), _blosc,
    ),
    "blosc shuffle null": ("zarr3", _after(_named("blosc", **_blosc_of(shuffle=None))), _blosc),
    "blosc without typesize": ("zarr3", _after(_named("blosc", **_blosc_of())), _blosc),
    "numcodecs with id": (
        "zarr3", _after(_named("numcodecs.zlib", id="zlib", level=1)), zlib.compress,
    ),
    "numcodecs without configuration": (
        "zarr3", _after({"name": "numcodecs.zlib"}), zlib.compress,
    ),
    "zarrs: address of a codec": (
        "zarr3",
        _after(_named("https://codec.zarrs.dev/bytes_to_bytes/bz2", level=5)),
        bz2.compress,
    ),
    "units in words of their own": ("zarr3", {"attributes": {"dimension_units": "nm"}}, _plain),
    "null within a shard": (
        "zarr3",
        {
            "dimension_names": None,
            "codecs": [_named("sharding_indexed", chunk_shape=[2], codecs=[{"name": "bytes"}],
                index_codecs=[{"name": "bytes"}], index_location="end")],
        },
        lambda data: data + struct.pack("<QQ", 0, len(data)),
    ),
    # version 2
    "zarr-python: filters []": ("zarr", {"filters": []}, _plain),
    "filters left out": ("zarr", {"filters": GONE}, _plain),
    "order left out": ("zarr", {"order": GONE}, _plain),
    "compressor left out": ("zarr", {"compressor": GONE}, _plain),
    "fill value left out, version 2": ("zarr", {"fill_value": GONE}, _plain),
    "Zarr.jl: fill value null": ("zarr", {"fill_value": None}, _plain),
    "zarr-python 2: separator null": ("zarr", {"dimension_separator": None}, _plain),
    "n5-zarr: fill value as text": ("zarr", {"fill_value": "0"}, _plain),
    "native byte order": ("zarr", {"dtype": "=u2"}, _plain),
    "no byte order": ("zarr", {"dtype": "u2"}, _plain),
    "name of a type": ("zarr", {"dtype": "uint16"}, _plain),
    "minimal blosc": ("zarr", {"compressor": {"id": "blosc"}}, _blosc),
    "Zarr.jl: shuffle true": (
        "zarr",
        {"compressor": {"id": "blosc", **_blosc_of(shuffle=True)}},
        _blosc,
    ),
    "blosc shuffle by name": ("zarr", {"compressor": {"id": "blosc", **_blosc_of()}}, _blosc),
    "n5-zarr: threads": (
        "zarr",
        {"compressor": {"id": "blosc", **_blosc_of(shuffle=1, nthreads=1)}},
        _blosc,
    ),
    "numcodecs: typesize": (
        "zarr",
        {"compressor": {"id": "blosc", **_blosc_of(shuffle=1, typesize=2)}},
        _blosc,
    ),
    "Rarr: blosc with snappy": (
        "zarr",
        {"compressor": {"id": "blosc", **_blosc_of(cname="snappy", shuffle=1)}},
        _snappy,
    ),
    "Zarr.jl: zlib level -1": ("zarr", {"compressor": {"id": "zlib", "level": -1}}, zlib.compress),
    "n5-zarr: gzip level -1": ("zarr", {"compressor": {"id": "gzip", "level": -1}}, gzip.compress),
    "z5: gzip": (
        "zarr",
        {"compressor": {"id": "gzip", "level": 5, "useZlib": False}},
        gzip.compress,
    ),
    "z5: zlib": (
        "zarr",
        {"compressor": {"id": "zlib", "level": 5, "useZlib": True}},
        zlib.compress,
    ),
    "n5-zarr: zstd": (
        "zarr",
        {"compressor": {"id": "zstd", "level": 3, "nbWorkers": 0}},
        zstd.compress,
    ),
    "kerchunk: shuffle and zlib": (
        "zarr",
        {
            "compressor": {"id": "zlib", "level": 4},
            "filters": [{"id": "shuffle", "elementsize": 2}],
        },
        _shuffled,
    ),
    "kerchunk: zlib as a filter": (
        "zarr",
        {"filters": [{"id": "zlib", "level": 1}]},
        zlib.compress,
    ),
    "netCDF-C: members of its own": ("zarr", {"_nczarr_array": {"dimrefs": ["/x"]}}, _plain),
    # n5
    "n5 before 1.3: compressionType": (
        "n5", {"compression": GONE, "compressionType": "gzip"}, gzip.compress,
    ),
    "compression by name": ("n5", {"compression": "gzip"}, gzip.compress),
    "n5-java: gzip": (
        "n5", {"compression": {"type": "gzip", "level": -1, "useZlib": False}}, gzip.compress,
    ),
    "z5: zlib, n5": (
        "n5",
        {"compression": {"type": "gzip", "level": 5, "useZlib": True}},
        zlib.compress,
    ),
    "z5: bzip2": ("n5", {"compression": {"type": "bzip2", "level": 5}}, bz2.compress),
    "z5: blosc": (
        "n5", {"compression": {"type": "blosc", "codec": "lz4", "level": 5, "shuffle": 1}}, _blosc,
    ),
    "n5-blosc: threads": (
        "n5", {"compression": {"type": "blosc", **_blosc_of(shuffle=1, nthreads=1)}}, _blosc,
    ),
    "n5-zstandard: workers": (
        "n5", {"compression": {"type": "zstd", "level": 3, "nbWorkers": 0}}, zstd.compress,
    ),
    "n5-java: xz": ("n5", {"compression": {"type": "xz", "preset": 6}}, lzma.compress),
    "n5-java: lz4": ("n5", {"compression": {"type": "lz4", "blockSize": 65536}}, _stream),
    "units as one text": ("n5", {"units": "nm"}, _plain),
    "axes of objects": ("n5", {"axes": [{"name": "x"}]}, _plain),
    "resolution as one number": ("n5", {"resolution": 4}, _plain),
    "axes null": ("n5", {"axes": None}, _plain),
}  # fmt: skip
READ_ONLY = {"Rarr: blosc with snappy", "n5-java: lz4"}


def _document(driver: str, changes: Json) -> Json:
    found = {**BASE[driver], **changes}
    return {name: value for name, value in found.items() if value is not GONE}


def _stored(driver: str, document: Json, encode: Encode) -> ts.Context:
    """A context in whose memory the array lies."""
    context = ts.Context()
    store = ts.KvStore.open("memory://a/", context=context).result()
    store[NAMES[driver]] = json.dumps(document).encode()
    for number, values in enumerate(((1, 2), (3, 4))):
        if driver == "n5":
            data = struct.pack(">HHI", 0, 1, 2) + encode(np.array(values, ">u2").tobytes())
        else:
            data = encode(np.array(values, "<u2").tobytes())
        store[f"c/{number}" if driver == "zarr3" else str(number)] = data
    return context


def _open(driver: str, context: ts.Context) -> ts.TensorStore:
    spec = {"driver": driver, "kvstore": "memory://a/"}
    return ts.open(spec, context=context, recheck_cached_metadata=True).result()


@pytest.mark.parametrize("name", ROWS)
def test_it_is_read_and_written_and_nothing_of_it_is_lost(name: str) -> None:
    driver, changes, encode = ROWS[name]
    document = _document(driver, changes)
    context = _stored(driver, document, encode)

    array = _open(driver, context)
    assert array.read().result().tolist() == [1, 2, 3, 4]

    # The spec of what is open opens it again, and so does the spec that JSON gives.
    assert ts.open(array.spec(), context=context).result().shape == (4,)
    printed = ts.Spec(array.spec().to_json())
    printed.update(strip_context=True)
    assert ts.open(printed, context=context).result().dtype == ts.uint16

    array = array.resize(exclusive_max=[6]).result()
    assert array.kvstore is not None
    written = json.loads(array.kvstore[NAMES[driver]])
    for member, value in document.items():
        if member not in BASE[driver] and value and member != "compressionType":
            assert written[member] == value
    for member, value in (document.get("attributes") or {}).items():
        assert written["attributes"][member] == value
    assert _open(driver, context).read().result().tolist() == [1, 2, 3, 4, 0, 0]
    if name in READ_ONLY:
        with pytest.raises(NotImplementedError, match="can only be read"):
            array[0].write(9).result()
    else:
        array[1:5] = [7, 8, 9, 10]
        assert _open(driver, context).read().result().tolist() == [1, 7, 8, 9, 10, 0]


@pytest.mark.parametrize("driver", ["zarr3", "zarr"])
def test_chunks_of_size_0_where_the_dimension_has_none(driver: str) -> None:
    grid = {"name": "regular", "configuration": {"chunk_shape": [0]}}
    sizes = {"chunk_grid": grid} if driver == "zarr3" else {"chunks": [0]}
    context = _stored(driver, _document(driver, {"shape": [0], **sizes}), _plain)

    assert _open(driver, context).read().result().shape == (0,)


@pytest.mark.parametrize(
    ("fill_value", "expected"),
    [("NaN", np.nan), ("nan", np.nan), (np.nan, np.nan), ("-inf", -np.inf), ("1.5", 1.5)],
)
def test_fill_values_of_floats_in_words(fill_value: object, expected: float) -> None:
    document = _document("zarr", {"dtype": "<f4", "fill_value": fill_value, "shape": [8]})

    found = _open("zarr", _stored("zarr", document, _plain))[4:].read().result()

    np.testing.assert_array_equal(found, np.full(4, expected, "f4"))


#: What has no one meaning, or cannot be read: driver, what differs, the path that the error names.
REFUSED: dict[str, tuple[str, Json, str]] = {
    "a member that must be understood": ("zarr3", {"lab": {"by": "them"}}, "lab"),
    "no rule for chunk keys": ("zarr3", {"chunk_key_encoding": None}, "chunk_key_encoding"),
    "an unknown codec": (
        "zarr3",
        _after({"name": "nix", "must_understand": False}),
        r"codecs\[1\].name",
    ),
    "zarrs: optional": (
        "zarr3",
        {"data_type": _named("optional", name="int32", configuration={}), "fill_value": None},
        "data_type",
    ),
    "a transformer": ("zarr3", {"storage_transformers": ["x"]}, "storage_transformers"),
    "names of other dimensions": ("zarr3", {"dimension_names": ["a", "b"]}, "dimension_names"),
    "another version": ("zarr", {"zarr_format": 1}, "zarr_format"),
    "a fill value out of range": ("zarr", {"fill_value": -1}, "fill_value"),
    "an unknown compressor": ("zarr", {"compressor": {"id": "nix"}}, "compressor.id"),
    "an order that says nothing": ("zarr", {"order": "A"}, "order"),
    "an unknown compression": ("n5", {"compression": {"type": "nix"}}, "compression.type"),
    "a type that the format lacks": ("n5", {"dataType": "string"}, "dataType"),
    "no compression": ("n5", {"compression": GONE}, "compression"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_named(name: str) -> None:
    driver, changes, path = REFUSED[name]
    context = _stored(driver, _document(driver, changes), _plain)

    with pytest.raises(TensorStoreError, match=path):
        _open(driver, context)
