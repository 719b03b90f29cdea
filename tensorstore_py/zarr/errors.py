"""Errors that are of the builtin classes of zarr-python's, besides those of this package."""

from __future__ import annotations

from typing import Any

from tensorstore_py.errors import AlreadyExistsError, NotFoundError, PermissionDeniedError

__all__ = ["NodeExistsError", "NodeNotFoundError", "ReadOnlyError"]


class _Pickled(BaseException):
    """An error that goes to other processes by a call of its class.

    distributed has tblib pickle errors. For those that have no `__reduce__` of their own tblib
    calls `cls.__new__`, which is that of ValueError here, and refuses to make an OSError.
    """

    def __reduce__(self) -> str | tuple[Any, ...]:
        return super().__reduce__()


class NodeExistsError(_Pickled, AlreadyExistsError, FileExistsError):
    """An array or a group is there. Remedy: open it, or replace it.

    Example:
        >>> import tensorstore_py as ts
        >>> files = {}
        >>> _ = ts.zarr.open(files, mode="w-", shape=3)
        >>> try:
        ...     ts.zarr.open(files, mode="w-", shape=3)
        ... except FileExistsError:
        ...     print("something is there")
        something is there
    """


class NodeNotFoundError(_Pickled, NotFoundError, FileNotFoundError):
    """No array and no group is there. Remedy: create one, or correct the path.

    Example:
        >>> import tensorstore_py as ts
        >>> try:
        ...     ts.zarr.open("nothing.zarr", mode="r")
        ... except FileNotFoundError:
        ...     print("nothing is there")
        nothing is there
    """


class ReadOnlyError(_Pickled, PermissionDeniedError, PermissionError):
    """It was opened to be read only. Remedy: open it with another mode.

    Example:
        >>> import tensorstore_py as ts
        >>> z = ts.zarr.array([1, 2], read_only=True)
        >>> try:
        ...     z[0] = 5
        ... except PermissionError:
        ...     print("not here")
        not here
    """
