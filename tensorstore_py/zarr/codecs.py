"""Codecs as zarr users name them, and their two JSON forms.

A codec here only says what is to be done; the engine's codecs do it. Any object that can say its
configuration is one: those of numcodecs (`get_config`) and of zarr-python (`to_dict`), too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, cast, runtime_checkable

import numpy as np

__all__ = [
    "BZ2",
    "LZ4",
    "LZMA",
    "AsType",
    "BitRound",
    "Blosc",
    "BloscCodec",
    "BytesCodec",
    "Categorize",
    "Codec",
    "Crc32cCodec",
    "Delta",
    "FixedScaleOffset",
    "GZip",
    "GzipCodec",
    "PackBits",
    "Quantize",
    "Shuffle",
    "VLenBytes",
    "VLenUTF8",
    "Zlib",
    "Zstd",
    "ZstdCodec",
    "as_codec",
]

Json = dict[str, object]

_PREFIX = "numcodecs."
#: Codecs that have a name of their own in version 3, with the members of version 2.
_SAME = ("gzip", "zstd", "crc32c")
_SHUFFLES = ("noshuffle", "shuffle", "bitshuffle")
_ORDER = ("cname", "clevel", "shuffle", "format", "check", "preset", "level", "dtype")
_TITLES = {
    "astype": "AsType",
    "bitround": "BitRound",
    "bz2": "BZ2",
    "crc32": "CRC32",
    "crc32c": "CRC32C",
    "fixedscaleoffset": "FixedScaleOffset",
    "gzip": "GZip",
    "lz4": "LZ4",
    "lzma": "LZMA",
    "packbits": "PackBits",
    "vlen-bytes": "VLenBytes",
    "vlen-utf8": "VLenUTF8",
}


@runtime_checkable
class _Numcodecs(Protocol):
    def get_config(self) -> Mapping[str, object]:
        """The JSON of version 2."""


@runtime_checkable
class _ZarrPython(Protocol):
    def to_dict(self) -> Mapping[str, object]:
        """The JSON of version 3."""


class Codec(Mapping[str, object]):
    """A compressor or a filter: its `id` and its members, as version 2 of the format writes them.

    Args:
        config: the members, with `"id"`.
        v3_name: what version 3 calls it, if it comes from there.

    Example:
        >>> import tensorstore_py as ts
        >>> ts.zarr.Zstd(level=3)
        Zstd(level=3)
        >>> ts.zarr.Zstd(level=3)["id"], ts.zarr.Zstd() == ts.zarr.Codec({"id": "zstd", "level": 0})
        ('zstd', True)
    """

    __slots__ = ("_config", "_v3_name")

    def __init__(self, config: Mapping[str, object], v3_name: str | None = None) -> None:
        if not isinstance(config.get("id"), str):
            raise ValueError(  # noqa: TRY004 - of what it holds
                f'a codec is known by its "id", which is not in {dict(config)}'
            )
        self._config = dict(config)
        self._v3_name = v3_name

    @property
    def codec_id(self) -> str:
        """The registered name."""
        return cast("str", self._config["id"])

    def get_config(self) -> Json:
        """The JSON of version 2."""
        return dict(self._config)

    def to_v3(self, itemsize: int = 1) -> Json:
        """The JSON of version 3.

        Args:
            itemsize: bytes of an element of what is encoded, for who shuffles bytes.

        Example:
            >>> Zlib(level=1).to_v3()
            {'name': 'numcodecs.zlib', 'configuration': {'level': 1}}
        """
        members = {name: value for name, value in self._config.items() if name != "id"}
        if self.codec_id == "blosc":
            members = _blosc_v3(members, itemsize)
            return {"name": "blosc", "configuration": members}
        name = self.codec_id if self.codec_id in _SAME else _PREFIX + self.codec_id
        name = self._v3_name or name
        if name == "zstd":
            members.setdefault("checksum", False)
        return {"name": name, "configuration": members} if members else {"name": name}

    def __getitem__(self, name: str) -> object:
        return self._config[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._config)

    def __len__(self) -> int:
        return len(self._config)

    def __hash__(self) -> int:
        return hash(self.codec_id)

    def __repr__(self) -> str:
        title = _TITLES.get(self.codec_id, self.codec_id.title().replace("-", ""))
        known = [name for name in _ORDER if name in self]
        names = [*known, *(name for name in self if name not in (*_ORDER, "id"))]
        members = ", ".join(f"{name}={self[name]!r}" for name in names)
        return f"{title}({members})"


def _blosc_v3(members: Json, itemsize: int) -> Json:
    shuffle = members.get("shuffle", 1)
    if isinstance(shuffle, int):
        # -1 chooses: bits of single bytes, else bytes.
        known = shuffle if shuffle >= 0 else (2 if itemsize == 1 else 1)
        shuffle = _SHUFFLES[known]
    found = {**members, "shuffle": shuffle, "blocksize": members.get("blocksize", 0)}
    if shuffle == "noshuffle":
        found.pop("typesize", None)
    else:
        found.setdefault("typesize", itemsize)
    return found


def as_codec(codec: object) -> Codec:
    """A codec from whatever says what it is.

    Args:
        codec: JSON of either version, or a codec of this module, of numcodecs or of zarr-python.

    Raises:
        TypeError: it says nothing of the kind.
        ValueError: JSON without a name.

    Example:
        >>> as_codec({"name": "blosc", "configuration": {"cname": "lz4", "shuffle": "bitshuffle"}})
        Blosc(cname='lz4', shuffle=2)
    """
    if isinstance(codec, Codec):
        return codec
    if isinstance(codec, _Numcodecs):
        return Codec(_plain(codec.get_config()))
    if isinstance(codec, _ZarrPython):
        codec = codec.to_dict()
    if isinstance(codec, str):
        codec = {"name": codec}
    if not isinstance(codec, Mapping):
        raise TypeError(
            f"{codec!r} is no codec: give its JSON, a codec of numcodecs or zarr-python, or one of "
            "ts.zarr, such as ts.zarr.Blosc(cname='zstd')"
        )
    if "name" not in codec or "id" in codec:
        return Codec(_plain(codec))
    v3_name = str(codec["name"])
    name = v3_name.removeprefix(_PREFIX)
    members = _plain(codec.get("configuration") or {})
    if name == "blosc" and isinstance(members.get("shuffle"), str):
        members["shuffle"] = _SHUFFLES.index(cast("str", members["shuffle"]))
    return Codec({"id": name, **members}, v3_name)


def _plain(members: Mapping[str, object]) -> Json:
    """Members as JSON: data types by name, tuples as lists, bytes as text."""
    return {name: _plain_value(value) for name, value in members.items()}


def _plain_value(value: object) -> object:
    if isinstance(value, Mapping):
        return _plain(value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, list | tuple):
        return [_plain_value(each) for each in value]
    if isinstance(value, np.dtype | type):
        return np.dtype(value).str
    return getattr(value, "value", value)


def _codec(name: str, **members: object) -> Codec:
    return Codec(_plain({"id": name, **members}))


def _dtypes(dtype: object, astype: object) -> Json:
    first = np.dtype(dtype).str  # type: ignore[call-overload]
    return {"dtype": first, "astype": first if astype is None else np.dtype(astype).str}  # type: ignore[call-overload]


def Blosc(  # noqa: N802 - the name of the class in numcodecs, as all below
    cname: str = "lz4", clevel: int = 5, shuffle: int = 1, blocksize: int = 0
) -> Codec:
    """The Blosc compressor; `shuffle` is 0 for none, 1 for bytes, 2 for bits, -1 for either."""
    return _codec("blosc", cname=cname, clevel=clevel, shuffle=shuffle, blocksize=blocksize)


def Zstd(level: int = 0) -> Codec:  # noqa: N802
    """The Zstandard compressor."""
    return _codec("zstd", level=level)


def Zlib(level: int = 1) -> Codec:  # noqa: N802
    """The zlib compressor."""
    return _codec("zlib", level=level)


def GZip(level: int = 1) -> Codec:  # noqa: N802
    """The gzip compressor."""
    return _codec("gzip", level=level)


def BZ2(level: int = 1) -> Codec:  # noqa: N802
    """The bzip2 compressor."""
    return _codec("bz2", level=level)


def LZ4(acceleration: int = 1) -> Codec:  # noqa: N802
    """The LZ4 compressor."""
    return _codec("lz4", acceleration=acceleration)


def LZMA(  # noqa: N802
    format: int = 1,
    check: int = -1,
    preset: int | None = None,
    filters: Sequence[Mapping[str, object]] | None = None,
) -> Codec:
    """The LZMA compressor; its members are those of Python's `lzma`."""
    return _codec("lzma", format=format, check=check, preset=preset, filters=filters)


