"""Built-in codecs, one file a family of them; the registry imports the one that has a name.

Importing one must cost nothing: the compression library behind it is imported when a codec is
bound for the first time. Codecs import nothing else of the package than `plugin.codec`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Final

__all__ = ["REGISTERED"]

#: By module, what it registers, by the kind of the registry.
REGISTERED: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "bitround": {
        "zarr codec": ("bitround",),
        "zarr3 codec": ("bitround", "numcodecs.bitround"),
    },
    "blosc": {
        "zarr codec": ("blosc",),
        "zarr3 codec": ("blosc", "numcodecs.blosc"),
        "n5 codec": ("blosc",),
    },
    "byte_filters": {
        "zarr codec": ("base64", "shuffle"),
        "zarr3 codec": ("numcodecs.shuffle",),
        "n5 codec": ("raw",),
    },
    "bytes": {"zarr3 codec": ("bytes",), "zarr3 codec alias": ("endian",)},
    "bzip2_xz": {
        "zarr codec": ("bz2", "lzma"),
        "zarr3 codec": ("numcodecs.bz2", "numcodecs.lzma"),
        "n5 codec": ("bzip2", "xz"),
    },
    "categorize": {"zarr codec": ("categorize",)},
    "checksums": {
        "zarr codec": ("adler32", "crc32", "crc32c", "fletcher32", "jenkins_lookup3"),
        "zarr3 codec": (
            "crc32c",
            "numcodecs.adler32",
            "numcodecs.crc32",
            "numcodecs.crc32c",
            "numcodecs.fletcher32",
            "numcodecs.jenkins_lookup3",
        ),
    },
    "deflate": {
        "zarr codec": ("gzip", "zlib"),
        "zarr3 codec": ("gzip", "numcodecs.gzip", "numcodecs.zlib"),
        "n5 codec": ("gzip",),
    },
    "dimensions": {"zarr3 codec": ("reshape", "transpose")},
    "exact_numbers": {"zarr3 codec": ("cast_value", "scale_offset")},
    "lz4": {
        "zarr codec": ("lz4",),
        "zarr3 codec": ("numcodecs.lz4",),
        "n5 codec": ("lz4",),
    },
    "numcodecs": {
        "zarr codec": ("astype", "delta", "fixedscaleoffset", "packbits", "quantize"),
        "zarr3 codec": (
            "numcodecs.astype",
            "numcodecs.delta",
            "numcodecs.fixedscaleoffset",
            "numcodecs.packbits",
            "numcodecs.quantize",
        ),
        "zarr codec resolver": ("from_registry",),
        "zarr3 codec resolver": ("from_registry_v3",),
    },
    "objects": {"zarr codec": ("json2", "msgpack2", "pickle")},
    "packbits": {"zarr3 codec": ("packbits",)},
    "pcodec_zfpy": {
        "zarr codec": ("pcodec", "zfpy"),
        "zarr3 codec": ("numcodecs.pcodec", "numcodecs.zfpy"),
    },
    "sharding_indexed": {"zarr3 codec": ("sharding_indexed",)},
    "vlen": {
        "zarr codec": ("vlen-array", "vlen-bytes", "vlen-utf8"),
        "zarr3 codec": ("vlen-bytes", "vlen-utf8"),
    },
    "zarr_python": {"zarr3 codec resolver": ("from_zarr",)},
    "zstd": {
        "zarr codec": ("zstd",),
        "zarr3 codec": ("numcodecs.zstd", "zstd"),
        "n5 codec": ("zstd",),
    },
}
