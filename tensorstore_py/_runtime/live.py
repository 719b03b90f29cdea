"""What exists once: work under way, and what gathers it.

Such an object is a handle, not a value: to copy it is an error.
"""

from __future__ import annotations

from typing import NoReturn

__all__ = ["Live"]


class Live:
    """Base of objects that are no values: a copy would share half of their state.

    Example:
        >>> import copy
        >>> class Pump(Live):
        ...     pass
        >>> copy.copy(Pump())
        Traceback (most recent call last):
        ...
        TypeError: a Pump can be neither copied nor pickled, since it stands for work under way; ...
    """

    __slots__ = ()

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied or pickled.

        Raises:
            TypeError: always.
        """
        raise TypeError(
            f"a {type(self).__name__} can be neither copied nor pickled, since it stands for work "
            "under way; use the object itself, and make another one in another process"
        )
