"""What errors of stores of zarr-python mean.

They are builtin classes mostly, and whatever else their makers have. What is not known here may
pass.
"""

from __future__ import annotations

from typing import Final

from tensorstore_py.errors import (
    FailedPreconditionError,
    NotFoundError,
    PermissionDeniedError,
    SpecError,
    TensorStoreError,
    UnavailableError,
    UnsupportedError,
)

__all__ = ["typed"]

_CLASSES: Final[tuple[tuple[type[Exception], type[TensorStoreError]], ...]] = (
    (FileNotFoundError, NotFoundError),
    (PermissionError, PermissionDeniedError),
    (FileExistsError, FailedPreconditionError),
    (IsADirectoryError, FailedPreconditionError),
    (NotADirectoryError, FailedPreconditionError),
    (NotImplementedError, UnsupportedError),
    (ImportError, UnsupportedError),
    (TypeError, SpecError),
    (ValueError, FailedPreconditionError),
)


def typed(error: Exception, action: str, where: str) -> TensorStoreError:
    """The error of ours for one of a store's.

    Args:
        error: as it was raised.
        action: what was tried.
        where: the key, as people are told.

    Example:
        >>> typed(PermissionError("no"), "write", '"a"')
        PermissionDeniedError('cannot write "a": no')
    """
    if isinstance(error, TensorStoreError):
        return error
    found = next((ours for theirs, ours in _CLASSES if isinstance(error, theirs)), UnavailableError)
    said = str(error).strip().partition("\n")[0] or type(error).__name__
    return found(f"cannot {action} {where}: {said}")
