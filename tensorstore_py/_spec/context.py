"""Contexts: which live resources a set of specs shares.

A context defines resources by key and inherits the rest from its parent; the root gives defaults.
Each key is made once per context and kept. A context never knows what its resources do.

`Context._made` is only ever filled with `setdefault`, so two threads that ask for the same new
key at once end up with the same handle.

`bind` makes the resource members of a model live handles, `unbind` makes them JSON again. Walks go
over nested models, arrays and objects, and return the model they were given if nothing changed.
Unbinding numbers shared resources so that binding the result again shares exactly what was shared:
a resource that had a key keeps it unless two contend for it; one that is met twice gets `kind#0`,
`kind#1`, ...; one that is met once is printed in place.
"""

from __future__ import annotations

import weakref
from collections import Counter
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast
from weakref import WeakSet

from tensorstore_py._display.public_name import public
from tensorstore_py._runtime.lifetime import Closable, Lifetime
from tensorstore_py._spec.json_value import same_json
from tensorstore_py._spec.model import Model
from tensorstore_py._spec.resource import (
    NO_CONTEXT,
    ContextSpec,
    Resource,
    ResourceModel,
    ResourceSpec,
    Trail,
    resource_class,
)
from tensorstore_py.errors import MismatchError, SpecError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = [
    "Context",
    "ContextSpec",
    "Resource",
    "alike",
    "bind",
    "is_bound",
    "likeness",
    "places",
    "same_spec",
    "spec_json",
    "strip_context",
    "unbind",
    "with_own_memory",
    "with_resources",
]


