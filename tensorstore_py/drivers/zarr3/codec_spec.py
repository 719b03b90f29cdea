"""What a schema may say of the encoding: a list of codecs, of which any part may be left open."""

from __future__ import annotations

from typing import Annotated, ClassVar, Self

from tensorstore_py.drivers.zarr3.chain import parse_codecs
from tensorstore_py.plugin.codec import (
    BeforeValidator,
    CodecModel,
    JsonForm,
)
from tensorstore_py.plugin.driver import (
    CodecSpecModel,
    codec_spec,
    codecs_to_json,
    merge_chains,
)

__all__ = ["Zarr3CodecSpec"]

_FAMILY = "zarr3"


@codec_spec("zarr3")
class Zarr3CodecSpec(CodecSpecModel):
    """The `codec` member of a schema.

    Attributes:
        codecs: as in metadata; None if nothing is said. Without a sharding codec they are the
            codecs inside the shards of an array that has any.

    Example:
        >>> Zarr3CodecSpec.parse({"driver": "zarr3", "codecs": ["gzip"]}).to_json()
        {'codecs': [{'name': 'gzip'}], 'driver': 'zarr3'}
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset({"codecs"})

    codecs: (
        Annotated[
            tuple[CodecModel, ...],
            BeforeValidator(parse_codecs),
            JsonForm({"type": "array", "items": {"x-def": "Codec.zarr3"}}),
        ]
        | None
    ) = None

    @classmethod
    def of_codec(cls, codec: object) -> dict[str, object]:
        return {"codecs": codec if isinstance(codec, tuple) else (codec,)}

    def merged(self, other: Self) -> Self:
        if self.codecs is None or other.codecs is None:
            return self if other.codecs is None else other
        return self.replace(codecs=merge_chains(self.codecs, other.codecs))

    def add_json(self, json: dict[str, object], include_defaults: bool) -> None:
        if self.codecs is not None:
            json["codecs"] = codecs_to_json(_FAMILY, self.codecs)
