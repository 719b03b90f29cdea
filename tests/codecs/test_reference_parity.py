"""Bytes and metadata that the reference implementations write, read here, and the reverse."""

import json
from collections.abc import Sequence

import ml_dtypes
import numpy as np
import pytest
import tensorstore as ts
import zarr
from zarr.storage import LocalStore

from tensorstore_py.plugin.codec import (
    ChunkType,
    CodecChain,
)
from tensorstore_py.plugin.driver import (
    bind_chain,
    codecs_to_json,
    merge_chains,
    parse_codec_json,
    parse_codec_list,
    resolve_chain,
)
from tensorstore_py.testing.codecs import assert_same_bits, chunk_type, sample

SHAPE = (4, 6)


def sharding(**members: object) -> dict:
    return {"name": "sharding_indexed", "configuration": {"chunk_shape": [2, 3], **members}}


def blosc(**members: object) -> dict:
    return {"name": "blosc", "configuration": members}


BIG = {"name": "bytes", "configuration": {"endian": "big"}}
TURN = {"name": "transpose", "configuration": {"order": [1, 0]}}
CHAINS: list[list[object]] = [
    [],
    [BIG],
    [TURN, "bytes"],
    ["gzip"],
    [{"name": "gzip", "configuration": {"level": 1}}],
    ["zstd"],
    [{"name": "zstd", "configuration": {"level": 5, "checksum": True}}],
    ["blosc"],
    [blosc(cname="zstd", clevel=3, shuffle="bitshuffle")],
    [blosc(cname="blosclz", shuffle="noshuffle")],
    ["crc32c"],
    ["crc32c", "blosc"],
    [TURN, TURN, BIG, "blosc", "gzip", "crc32c"],
    ["sharding_indexed"],
    [sharding()],
    [TURN, {"name": "sharding_indexed", "configuration": {"chunk_shape": [3, 2]}}],
    [sharding(codecs=["blosc"], index_location="start")],
    [sharding(codecs=[TURN, BIG, "zstd", "crc32c"], index_codecs=[BIG])],
    [sharding(chunk_shape=[2, 6], codecs=[sharding(chunk_shape=[1, 3], codecs=["gzip"])])],
]
DTYPES = ("bool", "uint8", "int16", "float32", "complex128", "bfloat16", "int4", "float8_e5m2")

some_chains = pytest.mark.parametrize("codecs", CHAINS, ids=json.dumps)


def numpy_dtype(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, name))


def reference_array(codecs: Sequence[object], dtype: str) -> ts.TensorStore:
    grid = {"name": "regular", "configuration": {"chunk_shape": SHAPE}}
    metadata = {"shape": SHAPE, "data_type": dtype, "codecs": codecs, "chunk_grid": grid}
    spec = {"driver": "zarr3", "kvstore": "memory://", "metadata": metadata}
    return ts.open(spec, create=True).result()


def stored(array: ts.TensorStore, key: str) -> bytes:
    assert array.kvstore is not None
    return array.kvstore.read(key).result().value


def store(array: ts.TensorStore, key: str, value: bytes) -> None:
    assert array.kvstore is not None
    array.kvstore.write(key, value).result()


def shown(array: ts.TensorStore) -> list:
    assert array.codec is not None
    return array.codec.to_json()["codecs"]


def our_chain(codecs: object, dtype: str) -> CodecChain:
    return bind_chain(parse_codec_list("zarr3", codecs), chunk_type(SHAPE, numpy_dtype(dtype)))


@pytest.mark.parametrize("dtype", DTYPES)
@some_chains
def test_chunks_travel_both_ways(codecs: list, dtype: str) -> None:
    theirs = reference_array(codecs, dtype)
    ours = our_chain(codecs, dtype)
    array = sample(ours.chunk)
    array[:2, :3] = 0

    theirs.write(array).result()
    assert_same_bits(array, ours.decode(stored(theirs, "c/0/0")))
    store(theirs, "c/0/0", b"")
    store(theirs, "c/0/0", bytes(ours.encode(array)))

    assert_same_bits(array, np.asarray(theirs.read().result()))


