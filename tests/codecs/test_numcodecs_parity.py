"""What numcodecs writes is read here, and the reverse, byte for byte where both make the same."""

import lzma
from importlib.util import find_spec

import numcodecs
import numpy as np
import pytest
from numcodecs.zstd import compress as zstd_compress

from tensorstore_py.plugin.codec import ArrayToArray, ArrayToBytes, ChunkType
from tensorstore_py.testing.codecs import assert_same_bits, chunk_type
from tests.codecs.bound import asked, bound

RANDOM = np.random.default_rng(0)
DATA = np.arange(500, dtype="<u2").tobytes()
DELTA = [{"id": lzma.FILTER_DELTA, "dist": 2}, {"id": lzma.FILTER_LZMA2, "preset": 1}]
EITHER_END = ({"location": "start"}, {"location": "end"})

#: Codecs of bytes, and members to try.
OF_BYTES: dict[str, tuple[dict, ...]] = {
    "adler32": EITHER_END,
    "crc32": EITHER_END,
    "crc32c": EITHER_END,
    "fletcher32": ({},),
    "jenkins_lookup3": ({"initval": 0}, {"initval": 2**32 - 1}),
    "base64": ({},),
    "shuffle": tuple({"elementsize": size} for size in (1, 2, 4, 8, 20, 1000)),
    "bz2": tuple({"level": level} for level in (1, 5, 9)),
    "gzip": tuple({"level": level} for level in range(10)),
    "zlib": tuple({"level": level} for level in range(10)),
    "zstd": tuple({"level": level} for level in (-7, 0, 1, 3, 22)),
    "lz4": ({"acceleration": 1}, {"acceleration": 100}),
    "lzma": (
        {},
        {"format": 1, "check": -1, "preset": None, "filters": None},
        {"format": 1, "check": lzma.CHECK_CRC32, "preset": 1},
        {"format": 2, "preset": 0},
        {"format": 3, "filters": DELTA},
    ),
}
#: Those that choose among several libraries, whose bytes differ.
OTHER_BYTES = ("gzip", "zlib")

SIZED = (1, 2, 3, 4, 359, 720, 32766, 32767, 32768, 65539, 200001)


@pytest.mark.parametrize(
    ("name", "members"), [(name, each) for name, all_ in OF_BYTES.items() for each in all_]
)
def test_bytes(name: str, members: dict) -> None:
    if name == "crc32c":
        pytest.importorskip("google_crc32c")  # without it numcodecs has no such codec
    library = numcodecs.get_codec({"id": name, **members})
    chunk = chunk_type((len(DATA),), "|u1")
    for codec in (
        bound("zarr", name, chunk, **members),
        *((bound("zarr3", f"numcodecs.{name}", chunk, **members),) if name != "base64" else ()),
    ):
        encoded, theirs = bytes(codec.encode(DATA)), bytes(library.encode(DATA))

        assert encoded == theirs or name in OTHER_BYTES
        assert bytes(codec.decode(theirs, len(DATA))) == DATA
        assert bytes(codec.decode(theirs)) == DATA
        assert bytes(library.decode(encoded)) == DATA


@pytest.mark.parametrize("size", SIZED)
@pytest.mark.parametrize("value", [None, 0, 255])
def test_checksums_of_data_of_any_length(size: int, value: int | None) -> None:
    data = RANDOM.integers(0, 256, size, np.uint8)
    if value is not None:
        data[:] = value
    for name in ("fletcher32", "jenkins_lookup3", "crc32c"):
        if name == "crc32c" and find_spec("google_crc32c") is None:
            continue  # numcodecs has no such codec then
        expected = bytes(numcodecs.get_codec({"id": name}).encode(data))
        assert bytes(bound("zarr", name).encode(data.data)) == expected


@pytest.mark.parametrize("prefix", [None, b"ab"])
def test_lookup3_with_a_prefix(prefix: bytes | None) -> None:
    from numcodecs.checksum32 import JenkinsLookup3

    codec = bound("zarr", "jenkins_lookup3", prefix=None if prefix is None else list(prefix))

    assert bytes(codec.encode(DATA)) == bytes(JenkinsLookup3(0, prefix).encode(DATA))


@pytest.mark.parametrize("data", [b"", b"a", b"ab", b"abc", bytes(range(256))])
def test_base64_of_any_length(data: bytes) -> None:
    codec = bound("zarr", "base64")

    assert codec.encode(data) == numcodecs.Base64().encode(data)
    assert codec.decode(codec.encode(data), len(data)) == data