def Delta(dtype: object, astype: object = None) -> Codec:  # noqa: N802
    """Differences of neighbours."""
    return _codec("delta", **_dtypes(dtype, astype))


def FixedScaleOffset(  # noqa: N802
    offset: float, scale: float, dtype: object, astype: object = None
) -> Codec:
    """`(x - offset) * scale`, rounded."""
    return _codec("fixedscaleoffset", scale=scale, offset=offset, **_dtypes(dtype, astype))


def Quantize(digits: int, dtype: object, astype: object = None) -> Codec:  # noqa: N802
    """So many decimal digits."""
    return _codec("quantize", digits=digits, **_dtypes(dtype, astype))


def BitRound(keepbits: int) -> Codec:  # noqa: N802
    """So many bits of the mantissa."""
    return _codec("bitround", keepbits=keepbits)


def PackBits() -> Codec:  # noqa: N802
    """Booleans, eight in a byte."""
    return _codec("packbits")


def Shuffle(elementsize: int = 4) -> Codec:  # noqa: N802
    """The first bytes of all elements, then the second ones, and so on."""
    return _codec("shuffle", elementsize=elementsize)


def AsType(encode_dtype: object, decode_dtype: object) -> Codec:  # noqa: N802
    """Another data type where it is stored."""
    stored, seen = np.dtype(encode_dtype), np.dtype(decode_dtype)  # type: ignore[call-overload]
    return _codec("astype", encode_dtype=stored.str, decode_dtype=seen.str)


