"""Documents that are wrong: each is refused by a typed error that names the key and the member."""

import json

import pytest

from tensorstore_py.errors import DataLossError, MismatchError
from tests.drivers.documents import Documents, no_documents

BYTES = {"name": "bytes", "configuration": {"endian": "little"}}
DOCUMENT = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [4, 6],
    "data_type": "int16",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 3]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
    "fill_value": 0,
    "codecs": [BYTES, {"name": "zstd", "configuration": {"level": 3, "checksum": False}}],
    "attributes": {"note": "kept"},
    "dimension_names": ["y", None],
}
OPTIONAL = ("attributes", "dimension_names", "fill_value")
KEY = '"a/zarr.json"'

TEXTS = no_documents(DOCUMENT, "zarr")
DOCUMENTS = Documents("zarr3", "zarr.json")
refusal = DOCUMENTS.refusal


def grid(*args: object, **configuration: object) -> dict:
    return {"name": "regular", "configuration": configuration}


def keys(name: str, **configuration: object) -> dict:
    return {"name": name, "configuration": configuration}


def codec(name: object, **configuration: object) -> list:
    """A codec of bytes behind the usual serializer."""
    return [BYTES, {"name": name, "configuration": configuration}]


def shards(**configuration: object) -> list:
    whole = {"chunk_shape": [1, 3], "codecs": [BYTES], "index_codecs": [BYTES, {"name": "crc32c"}]}
    return [{"name": "sharding_indexed", "configuration": {**whole, **configuration}}]


def first(name: str, **configuration: object) -> list:
    """A codec of arrays in front of the usual serializer."""
    return [{"name": name, "configuration": configuration}, BYTES]


