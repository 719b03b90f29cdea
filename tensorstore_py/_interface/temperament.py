"""Whether a class of stores or drivers says how its methods behave: its `inline`.

Left unsaid it would show only when the first operation begins, as a missing attribute.
"""

from __future__ import annotations

__all__ = ["check_temperament"]


def check_temperament(cls: type, promise: type) -> None:
    """Refuse a class that keeps a promise and does not say its temperament.

    It says so by a class attribute, a property, an annotation (`inline: bool`, for one that is
    said elsewhere), or in its `__init__`.

    Args:
        cls: the class, while it is made.
        promise: the class that declares `inline` and the abstract method `read`.

    Raises:
        TypeError: it says nothing.
    """
    if getattr(cls, "read", None) is getattr(promise, "read", None):
        return  # it is abstract, too
    for base in cls.__mro__[: cls.__mro__.index(promise)]:
        code = getattr(vars(base).get("__init__"), "__code__", None)
        if (
            "inline" in vars(base)
            or "inline" in getattr(base, "__annotations__", ())
            or (code is not None and "inline" in code.co_names)
        ):
            return
    raise TypeError(
        f"{cls.__name__} must say how its methods behave: `inline = True` if they never wait "
        "(they may block their thread), `inline = False` if they await something"
    )
