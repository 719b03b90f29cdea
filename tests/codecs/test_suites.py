"""The suite that every codec passes, run on each built-in one, in each format that has it.

A row is a codec, the format, the members to try, and what the suite cannot know: the chunks that
the codec takes, and whether it notices each changed byte. The suite's samples are small whole
numbers, which rounding codecs keep.
"""

import ml_dtypes
import numpy as np

from tensorstore_py.testing.codecs import CodecSuite
from tests.codecs.bound import TAGS

CHECKSUM = {"detects_corruption": True}
#: Each time that it is bound, a hundred megabytes are allocated and cleared.
FEW = {"shapes": ((3,), (2, 3)), "dtypes": (np.dtype("<i2"), np.dtype("<f8"))}


def only(*dtypes: object) -> dict:
    return {"dtypes": tuple(np.dtype(each) for each in dtypes)}  # type: ignore[call-overload]


REALS = tuple(dtype for dtype in CodecSuite.dtypes if dtype.kind in "iuf")

TABLE: list[tuple[str, str, list[dict], dict]] = [
    ("adler32", "zarr", [{}, {"location": "end"}], CHECKSUM),
    ("crc32", "zarr", [{}, {"location": "end"}], CHECKSUM),
    ("crc32c", "zarr", [{}, {"location": "start"}], CHECKSUM),
    ("crc32c", "zarr3", [{}], CHECKSUM),
    ("fletcher32", "zarr", [{}], CHECKSUM),
    ("jenkins_lookup3", "zarr", [{}, {"initval": 99, "prefix": [1, 2, 3]}], CHECKSUM),
    ("gzip", "zarr3", [{}, {"level": 0}, {"level": 1}, {"level": 9}], {}),
    ("gzip", "zarr", [{}, {"level": 5}], {}),
    ("gzip", "n5", [{}, {"level": 1}, {"level": 9, "useZlib": True}], {}),
    ("zlib", "zarr", [{}, {"level": 0}, {"level": 9}], {}),
    ("bz2", "zarr", [{}, {"level": 9}], {}),
    ("bzip2", "n5", [{}, {"blockSize": 1}], {}),
    ("lzma", "zarr", [{"preset": 0}], FEW),
    ("xz", "n5", [{"preset": 0}], {}),
    ("xz", "n5", [{}], FEW),
    ("zstd", "zarr3", [{}, {"level": -5}, {"level": 1, "checksum": True}], {}),
    ("zstd", "zarr", [{}, {"level": 0}, {"level": 19}], {}),
    ("zstd", "n5", [{}, {"level": -5}], {}),
    ("lz4", "zarr", [{}, {"acceleration": 50}], {}),
    (
        "blosc",
        "zarr3",
        [
            {},
            {"cname": "zstd", "shuffle": "bitshuffle"},
            {"clevel": 0, "shuffle": "noshuffle"},
            {"cname": "blosclz", "typesize": 3, "blocksize": 16},
        ],
        {},
    ),
    (
        "blosc",
        "zarr",
        [
            {},
            {"cname": "lz4hc", "clevel": 9, "shuffle": 2},
            {"cname": "zlib", "shuffle": 0, "blocksize": 64},
            {"shuffle": 1},
        ],
        {},
    ),
    (
        "blosc",
        "n5",
        [
            {"cname": "lz4", "clevel": 5, "shuffle": 1},
            {"cname": "zstd", "clevel": 1, "shuffle": 2, "blocksize": 256},
            {"cname": "blosclz", "clevel": 9, "shuffle": 0},
        ],
        {},
    ),
    ("base64", "zarr", [{}], {}),
    ("raw", "n5", [{}], {}),
    ("shuffle", "zarr", [{"elementsize": 4}, {"elementsize": 1}], only("<i4", "<f8", "<c16")),
    ("astype", "zarr", [{"encode_dtype": "|i1", "decode_dtype": "<f8"}], only("<f8")),
    ("delta", "zarr", [{"dtype": "<i2"}, {"dtype": "<u2"}], only("<i2", "<u2")),
    (
        "fixedscaleoffset",
        "zarr",
        [
            {"scale": 10, "offset": -5, "dtype": "<f8", "astype": "<i2"},
            {"scale": 1, "offset": 0, "dtype": "<f8"},
        ],
        only("<f8"),
    ),
    ("quantize", "zarr", [{"digits": 3, "dtype": "<f8"}], only("<f8")),
    ("packbits", "zarr", [{}], {"shapes": ((1,), (7,), (8,), (4, 5, 6)), **only("?")}),
    (
        "packbits",
        "zarr3",
        [{}, {"padding_encoding": "first_byte"}, {"padding_encoding": "last_byte"}],
        only(*CodecSuite.dtypes, "<i8", ml_dtypes.uint4, ml_dtypes.float6_e2m3fn),
    ),
    ("packbits", "zarr3", [{"last_bit": 3}, {"first_bit": 0, "last_bit": 10}], only("<u2", "<i2")),
    ("bitround", "zarr", [{"keepbits": 8}], only("<f2", "<f4", "<f8")),
    (
        "bitround",
        "zarr3",
        [{"keepbits": 8}],
        only("<f2", "<f8", ml_dtypes.bfloat16, "<c8", "u1", "<i8", "<M8[s]"),
    ),
    (
        "reshape",
        "zarr3",
        [
            {"shape": [-1]},
            {"shape": [[0, 1], [2]]},
            {"shape": [[0], 1, -1]},
            {"shape": [[0, 1, 2], []]},
        ],
        {"shapes": ((1, 5, 1), (2, 3, 4))},
    ),
    (
        "cast_value",
        "zarr3",
        [
            {"data_type": "int8"},
            {"data_type": "float64", "out_of_range": "clamp"},
            {"data_type": {"name": "uint16"}},
            {
                "data_type": "float8_e4m3",
                "scalar_map": {"encode": [[5, 6]], "decode": [[6, 5]]},
            },
        ],
        only(*REALS, "<f2", "<i8", ml_dtypes.bfloat16),
    ),
    (
        "scale_offset",
        "zarr3",
        [{"offset": 1, "scale": 0.5}, {"scale": "0x4000"}],
        only("<f2", ml_dtypes.bfloat16),
    ),
    ("bytes", "zarr3", [{}, {"endian": "little"}, {"endian": "big"}], {}),
]


def configuration(name: str, family: str, members: dict) -> object:
    if family in TAGS:
        return {TAGS[family]: name, **members}
    return {"name": name, "configuration": members} if members else name


for number, (codec, of, tried, chunks) in enumerate(TABLE):
    title = f"Test_{codec}_{of}_{number}"
    configurations = tuple(configuration(codec, of, members) for members in tried)
    globals()[title] = type(
        title, (CodecSuite,), {"family": of, "configurations": configurations, **chunks}
    )