def Categorize(labels: Sequence[str | bytes], dtype: object, astype: object = "u1") -> Codec:  # noqa: N802
    """Text by its number in a list of labels; 0 is whatever is not in it."""
    texts = [label.decode() if isinstance(label, bytes) else label for label in labels]
    return _codec("categorize", labels=texts, **_dtypes(dtype, astype))


def VLenUTF8() -> Codec:  # noqa: N802
    """Text of any length, as object codec."""
    return _codec("vlen-utf8")


def BloscCodec(  # noqa: N802
    *,
    cname: str = "zstd",
    clevel: int = 5,
    shuffle: str | None = None,
    typesize: int | None = None,
    blocksize: int = 0,
) -> Codec:
    """The Blosc compressor, as zarr-python 3 has it; bytes are shuffled if nothing is said."""
    members = {"cname": cname, "clevel": clevel, "blocksize": blocksize}
    if typesize is not None:
        members["typesize"] = typesize
    members["shuffle"] = "shuffle" if shuffle is None else shuffle
    return as_codec({"name": "blosc", "configuration": members})


def ZstdCodec(level: int = 0, checksum: bool = False) -> Codec:  # noqa: N802
    """The Zstandard compressor, as zarr-python 3 has it."""
    return as_codec({"name": "zstd", "configuration": {"level": level, "checksum": checksum}})


def GzipCodec(level: int = 5) -> Codec:  # noqa: N802
    """The gzip compressor, as zarr-python 3 has it."""
    return as_codec({"name": "gzip", "configuration": {"level": level}})


def BytesCodec(endian: str = "little") -> Codec:  # noqa: N802
    """The serializer of numbers, as zarr-python 3 has it."""
    return as_codec({"name": "bytes", "configuration": {"endian": endian}})


def Crc32cCodec() -> Codec:  # noqa: N802
    """A checksum behind each chunk, as zarr-python 3 has it."""
    return as_codec({"name": "crc32c"})


def VLenBytes() -> Codec:  # noqa: N802
    """Byte strings of any length, as object codec."""
    return _codec("vlen-bytes")
