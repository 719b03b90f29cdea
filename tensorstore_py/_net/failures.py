"""What can go wrong between a request and its response: the one table of it.

A `Failure` is inside this room only. It says which error it becomes if nothing helps, whether to
try again, and whether the request may have been carried out although no response came. The
invariant: every exception of the network and every status becomes a `Failure`, so that nothing else
reaches a store.
"""

from __future__ import annotations

import enum
import socket
import ssl
from typing import TYPE_CHECKING, Final

from tensorstore_py.errors import (
    AbortedError,
    DataLossError,
    FailedPreconditionError,
    NotFoundError,
    OutOfRangeError,
    PermissionDeniedError,
    SpecError,
    TensorStoreError,
    UnavailableError,
    UnsupportedError,
)

if TYPE_CHECKING:
    from tensorstore_py._net.message import HttpResponse

__all__ = [
    "Failure",
    "Retryability",
    "connect_failure",
    "connection_lost",
    "damaged",
    "not_http",
    "short",
    "status_error",
]


class Retryability(enum.Enum):
    """How often to try again.

    Attributes:
        NONE: never; the response would be the same.
        LITTLE: twice; it is probably not going to pass.
        FULL: as often as the retries resource says.
    """

    NONE = 0
    LITTLE = 2
    FULL = -1


class Failure(Exception):  # noqa: N818 - it becomes an error only if nothing helps
    """An attempt that gave no usable response.

    Args:
        text: what happened, as the second half of a sentence.
        error: what it becomes in the end.
        retryability: how often to try again.
        may_have_run: the server may have carried the request out.
        is_prompt: the first time it is worth trying again at once: most likely the server had
            closed an idle connection just then.
        wait_s: for how long the server asked to be left alone.
        response: the response, if there was one.
    """

    def __init__(
        self,
        text: str,
        error: type[TensorStoreError],
        retryability: Retryability = Retryability.NONE,
        *,
        may_have_run: bool = False,
        is_prompt: bool = False,
        wait_s: float | None = None,
        response: HttpResponse | None = None,
    ) -> None:
        super().__init__(text)
        self.text = text
        self.error = error
        self.retryability = retryability
        self.may_have_run = may_have_run
        self.is_prompt = is_prompt
        self.wait_s = wait_s
        self.response = response


_STATUS_ERRORS: Final[dict[int, type[TensorStoreError]]] = {
    401: PermissionDeniedError,
    403: PermissionDeniedError,
    404: NotFoundError,
    405: UnsupportedError,
    407: PermissionDeniedError,
    408: UnavailableError,
    409: AbortedError,
    410: NotFoundError,
    416: OutOfRangeError,
    425: UnavailableError,
    429: UnavailableError,
    451: PermissionDeniedError,
    501: UnsupportedError,
    505: UnsupportedError,
}


def status_error(status: int) -> type[TensorStoreError]:
    """What a status becomes that was neither expected nor worth another attempt.

    Example:
        >>> status_error(403).__name__, status_error(503).__name__, status_error(400).__name__
        ('PermissionDeniedError', 'UnavailableError', 'FailedPreconditionError')
    """
    found = _STATUS_ERRORS.get(status)
    if found is not None:
        return found
    return UnavailableError if status >= 500 else FailedPreconditionError


# Before a connection is made: the request was not carried out.

_CA_REMEDY: Final = (
    "name the file of a certificate authority to trust in TENSORSTORE_CA_BUNDLE, or a directory of "
    "them in TENSORSTORE_CA_PATH"
)


def connect_failure(error: Exception, *, to_proxy: bool = False) -> Failure:
    """No connection could be made."""
    # From the particular to the general: the first classes derive from OSError.
    if isinstance(error, ssl.SSLCertVerificationError):
        return Failure(
            f"the server's certificate is not trusted ({_reason(error)}); {_CA_REMEDY}",
            FailedPreconditionError,
        )
    if isinstance(error, ssl.SSLError):
        text = f"no secure connection could be made ({_reason(error)})"
        return Failure(text, UnavailableError, Retryability.LITTLE)
    if to_proxy:
        text = f"the proxy could not be reached ({_reason(error)}); see the variable HTTPS_PROXY"
        return Failure(text, UnavailableError, Retryability.LITTLE)
    if isinstance(error, socket.gaierror):
        text = f"the host name could not be resolved ({_reason(error)})"
        return Failure(text, UnavailableError, Retryability.LITTLE)
    if isinstance(error, OSError):
        refused = "refused: " if isinstance(error, ConnectionRefusedError) else ""
        text = f"no connection could be made ({refused}{_reason(error)})"
        return Failure(text, UnavailableError, Retryability.FULL)
    return Failure("the URL is not valid", SpecError)


# After a request was sent: the server may have carried it out.


def connection_lost(error: BaseException | None, *, is_within: bool = False) -> Failure:
    """A connection ended before the response did."""
    text = (
        f"the connection was lost ({'the server closed it' if error is None else _reason(error)})"
    )
    return Failure(
        "the connection ended within the answer" if is_within else text,
        UnavailableError,
        Retryability.FULL,
        may_have_run=True,
        is_prompt=not is_within,
    )


def not_http(why: str = "") -> Failure:
    """What came is no HTTP."""
    text = f"the answer is not HTTP{f': {why}' if why else ''}"
    return Failure(text, UnavailableError, Retryability.FULL, may_have_run=True)


def short(found: int, expected: int) -> Failure:
    """The body ended too early."""
    text = f"the answer ended after {found} of {expected} bytes"
    return Failure(text, UnavailableError, Retryability.FULL, may_have_run=True)


def damaged(text: str) -> Failure:
    """A response that contradicts itself: trying again may help, using it would be wrong."""
    return Failure(text, DataLossError, Retryability.LITTLE, may_have_run=True)


def _reason(error: BaseException) -> str:
    """The operating system's words, or those of TLS about a certificate."""
    words = getattr(error, "verify_message", None) or getattr(error, "strerror", None)
    return str(words or error) or type(error).__name__
