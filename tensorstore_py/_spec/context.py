"""Contexts: which live resources a set of specs shares.

A context defines resources by key and inherits the rest from its parent; the root gives defaults.
Each key is made once per context and kept. A context never knows what its resources do.

`Context._made` is only ever filled with `setdefault`, so two threads that ask for the same new
key at once end up with the same handle.
"""

from __future__ import annotations

import weakref
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakSet

from tensorstore_py._runtime.lifetime import Closable, Lifetime
from tensorstore_py._spec.binding import bind, is_bound
from tensorstore_py._spec.context_spec import ContextSpec
from tensorstore_py._spec.resource import (
    Resource,
    ResourceModel,
    ResourceSpec,
    Trail,
    resource_class,
)
from tensorstore_py.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Context", "ContextSpec", "Resource"]


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

    __slots__ = ("__weakref__", "_life", "_made", "_own", "_parent", "_spec")

    Spec: TypeAlias = ContextSpec
    Resource: TypeAlias = Resource

    def __init__(self, spec: object = None, parent: Context | None = None) -> None:
        if spec is None or isinstance(spec, ContextSpec):
            self._spec = spec
        else:
            self._spec = ContextSpec(spec)
        self._parent = parent
        self._made: dict[str, Resource[object]] = {}
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