@pytest.mark.parametrize("checksum", [False, True])
def test_zstd_with_a_checksum(checksum: bool) -> None:
    codec = bound("zarr", "zstd", level=3, checksum=checksum)

    assert codec.encode(DATA) == zstd_compress(DATA, 3, checksum)


#: Codecs of elements: members, and the type of the elements.
OF_ELEMENTS: list[tuple[str, dict, str]] = [
    *(
        ("delta", {"dtype": dtype, "astype": astype or dtype}, dtype)
        for dtype, astype in [
            ("<i4", None), ("<i4", "<i2"), (">i4", ">i2"), ("<f4", None), ("<u8", None),
            ("|b1", None), ("<i2", "<f8"), ("<u1", "<i4"), ("<m8[s]", None), ("<c8", None),
        ]
    ),
    *(
        ("astype", {"encode_dtype": encode, "decode_dtype": decode}, decode)
        for encode, decode in [
            ("<f4", "<f8"), ("|u1", "<i8"), (">i4", "<f4"), ("<M8[D]", "<M8[s]"), ("|S4", "<i4"),
        ]
    ),
    *(
        ("fixedscaleoffset", dict(zip(("dtype", "astype", "scale", "offset"), each, strict=True)),
         str(each[0]))
        for each in [
            ("<f8", "<i4", 10, 3), ("<f4", "<i2", 0.1, 1000.5), (">f8", ">i4", 10, 0),
            ("<i2", "<i2", 2, 1), ("<f8", "|u1", 1, -200), ("<i4", "<f4", 3, -2.5),
            ("<f2", "<f2", 10, 0),
        ]
    ),
    *(
        ("quantize", {"digits": digits, "dtype": dtype, "astype": astype}, dtype)
        for digits in (-3, -1, 0, 1, 2, 5, 12)
        for dtype, astype in [("<f8", "<f4"), (">f4", ">f4"), ("<f2", "<f2")]
    ),
    *(
        ("bitround", {"keepbits": keepbits}, dtype)
        for keepbits in (0, 1, 5, 10)
        for dtype in ("<f2", "<f4", "<f8")
    ),
    ("packbits", {}, "|b1"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "members", "dtype"), OF_ELEMENTS)
@pytest.mark.parametrize("shape", [(3, 4), (1,), (7,), (3, 3)])
def test_filters(name: str, members: dict, dtype: str, shape: tuple[int, ...]) -> None:
    values = (RANDOM.normal(size=shape) * 50).astype("<i8" if "M8" in dtype else "<f8")
    values = np.abs(values).astype(dtype)
    library = numcodecs.get_codec({"id": name, **members})
    codec = bound("zarr", name, chunk_type(shape, dtype), **members)
    assert isinstance(codec, ArrayToArray)

    encoded = codec.encode(values)

    with np.errstate(all="ignore"):
        expected = library.encode(values)
        assert encoded.tobytes() == expected.tobytes()
        # The library calls rounded floats integers of their bits.
        stored = np.dtype(dtype) if name == "bitround" else expected.dtype
        assert encoded.dtype == codec.encoded.dtype == stored
        assert_same_bits(library.decode(expected).reshape(shape), codec.decode(encoded))


OBJECTS = np.empty((2, 3), object)
for place, value in zip(
    np.ndindex(2, 3), [None, "é", {"b": 1, "a": [2]}, [1, [2]], -0.5, True], strict=True
):
    OBJECTS[place] = value
TEXTS = np.array([["", "a", "bb"], ["é", "\U0001f600 x", "\0"]], object)
ARRAYS = np.empty(3, object)
ARRAYS[:] = [np.arange(3), np.arange(0), np.arange(5)]

#: Codecs that make bytes of objects: values, the one for missing ones, members to try.
OF_OBJECTS: list[tuple[str, np.ndarray, object, dict]] = [
    *(
        ("json2", OBJECTS, None, members)
        for members in (
            {},
            {"indent": 2},
            {"indent": None, "separators": [", ", " : "]},
            {"ensure_ascii": False, "encoding": "utf-16"},
            {"sort_keys": False},
        )
    ),
    *(
        ("msgpack2", OBJECTS, None, members)
        for members in ({}, {"use_single_float": True}, {"raw": True}, {"use_bin_type": False})
        if find_spec("msgpack")
    ),
    ("vlen-utf8", TEXTS, "", {}),
    ("vlen-bytes", np.array([[b"", b"a"], [b"\xff\xfe", b"long" * 20]], object), b"", {}),
    *(("vlen-array", ARRAYS, None, {"dtype": dtype}) for dtype in ("<i4", ">f8", "|u1")),
]


