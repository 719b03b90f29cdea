"""Whether a class of stores or drivers says how its methods behave: its `inline`.

Left unsaid it would show only when the first operation begins, as a missing attribute.
"""

from __future__ import annotations

__all__ = ["HasExecutionMode"]


class HasExecutionMode:
    """The base of promises (`KvStore`, `Driver`) that declare `inline` and have a method `read`.

    A class that keeps the promise declares its execution mode by a class attribute, a property, an
    annotation (`inline: bool`, where it is said elsewhere), or in its `__init__`.
    """

    def __init_subclass__(cls, **options: object) -> None:
        """Refuse a class that says nothing.

        Raises:
            TypeError: names the class, and what to say.
        """
        super().__init_subclass__(**options)
        promise = next(base for base in cls.__mro__ if HasExecutionMode in base.__bases__)
        if getattr(cls, "read", None) is getattr(promise, "read", None):
            return  # it is the promise, or abstract like that
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