@public
class Context(Closable):
    """Shared resources, such as caches and concurrency limits.

    Args:
        spec: JSON or a `Context.Spec` of the resources defined here; None: all defaults.
        parent: the context to inherit from; None: built-in defaults.

    Raises:
        SpecError: `spec` is wrong.

    Example:
        >>> Context().spec is None
        True
        >>> Context({}).spec
        Context.Spec({})
    """

    __slots__ = ("__weakref__", "_bound", "_life", "_made", "_own", "_parent", "_spec")

    Spec: TypeAlias = ContextSpec
    Resource: TypeAlias = Resource

    def __init__(self, spec: object = None, parent: Context | None = None) -> None:
        if spec is None or isinstance(spec, ContextSpec):
            self._spec = spec
        else:
            self._spec = ContextSpec(spec)
        self._parent = parent
        self._made: dict[str, Resource[object]] = {}
        self._bound: dict[int, tuple[Model, Model]] = {}
        # What was made here, rather than found in a parent. Its end needs no context any more.
        self._own: WeakSet[Resource[object]] = WeakSet()
        self._life = Lifetime("Context", partial(_let_go, self._own))

    @property
    def life(self) -> Lifetime:
        """Of what is opened with it. For the face."""
        return self._life

    @property
    def parent(self) -> Context | None:
        """The context that this one inherits from."""
        return self._parent

    @property
    def spec(self) -> ContextSpec | None:
        """What this context was made from; None for a default context."""
        return self._spec

    def check(self) -> None:
        """Whether something may be opened with it.

        Raises:
            FailedPreconditionError: it was closed, or a parent was.
        """
        context: Context | None = self
        while context is not None:
            context._life.check()
            context = context._parent

    def child(self, spec: ContextSpec | None) -> Context:
        """The context that a spec's own `context` member makes inside this one."""
        if spec is None or not spec.resources:
            return self
        inner = Context(spec, self)
        inner._own = self._own
        return inner

    # Any: what the value is depends on the key.
    def __getitem__(self, key: str) -> Resource[Any]:
        """The resource for a key, `"cache_pool"` or `"cache_pool#id"`; made when first asked for.

        Raises:
            SpecError: unknown kind, undefined id, or a circle of references.
        """
        provider = resource_class(key).resource_id
        return self.resource(ResourceSpec(provider, reference=key))

    def resource(self, spec: ResourceSpec, trail: Trail = ()) -> Resource[object]:
        """The resource that a spec stands for in this context.

        Args:
            spec: a reference is looked up here and in the parents; an inline object makes a new
                resource with each call.
            trail: (context id, key) of the definitions being resolved, to detect circles.

        Raises:
            SpecError: undefined id, or a circle of references.
        """
        if spec.inline is not None:
            return Resource(bind(spec.inline, self, trail))
        assert spec.reference is not None
        return self._look_up(spec.provider, spec.reference, trail)

    def bound(self, model: M) -> M:
        """`bind` for a model that many bind here: made once, unless each gets resources of its own.

        Raises:
            SpecError: as for `bind`.
        """
        found = self._bound.get(id(model))
        if found is None:
            found = (model, bind(model, self))
            if _makes_resources(model):
                return found[1]
            if len(self._bound) >= _REMEMBERED:
                self._bound.clear()
            self._bound[id(model)] = found  # which keeps the model, and so its id
        return cast("M", found[1])

    def _look_up(self, provider: str, key: str, trail: Trail) -> Resource[object]:
        context = self
        while True:
            found = context._made.get(key)
            if found is not None:
                return found
            if context._spec is not None and key in context._spec.resources:
                return context._define(key, context._spec.resources[key], trail)
            if context._parent is None:
                break
            context = context._parent
        if key != provider:
            raise SpecError(
                f'Resource not defined: "{key}"; define it in a "context" member, '
                f'or refer to "{provider}" for the default'
            )
        return context._default(key, key)

    def _define(self, key: str, spec: ResourceSpec, trail: Trail) -> Resource[object]:
        here = (id(self), key)
        if here in trail:
            circle = [name for _, name in trail[trail.index(here) :]]
            path = " -> ".join(f'"{name}"' for name in (*circle, key))
            raise SpecError(f"Context resource reference cycle: {path}")
        trail = (*trail, here)
        if spec.inline is not None:
            made: Resource[object] = Resource(
                bind(spec.inline, self, trail), key, weakref.ref(self)
            )
            self._own.add(made)
        elif spec.reference:
            made = self._look_up(spec.provider, spec.reference, trail)
        elif self._parent is not None:
            made = self._parent._look_up(spec.provider, spec.provider, trail)
        else:
            return self._default(spec.provider, key)
        return self._made.setdefault(key, made)

    def _default(self, provider: str, key: str) -> Resource[object]:
        spec = _bound_default(resource_class(provider))
        if spec is None:  # it refers to other resources, so it is another one in each context
            spec = bind(resource_class(provider).default(), self, ())
        made: Resource[object] = Resource(spec, key, weakref.ref(self), is_default=True)
        self._own.add(made)
        return self._made.setdefault(key, made)

    def __copy__(self) -> Context:
        """The context itself: what it holds is live."""
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Context:
        return self

    def __reduce__(self) -> tuple[Callable[..., Context], tuple[object, ...]]:
        return Context, (self._spec, self._parent)


@cache
def _bound_default(kind: type[ResourceModel]) -> ResourceModel | None:
    """What a context has of a kind when nothing is said of it, if that is the same for all."""
    model = kind.default()
    return model if is_bound(model) and not model.__dict__.get("context") else None


def _let_go(resources: WeakSet[Resource[object]]) -> None:
    for resource in list(resources):
        resource.close()


M = TypeVar("M", bound=Model)

#: How many bound models a context remembers.
_REMEMBERED = 64
AnyResource = Resource[object] | ResourceSpec

#: Types of members that hold nothing to bind; most do.
_LEAVES = frozenset({type(None), bool, int, float, str, ContextSpec})