@pytest.mark.parametrize("dtype", DTYPES)
@some_chains
def test_metadata_is_resolved_alike(codecs: list, dtype: str) -> None:
    theirs = reference_array(codecs, dtype)
    written = json.loads(stored(theirs, "zarr.json"))["codecs"]

    ours = resolve_chain(parse_codec_list("zarr3", codecs), chunk_type(SHAPE, numpy_dtype(dtype)))

    assert codecs_to_json("zarr3", ours) == written
    assert codecs_to_json("zarr3", ours, include_defaults=True) == shown(theirs)
    assert codecs_to_json("zarr3", parse_codec_list("zarr3", written)) == written


@some_chains
def test_specs_are_printed_alike(codecs: list) -> None:
    theirs = ts.CodecSpec({"driver": "zarr3", "codecs": codecs}).to_json()["codecs"]

    assert codecs_to_json("zarr3", parse_codec_list("zarr3", codecs)) == theirs


WRONG: list[object] = [
    ["bytes", TURN],
    ["gzip", "bytes"],
    ["bytes", "bytes"],
    ["byte"],
    [{"nam": "bytes"}],
    [3],
    "bytes",
    [{"name": "bytes", "configuration": {"endian": "x"}}],
    [{"name": "bytes", "configuration": None}],
    [blosc(typesize=0)],
    [blosc(clevel="5")],
    [blosc(cname=None)],
    [{"name": "transpose", "configuration": {"order": [0, 0]}}],
    [{"name": "transpose", "configuration": {"order": [0, 1, 2]}}],
    [sharding(chunk_shape=[3, 3])],
    [sharding(chunk_shape=[2])],
    [sharding(index_codecs=["bytes", "gzip"])],
    ["crc32c", blosc(shuffle="shuffle")],
]


@pytest.mark.parametrize("codecs", WRONG, ids=json.dumps)
def test_both_refuse_the_same(codecs: object) -> None:
    with pytest.raises(ValueError):
        reference_array(codecs, "uint16")  # type: ignore[arg-type]
    with pytest.raises(ValueError):
        our_chain(codecs, "uint16")


MERGES: list[tuple[list, list]] = [
    (["gzip"], [{"name": "gzip", "configuration": {"level": 3}}]),
    (["gzip"], ["bytes", "gzip"]),
    (["bytes"], ["bytes", "gzip"]),
    ([], ["gzip"]),
    ([], ["bytes"]),
    ([], [TURN]),
    (["gzip"], ["zstd"]),
    (["gzip", "crc32c"], ["gzip"]),
    ([TURN], [{"name": "transpose", "configuration": {"order": "F"}}]),
    ([TURN], ["bytes"]),
    ([TURN], [TURN, TURN]),
    ([TURN], [TURN, "gzip"]),
    ([blosc(clevel=3)], [blosc(cname="zstd")]),
    ([blosc(clevel=3)], [blosc(clevel=4)]),
    (["sharding_indexed"], [sharding()]),
    ([sharding()], []),
    ([sharding()], ["gzip"]),
    ([sharding()], [TURN]),
    ([sharding(codecs=["gzip"])], [TURN, "gzip"]),
    ([sharding(codecs=["gzip"])], [TURN, sharding()]),
    ([TURN, sharding()], [TURN, "gzip"]),
    ([TURN, sharding()], ["gzip"]),
    ([sharding(codecs=["gzip"])], [sharding(codecs=["zstd"])]),
    ([sharding(codecs=[sharding()])], ["gzip"]),
    ([sharding(codecs=[sharding()])], [sharding(codecs=["gzip"])]),
    ([sharding(index_location="end")], [sharding(index_location="start")]),
    ([sharding()], [sharding(index_location="start")]),
    ([sharding()], [sharding(chunk_shape=[2, 4])]),
    ([sharding(index_codecs=["bytes"])], [sharding()]),
]


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(("one", "two"), MERGES, ids=json.dumps)
def test_partial_lists_merge_alike(one: list, two: list, swapped: bool) -> None:
    if swapped:
        one, two = two, one
    schema = ts.Schema(codec=ts.CodecSpec({"driver": "zarr3", "codecs": one}))
    theirs: object = ValueError
    ours: object = ValueError

    try:
        schema.update(codec=ts.CodecSpec({"driver": "zarr3", "codecs": two}))
        assert schema.codec is not None
        theirs = schema.codec.to_json()["codecs"]
    except ValueError:
        pass
    try:
        merged = merge_chains(parse_codec_list("zarr3", one), parse_codec_list("zarr3", two))
        ours = codecs_to_json("zarr3", merged)
    except ValueError:
        pass

    assert ours == theirs


