"""What errors of file systems mean.

They are builtin classes mostly, and whatever else their libraries have. What is not known here may
pass.
"""

from __future__ import annotations

from typing import Final

from tensorstore_py.errors import (
    FailedPreconditionError,
    PermissionDeniedError,
    SpecError,
    TensorStoreError,
    UnavailableError,
    UnsupportedError,
)

__all__ = ["class_of"]

_CLASSES: Final[tuple[tuple[type[Exception], type[TensorStoreError]], ...]] = (
    (PermissionError, PermissionDeniedError),
    (FileExistsError, FailedPreconditionError),
    (IsADirectoryError, FailedPreconditionError),
    (NotADirectoryError, FailedPreconditionError),
    (NotImplementedError, UnsupportedError),
    (ImportError, UnsupportedError),
    (TypeError, SpecError),
)


def class_of(error: Exception) -> type[TensorStoreError]:
    """Which of our errors it is.

    Example:
        >>> class_of(PermissionError()).__name__, class_of(OSError()).__name__
        ('PermissionDeniedError', 'UnavailableError')
    """
    return next((ours for theirs, ours in _CLASSES if isinstance(error, theirs)), UnavailableError)