def bind(model: M, context: Context, trail: Trail = ()) -> M:
    """The model, with those inside it, with every resource member bound.

    A model's own `context` member defines a child context for itself and everything inside it,
    and is gone afterwards. Members that are bound already stay as they are. `trail` is only for
    resources that refer to resources, see `Context.resource`.

    Raises SpecError: a reference is undefined or circular; the error has the path to it.
    """
    own = model.__dict__.get("context")
    if isinstance(own, ContextSpec):
        context = context.child(own)

    def visit(value: object) -> object:
        if isinstance(value, ResourceSpec):
            return context.resource(value, trail)
        if isinstance(value, Model):
            return bind(value, context, trail)
        return value

    bound = _map_members(model, visit)
    if isinstance(own, ContextSpec) and own.resources:
        return bound.replace(context=NO_CONTEXT)
    return bound


def unbind(model: M, *, mark_bound: bool = False) -> M:
    """The model with every bound resource replaced by a reference or an inline object.

    What the references refer to is added to the model's own `context` member. With `mark_bound`
    the replaced members are printed in `[...]`, as `repr` does.
    """
    collector = _Collector()
    collector.collect(model)
    if not collector.entries and is_unbound(model):
        return model
    replacements, definitions = collector.finish()

    def visit(value: object) -> object:
        if isinstance(value, Resource):
            if _is_unseen(value):
                return ResourceSpec(value.provider, reference=value.provider)
            spec = replacements[value]
            return ResourceSpec(spec.provider, spec.reference, spec.inline, mark_bound)
        if isinstance(value, Model):
            return _map_members(value, visit)
        return value

    unbound = _map_members(model, visit)
    own = model.__dict__.get("context")
    if isinstance(own, ContextSpec):
        unbound = unbound.replace(context=ContextSpec.of({**own.resources, **definitions}))
    return unbound


def strip_context(model: M) -> M:
    """The model with every resource member reset to its default, bound or not."""
    updates: dict[str, object] = {}
    for name, field in type(model).model_fields.items():
        value = getattr(model, name)
        if isinstance(value, Resource | ResourceSpec):
            fresh: object = field.default
        elif isinstance(value, ContextSpec):
            fresh = NO_CONTEXT
        else:
            fresh = _map(value, _strip_one)
        if fresh is not value:
            updates[name] = fresh
    return model.replace(**updates) if updates else model


def with_own_memory(model: M) -> M:
    """The model with another resource like it for each that merely remembers what is elsewhere."""
    renewed: dict[Resource[object], Resource[object]] = {}

    def instead(resource: Resource[object]) -> Resource[object]:
        if resource.spec.remembers and resource not in renewed:
            renewed[resource] = Resource(resource.spec)
        return renewed.get(resource, resource)

    return with_resources(model, instead)


def with_resources(model: M, instead: Callable[[Resource[object]], Resource[object]]) -> M:
    """The bound model with what `instead` gives for each of its resources; itself if all stay."""

    def visit(value: object) -> object:
        if isinstance(value, Resource):
            return instead(value)
        return _map_members(value, visit) if isinstance(value, Model) else value

    return _map_members(model, visit)


def is_unbound(model: Model) -> bool:
    """Whether no resource member of the model, or of a model inside it, is bound."""
    return not any(isinstance(resource, Resource) for resource in _resources(model))


def _is_unseen(resource: Resource[object]) -> bool:
    return resource.is_default and resource.spec.unseen


def is_bound(model: Model) -> bool:
    """Whether no resource member of the model, or of a model inside it, is left to bind."""
    return not any(isinstance(resource, ResourceSpec) for resource in _resources(model))


def likeness(value: object) -> object:
    """What two bound models have equal exactly if they stand for the same thing.

    Resources must be the same live object, except mere configuration, which must say the same.
    """
    if isinstance(value, Resource):
        return value.spec if value.spec.config_only else value
    if isinstance(value, Model):
        members = {name: likeness(member) for name, member in value.__dict__.items()}
        return type(value), members
    if isinstance(value, tuple | list):
        return [likeness(inner) for inner in value]
    return value