#: Member and value: whatever it is, the error names the member.
VALUES: dict[str, list] = {
    "zarr_format": [1, 2, 4, 2.5, "3", True, [3], {}, None],
    "node_type": ["arrays", "", 1, None, ["array"], {}],
    "shape": [
        4, "4", {}, None, [4, -1], [4, 1.5], [4, "6"], [4, True], [4, None], [4, [6]], [4],
        [4, 6, 1], [4, 2**63], [4, 2**64], [4, 1e400], [1] * 33,
    ],
    "data_type": [
        3, True, None, {}, [], "", "int3", "int128", "Int16", "<i2", "float", "r", "r7", "r-8",
        "r0", "int16 ", " int16", "int16\n", {"name": 1}, {"name": "int3"}, {"configuration": {}},
        {"name": "int16", "configuration": {"endian": "big"}}, {"name": "int16", "extra": 1},
        {"name": "int16", "configuration": []}, ["int16"], "r12", "struct", "raw_bytes", [],
        "numpy.datetime64", "datetime64[s]", keys("numpy.datetime64", unit="s"),
        keys("numpy.datetime64", unit="sec", scale_factor=1),
        keys("numpy.timedelta64", unit="s", scale_factor=0),
        keys("numpy.timedelta64", unit=None, scale_factor=1),
        keys("numpy.timedelta64", unit="s", scale_factor=1, extra=1),
        keys("fixed_length_utf32", length_bytes=5), keys("fixed_length_utf32", length=4),
        keys("null_terminated_bytes", length_bytes=0), keys("raw_bytes", length_bytes=-1),
        keys("raw_bytes", length_bytes=2**40), keys("raw_bytes", length_bytes="4"),
        keys("struct"), keys("struct", fields={}), keys("struct", fields=[]),
        keys("struct", fields=[["x"]]), keys("struct", fields=[["x", "uint8", [2]]]),
        keys("struct", fields=[{"name": "x"}]), keys("struct", fields=[["", "uint8"]]),
        keys("struct", fields=[["x", "uint8"], ["x", "uint8"]]),
        keys("struct", fields=[["x", "string"]]), keys("structured", fields=[["x", "uint9"]]),
        keys("struct", fields=[["x", keys("struct", fields=[["y", "r9"]])]]),
    ],
    "chunk_grid": [
        None, 1, [], {}, "regular", {"name": "regular"}, {"name": "irregular"}, {"name": 1},
        {"name": "regular", "configuration": None}, {"name": "regular", "configuration": [2, 3]},
        grid(), grid(chunk_shape=None), grid(chunk_shape=2), grid(chunk_shape=[2]),
        grid(chunk_shape=[2, 3, 1]), grid(chunk_shape=[2, 0]), grid(chunk_shape=[2, -3]),
        grid(chunk_shape=[2, 1.5]), grid(chunk_shape=[2, "3"]), grid(chunk_shape=[2, False]),
        grid(chunk_shape=[2, None]), grid(chunk_shape=[2, 2**63]), grid(chunk_shape=[2, 2**70]),
        grid(chunk_shape=[1] * 33), grid(chunk_shape=[2, 3], more=1),
        {**grid(chunk_shape=[2, 3]), "extra": {}},
    ],
    "chunk_key_encoding": [
        None, 1, [], {}, {"name": 1}, {"name": None}, {"name": "defualt"}, {"name": "v3"},
        {"name": ""}, keys("default", separator=""), keys("default", separator="-"),
        keys("default", separator=None), keys("default", separator=["/"]),
        keys("v2", separator="//"), keys("v2", sep="."), keys("default", prefix="c"),
        {"name": "default", "configuration": "/"},
        {"name": "default", "extra": 1}, {"configuration": {"separator": "/"}},
    ],
    "fill_value": [
        "0", "NaN", 1.5, True, 40000, -40000, [0], [], {}, 2**64, "AAA=", "0x00", 1e400,
    ],
    "codecs": [
        None, 1, {}, "bytes", [None], [1], [[]], [{}], [{"name": 1}], [{"name": None}],
        [{"configuration": {}}], [{"id": "bytes"}], ["gzip"], [{"name": "bites"}],
        [{"name": ""}], [{"name": "../bytes"}], [{"name": "os.system"}],
        [{"name": "numcodecs"}], [{"name": "numcodecs."}], [{"name": "numcodecs.pickle"}],
        [{"name": "bytes", "configuration": {"endian": "middle"}}],
        shards(codecs=[]), shards(codecs=["gzip"]),
        shards(index_codecs=["crc32c"]),
        [{"name": "sharding_indexed", "configuration": {"codecs": [BYTES]}}],
        [{"name": "sharding_indexed", "configuration": {"chunk_shape": [1, 3]}}],
        first("cast_value"), first("cast_value", data_type="int7"),
        first("cast_value", data_type="uint8", rounding="up"),
        first("cast_value", data_type="float32", out_of_range="wrap"),
        first("cast_value", data_type="uint8", scalar_map={"encode": [[0, 256]]}),
        first("cast_value", data_type="uint8", scalar_map={"encode": [[0, 1]]}),
        first("scale_offset", scale=0), first("scale_offset", offset=40000),
        first("scale_offset", offset="a"), first("scale_offset", scale=1.5),
        [{"name": "bytes", "configuration": {"endain": "little"}}],
        [{"name": "bytes", "configuration": []}],
        [{"name": "bytes", "extra": 1}], [BYTES, BYTES], ["gzip", BYTES],
        [BYTES, {"name": "transpose", "configuration": {"order": [0, 1]}}],
        codec("gzip", level=10), codec("gzip", level=-1), codec("gzip", level="1"),
        codec("gzip", level=1.5), codec("gzip", level=True),
        codec("gzip", levle=1), codec("zstd", level=23), codec("zstd", checksum=1),
        codec("zstd", level=3, checksum="no"), codec("crc32c", location="end"),
        codec("blosc", cname="lz5"), codec("blosc", cname=1), codec("blosc", clevel=10),
        codec("blosc", shuffle=1), codec("blosc", shuffle="shufle"), codec("blosc", typesize=0),
        codec("blosc", blocksize=-1), codec("blosc", block=1),
        codec("zlib", level=1), codec("shuffle", elementsize=2), codec("os", path="/"),
        first("transpose"), first("transpose", order="K"), first("transpose", order=[0]),
        first("transpose", order=[0, 1, 2]), first("transpose", order=[0, 0]),
        first("transpose", order=[1, 2]), first("transpose", order=[-1, 0]),
        first("transpose", order=[0.5, 1]), first("transpose", order=None),
        first("transpose", order=[1, 0], more=1), first("bitround"), first("bitround", keepbits=0),
        first("reshape"), first("reshape", shape=[7]), first("reshape", shape=[-1, -1]),
        first("reshape", shape=[[1, 0]]), first("reshape", shape=[[0], [2]]),
        [{"name": "packbits", "configuration": {"last_bit": 16}}],
        [{"name": "packbits", "configuration": {"first_bit": 3, "last_bit": 2}}],
        [{"name": "packbits", "configuration": {"padding_encoding": "first"}}],
        [{"name": "vlen-utf8"}], [{"name": "vlen-bytes"}],
        [{"name": "vlen-utf8", "configuration": {"encoding": "utf-8"}}],
        first("numcodecs.delta", dtype="<i3"), first("numcodecs.delta", dtype="|O"),
        first("numcodecs.quantize", digits=1), first("numcodecs.quantize", dtype="<f4"),
        first("numcodecs.fixedscaleoffset", scale=0, offset=0),
        first("numcodecs.fixedscaleoffset", scale=1),
        first("numcodecs.astype"), first("numcodecs.bitround", keepbits=1),
        codec("numcodecs.shuffle", elementsize=-1), codec("numcodecs.shuffle", elementsize=5),
        codec("numcodecs.lzma", preset=99), codec("numcodecs.crc32", location="middle"),
        codec("numcodecs.zlib", level=11), codec("numcodecs.zlib", id="zstd"),
        codec("numcodecs.blosc", cname="lz5"), codec("numcodecs.delta", dtype="<i2"),
        shards(chunk_shape=None), shards(chunk_shape=[1]), shards(chunk_shape=[1, 3, 1]),
        shards(chunk_shape=[1, 2]), shards(chunk_shape=[4, 3]), shards(chunk_shape=[0, 3]),
        shards(chunk_shape=[1, 3.5]), shards(chunk_shape=3), shards(chunk_shape=["1", 3]),
        shards(codecs=None), shards(codecs=1), shards(codecs=["gzip", BYTES]),
        shards(codecs=[{"name": "bites"}]), shards(codecs=[BYTES, BYTES]),
        shards(codecs=shards(chunk_shape=[1, 2])), shards(codecs=codec("gzip", level=10)),
        shards(index_codecs=codec("gzip", level=1)),
        shards(index_codecs=["crc32c", BYTES]), shards(index_codecs=[{"name": "vlen-utf8"}]),
        shards(index_codecs=first("transpose", order=[0, 1])),
        shards(index_location="middle"), shards(index_location=0),
        shards(index=1), [*shards(), BYTES], [BYTES, *shards()],
    ],
    "attributes": [
        1, "a", [],
    ],
    "dimension_names": [1, "yx", {}, ["y"], ["y", "x", "z"], ["y", 1], ["y", ["x"]], [True, "x"]],
    "storage_transformers": [
        [{"name": "indirection"}], ["indirection"], {}, 1, [{"must_understand": False}],
    ],
    "extra": [1, None, {}, [], "a", {"must_understand": True}, {"must_understand": 0}],
    "chunks": [[2, 3]],
    "filters": [None, []],
}  # fmt: skip

