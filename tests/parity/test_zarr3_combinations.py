"""zarr version 3: data types with codecs, ours against zarr-python and the reference.

zarr-python writes each combination and we read it; we write it to the same document and
zarr-python reads it, and so does the reference where it has the data type.
"""

import itertools
import json
import math
from dataclasses import dataclass

import numpy as np
import pytest
import zarr
from zarr.codecs import (
    BloscCodec,
    BytesCodec,
    Crc32cCodec,
    GzipCodec,
    ShardingCodec,
    TransposeCodec,
    ZstdCodec,
)
from zarr.dtype import VariableLengthBytes, VariableLengthUTF8

from tests.parity.libraries import COMMON, document, ours, same, sample, spec_of, wheel

SHAPE = (5, 6)
CHUNKS = (2, 3)
KEEP = {"store_data_equal_to_fill_value": True}

pytestmark = [
    pytest.mark.filterwarnings("ignore::zarr.errors.UnstableSpecificationWarning"),
    # zarr-python itself makes times without a unit in a way that NumPy is about to give up.
    pytest.mark.filterwarnings("ignore:The 'generic' unit:DeprecationWarning:zarr"),
]


def sharded(**members):
    inner = [BytesCodec(endian="little"), ZstdCodec(level=1)]
    codec = ShardingCodec(**{"chunk_shape": CHUNKS, "codecs": inner, **members})
    return {"chunks": (4, 6), "serializer": codec, "filters": None, "compressors": None}


CODECS = {
    "plain": {"compressors": None},
    "zstd": {"compressors": ZstdCodec(level=1, checksum=True)},
    "gzip": {"compressors": GzipCodec(level=1)},
    "blosc": {"compressors": BloscCodec(cname="lz4", clevel=5, shuffle="shuffle")},
    "bits": {"compressors": BloscCodec(cname="zstd", clevel=1, shuffle="bitshuffle")},
    "checked": {"compressors": [GzipCodec(level=1), Crc32cCodec()]},
    "big": {"serializer": BytesCodec(endian="big"), "compressors": None},
    "turned": {"filters": TransposeCodec(order=(1, 0)), "compressors": ZstdCodec(level=1)},
    "shards": {"shards": (4, 6), "compressors": ZstdCodec(level=1)},
    "shards_first": sharded(index_location="start"),
    "shards_big": sharded(codecs=[BytesCodec(endian="big"), GzipCodec(level=1)]),
    "shards_turned": sharded(
        codecs=[TransposeCodec(order=(1, 0)), BytesCodec(endian="little"), Crc32cCodec()]
    ),
}  # fmt: skip
#: Codecs for records and raw bytes: zarr-python states no byte order, and cannot shard them.
WHOLE = [name for name in CODECS if name != "big" and "shards" not in name]
#: Codecs for elements that have no fixed size; the serializers are the usual ones.
COUNTED = ["plain", "zstd", "blosc", "checked", "shards"]


@dataclass(frozen=True)
class Kind:
    """A data type.

    Attributes:
        dtype: for zarr-python.
        fill_value: for zarr-python; None for its default.
        codecs: names of codecs.
        asked: what to open it as here.
    """

    dtype: object
    fill_value: object = None
    codecs: tuple = ()
    asked: object = None


RECORD = np.dtype([("x", "<u2"), ("when", "<M8[s]"), ("name", "<U3"), ("ok", "?"), ("raw", "V3")])
NESTED = np.dtype([("p", [("a", "<i2"), ("b", "S3")]), ("q", [("c", "<f8"), ("d", "u1")])])
NAN = np.array(0x7FF80000DEADBEEF, np.uint64).view(np.float64)[()]
#: NumPy is about to give up making values without a unit of anything but their bits.
NO_TIME = np.array(np.iinfo("i8").min).view("<m8")[()]
FILLS = {"bool": True, "float32": np.nan, "float64": np.inf, "complex64": 1 - 2j, "int8": -3}
KINDS = {
    **{
        name: Kind(name, FILLS.get(name), tuple(itertools.islice(
            itertools.cycle(CODECS), 5 * position, 5 * position + 3)))
        for position, name in enumerate(COMMON)
    },
    "time_ns": Kind("<M8[ns]", np.datetime64("NaT", "ns"), ("plain", "zstd", "big", "shards_big")),
    "time_10us": Kind("<M8[10us]", np.array(5, "M8[10us]")[()], ("blosc", "turned", "shards")),
    "time_days": Kind("<m8[D]", np.timedelta64(7, "D"), ("gzip", "big", "shards_first")),
    "time_generic": Kind("<m8", NO_TIME, ("plain", "checked")),
    "text": Kind("<U4", "é", ("plain", "big", "zstd", "shards_big", "turned")),
    "chars": Kind("S5", b"ab", ("plain", "gzip", "shards", "turned")),
    "raw": Kind("V3", np.void(b"abc"), ("plain", "zstd", "turned"), "V3"),
    "record": Kind(RECORD, np.array((1, "NaT", "é", True, b"abc"), RECORD)[()], tuple(WHOLE)),
    "nested": Kind(NESTED, None, ("plain", "blosc", "turned")),
    "strings": Kind(VariableLengthUTF8(), "fill é", tuple(COUNTED)),
    "byte_strings": Kind(VariableLengthBytes(), b"\0fill", tuple(COUNTED)),
}  # fmt: skip
CASES = [(name, codecs) for name, kind in KINDS.items() for codecs in kind.codecs]
TEXTS = ["", "a", "bb", "ccé", "dddd", "\U0001f600", "e f"]


