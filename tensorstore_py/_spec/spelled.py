"""Keyword arguments that many functions share: declared once, and spelled out for whoever asks.

Type checkers read them off `**options: Unpack[SomeOptions]`. Python's own `inspect.signature`, and
so `help` and consoles, read them off what `spelled_out` leaves. Editors that do neither, such as
those with jedi, follow `**options` into the function that it is handed to, which names them all.
"""

from __future__ import annotations

from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["spelled_out"]

F = TypeVar("F", bound="Callable[..., Any]")  # Any: functions of every kind


def spelled_out(options: type) -> Callable[[F], F]:
    """Name a function's keyword arguments one by one in its signature (decorator).

    Args:
        options: the `TypedDict` that its `**` is declared with.

    Example:
        >>> from typing import TypedDict, Unpack
        >>> class Options(TypedDict, total=False):
        ...     level: int
        >>> @spelled_out(Options)
        ... def pack(data: bytes, **options: Unpack[Options]) -> None: ...
        >>> list(signature(pack).parameters)
        ['data', 'level']
    """

    def decorate(function: F) -> F:
        found = signature(function)
        parts = [
            each for each in found.parameters.values() if each.kind is not Parameter.VAR_KEYWORD
        ]
        parts += [
            Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
            for name, annotation in options.__annotations__.items()
        ]
        function.__signature__ = found.replace(parameters=parts)  # type: ignore[attr-defined]
        return function

    return decorate
