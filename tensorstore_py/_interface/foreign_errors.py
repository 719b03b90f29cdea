"""What errors of file systems and of other libraries mean, as far as they are builtin classes.

What is not known here may pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorstore_py.errors import (
    FailedPreconditionError,
    PermissionDeniedError,
    SpecError,
    TensorStoreError,
    UnavailableError,
    UnsupportedError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["class_of", "first_line"]

_CLASSES: Final[Mapping[type[Exception], type[TensorStoreError]]] = {
    PermissionError: PermissionDeniedError,
    FileExistsError: FailedPreconditionError,
    IsADirectoryError: FailedPreconditionError,
    NotADirectoryError: FailedPreconditionError,
    NotImplementedError: UnsupportedError,
    ImportError: UnsupportedError,
    TypeError: SpecError,
}


def class_of(
    error: Exception, more: Mapping[type[Exception], type[TensorStoreError]] | None = None
) -> type[TensorStoreError]:
    """Which of our errors it is.

    Args:
        error: as it was raised.
        more: what further classes mean to the store.

    Example:
        >>> class_of(PermissionError()).__name__, class_of(OSError()).__name__
        ('PermissionDeniedError', 'UnavailableError')
    """
    classes = {**_CLASSES, **(more or {})}
    found = (ours for theirs, ours in classes.items() if isinstance(error, theirs))
    return next(found, UnavailableError)


def first_line(error: Exception) -> str:
    """What it says, without the rest of a long text or a chain of causes."""
    return str(error).strip().partition("\n")[0].strip() or type(error).__name__
