"""The one table from operating-system errors to typed ones. Pure: an error in, an error out.

A missing file is not in it: to a store that is an answer, not an error. What is listed as
`UnavailableError` may pass, and is what `file_io_retries` retries.
"""

from __future__ import annotations

import errno
from typing import Final

from tensorstore_py.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    NotFoundError,
    PermissionDeniedError,
    SpecError,
    TensorStoreError,
    UnavailableError,
)

__all__ = ["translate"]

_TABLE: Final[dict[type[TensorStoreError], tuple[tuple[str, str], ...]]] = {
    PermissionDeniedError: (
        ("EACCES", "check the owner and mode of the file and of its directories"),
        ("EPERM", "check the owner and mode of the file and of its directories"),
        ("EROFS", "the file system is mounted read-only"),
    ),
    NotFoundError: (("ENOENT", "something removed its directory at the same time"),),
    AlreadyExistsError: (("EEXIST", "remove it first"),),
    FailedPreconditionError: (
        ("ENOTDIR", "a file is in the place of one of its directories"),
        ("EISDIR", "a directory is in the place of the file"),
        ("ENOTEMPTY", "the directory is not empty"),
        ("ENXIO", "something other than a file is in its place"),
        ("ENOSPC", "free some space"),
        ("EDQUOT", "free some space, the quota is used up"),
        ("EFBIG", "the file system cannot hold a file of this size"),
        ("ENOLCK", 'set file_io_locking to {"mode": "lockfile"}'),
        ("EOPNOTSUPP", 'set file_io_locking to {"mode": "lockfile"}'),
        ("ENOSYS", 'set file_io_locking to {"mode": "lockfile"}'),
    ),
    SpecError: (
        ("ENAMETOOLONG", "use shorter keys"),
        ("EINVAL", "the file system does not accept this name or request"),
        ("EILSEQ", "the file system does not accept this name"),
        ("ELOOP", "its symbolic links go round in a circle"),
    ),
    UnavailableError: (
        ("EAGAIN", "try again"),
        ("EBUSY", "try again"),
        ("EINTR", "try again"),
        ("EIO", "the device failed; try again, or check its health"),
        ("EMFILE", "this process has too many files open; raise its limit"),
        ("ENFILE", "the system has too many files open"),
        ("ENOMEM", "memory is short"),
        ("ENETDOWN", "the file system's network is down; try again"),
        ("ENETUNREACH", "the file system's network is down; try again"),
        ("EHOSTDOWN", "the file server is down; try again"),
        ("ECONNRESET", "the file server broke the connection; try again"),
        ("ESTALE", "the file server forgot the file; try again"),
        ("ETIMEDOUT", "the file server did not answer; try again"),
    ),
}

_BY_NUMBER: Final = {
    getattr(errno, name): (kind, remedy)
    for kind, rows in _TABLE.items()
    for name, remedy in rows
    if hasattr(errno, name)
}


def translate(error: OSError, action: str, path: str, attempts: int = 1) -> TensorStoreError:
    """The typed error for what went wrong with a file.

    Example:
        >>> translate(PermissionError(13, "Permission denied"), "read", "/data/a")
        ... # doctest: +NORMALIZE_WHITESPACE
        PermissionDeniedError('cannot read "/data/a": Permission denied; check the owner and
        mode of the file and of its directories')
    """
    kind, remedy = _BY_NUMBER.get(error.errno or 0, (FailedPreconditionError, ""))
    message = f'cannot {action} "{_shown(path)}": {error.strerror or error}'
    # A descriptor may be in the place of a name.
    if isinstance(error.filename, str) and error.filename != path:
        message += f' at "{_shown(error.filename)}"'
    if remedy:
        message += f"; {remedy}"
    return UnavailableError(message, attempts) if kind is UnavailableError else kind(message)


def _shown(path: str) -> str:
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