COMPRESSORS: list[dict] = [
    {"id": "zlib"},
    {"id": "zlib", "level": 9},
    {"id": "gzip"},
    {"id": "bz2"},
    {"id": "zstd"},
    {"id": "zstd", "level": -3},
    {"id": "blosc"},
    {"id": "blosc", "cname": "zstd", "shuffle": 2, "clevel": 1},
    {"id": "blosc", "shuffle": 0, "blocksize": 64},
]


@pytest.mark.parametrize("dtype", ["|u1", "<i2", "<f8"])
@pytest.mark.parametrize("compressor", COMPRESSORS, ids=json.dumps)
def test_version_2_chunks_travel_both_ways(compressor: dict, dtype: str) -> None:
    metadata = {"shape": SHAPE, "chunks": SHAPE, "dtype": dtype, "compressor": compressor}
    spec = {"driver": "zarr", "kvstore": "memory://", "metadata": metadata}
    theirs = ts.open(spec, create=True).result()
    codec = parse_codec_json("zarr", compressor)
    chain = bind_chain([codec], chunk_type(SHAPE, dtype))
    array = sample(chain.chunk)

    theirs.write(array).result()
    assert_same_bits(array, chain.decode(stored(theirs, "0.0")))
    store(theirs, "0.0", bytes(chain.encode(array[::-1])))

    assert_same_bits(np.ascontiguousarray(array[::-1]), np.asarray(theirs.read().result()))
    written = json.loads(stored(theirs, ".zarray"))["compressor"]
    assert codecs_to_json("zarr", [codec]) == [written]


# Its sharding codec needs a shape, and it warns of codecs around it.
ZARR_CHAINS = [
    codecs
    for codecs in CHAINS
    if "sharding_indexed" not in json.dumps(codecs)
    or (len(codecs) == 1 and isinstance(codecs[0], dict))
]


@pytest.mark.parametrize("codecs", ZARR_CHAINS, ids=json.dumps)
def test_zarr_python_reads_and_writes_the_same(codecs: list, tmp_path) -> None:
    chunk: ChunkType = chunk_type(SHAPE, "int16")
    specs = parse_codec_list("zarr3", codecs)
    chain = bind_chain(specs, chunk)
    array = sample(chunk)
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": SHAPE,
        "data_type": "int16",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": SHAPE}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0,
        "codecs": codecs_to_json("zarr3", resolve_chain(specs, chunk), include_defaults=True),
        "attributes": {},
    }
    (tmp_path / "zarr.json").write_text(json.dumps(document))
    key = tmp_path / "c" / "0" / "0"
    key.parent.mkdir(parents=True)
    key.write_bytes(chain.encode(array))
    theirs = zarr.open_array(LocalStore(tmp_path))

    assert_same_bits(array, np.asarray(theirs[:]))
    theirs[:] = array[::-1]

    assert_same_bits(np.ascontiguousarray(array[::-1]), chain.decode(key.read_bytes()))