def sample_of(kind):
    count = math.prod(SHAPE)
    texts = list(itertools.islice(itertools.cycle(TEXTS), count))
    if isinstance(kind.dtype, VariableLengthBytes):
        return np.array([text.encode() + b"\0" for text in texts], object).reshape(SHAPE)
    if not isinstance(kind.dtype, str | np.dtype):
        return np.array(texts, object).reshape(SHAPE)
    dtype = np.dtype(kind.dtype)
    if dtype.name in COMMON:
        values = sample(dtype.name, SHAPE)
    elif dtype.kind == "U":
        values = np.array(texts, dtype).reshape(SHAPE)
    else:
        bits = np.random.default_rng(1).integers(1, 100, (count, dtype.itemsize), np.uint8)
        values = np.frombuffer(bits.tobytes(), dtype).reshape(SHAPE).copy()
        for name in dtype.names or ():
            if dtype[name].kind in "Ub":
                values[name] = np.array(texts).reshape(SHAPE) if dtype[name].kind == "U" else True
    if kind.fill_value is not None and dtype.kind != "V":
        values[0:4, 3:6] = kind.fill_value
    return values


def written_by_zarr(path, kind, codecs, values=None):
    members = {"chunks": CHUNKS, **CODECS[codecs]}
    array = zarr.create_array(
        str(path), shape=SHAPE, dtype=kind.dtype, zarr_format=3,
        **({} if kind.fill_value is None else {"fill_value": kind.fill_value}), **members,
    )  # fmt: skip
    if values is not None:
        array[...] = values
    return array


def read_by_zarr(path):
    """What zarr-python finds; texts as Python's."""
    found = np.asarray(zarr.open_array(str(path), mode="r", zarr_format=3)[...])
    return found.astype(object) if found.dtype.kind == "T" else found


def check_same(found, expected):
    if expected.dtype.hasobject:
        assert found.tolist() == expected.tolist()
        assert {type(each) for each in found.flat} == {type(each) for each in expected.flat}
        return
    native = expected.dtype.newbyteorder("=")
    same(found, expected.astype(native))


def opened_by_us(path, kind, **members):
    asked = {} if kind.asked is None else {"dtype": kind.asked}
    return ours.open(spec_of("zarr3", path, **asked, **members)).result()


def said(path):
    """What our driver makes of the document, which others write in more than one form."""
    spec = {"driver": "zarr3", "kvstore": "memory://", "metadata": document(path, "zarr.json")}
    metadata = ours.Spec(spec).to_json()["metadata"]
    assert isinstance(metadata, dict)
    return {name: metadata[name] for name in metadata if name != "codecs"}


@pytest.mark.parametrize(("name", "codecs"), CASES)
def test_combination(tmp_path, name, codecs):
    kind = KINDS[name]
    values = sample_of(kind)
    theirs, mine = tmp_path / "theirs", tmp_path / "mine"
    written_by_zarr(theirs, kind, codecs, values)

    # theirs is read here
    opened = opened_by_us(theirs, kind)
    check_same(opened.read().result(), read_by_zarr(theirs))

    # ours is read there
    metadata = document(theirs, "zarr.json")
    asked = {} if kind.asked is None else {"dtype": kind.asked}
    spec = spec_of("zarr3", mine, metadata=metadata, **asked)
    created = ours.open(spec, create=True).result()
    created[...] = values
    check_same(created.read().result(), values)
    check_same(read_by_zarr(mine), values)

    # the same is said of both
    assert said(mine) == said(theirs)

    # and a part is written where others find it
    region = (slice(1, 4), slice(2, 5))
    values[region] = values[0, 1]
    opened[region] = values[0, 1]
    check_same(read_by_zarr(theirs), values)

    if name in COMMON and codecs != "shards_big":
        same(wheel.open(spec_of("zarr3", mine)).result().read().result(), created.read().result())


def test_there_are_enough_of_them():
    assert len(CASES) >= 44


@pytest.mark.parametrize("name", [name for name in KINDS if name != "time_generic"])
def test_fill_values_are_the_same(tmp_path, name):
    kind = KINDS[name]
    written_by_zarr(tmp_path, kind, "plain")

    check_same(opened_by_us(tmp_path, kind).read().result(), read_by_zarr(tmp_path))


