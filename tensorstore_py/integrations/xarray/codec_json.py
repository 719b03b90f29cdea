"""`CodecJson`: a codec as Zarr's metadata says it, where xarray's users expect a codec object.

zarr-python takes such JSON wherever it takes its codec objects, so an `encoding` that was read here
can be written there; it compares with those objects and has their attributes.
"""

from __future__ import annotations

from typing import Any

__all__ = ["CodecJson", "codecs_of_version_2", "codecs_of_version_3"]

#: Codecs from elements to bytes, without which no chain is; what is before it are filters.
_SERIALIZERS = frozenset({
    "bytes", "endian", "json2", "numcodecs.json2", "numcodecs.msgpack2", "numcodecs.packbits",
    "numcodecs.pcodec", "numcodecs.pickle", "numcodecs.zfpy", "packbits", "pcodec",
    "sharding_indexed", "vlen-array", "vlen-bytes", "vlen-utf8", "zfpy",
})  # fmt: skip


class CodecJson(dict[str, Any]):
    """A codec's JSON: `name` and `configuration` in version 3.

    Example:
        >>> codec = CodecJson(name="gzip", configuration={"level": 5})
        >>> codec["name"], codec.level
        ('gzip', 5)
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - JSON
        found = self.get("configuration", {})
        if name in found:
            return found[name]
        raise AttributeError(f'codec "{self.get("name")}" has no {name!r}; it has {[*found]}')

    def __eq__(self, other: object) -> bool:
        asdict = getattr(other, "to_dict", None)
        if asdict is None:
            return super().__eq__(other)
        return super().__eq__(asdict())

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None


def codecs_of_version_3(codecs: object) -> dict[str, Any]:
    """The members of `encoding` for the `codecs` of version 3, with those within shards.

    Args:
        codecs: the member of the metadata.

    Example:
        >>> codecs_of_version_3(
        ...     [{"name": "bytes"}, {"name": "gzip", "configuration": {"level": 1}}]
        ... )
        ... # doctest: +NORMALIZE_WHITESPACE
        {'compressors': ({'name': 'gzip', 'configuration': {'level': 1}},), 'filters': (),
         'serializer': {'name': 'bytes'}}
    """
    chain = [
        CodecJson({"name": codec} if isinstance(codec, str) else codec)
        for codec in (codecs if isinstance(codecs, list) else [])
    ]
    places = [place for place, codec in enumerate(chain) if codec.get("name") in _SERIALIZERS]
    if not places:
        return {}
    place = places[0]
    if chain[place]["name"] == "sharding_indexed" and len(chain) == 1:
        return codecs_of_version_3(chain[place]["configuration"]["codecs"])
    return {
        "compressors": tuple(chain[place + 1 :]),
        "filters": tuple(chain[:place]),
        "serializer": chain[place],
    }


def codecs_of_version_2(document: dict[str, Any]) -> dict[str, Any]:
    """The members of `encoding` for a `.zarray`: codec objects, which that version is made of.

    Example:
        >>> codecs_of_version_2({"compressor": {"id": "zlib", "level": 3}, "filters": None})
        {'compressors': (Zlib(level=3),), 'filters': ()}
    """
    from numcodecs import get_codec  # noqa: PLC0415 - heavy

    found = document.get("compressor")
    return {
        "compressors": () if found is None else (get_codec(dict(found)),),
        "filters": tuple(get_codec(dict(codec)) for codec in document.get("filters") or ()),
    }