#: Data type and a fill value that is none of its values.
FILL_VALUES: list[tuple[object, object]] = [
    ("bool", 1),
    ("bool", "true"),
    ("uint8", -1),
    ("uint8", 256),
    ("uint64", 2**64),
    ("int64", -(2**63) - 1),
    ("int4", 8),
    ("float32", "nan"),
    ("float32", "+Inf"),
    ("float32", "0x0000000000"),
    ("float32", "0xzz"),
    ("float32", "1.5"),
    ("float32", True),
    ("float32", []),
    ("complex64", 1.5),
    ("complex64", [1]),
    ("complex64", [1, 2, 3]),
    ("complex64", [1, "x"]),
    ("complex64", "NaN"),
    ("uint2", 4),
    ("r16", 0),
    ("r16", [1]),
    ("r16", [1, 256]),
    ("string", 0),
    ("bytes", "a!"),
    ("bytes", [1, -1]),
    (keys("numpy.datetime64", unit="s", scale_factor=1), "2020-01-01"),
    (keys("numpy.timedelta64", unit="s", scale_factor=1), 2**63),
    (keys("fixed_length_utf32", length_bytes=8), "abc"),
    (keys("null_terminated_bytes", length_bytes=2), "AAAA"),
    (keys("raw_bytes", length_bytes=2), "AA=="),
    ([["x", "uint8"], ["y", "uint8"]], 0),
    ([["x", "uint8"], ["y", "uint8"]], {"x": 1}),
    ([["x", "uint8"], ["y", "uint8"]], {"x": 1, "y": 256}),
    ([["x", "uint8"], ["y", "uint8"]], "AA=="),
]
CASES = [(name, value) for name, values in VALUES.items() for value in values]


def test_the_document_itself_is_right() -> None:
    assert DOCUMENTS.opened(json.dumps(DOCUMENT)).shape == (4, 6)


def test_there_are_enough_of_them() -> None:
    assert len(TEXTS) + len(CASES) + len(FILL_VALUES) + len(DOCUMENT) > 250


@pytest.mark.parametrize("name", TEXTS)
def test_what_is_no_document_is_named(name: str) -> None:
    error = refusal(TEXTS[name])

    assert type(error) is DataLossError
    assert str(error).startswith(f"Error reading {KEY}: ")
    assert "this is no JSON" in str(error) or "expected an object" in str(error)


@pytest.mark.parametrize("name", [name for name in DOCUMENT if name not in OPTIONAL])
def test_a_member_that_is_missing_is_named(name: str) -> None:
    error = refusal(json.dumps({key: DOCUMENT[key] for key in DOCUMENT if key != name}))

    assert str(error) == f"Error reading {KEY}: {name}: this member is required"