def alike(one: object, other: object) -> bool:
    """Whether two bound models stand for the same thing: `likeness`, decided as early as can be.

    Example:
        >>> from tensorstore_py.kvstores.file.spec import FileSpec
        >>> spec, context = FileSpec.parse({"path": "/a"}), Context()
        >>> one, other = bind(spec, context), bind(spec, context)
        >>> alike(one, other), alike(one, other.replace(path="/b"))
        (True, False)
    """
    if one is other:
        return True
    if isinstance(one, Model) and type(one) is type(other):
        theirs = other.__dict__
        for name, member in one.__dict__.items():
            its = theirs.get(name)
            if member is not its and not alike(member, its):
                return False
        return True
    return likeness(one) == likeness(other)


def places(model: Model) -> list[object]:
    """Where the live objects are that hold data themselves, in the order of the members.

    Two bound models that say the same mean the same data if these are equal, too.
    """
    found = [
        each.spec.place_of(each.value) for each in _resources(model) if isinstance(each, Resource)
    ]
    return [place for place in found if place is not None]


def same_spec(one: Model, other: Model) -> bool:
    """Whether two models say the same, however each came to be.

    That is what their JSON says. Bound resources must be the same live object. Models of which
    there is no JSON, since they hold objects, must have equal members.

    Example:
        >>> from tensorstore_py._spec.registry import drivers
        >>> from tensorstore_py._spec.registered import parse_registered
        >>> stated, implied = (
        ...     parse_registered(drivers, {"driver": "zarr3", **rest})
        ...     for rest in ({"rank": 2}, {"schema": {"dimension_units": [None, None]}})
        ... )
        >>> same_spec(stated, implied)
        True
    """
    if one is other:
        return True
    try:
        mine, theirs = _canonical(one).to_json(), _canonical(other).to_json()
    except (SpecError, MismatchError, UnsupportedError, TypeError):
        return one == other
    # Of resources some members, which are secret, are not printed.
    return same_json(mine, theirs) and _inline(one) == _inline(other)


def _canonical(model: M) -> M:
    """The canonical form, with every bound resource as a reference that no other resource has."""

    def visit(value: object) -> object:
        if isinstance(value, Resource):
            name = value.provider if _is_unseen(value) else f"{value.provider}#{id(value)}"
            return ResourceSpec(value.provider, reference=name, was_bound=not _is_unseen(value))
        return _map_members(value.canonical(), visit) if isinstance(value, Model) else value

    return _map_members(model.canonical(), visit)


def _inline(model: Model) -> list[object]:
    """What is said of the resources that are left to bind, where it is said."""
    specs = [spec for spec in _resources(model) if isinstance(spec, ResourceSpec)]
    specs += [spec for context in _contexts(model) for spec in context.resources.values()]
    return [spec.inline for spec in specs if spec.inline is not None]


def spec_json(
    model: Model, include_defaults: bool = False, *, mark_bound: bool = False
) -> dict[str, object]:
    """The JSON of a model that may be bound; arguments as for `to_json` and `unbind`."""
    return unbind(model, mark_bound=mark_bound).to_json(include_defaults)


def _strip_one(value: object) -> object:
    return strip_context(value) if isinstance(value, Model) else value


def _map_members(model: M, visit: Callable[[object], object]) -> M:
    updates: dict[str, object] = {}
    for name, value in model.__dict__.items():
        if type(value) in _LEAVES:
            continue
        try:
            changed = _map(value, visit)
        except SpecError as error:
            raise error.inside(type(model).model_fields[name].alias or name) from None
        if changed is not value:
            updates[name] = changed
    return model.replace(**updates) if updates else model


def _map(value: object, visit: Callable[[object], object]) -> object:
    """`value` with `visit` applied to each resource and model in it; itself if none changed."""
    if isinstance(value, Model | Resource | ResourceSpec):
        return visit(value)
    if isinstance(value, tuple | list):
        changed = []
        for position, inner in enumerate(value):
            try:
                changed.append(_map(inner, visit))
            except SpecError as error:
                raise error.inside(position) from None
        same = all(new is old for new, old in zip(changed, value, strict=True))
        return value if same else tuple(changed)
    if isinstance(value, dict):
        mapped = {}
        for name, inner in value.items():
            try:
                mapped[name] = _map(inner, visit)
            except SpecError as error:
                raise error.inside(name) from None
        return value if all(mapped[name] is value[name] for name in value) else mapped
    return value


