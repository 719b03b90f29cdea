"""Which code of other packages may be used while a spec is parsed.

A guest is a plug-in, or a class that stands for a codec of another library. To parse may be enough
to run its code, so it is refused where its name is looked up.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from tensorstore_py.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["admits", "foreign_classes", "is_built_in", "not_admitted", "only_built_in"]

#: Classes of ours that run code of another library, whatever it is.
foreign_classes: set[type] = set()
#: The guests that may be looked up; None: any.
_admitted: ContextVar[frozenset[str] | None] = ContextVar("_admitted", default=None)


@contextmanager
def only_built_in(plugins: frozenset[str]) -> Iterator[None]:
    """Within this, nothing of other packages is looked up but the plug-ins with these names.

    Example:
        >>> with only_built_in(frozenset({"lab"})):
        ...     admits("lab"), admits("other")
        (True, False)
        >>> admits("other")
        True
    """
    token = _admitted.set(plugins)
    try:
        yield
    finally:
        _admitted.reset(token)


def admits(name: str) -> bool:
    """Whether a guest of that name may be looked up now."""
    admitted = _admitted.get()
    return admitted is None or name in admitted


def is_built_in(cls: type) -> bool:
    """Whether a class is of this package, and no code of another one runs when it is used."""
    own = __name__.partition(".")[0]
    return cls.__module__.partition(".")[0] == own and cls not in foreign_classes


def not_admitted(kind: str, name: str) -> SpecError:
    """The error for a guest that may not be looked up.

    Example:
        >>> str(not_admitted("driver", "lab"))[:45]
        'no driver of this package is named "lab", and'
    """
    return SpecError(
        f'no {kind} of this package is named "{name}", and a spec that is not trusted may use no '
        f'plug-in; if this one may be used, pass trust=Trust(plugins=["{name}"])'
    )