@pytest.mark.parametrize(
    "dtype",
    [*COMMON, "ustring", "string", "datetime64[ms]", "timedelta64[3h]", "datetime64", "U4", "S3"],
)  # fmt: skip
def test_what_a_schema_makes_is_read_there(tmp_path, dtype):
    kind = Kind({"ustring": VariableLengthUTF8(), "string": VariableLengthBytes()}.get(
        dtype, ours.dtype(dtype).numpy_dtype))  # fmt: skip
    values = sample_of(kind)
    schema = {"dtype": dtype, "domain": {"shape": SHAPE}, "chunk_layout": {
        "read_chunk": {"shape": [2, 3]}, "write_chunk": {"shape": [4, 6]}}}  # fmt: skip
    array = ours.open(spec_of("zarr3", tmp_path), schema=ours.Schema(schema), create=True).result()

    check_same(read_by_zarr(tmp_path), array.read().result())
    array[...] = values
    check_same(read_by_zarr(tmp_path), values)


STRUCT = {
    "name": "struct",
    "configuration": {
        "fields": [
            {"name": "x", "data_type": "uint8"},
            {"name": "y", "data_type": "float32"},
            {"name": "z", "data_type": "bfloat16"},
        ]
    },
}


@pytest.mark.parametrize("endian", ["little", "big"])
@pytest.mark.parametrize("sharded", [False, True])
def test_fields_of_the_reference(tmp_path, endian, sharded):
    order = {"name": "bytes", "configuration": {"endian": endian}}
    codecs = [{"name": "transpose", "configuration": {"order": [1, 0]}}, order, "gzip"]
    if sharded:
        members = {"chunk_shape": [3, 2], "codecs": codecs}
        codecs = [{"name": "sharding_indexed", "configuration": members}]
    metadata = {
        "shape": list(SHAPE),
        "data_type": STRUCT,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [3, 6]}},
        "fill_value": {"x": 1, "y": "NaN", "z": 2.5},
        "codecs": codecs,
    }
    values = {
        "x": sample("uint8", SHAPE), "y": sample("float32", SHAPE), "z": sample("bfloat16", SHAPE),
    }  # fmt: skip
    theirs, mine = tmp_path / "theirs", tmp_path / "mine"
    for field, data in values.items():
        spec = spec_of("zarr3", theirs, metadata=metadata, field=field)
        wheel.open(spec, create=True, open=True).result()[1:, 1:] = data[1:, 1:]
        spec = spec_of("zarr3", mine, metadata=metadata, field=field)
        array = ours.open(spec, create=True, open=True).result()
        array[1:, 1:] = data[1:, 1:]
        assert ours.Spec(spec).to_json()["dtype"] == wheel.Spec(spec).to_json()["dtype"]

    assert document(mine, "zarr.json") == document(theirs, "zarr.json")
    whole = ours.open(spec_of("zarr3", theirs)).result().read().result()
    for field in values:
        one = ours.open(spec_of("zarr3", theirs, field=field)).result()
        other = wheel.open(spec_of("zarr3", mine, field=field)).result()
        same(one.read().result(), other.read().result())
        same(whole[field], one.read().result())


@pytest.mark.parametrize(
    "data_type",
    [
        STRUCT,
        {"name": "struct", "configuration": {"fields": [{"name": "x", "data_type": "int8"}]}},
        [["x", "uint8"], ["y", "r16"]],
        "r16",
        "float8_e4m3fn",
    ],
)
def test_data_types_are_printed_as_the_reference_does(data_type):
    spec = {"driver": "zarr3", "kvstore": "memory://", "metadata": {"data_type": data_type}}
    mine, theirs = ours.Spec(spec).to_json(), wheel.Spec(spec).to_json()
    # whole records are ours only
    theirs.setdefault("dtype", mine["dtype"])
    mine["kvstore"] = theirs["kvstore"]

    assert mine == theirs


def test_a_document_of_zarr_is_kept_when_it_is_written_again(tmp_path):
    kind = KINDS["nested"]
    written_by_zarr(tmp_path, kind, "plain", sample_of(kind)).attrs["note"] = {"a": [1]}
    path = tmp_path / "zarr.json"
    before = json.loads(path.read_text())
    before["later"] = {"must_understand": False, "x": [1, None]}
    path.write_text(json.dumps(before))

    opened_by_us(tmp_path, kind).resize(exclusive_max=[7, 6]).result()

    after = json.loads(path.read_text())
    assert after.pop("shape") == [7, 6]
    before["chunk_key_encoding"] = {"name": "default"}  # as it is printed
    assert {name: before[name] for name in after} == after
    # what is not there has the meaning that it had
    assert {name: before[name] for name in before if name not in after} == {
        "shape": list(SHAPE), "storage_transformers": [],
    }  # fmt: skip
    assert read_by_zarr(tmp_path).shape == (7, 6)
