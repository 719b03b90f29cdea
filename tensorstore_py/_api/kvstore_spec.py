"""`KvStore.Spec`: which store is to be opened, as a value that can be printed and changed.

A Spec wraps one frozen store spec, bound to a context or not; changing it replaces that. Nothing
is opened here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from tensorstore_py._api.begin import as_context
from tensorstore_py._api.kvstore_arguments import as_key
from tensorstore_py._display.public_name import public_in
from tensorstore_py._interface.kvstore import KvStoreSpec
from tensorstore_py._spec.context import Context, bind, same_spec, spec_json, strip_context, unbind
from tensorstore_py._spec.pretty import json_page, pretty
from tensorstore_py._spec.registered import parse_registered
from tensorstore_py._spec.registry import kvstores
from tensorstore_py._spec.url import kvstore_from_url
from tensorstore_py.errors import UnsupportedError, without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorstore_py._spec.trust import Trust

__all__ = ["Located", "Spec", "join_path", "parse_kvstore_spec", "place", "rebound", "store_page"]


def parse_kvstore_spec(json: object) -> KvStoreSpec:
    """The store spec for JSON or a URL.

    Raises SpecError: something is wrong with it; names the JSON path and the nearest valid name.
    """
    found = parse_registered(kvstores, json, from_url=kvstore_from_url)
    assert isinstance(found, KvStoreSpec)
    return found


def store_page(title: str, model: KvStoreSpec, lines: Sequence[tuple[str, object]] = ()) -> str:
    """How a store looks in notebooks."""
    base = getattr(model, "base", None)
    found = [
        ("Driver", model.driver),
        ("Path", model.path or None),
        ("Over", place(base) if isinstance(base, KvStoreSpec) else None),
        *lines,
    ]
    return json_page(title, place(model), found, lambda: spec_json(model))


def place(model: KvStoreSpec) -> str:
    """The URL of a store, without credentials, or its driver and path."""
    try:
        return without_secrets(model.to_url())
    except UnsupportedError:
        return f"{model.driver} {model.path}"


def join_path(path: str, component: str) -> str:
    """`path` and `component` with one `/` between them, unless one side brings it.

    Example:
        >>> join_path("a", "b"), join_path("a/", "b"), join_path("", "b"), join_path("a", "")
        ('a/b', 'a/b', 'b', 'a')
    """
    between = "" if not path or not component or path[-1] == "/" or component[0] == "/" else "/"
    return path + between + component


class Located:
    """Where keys are, of an open store and of a spec alike."""

    __slots__ = ("_model",)
    _model: KvStoreSpec

    @property
    def model(self) -> KvStoreSpec:
        """The store spec."""
        return self._model

    @property
    def path(self) -> str:
        """What every key is prefixed with; a directory ends in `/`."""
        return self._model.path

    @path.setter
    def path(self, path: str) -> None:
        self._model = self._model.replace(path=as_key(path, "path"))

    @property
    def url(self) -> str:
        """The URL form.

        Raises:
            UnsupportedError: the spec has members that no URL can carry.
        """
        return self._model.to_url()


@public_in("KvStore")
class Spec(Located):
    """What store is to be opened.

    Args:
        json: a JSON spec, a URL such as `file:///data/`, another Spec, or an object that stands
            for a store.
        trust: what it may do, if it comes from others; by default whatever it says.

    Raises:
        SpecError: something is wrong with it; names the JSON path and the nearest valid name.

    Example:
        >>> spec = Spec("memory://data/")
        >>> spec / "a"
        KvStore.Spec({'driver': 'memory', 'path': 'data/a'})
        >>> (spec / "a").url
        'memory://data/a'
    """

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]  # mutable

    def __init__(self, json: object, *, trust: Trust | None = None) -> None:
        def parse() -> KvStoreSpec:
            return json._model if isinstance(json, Spec) else parse_kvstore_spec(json)

        self._model = parse() if trust is None else trust.parsed(parse)

    @classmethod
    def of(cls, model: KvStoreSpec) -> Self:
        """The Spec of a store spec."""
        spec = cls.__new__(cls)
        spec._model = model
        return spec

    @property
    def base(self) -> Spec | None:
        """The spec of the store underneath, for adapters such as zip; else None."""
        base = getattr(self._model, "base", None)
        return Spec.of(base) if isinstance(base, KvStoreSpec) else None

    def to_json(self, include_defaults: bool = False) -> dict[str, object]:
        """The JSON form.

        Args:
            include_defaults: print members that equal their default, too.
        """
        return spec_json(self._model, include_defaults)

    def update(
        self,
        *,
        unbind_context: bool | None = None,
        strip_context: bool | None = None,
        context: Context | None = None,
    ) -> None:
        """Change this Spec in place.

        Args:
            unbind_context: replace bound resources by JSON that says the same.
            strip_context: forget everything about resources; done after unbinding.
            context: bind what is not bound yet; done last.

        Example:
            >>> spec = Spec("memory://a")
            >>> spec.update(context=Context())
            >>> spec.update(unbind_context=True)
            >>> spec.to_json()["context"]
            {'memory_key_value_store': {}}
        """
        self._model = rebound(self._model, unbind_context, strip_context, context)

    def copy(self) -> Spec:
        """An independent copy."""
        return Spec.of(self._model)

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, object]) -> Spec:
        return self.copy()

    def __add__(self, suffix: str | bytes) -> Spec:
        return Spec.of(self._model.replace(path=self.path + as_key(suffix, "suffix")))

    def __truediv__(self, component: str | bytes) -> Spec:
        path = join_path(self.path, as_key(component, "component"))
        return Spec.of(self._model.replace(path=path))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Spec):
            return NotImplemented
        return same_spec(self._model, other._model)

    def _repr_html_(self) -> str:
        return store_page("KvStore.Spec", self._model)

    def __repr__(self) -> str:
        return pretty("KvStore.Spec", spec_json(self._model, mark_bound=True))

    def __reduce__(self) -> tuple[Callable[[KvStoreSpec], Spec], tuple[KvStoreSpec]]:
        return Spec.of, (self._model,)


def rebound(
    model: KvStoreSpec,
    unbind_first: bool | None,
    strip: bool | None,
    context: Context | None,
) -> KvStoreSpec:
    """`model` unbound, stripped and bound, in this order, as far as asked."""
    if unbind_first:
        model = unbind(model)
    if strip:
        model = strip_context(model)
    return model if context is None else bind(model, as_context(context))
