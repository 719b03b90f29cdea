"""The JSON of a context: which key stands for which resource.

Only the saying lives here; `Context` makes the live objects. A definition is an object, a
reference to another key, or null for the parent's default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic_core import core_schema

from tensorstore_py._spec.json_value import describe, freeze
from tensorstore_py._spec.pretty import pretty
from tensorstore_py._spec.resource import ResourceSpec, resource_class
from tensorstore_py.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler

    from tensorstore_py._spec.trust import Trust

__all__ = ["NO_CONTEXT", "ContextSpec"]


class ContextSpec:
    """A parsed context: resource keys and what each stands for.

    Args:
        json: `{"cache_pool": {...}, "cache_pool#remote": {...} | "cache_pool#other" | None}`.
        trust: what it may do, if somebody else wrote it; by default whatever it says.

    Raises:
        SpecError: not an object, an unknown kind of resource, or a wrong member.
    """

    __slots__ = ("_resources",)
    _resources: dict[str, ResourceSpec]

    def __init__(self, json: object, *, trust: Trust | None = None) -> None:
        if trust is not None:
            self._resources = trust.parsed(lambda: ContextSpec(json))._resources
            return
        json = freeze(json)
        if not isinstance(json, dict):
            raise SpecError(f"expected an object of context resources, but found {describe(json)}")
        self._resources = {}
        for key in sorted(json):
            provider = key.partition("#")[0]
            try:
                resource_class(provider)
                spec = ResourceSpec.parse(provider, json[key], allow_null=True)
            except SpecError as error:
                raise error.inside(key) from None
            self._resources[key] = spec

    @classmethod
    def of(cls, resources: Mapping[str, ResourceSpec]) -> ContextSpec:
        """The spec that defines just these resources."""
        spec = cls.__new__(cls)
        spec._resources = {key: resources[key] for key in sorted(resources)}
        return spec

    @property
    def resources(self) -> Mapping[str, ResourceSpec]:
        """The definitions by key."""
        return self._resources

    def to_json(self, include_defaults: bool = False) -> dict[str, object]:
        """The JSON object, keys sorted.

        Args:
            include_defaults: print members of resources that equal their default, too.
        """
        return {key: spec.to_json(include_defaults) for key, spec in self._resources.items()}

    def spec_json(self, include_defaults: bool) -> object:
        """`to_json`, where this is the `context` member of a spec."""
        return self.to_json(include_defaults)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ContextSpec):
            return NotImplemented
        return self._resources == other._resources

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return pretty("Context.Spec", self.to_json())

    def __reduce__(self) -> tuple[type[ContextSpec], tuple[object]]:
        return ContextSpec, (self.to_json(),)

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: object, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        def check(value: object) -> ContextSpec:
            return value if isinstance(value, ContextSpec) else ContextSpec(value)

        return core_schema.no_info_plain_validator_function(check)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, object]:
        return {"x-def": "Context"}


#: The default of a `context` member: nothing defined here, everything inherited.
NO_CONTEXT = ContextSpec.of({})
