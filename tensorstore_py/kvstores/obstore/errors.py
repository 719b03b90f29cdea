"""What the library's errors mean.

It raises classes of its own and builtin ones, sometimes with many lines of text. Its classes are
told by their names, since the library may not be there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tensorstore_py.errors import (
    DataLossError,
    OutOfRangeError,
    PermissionDeniedError,
    SpecError,
    TensorStoreError,
    UnavailableError,
    UnsupportedError,
)

__all__ = ["class_of", "first_line", "says_missing", "says_no", "says_unable"]

_NOT_IMPLEMENTED: Final = "501 Not Implemented"
_NOT_A_DIRECTORY: Final = "(os error 20)"
_KINDS: Final[Mapping[str, type[TensorStoreError]]] = {
    "DataLossError": DataLossError,
    "InvalidPathError": SpecError,
    "NotImplementedError": UnsupportedError,
    "NotSupportedError": UnsupportedError,
    "OutOfRangeError": OutOfRangeError,
    "PermissionDeniedError": PermissionDeniedError,
    "PermissionError": PermissionDeniedError,
    "UnauthenticatedError": PermissionDeniedError,
    "ValueError": SpecError,
}


def says_missing(error: Exception) -> bool:
    """Whether there is no such key; below a file there is none, either."""
    return isinstance(error, FileNotFoundError) or _NOT_A_DIRECTORY in str(error)


def says_no(error: Exception) -> bool:
    """Whether a condition did not hold."""
    return type(error).__name__ in ("AlreadyExistsError", "PreconditionError") or says_missing(
        error
    )


def says_unable(error: Exception) -> bool:
    """Whether the service cannot do that at all."""
    if isinstance(error, NotImplementedError) or _NOT_IMPLEMENTED in str(error):
        return True
    return type(error).__name__ == "NotSupportedError"


def first_line(error: Exception) -> str:
    """What it says, without its chain of causes."""
    return str(error).partition("\n")[0].strip() or type(error).__name__


def class_of(error: Exception) -> type[TensorStoreError]:
    """Which of our errors one of the library's is."""
    return _KINDS.get(type(error).__name__, UnavailableError)
