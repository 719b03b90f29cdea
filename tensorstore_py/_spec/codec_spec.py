"""`CodecSpec`: what a schema says of the encoding, in the terms of one driver.

The members belong to the driver: it registers a `CodecSpecModel` with `@codec_spec("zarr3")`, and
that class parses, prints and merges. Here is only the envelope.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Self, TypeVar

from pydantic_core import core_schema

from tensorstore_py._spec.json_value import same_json
from tensorstore_py._spec.model import Model
from tensorstore_py._spec.pretty import pretty
from tensorstore_py._spec.registered import parse_registered
from tensorstore_py._spec.registry import Registry
from tensorstore_py.errors import MismatchError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler

__all__ = ["CodecSpec", "CodecSpecModel", "codec_spec", "codec_specs"]

T = TypeVar("T", bound=type[Model])

codec_specs: Registry[object] = Registry(
    "driver with a codec", folders=("tensorstore_py.drivers",), tag="driver"
)


class CodecSpecModel(Model):
    """The codec members of one driver; None (or the default) means "unconstrained"."""

    json_tag: ClassVar[str | None] = "driver"
    driver: ClassVar[str]

    def merged(self, other: Self) -> Self:
        """The constraints of both.

        Raises:
            MismatchError: a member is constrained differently.
        """
        updates: dict[str, object] = {}
        for name, field in type(self).model_fields.items():
            mine, theirs = getattr(self, name), getattr(other, name)
            if theirs in (mine, field.default):
                continue
            if mine != field.default:
                raise MismatchError(
                    f'codec: member "{field.alias or name}" is both {mine!r} and {theirs!r}'
                )
            updates[name] = theirs
        return self.replace(**updates) if updates else self


def codec_spec(name: str, *, aliases: Iterable[str] = ()) -> Callable[[T], T]:
    """Register the codec members of a driver (decorator).

    Args:
        name: the driver's name.
        aliases: further accepted names.
    """

    def decorate(cls: T) -> T:
        codec_specs.register(name, cls, aliases=aliases)
        return cls

    return decorate


class CodecSpec:
    """How chunks are encoded, in the terms of one driver.

    Args:
        json: an object with the driver's name and its codec members.

    Raises:
        SpecError: unknown driver, or a wrong member.

    Example:
        >>> CodecSpec({"driver": "zarr3", "codecs": ["gzip"]})
        CodecSpec({'codecs': [{'name': 'gzip'}], 'driver': 'zarr3'})
    """

    __slots__ = ("_model",)
    __hash__ = None  # type: ignore[assignment]
    _model: Model

    def __init__(self, json: object) -> None:
        if isinstance(json, CodecSpec):
            self._model = json._model
        else:
            self._model = parse_registered(codec_specs, json)

    @property
    def driver(self) -> str:
        """The driver's name."""
        name = getattr(self._model, "driver", "")
        assert isinstance(name, str)
        return name

    @property
    def model(self) -> Model:
        """The members, as the driver's own class."""
        return self._model

    def merged(self, other: CodecSpec) -> CodecSpec:
        """The constraints of both.

        Raises:
            MismatchError: different drivers, or members that differ.
        """
        mine, theirs = self._model, other._model
        if type(mine) is not type(theirs) or not isinstance(mine, CodecSpecModel):
            raise MismatchError(f"Cannot merge codec spec {self!r} with {other!r}")
        assert isinstance(theirs, CodecSpecModel)
        try:
            return CodecSpec(mine.merged(theirs))
        except MismatchError as error:
            message = f"Cannot merge codec spec {self!r} with {other!r}: {error}"
            raise MismatchError(message) from None

    def to_json(self, include_defaults: bool = False) -> dict[str, object]:
        """The JSON object.

        Args:
            include_defaults: print members that equal their default, too.
        """
        return self._model.to_json(include_defaults)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CodecSpec):
            return NotImplemented
        return same_json(self.to_json(), other.to_json())

    def __repr__(self) -> str:
        return pretty("CodecSpec", self.to_json())

    def __reduce__(self) -> tuple[Callable[..., CodecSpec], tuple[object]]:
        return CodecSpec, (self._model,)

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: object, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(CodecSpec)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, object]:
        return {"x-def": "CodecSpec"}