def _plain(values: np.ndarray) -> list[object]:
    return [each.tolist() if isinstance(each, np.ndarray) else each for each in values.flat]


@pytest.mark.parametrize(("name", "values", "missing", "members"), OF_OBJECTS)
def test_objects(name: str, values: np.ndarray, missing: object, members: dict) -> None:
    chunk = ChunkType(values.shape, np.dtype(object), np.array(missing, object))
    library = numcodecs.get_codec({"id": name, **members})
    codec = bound("zarr", name, chunk, **members)

    encoded = bytes(codec.encode(values))

    assert encoded == bytes(library.encode(values))
    if not members.get("raw"):
        assert _plain(codec.decode(encoded)) == _plain(values)


@pytest.mark.parametrize("dtype", ["<f8", ">i4", "<U3"])
@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (2, 1, 2)])
@pytest.mark.parametrize("name", ["json2", *(["msgpack2"] if find_spec("msgpack") else [])])
def test_elements_of_fixed_size_as_objects(name: str, shape: tuple[int, ...], dtype: str) -> None:
    values = np.arange(np.prod(shape, dtype=int)).astype(dtype).reshape(shape)
    codec = bound("zarr", name, chunk_type(shape, dtype))

    if name == "json2" or shape:
        assert codec.encode(values) == numcodecs.get_codec({"id": name}).encode(values)


@pytest.mark.parametrize("dtype", ["|O", "<U5", ">U5"])
@pytest.mark.parametrize("labels", [["a", "bb"], ["ccc", "", "a"], ["a", "a"], []])
@pytest.mark.parametrize("astype", ["|u1", "<i2", ">u4"])
def test_categorize(dtype: str, labels: list[str], astype: str) -> None:
    values = np.array(["a", "bb", "", "other", "a", "ccc"], dtype).reshape(2, 3)
    members = {"labels": labels, "dtype": dtype, "astype": astype}
    library = numcodecs.Categorize(**members)
    chunk = ChunkType((2, 3), np.dtype(dtype), np.array("", dtype))
    codec = bound("zarr", "categorize", chunk, **members)

    encoded = codec.encode(values)

    assert encoded.tobytes() == library.encode(values).tobytes()
    assert codec.decode(encoded).tolist() == library.decode(encoded).reshape(2, 3).tolist()
    assert codec.decode(encoded).dtype == values.dtype


NUMBERS: list[tuple[str, dict]] = [
    *(
        ("pcodec", members)
        for members in (
            {},
            {"level": 3, "mode_spec": "classic"},
            {"delta_spec": "try_consecutive", "delta_encoding_order": 2},
            {"delta_encoding_order": 1},
            {"delta_spec": "try_lookback"},
            {"equal_pages_up_to": 5},
        )
        if find_spec("pcodec")
    ),
    *(
        ("zfpy", members)
        for members in (
            {},
            {"mode": 4, "tolerance": 0.01},
            {"mode": 3, "precision": 12},
            {"mode": 2, "rate": 8},
        )
        if find_spec("zfpy")
    ),
]


@pytest.mark.parametrize(("name", "members"), NUMBERS)
def test_compressors_of_numbers(name: str, members: dict) -> None:
    dtype = "<f4" if name == "zfpy" else "<i4"
    values = (RANDOM.normal(size=(5, 6)) * 100).astype(dtype)
    library = numcodecs.get_codec({"id": name, **members})
    codec = bound("zarr", name, chunk_type((5, 6), dtype), **members)
    assert isinstance(codec, ArrayToBytes)

    encoded = codec.encode(values)

    assert encoded == library.encode(values)
    assert codec.decode(encoded).tobytes() == np.asarray(library.decode(encoded)).tobytes()
    printed = {each: said for each, said in library.get_config().items() if each != "id"}
    assert bound("zarr", name, chunk_type((5, 6), dtype), **printed).encode(values) == encoded


def test_each_codec_of_the_library_s_is_known() -> None:
    names = {name for name in numcodecs.registry.codec_registry if "test" not in name}

    for name in names - {"n5_wrapper"}:
        assert asked("zarr", name, **_REQUIRED.get(name, {})).codec_id == name


_REQUIRED: dict[str, dict] = {
    "astype": {"encode_dtype": "<f4", "decode_dtype": "<f8"},
    "bitround": {"keepbits": 3},
    "categorize": {"labels": [], "dtype": "|O"},
    "delta": {"dtype": "<i4"},
    "fixedscaleoffset": {"offset": 0, "scale": 1, "dtype": "<f8"},
    "quantize": {"digits": 1, "dtype": "<f8"},
    "vlen-array": {"dtype": "<i4"},
}
