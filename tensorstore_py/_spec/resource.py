"""Context resources: what a spec says of them, and the live objects they become.

A resource (a cache pool, a concurrency limit) is named by a spec as a reference (`"cache_pool"`,
`"cache_pool#remote"`) or given inline as an object. `ResourceSpec` is that saying; binding it to a
`Context` gives a `Resource`, the handle of one live object. Two specs share the object exactly if
they hold the same `Resource`. Which kinds exist is up to the registry `resources`. `ContextSpec` is
the JSON of a context: for each key an object, a reference, or null for the parent's default.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    Protocol,
    Self,
    TypeVar,
    cast,
    runtime_checkable,
)

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.fields import FieldInfo
from pydantic_core import core_schema

from tensorstore_py._spec.json_value import describe, freeze
from tensorstore_py._spec.model import MemberType, Model
from tensorstore_py._spec.pretty import pretty
from tensorstore_py._spec.registry import resources
from tensorstore_py.errors import FailedPreconditionError, SpecError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from weakref import ReferenceType


__all__ = [
    "NO_CONTEXT",
    "ContextSpec",
    "Holding",
    "Resource",
    "ResourceField",
    "ResourceModel",
    "ResourceSpec",
    "Trail",
    "resource_class",
]

S = TypeVar("S")
T = TypeVar("T")

#: (context id, key) of the definitions that are being resolved, to detect circles.
Trail = tuple[tuple[int, str], ...]


class Defining(Protocol):
    """A context, as far as its resources have to know it."""

    def __getitem__(self, key: str) -> Resource[Any]:
        """The resource for a key."""


class TrustLike(Protocol):
    """What checks a spec as it is parsed: a `Trust`."""

    def parsed(self, parse: Callable[[], S]) -> S:
        """What `parse` makes of the spec, if that is allowed."""


class ResourceModel(Model):
    """What JSON says of one kind of resource; register with `@context_resource("id")`.

    A resource whose JSON is not an object overrides `parse_frozen` and `spec_json`.

    Attributes:
        resource_id: the registered name.
        config_only: the resource is mere configuration: nothing is shared, so unbinding prints
            it inline and never as a shared reference.
        unseen: the default is not printed at all, not even when defaults are asked for: the
            reference has no such resource, and specs are compared with its.
        json_form: JSON Schema of a resource whose JSON is not an object of its members.
    """

    resource_id: ClassVar[str]
    config_only: ClassVar[bool] = False
    unseen: ClassVar[bool] = False
    json_form: ClassVar[Mapping[str, object] | None] = None

    @property
    def remembers(self) -> bool:
        """Whether it keeps what can be had anew, so that a copy gets another one."""
        return False

    @classmethod
    def default(cls) -> Self:
        """The resource that a context has when nothing is said of it."""
        return cls()

    def create(self) -> object:
        """The live object; called once per bound resource. Cheap: no I/O, no waiting.

        If it is a `Holding`, its `let_go` is called when the context that made it is closed.
        """
        return self

    def place_of(self, value: object) -> object:
        """What a pickle says of where the live object is, in addition to this spec.

        Args:
            value: what `create` gave.

        Returns:
            None: nothing, since another live object of this spec does as well.
        """
        return None

    def at_place(self, place: object) -> object:
        """The live object for an unpickled resource, in whichever process.

        Args:
            place: what `place_of` gave.
        """
        return self.create()


@runtime_checkable
class Holding(Protocol):
    """A live object that holds what it should let go of when its context is closed."""

    def let_go(self) -> None:
        """Let go of what is cached, for good; arrays that still have it may go on using it."""


def resource_class(key: str) -> type[ResourceModel]:
    """The class for a resource key, `"cache_pool"` or `"cache_pool#id"`.

    Raises SpecError: no such kind of resource.
    """
    provider = key.partition("#")[0]
    found = resources.find(provider)
    if found is None:
        hint = did_you_mean(provider, resources.names())
        raise SpecError(f'Invalid context resource identifier: "{provider}"{hint}')
    assert issubclass(found, ResourceModel)
    return found


@dataclass(frozen=True, slots=True)
class ResourceSpec:
    """An unbound resource: either a reference or an inline object.

    Attributes:
        provider: the kind of resource, e.g. `"cache_pool"`.
        reference: the key referred to; `""` stands for "the parent context's default" (JSON null).
        inline: the object given in place; None for a reference.
        was_bound: printed as `[...]`: this came from a bound resource.
    """

    provider: str
    reference: str | None = None
    inline: ResourceModel | None = None
    was_bound: bool = False

    @staticmethod
    def providers() -> list[str]:
        """All kinds of resources."""
        return resources.names()

    @classmethod
    def parse(cls, provider: str, json: object, *, allow_null: bool = False) -> ResourceSpec:
        """The spec for a JSON value.

        Args:
            provider: the kind of resource that is expected.
            json: a reference, an object, or either wrapped as the one element of an array.
            allow_null: accept null (only contexts define resources that way).

        Raises:
            SpecError: wrong type, a reference to another kind, or a wrong member.
        """
        if isinstance(json, list | tuple) and len(json) == 1:
            json = json[0]
        if json is None and allow_null:
            return cls(provider, reference="")
        if json is None:
            raise SpecError(
                f'expected a "{provider}" resource or a reference to one, but found null'
            )
        if isinstance(json, str) and json.partition("#")[0] == provider:
            return cls(provider, reference=json)
        model = resource_class(provider)
        try:
            return cls(provider, inline=model.parse_frozen(freeze(json)))
        except SpecError as error:
            if not isinstance(json, str):
                raise
            raise SpecError(
                f'{describe(json)} is no reference to a "{provider}" resource '
                f'(such as "{provider}" or "{provider}#name"): {error.problem}'
            ) from None

    @property
    def value(self) -> object:
        """Bound resources have a live object; an unbound one has not."""
        raise FailedPreconditionError(
            f'resource "{self.provider}" is not bound; bind its spec to a context first'
        )

    @property
    def is_spec_default(self) -> bool:
        """Whether it says no more than leaving the member out: the bare name."""
        return self.reference == self.provider and not self.was_bound

    @property
    def is_unseen(self) -> bool:
        """Whether it is not even printed among defaults."""
        return self.is_spec_default and resource_class(self.provider).unseen

    def to_json(self, include_defaults: bool = False) -> object:
        """A reference string, null, or the inline object."""
        if self.inline is None:
            return self.reference or None
        return self.inline.spec_json(include_defaults)

    def spec_json(self, include_defaults: bool) -> object:
        """`to_json`, wrapped in an array if it came from a bound resource."""
        json = self.to_json(include_defaults)
        return [json] if self.was_bound else json


class Resource(Generic[T]):
    """Handle of a bound context resource.

    Handles are compared by identity: the same handle is the same live object.

    Attributes:
        spec: what it was made from, with its own resources bound.
        key: its key in the context that made it, `""` if it was given inline.
        is_default: a context's default, of which no JSON said anything.

    Example:
        >>> from tensorstore_py._spec.context import Context
        >>> from tensorstore_py._spec.registry import context_resource
        >>> @context_resource("example_pool")
        ... class Pool(ResourceModel):
        ...     size: int = 7
        >>> context = Context({"example_pool#big": {"size": 99}})
        >>> context["example_pool#big"], context["example_pool"]
        (Context.Resource({'size': 99}), Context.Resource({}))
        >>> context["example_pool"].value.size
        7
    """

    __slots__ = ("__weakref__", "_creator", "is_default", "key", "spec", "value")

    value: T

    def __init__(
        self,
        spec: ResourceModel,
        key: str = "",
        creator: ReferenceType[Defining] | None = None,
        *,
        is_default: bool = False,
    ) -> None:
        self.spec = spec
        self.key = key
        self.is_default = is_default
        self._creator = creator
        self.value = cast("T", spec.create())

    @property
    def provider(self) -> str:
        """The kind of resource, e.g. `"cache_pool"`."""
        return self.spec.resource_id

    @property
    def creator(self) -> Defining | None:
        """The context that defines it, if that is still alive."""
        return None if self._creator is None else self._creator()

    def close(self) -> None:
        """Its context is closed."""
        if isinstance(self.value, Holding):
            self.value.let_go()

    def to_json(self, include_defaults: bool = False) -> object:
        """The JSON of the resource; `include_defaults` prints members equal to their default."""
        return self.spec.spec_json(include_defaults)

    def spec_json(self, include_defaults: bool) -> object:
        """`to_json`; use `unbind` to print resources that are shared as shared."""
        return self.to_json(include_defaults)

    def __repr__(self) -> str:
        return pretty("Context.Resource", self.to_json())

    def __copy__(self) -> Resource[T]:
        """The handle itself: there is one for each live object."""
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Resource[T]:
        return self

    def __reduce__(self) -> tuple[Callable[..., Resource[object]], tuple[object, ...]]:
        creator = self.creator
        place = self.spec.place_of(self.value)
        if creator is not None and self.key:
            return _find_again, (creator, self.key, place)
        return _make_again, (self.spec, self.key, self.is_default, place)

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: object, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return core_schema.is_instance_schema((Resource, ResourceSpec))


def _find_again(context: Defining, key: str, place: object) -> Resource[object]:
    return _placed(context[key], place)


def _make_again(spec: ResourceModel, key: str, is_default: bool, place: object) -> Resource[object]:
    return _placed(Resource(spec, key, is_default=is_default), place)


def _placed(made: Resource[object], place: object) -> Resource[object]:
    if place is not None:
        made.value = made.spec.at_place(place)
    return made


def ResourceField(provider: str, *, optional: bool = False) -> Resource[T]:  # noqa: N802
    """The default of a member that names a context resource.

    Written like a value, as with `Field`; the static type of the member is what it is once bound:

        cache_pool: Resource[CachePool] = ResourceField("cache_pool")
        metadata_cache_pool: Resource[CachePool] | None = ResourceField("cache_pool", optional=True)

    Accepted: a reference, an object, or a bound `Context.Resource` of the kind.

    Args:
        provider: the registered name of the kind of resource.
        optional: absent by default, instead of the bare name.
    """

    def check(json: object) -> object:
        if isinstance(json, Resource | ResourceSpec):
            if json.provider != provider:
                raise SpecError(f'expected a "{provider}" resource, but found "{json.provider}"')
            return json
        return ResourceSpec.parse(provider, json)

    default = None if optional else ResourceSpec(provider, reference=provider)
    field = FieldInfo(default=default)
    field.metadata.append(_Check(check, provider))
    return cast("Resource[T]", field)


@dataclass(frozen=True, slots=True)
class _Check:
    """Field metadata that replaces the validation of a resource member."""

    check: Callable[[object], object]
    provider: str

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(self.check)

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, object]:
        return {"x-def": f"Resource.{self.provider}"}


class ContextSpec(MemberType):
    """A parsed context: resource keys and what each stands for.

    Args:
        json: `{"cache_pool": {...}, "cache_pool#remote": {...} | "cache_pool#other" | None}`.
        trust: what it may do, if it comes from elsewhere; by default whatever it says.

    Raises:
        SpecError: not an object, an unknown kind of resource, or a wrong member.
    """

    _schema_name: ClassVar[str] = "Context"
    __slots__ = ("_resources",)
    _resources: dict[str, ResourceSpec]

    def __init__(self, json: object, *, trust: TrustLike | None = None) -> None:
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

    def __copy__(self) -> ContextSpec:
        """The spec itself: it never changes."""
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> ContextSpec:
        return self

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
    def _from_member(cls, json: object) -> ContextSpec:
        return json if isinstance(json, ContextSpec) else ContextSpec(json)


#: The default of a `context` member: nothing defined here, everything inherited.
NO_CONTEXT = ContextSpec.of({})
