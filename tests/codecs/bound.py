"""A codec by its JSON, bound: what tests of codecs begin with."""

from typing import Any

from tensorstore_py.plugin.codec import ChunkType, CodecModel
from tensorstore_py.plugin.driver import OPAQUE, parse_codec_json

TAGS = {"zarr": "id", "n5": "type"}


def asked(family: str, name: str, **members: object) -> CodecModel:
    """The spec for a name and members, as a family writes them."""
    if family in TAGS:
        return parse_codec_json(family, {TAGS[family]: name, **members})
    return parse_codec_json(family, {"name": name, "configuration": members})


# Any: each kind of codec has methods of its own.
def bound(family: str, name: str, chunk: ChunkType = OPAQUE, **members: object) -> Any:
    """The codec bound to a chunk; to bytes of any number, if there is none."""
    spec: Any = asked(family, name, **members)
    return spec.bind(chunk)
