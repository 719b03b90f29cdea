"""`CodecSpec`: what a schema says of the encoding, in the terms of one driver.

The members belong to the driver: it registers a `CodecSpecModel` with `@codec_spec("zarr3")`, and
that class parses, prints and merges. Here is only the envelope.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Self, TypeVar

from tensorstore_py._display.codec_words import codec_list
from tensorstore_py._display.public_name import public
from tensorstore_py._spec.json_value import describe, freeze, same_json
from tensorstore_py._spec.model import MemberType, Model
from tensorstore_py._spec.pretty import json_page, pretty
from tensorstore_py._spec.registered import parse_registered
from tensorstore_py._spec.registry import Registry
from tensorstore_py.errors import MismatchError, SpecError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


__all__ = ["CodecSpec", "CodecSpecModel", "codec_spec", "codec_specs"]

T = TypeVar("T", bound=type[Model])

codec_specs: Registry[object] = Registry(
    "driver with a codec", folders=("tensorstore_py.drivers",), tag="driver"
)


class CodecSpecModel(Model):
    """The codec members of one driver; None (or the default) means "unconstrained"."""

    json_tag: ClassVar[str | None] = "driver"
    driver: ClassVar[str]

    @classmethod
    def of_codec(cls, codec: object) -> dict[str, object]:
        """The members that a codec, or a list of them, stands for by itself.

        Args:
            codec: its name, its JSON, or a list of these.

        Raises:
            SpecError: the driver has nothing of the kind.
        """
        raise SpecError(
            f"expected an object with the members of this driver, but found {describe(codec)}"
        )

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
    return codec_specs.registering(name, aliases=aliases)


@public
class CodecSpec(MemberType):
    """How chunks are encoded, in the terms of one driver.

    Args:
        json: an object with the driver's name and its codec members.

    Raises:
        SpecError: unknown driver, or a wrong member.

    Example:
        >>> CodecSpec({"driver": "zarr3", "codecs": ["gzip"]})
        CodecSpec({'codecs': [{'name': 'gzip'}], 'driver': 'zarr3'})
    """

    _schema_name: ClassVar[str] = "CodecSpec"
    __slots__ = ("_model",)
    __hash__ = None  # type: ignore[assignment]
    _model: Model

    def __init__(self, json: object) -> None:
        if isinstance(json, CodecSpec):
            self._model = json._model
        else:
            self._model = parse_registered(codec_specs, json)

    @classmethod
    def like(cls, codec: object, driver: str) -> CodecSpec:
        """The codec spec for whatever a user may pass as one.

        Args:
            codec: a codec spec, its JSON, its members without the driver, or what these say of one
                codec or a list of them: `"zstd"`, `{"id": "zstd"}`, `["bytes", "zstd"]`.
            driver: the driver that it is for.

        Raises:
            SpecError: something is wrong with it, or the driver has no codecs.

        Example:
            >>> CodecSpec.like("gzip", "zarr3")
            CodecSpec({'codecs': [{'name': 'gzip'}], 'driver': 'zarr3'})
        """
        if isinstance(codec, CodecSpec):
            return codec
        json = freeze(codec)
        if isinstance(json, dict) and "driver" in json:
            return cls(json)
        model = codec_specs.find(driver)
        if model is None:
            raise SpecError(f'driver "{driver}" has no codecs; name the driver of the array')
        assert issubclass(model, CodecSpecModel)
        if not isinstance(json, dict) or not json.keys() <= {*model.member_names()}:
            json = model.of_codec(json)
        return cls({"driver": driver, **json})

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

    def _repr_html_(self) -> str:
        json = self.to_json()
        return json_page("CodecSpec", self.driver, [*codec_list(json)], lambda: json)

    def __repr__(self) -> str:
        return pretty("CodecSpec", self.to_json())

    def __reduce__(self) -> tuple[Callable[..., CodecSpec], tuple[object]]:
        return CodecSpec, (self._model,)