def _makes_resources(model: Model) -> bool:
    """Whether a model defines resources of its own, which are others each time that it is bound."""
    if any(
        isinstance(each, ResourceSpec) and each.inline is not None for each in _resources(model)
    ):
        return True
    return any(context.resources for context in _contexts(model))


def _inside(value: object, kinds: tuple[type, ...]) -> Iterator[object]:
    """Every value of these kinds inside of `value`, in the order of the fields."""
    inner: Iterable[object] = ()
    if isinstance(value, Model):
        inner = [getattr(value, name) for name in type(value).model_fields]
    elif isinstance(value, tuple | list):
        inner = value
    elif isinstance(value, dict):
        inner = value.values()
    for each in inner:
        if isinstance(each, kinds):
            yield each
        elif type(each) not in _LEAVES:
            yield from _inside(each, kinds)


def _resources(value: object) -> Iterator[AnyResource]:
    yield from _inside(value, (Resource, ResourceSpec))  # type: ignore[misc]


def _contexts(value: object) -> Iterator[ContextSpec]:
    yield from _inside(value, (ContextSpec,))  # type: ignore[misc]


class _Collector:
    """Finds the bound resources of a model, then chooses how each is printed.

    `entries` says of each whether it is shared, in the order of first meeting, which is the order
    of numbering.
    """

    def __init__(self) -> None:
        self.entries: dict[Resource[object], bool] = {}
        self._ids: Counter[str] = Counter()

    def collect(self, model: Model) -> None:
        for resource in _resources(model):
            if isinstance(resource, Resource):
                if not _is_unseen(resource):
                    self._meet(resource)
            elif resource.reference is not None:
                self._ids[resource.reference] += 1
            elif resource.inline is not None:
                self.collect(resource.inline)
        for context in _contexts(model):
            for key, spec in context.resources.items():
                self._ids[key] += 1
                if spec.reference:
                    self._ids[spec.reference] += 1

    def _meet(self, resource: Resource[object]) -> None:
        if resource in self.entries:
            self.entries[resource] = not resource.spec.config_only
            return
        named = resource.is_default or bool(resource.key)
        self.entries[resource] = named and not resource.spec.config_only
        self.collect(resource.spec)

    def finish(self) -> tuple[dict[Resource[object], ResourceSpec], dict[str, ResourceSpec]]:
        """The replacement of each bound resource, and the definitions that they refer to."""
        keys = self._choose_keys()
        replacements: dict[Resource[object], ResourceSpec] = {}

        def unbound(resource: Resource[object]) -> ResourceSpec:
            inline = _map_members(resource.spec, visit)
            return ResourceSpec(resource.provider, inline=inline)

        def visit(value: object) -> object:
            if isinstance(value, Resource):
                return None if _is_unseen(value) else replace_one(value)
            return _map_members(value, visit) if isinstance(value, Model) else value

        def replace_one(resource: Resource[object]) -> ResourceSpec:
            if resource not in replacements:
                key = keys.get(resource)
                replacements[resource] = (
                    unbound(resource)
                    if key is None
                    else ResourceSpec(resource.provider, reference=key)
                )
            return replacements[resource]

        for resource in self.entries:
            replace_one(resource)
        return replacements, {key: unbound(resource) for resource, key in keys.items()}

    def _choose_keys(self) -> dict[Resource[object], str]:
        for resource in self.entries:
            if resource.key and not resource.spec.config_only:
                self._ids[resource.key] += 1
        keys: dict[Resource[object], str] = {}
        for resource, shared in self.entries.items():
            if not shared:
                continue
            key = resource.key
            if not key or self._ids[key] != 1:
                number = 0
                while f"{resource.provider}#{number}" in self._ids:
                    number += 1
                key = f"{resource.provider}#{number}"
                self._ids[key] += 1
            keys[resource] = key
        return keys
