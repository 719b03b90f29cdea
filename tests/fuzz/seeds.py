"""What fuzzing starts from: arrays and groups of every format and codec, as stored keys.

`seeds()` gives each as a `Seed`: its name, how it is opened, and its keys and values.
`kept(folder)` gives those of a folder, one folder a seed, each with `spec.json` and the values in
`keys/`, named by "_" and their percent-encoded keys; `keep` writes such a folder. So a program that
fuzzes for hours can start from what it found before.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

import numpy as np

import tensorstore_py as ts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["Seed", "keep", "kept", "seeds"]

_VALUES = np.arange(24, dtype="<i4").reshape(4, 6) * 1000
_BYTES = {"name": "bytes", "configuration": {"endian": "little"}}


@dataclass(frozen=True)
class Seed:
    """Something stored, and how it is opened.

    Attributes:
        name: for messages, and of the folder in which it is kept.
        driver: what opens it; `"group"` for groups, `"json"` for the json driver.
        files: values by key.
        archive: the keys are members of an archive, which is `files["archive"]`.
    """

    name: str
    driver: str
    files: Mapping[str, bytes]
    archive: bool = False

    def changed(self, key: str, value: bytes) -> Seed:
        """The same with another value."""
        return replace(self, files={**self.files, key: value})

    def spec(self) -> dict[str, object]:
        """The spec of the array, in the store that holds the files at its root."""
        store: dict[str, object] = {"driver": "memory"}
        if self.archive:
            store = {"driver": "zip", "base": {"driver": "memory", "path": "archive"}}
        return {"driver": self.driver, "kvstore": store}


def seeds() -> list[Seed]:
    """All that there are."""
    found = [_made(name, "zarr3", {"codecs": codecs}) for name, codecs in _ZARR3.items()]
    found += [_made(f"zarr3_{name}", "zarr3", more) for name, more in _ZARR3_FORMS.items()]
    found += [_made(f"zarr_{name}", "zarr", more) for name, more in _ZARR.items()]
    found += [_made(f"n5_{name}", "n5", more) for name, more in _N5.items()]
    found += [_objects(name, *made) for name, made in _OBJECTS.items()]
    found += [_group("zarr3"), _group("zarr"), _zipped(), _json()]
    return found


def keep(folder: Path, seed: Seed) -> Path:
    """Write a seed to a folder of its name; the path of that."""
    place = folder / seed.name
    (place / "keys").mkdir(parents=True, exist_ok=True)
    spec = {"driver": seed.driver, "archive": seed.archive}
    (place / "spec.json").write_text(json.dumps(spec), encoding="utf-8")
    for key, value in seed.files.items():
        (place / "keys" / f"_{quote(key, safe='')}").write_bytes(value)
    return place


def kept(folder: Path) -> Iterator[Seed]:
    """The seeds that a folder holds, in the order of their names."""
    for place in sorted(folder.glob("*/spec.json")):
        spec = json.loads(place.read_text(encoding="utf-8"))
        files = {
            unquote(each.name[1:]): each.read_bytes() for each in (place.parent / "keys").iterdir()
        }
        yield Seed(place.parent.name, spec["driver"], files, spec["archive"])


def _named(name: str, **configuration: object) -> dict[str, object]:
    return {"name": name, "configuration": configuration}


def _shards(*codecs: object, location: str = "end") -> list[object]:
    index = [_BYTES, {"name": "crc32c"}] if location == "end" else [_BYTES]
    return [
        _named(
            "sharding_indexed", chunk_shape=[1, 3], codecs=[_BYTES, *codecs],
            index_codecs=index, index_location=location,
        )
    ]  # fmt: skip


_ZARR3: dict[str, list[object]] = {
    "raw": [_BYTES],
    "gzip": [_BYTES, _named("gzip", level=1)],
    "zstd": [_BYTES, _named("zstd", level=1, checksum=True)],
    "blosc": [_BYTES, _named("blosc", cname="lz4", clevel=5, shuffle="shuffle", typesize=4)],
    "blosc_zstd": [_BYTES, _named("blosc", cname="zstd", clevel=5, shuffle="noshuffle")],
    "crc32c": [_BYTES, _named("crc32c")],
    "transpose": [_named("transpose", order=[1, 0]), _BYTES],
    "reshape": [_named("reshape", shape=[-1]), _BYTES],
    "packbits": [_named("packbits", padding_encoding="first_byte", last_bit=14)],
    "bitround": [_named("bitround", keepbits=30), _BYTES],
    "delta": [_named("numcodecs.delta", dtype="<i4"), _BYTES],
    "fixedscaleoffset": [_named("numcodecs.fixedscaleoffset", scale=1, offset=0), _BYTES],
    "astype": [_named("numcodecs.astype", encode_dtype="<i8"), _BYTES],
    "shuffle": [_BYTES, _named("numcodecs.shuffle", elementsize=4)],
    "zlib": [_BYTES, _named("numcodecs.zlib", level=1)],
    "bz2": [_BYTES, _named("numcodecs.bz2", level=1)],
    "lzma": [_BYTES, _named("numcodecs.lzma", preset=0)],
    "lz4": [_BYTES, _named("numcodecs.lz4")],
    "crc32": [_BYTES, _named("numcodecs.crc32")],
    "fletcher32": [_BYTES, _named("numcodecs.fletcher32")],
    "pcodec": [_named("numcodecs.pcodec")],
    "zfpy": [_named("numcodecs.zfpy")],
    "two": [_BYTES, _named("numcodecs.zlib"), _named("zstd", level=1)],
    "shards": _shards(_named("zstd", level=1)),
    "shards_at_start": _shards(location="start"),
    "shards_packed": [*_shards(), _named("gzip", level=1)],
}  # fmt: skip
_ZARR3_FORMS: dict[str, dict[str, object]] = {
    "attributes": {"attributes": {"a": [1, {"b": "c"}]}, "dimension_names": ["y", None]},
    "rectilinear": {
        "chunk_grid": _named("rectilinear", kind="inline", chunk_shapes=[[1, 3], [[2, 3]]])
    },
    "v2_keys": {"chunk_key_encoding": _named("v2", separator=".")},
    "fixed_length": {"data_type": _named("fixed_length_utf32", length_bytes=16)},
    "times": {"data_type": _named("numpy.datetime64", unit="s", scale_factor=1)},
}
_ZARR: dict[str, dict[str, object]] = {
    "raw": {"dtype": "<i4", "compressor": None},
    "blosc": {"dtype": ">i4", "compressor": {"id": "blosc"}},
    "record": {"dtype": [["x", "<i4"], ["y", "|S4", [2]]], "compressor": {"id": "zstd"}},
    "text": {"dtype": "<U4", "compressor": {"id": "zlib"}, "order": "F"},
    "filters": {
        "dtype": "<f8",
        "compressor": {"id": "zstd"},
        "filters": [
            {"id": "quantize", "digits": 3, "dtype": "<f8"},
            {"id": "shuffle", "elementsize": 8},
        ],
    },
    "bools": {"dtype": "|b1", "compressor": None, "filters": [{"id": "packbits"}]},
}
_N5: dict[str, dict[str, object]] = {
    name: {"dataType": "int32", "compression": {"type": name}, "axes": ["x", "y"]}
    for name in ("raw", "gzip", "bzip2", "xz")
}
_OBJECTS: dict[str, tuple[str, dict[str, object]]] = {
    "strings": ("zarr3", {"data_type": "string", "codecs": ["vlen-utf8", _named("zstd", level=1)]}),
    "byte_strings": ("zarr3", {"data_type": "bytes", "codecs": ["vlen-bytes"]}),
    "json2": ("zarr", {"filters": [{"id": "json2"}], "compressor": {"id": "zlib"}}),
    "msgpack2": ("zarr", {"filters": [{"id": "msgpack2"}], "compressor": None}),
    "vlen_array": ("zarr", {"filters": [{"id": "vlen-array", "dtype": "<i4"}]}),
}


def _files(store: ts.KvStore) -> dict[str, bytes]:
    return {key.decode(): bytes(store[key]) for key in store.list().result()}


def _made(name: str, driver: str, more: Mapping[str, object], values: object = None) -> Seed:
    """An array of two by three chunks that holds something."""
    if driver == "zarr3":
        grid = _named("regular", chunk_shape=[2, 3])
        metadata = {"shape": [4, 6], "chunk_grid": grid, "data_type": "int32", **more}
    elif driver == "zarr":
        metadata = {"shape": [4, 6], "chunks": [2, 3], **more}
    else:
        metadata = {"dimensions": [4, 6], "blockSize": [2, 3], **more}
    spec: dict[str, object] = {"driver": driver, "kvstore": "memory://", "metadata": metadata}
    if "x" in str(more.get("dtype")):
        spec["field"] = "x"
    array = ts.open(spec, create=True, context=ts.Context()).result()
    if values is None:
        kind = array.dtype.numpy_dtype.kind
        values = _VALUES.astype("U4") if kind == "U" else _VALUES.astype(array.dtype.numpy_dtype)
    array.write(values).result()
    assert array.kvstore is not None
    return Seed(name, driver, _files(array.kvstore))


def _objects(name: str, driver: str, more: Mapping[str, object]) -> Seed:
    values = np.empty((4, 6), object)
    for place, number in enumerate(_VALUES.flat):
        text: object = f"n{number}"
        if name == "byte_strings":
            text = f"n{number}".encode()
        elif name == "vlen_array":
            text = np.arange(place % 4, dtype="<i4")
        elif driver == "zarr":
            text = {"n": [int(number), None]}
        values.reshape(-1)[place] = text
    return _made(name, driver, {"dtype": "|O", **more} if driver == "zarr" else more, values)


def _group(driver: str) -> Seed:
    """A group, its consolidated metadata if there is such a thing, and an array in it."""
    group = ts.Group.open(
        {"driver": driver, "kvstore": "memory://"}, create=True, attributes={"a": 1},
        context=ts.Context(),
    ).result()  # fmt: skip
    group.create_array("x", dtype="int32", shape=[4]).result().write(7).result()
    group.consolidate().result()
    return Seed(f"group_{driver}", "group", _files(group.kvstore))


def _zipped() -> Seed:
    plain = _made("", "zarr3", {"codecs": [_BYTES]})
    context = ts.Context()
    store = ts.KvStore.open({"driver": "zip", "base": "memory://archive"}, context=context).result()
    for key, value in plain.files.items():
        store[key] = value
    archive = bytes(ts.KvStore.open("memory://", context=context).result()["archive"])
    return Seed("zip", "zarr3", {"archive": archive}, archive=True)


def _json() -> Seed:
    return Seed("json", "json", {"": b'{"a": [1, {"b": "c"}], "n": 1.5}'})
