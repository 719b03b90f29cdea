"""What a schema may say of the encoding: how blocks are compressed, or nothing."""

from __future__ import annotations

from typing import Annotated, ClassVar, Self

from tensorstore_py.errors import MismatchError
from tensorstore_py.plugin.codec import (
    CodecModel,
    JsonForm,
    describe,
)
from tensorstore_py.plugin.driver import (
    CodecSpecModel,
    codec_spec,
    codec_to_json,
    parse_codec_json,
)
from tensorstore_py.plugin.kvstore import PlainValidator

__all__ = ["CompressionMember", "N5CodecSpec", "compression_json"]

_FAMILY = "n5"


def parse_compression(json: object) -> CodecModel:
    """The codec for the JSON of a `compression` member.

    Raises:
        SpecError: no such codec, or a wrong member; has the path to it.
    """
    return parse_codec_json(_FAMILY, json)


def compression_json(codec: CodecModel) -> dict[str, object]:
    """The codec as metadata writes it, every member explicit."""
    return codec_to_json(_FAMILY, codec)


CompressionMember = Annotated[
    CodecModel, PlainValidator(parse_compression), JsonForm({"x-def": "Codec.n5"})
]


@codec_spec("n5")
class N5CodecSpec(CodecSpecModel):
    """The `codec` member of a schema, for this driver.

    Attributes:
        compression: as in metadata; None if nothing is said.

    Example:
        >>> N5CodecSpec.parse({"compression": {"type": "bzip2"}}).to_json()
        {'compression': {'blockSize': 9, 'type': 'bzip2'}, 'driver': 'n5'}
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset({"compression"})

    compression: CompressionMember | None = None

    @classmethod
    def of_codec(cls, codec: object) -> dict[str, object]:
        return {"compression": {"type": codec} if isinstance(codec, str) else codec}

    def merged(self, other: Self) -> Self:
        mine, theirs = self.compression, other.compression
        if mine is None or theirs is None or mine == theirs:
            return other if mine is None else self
        raise MismatchError(
            f'"compression" is both {describe(compression_json(mine))} and '
            f"{describe(compression_json(theirs))}"
        )

    def add_json(self, json: dict[str, object], include_defaults: bool) -> None:
        if self.compression is not None:
            json["compression"] = compression_json(self.compression)
