"""Members whose class is chosen by their own JSON: `{"driver": "file", ...}` or a URL.

`registered(registry)` marks a field; the object's tag member picks the registered class, and the
class parses the rest. The error for an unknown name has the path of the tag.

Models are immutable and depend on their JSON alone, so the same JSON is parsed once: programs open
the same few specs again and again.
"""

from __future__ import annotations

import marshal
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from pydantic_core import core_schema

from tensorstore_py._spec.held import Held, is_store, json_of_object
from tensorstore_py._spec.json_value import describe, freeze
from tensorstore_py._spec.model import Model
from tensorstore_py._spec.registry import admits_all
from tensorstore_py._spec.url import local_url
from tensorstore_py.errors import SpecError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler

    from tensorstore_py._spec.registry import Registry

__all__ = ["ParsedOnce", "parse_known", "parse_registered", "registered"]

T = TypeVar("T")

#: How many parsed specs a registry remembers, and how many bytes each may have.
_REMEMBERED = 512
_LONGEST = 1 << 16


class ParsedOnce(Generic[T]):
    """A pure parser of JSON that remembers its last results, so that the same JSON is parsed once.

    Args:
        parse: takes what went through `freeze`; what it gives is immutable.

    Example:
        >>> parse = ParsedOnce(lambda json: object())
        >>> parse({"a": 1}) is parse({"a": 1}), parse({"a": 1}) is parse({"a": True})
        (True, False)
    """

    __slots__ = ("_parse", "parsed")

    def __init__(self, parse: Callable[[object], T]) -> None:
        self._parse = parse
        self.parsed: dict[bytes, T] = {}

    def __call__(self, json: object) -> T:
        """The result for `json`; whatever the parser raises is not remembered."""
        return _parsed_once(self.parsed, json, lambda: self._parse(json))


def _parsed_once(parsed: dict[bytes, T], json: object, parse: Callable[[], T]) -> T:
    try:
        # Version 2 has no back references, so that equal values give equal bytes.
        key = marshal.dumps(json, 2)  # type: ignore[arg-type]
    except ValueError:
        return parse()  # it is, or holds, a model or a bound resource
    found = parsed.get(key)
    if found is None:
        found = parse()
        if len(parsed) >= _REMEMBERED:
            parsed.clear()
        if len(key) <= _LONGEST:
            parsed[key] = found
    return found


def parse_known(
    registry: Registry[object], what: str, json: object, parse: Callable[[object], T]
) -> T:
    """What `parse` makes of a part of a document, which most of a program's documents share.

    It is remembered for as long as the registry stays as it is.

    Args:
        registry: where the names that `json` says are found.
        what: tells apart what is remembered with the same registry.
        json: the part.
        parse: pure; gives a model, or a tuple of models.
    """
    if not admits_all():
        return parse(json)  # names have to be looked up
    try:
        key = marshal.dumps((what, json), 2)  # type: ignore[arg-type]
    except ValueError:
        return parse(json)  # it is, or holds, a model
    parsed = registry.parsed
    found = parsed.get(key)
    if found is None:
        found = parse(json)
        if len(key) <= _LONGEST:
            if len(parsed) >= _REMEMBERED:
                parsed.clear()
            parsed[key] = found
    return cast("T", found)


def parse_registered(
    registry: Registry[object],
    json: object,
    *,
    tag: str | None = None,
    from_url: Callable[[str], object] | None = None,
) -> Model:
    """The model of whichever registered class the JSON names; arguments as `registered`.

    Raises SpecError: no tag, an unknown name, or whatever the class finds wrong.
    """
    return _parse(registry, freeze(json), tag or registry.tag, from_url)


def _parse(
    registry: Registry[object],
    json: object,
    tag: str,
    from_url: Callable[[str], object] | None,
) -> Model:
    if isinstance(json, Held) and is_store(json.value):
        json = freeze(json_of_object(json.value))
    if isinstance(json, PathLike) and from_url is not None:
        json = freeze(from_url(local_url(json)))
    elif isinstance(json, str) and from_url is not None:
        json = freeze(from_url(json))
    if isinstance(json, Model):
        return json
    if not isinstance(json, dict):
        allowed = "an object or a URL" if from_url is not None else "an object"
        raise SpecError(f"expected {allowed}, but found {describe(json)}")
    if tag not in json:
        raise SpecError(f"this member is required{did_you_mean('', registry.names())}", (tag,))
    members = json
    found = _parsed_once(
        registry.parsed, (tag, members), lambda: _parse_object(registry, members, tag)
    )
    assert isinstance(found, Model)
    return found


def _parse_object(registry: Registry[object], json: dict[str, object], tag: str) -> Model:
    name = json[tag]
    if not isinstance(name, str):
        raise SpecError(f"expected a string, but found {describe(name)}", (tag,))
    try:
        cls = registry.get(name)
    except SpecError as error:
        raise error.inside(tag) from None
    assert issubclass(cls, Model)
    return cls.parse_frozen({member: json[member] for member in json if member != tag})


@dataclass(frozen=True, slots=True)
class registered:  # noqa: N801 - reads as an adjective in `Annotated[KvStoreSpec, registered(...)]`
    """Marks a field as holding any registered class.

    For example `base: Annotated[KvStoreSpec, registered(kvstores)]`.

    Attributes:
        tag: the member that holds the name; the registry's own by default.
        from_url: turns a string into the JSON object; without it strings are refused.
    """

    registry: Registry[object]
    tag: str | None = None
    from_url: Callable[[str], object] | None = None

    def check(self, json: object) -> Model:
        """The validator."""
        return _parse(self.registry, json, self.tag or self.registry.tag, self.from_url)

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(self.check)

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, object]:
        return {"x-def": self.registry.kind.title().replace(" ", "")}