@pytest.mark.parametrize(
    ("name", "value"), CASES, ids=[f"{name}-{json.dumps(value)[:60]}" for name, value in CASES]
)
def test_a_wrong_value_is_named_with_its_key_and_member(name: str, value: object) -> None:
    error = refusal(json.dumps({**DOCUMENT, name: value}))

    assert type(error) is DataLossError
    place = str(error).removeprefix(f"Error reading {KEY}: ")
    # Of members that contradict each other, either may be the wrong one.
    either = {
        "shape": ("shape", "chunk_grid", "dimension_names", "codecs"),
        "chunk_grid": ("chunk_grid", "codecs"),
        "data_type": ("data_type", "fill_value"),
    }.get(name, (name,))
    assert place != str(error)
    assert place.startswith(either), place
    assert len(place) < 1000


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ([{"name": "bites"}], 'codecs[0].name: no zarr3 codec is named "bites"'),
        (
            codec("zlib"),
            'codecs[1].name: no zarr3 codec is named "zlib" (did you mean "numcodecs.z',
        ),
        (codec("gzip", level=10), "codecs[1].configuration.level: "),
        (codec("gzip", levle=1), "codecs[1].configuration.levle: no such member"),
        (first("transpose", order=[0, 1, 2]), "codecs[0].configuration.order: "),
        (first("numcodecs.bitround", keepbits=1), "codecs[0]: expected floating-point"),
        (first("numcodecs.fixedscaleoffset", scale=0, offset=0), "codecs[0].configuration.scale"),
        (codec("numcodecs.shuffle", elementsize=5), "codecs[1].configuration.elementsize: "),
        (shards(chunk_shape=[1, 2]), "codecs[0].configuration.chunk_shape[1]: 2 does not divide"),
        (
            shards(codecs=codec("gzip", level=10)),
            "codecs[0].configuration.codecs[1].configuration.level: ",
        ),
        (
            shards(codecs=shards(chunk_shape=[1, 2])),
            "codecs[0].configuration.codecs[0].configuration.chunk_shape[1]: ",
        ),
        (
            shards(codecs=first("numcodecs.bitround", keepbits=1)),
            "codecs[0].configuration.codecs[0]: expected floating-point",
        ),
        (
            shards(index_codecs=codec("gzip", level=1)),
            "codecs[0].configuration.index_codecs: an index must have the same size",
        ),
        (
            shards(index_codecs=first("transpose", order=[0, 1])),
            "codecs[0].configuration.index_codecs[0].configuration.order: ",
        ),
        ([BYTES, BYTES], 'codecs[1]: codec "bytes" takes an array, but stands behind'),
    ],
)
def test_the_member_of_a_codec_is_named(value: object, place: str) -> None:
    error = refusal(json.dumps({**DOCUMENT, "codecs": value}))

    assert type(error) is DataLossError
    assert str(error).startswith(f"Error reading {KEY}: {place}"), error


@pytest.mark.parametrize(("data_type", "value"), FILL_VALUES)
def test_a_fill_value_is_one_of_the_type_s(data_type: object, value: object) -> None:
    error = refusal(json.dumps({**DOCUMENT, "data_type": data_type, "fill_value": value}))

    assert type(error) is DataLossError
    assert str(error).startswith(f"Error reading {KEY}: fill_value")


def test_a_group_is_no_array() -> None:
    error = refusal(json.dumps({"zarr_format": 3, "node_type": "group", "attributes": {}}))

    assert type(error) is MismatchError
    assert KEY in str(error)
    assert "group" in str(error)


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        ({"schema": {"dtype": "int32"}}, "dtype"),
        ({"schema": {"rank": 3}}, "rank"),
        ({"schema": {"fill_value": 3}}, "fill_value"),
        ({"schema": {"codec": {"driver": "zarr3", "codecs": ["bytes", "gzip"]}}}, "codec"),
        ({"metadata": {"shape": [4, 7]}}, "shape"),
        ({"metadata": {"data_type": "uint16"}}, "data_type"),
        ({"metadata": {"codecs": ["bytes"]}}, "codecs"),
        ({"metadata": {"attributes": {"note": "other"}}}, "attributes"),
        ({"metadata": {"chunk_key_encoding": {"name": "v2"}}}, "chunk_key_encoding"),
    ],
)
def test_what_does_not_match_is_named_with_its_key(members: dict, problem: str) -> None:
    error = refusal(json.dumps(DOCUMENT), **members)

    assert type(error) is MismatchError
    assert KEY in str(error)
    assert problem in str(error)


@pytest.mark.parametrize("size", [1, 30, 300, 10_000])
def test_shards_may_not_be_nested_without_end(size: int) -> None:
    text = "[" + '{"name":"sharding_indexed","configuration":{"codecs":[' * size
    text += "1" + "]}}" * size + "]"

    error = refusal(json.dumps({**DOCUMENT, "codecs": "?"}).replace('"?"', text))

    assert type(error) is DataLossError
    assert KEY in str(error)
    assert len(str(error)) < 20_000
