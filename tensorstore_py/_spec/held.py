"""Objects of other libraries in specs: a store, a file system, a mapping.

Such an object has no JSON form. A spec holds it as it is, and two specs have the same one exactly
if it is the very same object. `kvstore_object` registers what makes a spec of a class's objects, by
the public name of the class: so its library is not imported, which is loaded where an object is.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Generic, TypeVar

from tensorstore_py._spec.registry import kvstores

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["Held", "is_store", "json_of_object", "kvstore_object"]

T = TypeVar("T")
F = TypeVar("F", bound="Callable[[Any], object]")

#: By module and name of a class, what makes the JSON of a store of its objects.
_makers: dict[tuple[str, str], Callable[[Any], object]] = {}


class Held(Generic[T]):
    """An object as a value: equal if it is the very same one, whatever is in it.

    Args:
        value: the object.

    Example:
        >>> Held([1]) == Held([1])
        False
        >>> Held({}).spec_json(False)
        '<dict>'
    """

    __slots__ = ("value",)

    def __init__(self, value: T) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Held) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)

    def spec_json(self, include_defaults: bool) -> object:
        """What is printed; there is no way back."""
        return f"<{type(self.value).__name__}>"


def kvstore_object(module: str, *names: str) -> Callable[[F], F]:
    """Make objects of a class stand for a store, wherever the spec of a store may.

    Args:
        module: where the class is found.
        names: of the class in it, and of others.

    Returns:
        A decorator of the function that gives an object's spec: its JSON, in which the object is
        `Held`, or a model.
    """

    def decorate(make: F) -> F:
        for name in names:
            _makers[module, name] = make
        return make

    return decorate


def is_store(value: object) -> bool:
    """Whether an object stands for a store."""
    return _maker(value) is not None


def json_of_object(value: object) -> object:
    """The spec of the store that an object stands for."""
    make = _maker(value)
    assert make is not None
    return make(value)


def _maker(value: object) -> Callable[[Any], object] | None:
    exactly = _makers.get((type(value).__module__, type(value).__name__))
    if exactly is not None:
        return exactly
    kvstores.discover()
    best: Callable[[Any], object] | None = None
    depth = 0
    for (module, name), make in _makers.items():
        kind = getattr(sys.modules.get(module), name, None)
        # Of several that fit, the class furthest down is the one that knows it best.
        if isinstance(kind, type) and isinstance(value, kind) and len(kind.__mro__) > depth:
            best, depth = make, len(kind.__mro__)
    return best
