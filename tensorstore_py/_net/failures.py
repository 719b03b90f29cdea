"""What can go wrong between a request and its answer: the one table of it.

A `Failure` is inside this room only. It says which error it becomes if nothing helps, how patient
to be with it, and whether the request may have been carried out although no answer came. The
invariant: every exception of the HTTP library and every status becomes a `Failure`, so that nothing
else reaches a store.
"""

from __future__ import annotations

import enum
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

__all__ = ["Failure", "Patience", "cut_off", "damaged", "is_nonsense", "status_error", "translate"]


class Patience(enum.Enum):
    """How often to try again.

    Attributes:
        NONE: never; the answer would be the same.
        LITTLE: twice; it is probably not going to pass.
        FULL: as often as the retries resource says.
    """

    NONE = 0
    LITTLE = 2
    FULL = -1


class Failure(Exception):  # noqa: N818 - it becomes an error only if nothing helps
    """An attempt that gave no usable answer.

    Args:
        text: what happened, as the second half of a sentence.
        error: what it becomes in the end.
        patience: how often to try again.
        may_have_run: the server may have carried the request out.
        is_prompt: the first time it is worth trying again at once: most likely the server had
            closed an idle connection just then.
        wait_s: for how long the server asked to be left alone.
        response: the answer, if there was one.
    """

    def __init__(
        self,
        text: str,
        error: type[TensorStoreError],
        patience: Patience = Patience.NONE,
        *,
        may_have_run: bool = False,
        is_prompt: bool = False,
        wait_s: float | None = None,
        response: HttpResponse | None = None,
    ) -> None:
        super().__init__(text)
        self.text = text
        self.error = error
        self.patience = patience
        self.may_have_run = may_have_run
        self.is_prompt = is_prompt
        self.wait_s = wait_s
        self.response = response


def damaged(text: str) -> Failure:
    """An answer that contradicts itself: trying again may help, using it would be wrong.

    Whatever it was to say, the request may have been carried out.
    """
    return Failure(text, DataLossError, Patience.LITTLE, may_have_run=True)


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


_WITHIN: Final = "the connection ended within the answer"
_CA_REMEDY: Final = (
    "name the file of a certificate authority to trust in TENSORSTORE_CA_BUNDLE, or a directory of "
    "them in TENSORSTORE_CA_PATH"
)


def translate(error: BaseException) -> Failure | None:
    """What an exception of the HTTP library means; None if it is not about the network.

    Only called once the library is loaded.
    """
    if isinstance(error, TensorStoreError):
        return None
    import aiohttp  # noqa: PLC0415 - loaded by now, and not before there is a need

    # From the particular to the general: most of these classes derive from later ones.
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return Failure(
            f"the server's certificate is not trusted ({_plain(error)}); {_CA_REMEDY}",
            FailedPreconditionError,
        )
    if isinstance(error, aiohttp.ClientSSLError):
        text = f"no secure connection could be made ({_plain(error)})"
        return Failure(text, UnavailableError, Patience.LITTLE)
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        text = f"the proxy could not be reached ({_plain(error)}); see the variable HTTPS_PROXY"
        return Failure(text, UnavailableError, Patience.LITTLE)
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        text = f"the host name could not be resolved ({_plain(error)})"
        return Failure(text, UnavailableError, Patience.LITTLE)
    if isinstance(error, aiohttp.ClientConnectorError):
        text = f"no connection could be made ({_plain(error)})"
        return Failure(text, UnavailableError, Patience.FULL)
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return Failure("no connection was made in time", UnavailableError, Patience.FULL)
    if isinstance(error, aiohttp.ClientHttpProxyError):
        text = f"the proxy refused with status {error.status}"
        return Failure(text, status_error(error.status), Patience.LITTLE)
    if isinstance(error, aiohttp.InvalidURL | aiohttp.NonHttpUrlClientError):
        return Failure("the URL is not valid", SpecError)
    return _lost(error)


def is_nonsense(error: BaseException | None) -> bool:
    """Whether what a connection ended with is that the server sent no HTTP, and not its end."""
    if error is None:
        return False
    import aiohttp  # noqa: PLC0415 - as above

    return not isinstance(error, aiohttp.ClientError | OSError)


def _lost(error: BaseException) -> Failure | None:
    """The failures after which it is not known whether the server carried the request out."""
    import aiohttp  # noqa: PLC0415 - as above

    is_prompt = False
    if isinstance(error, aiohttp.ClientResponseError | aiohttp.http.HttpProcessingError):
        text = "the answer is not HTTP"
    elif isinstance(error, aiohttp.ClientPayloadError):
        text = _WITHIN
    elif isinstance(error, TimeoutError):
        text = "nothing was heard from the server for as long as the stall limit allows"
    elif isinstance(error, aiohttp.ClientConnectionError | OSError):
        text = f"the connection was lost ({_plain(error)})"
        is_prompt = True
    elif isinstance(error, aiohttp.ClientError):
        text = f"the exchange failed ({_plain(error)})"
    else:
        return None
    return Failure(
        text,
        UnavailableError,
        Patience.FULL,
        may_have_run=True,
        is_prompt=is_prompt,
    )


def cut_off(error: BaseException | None, *, is_within: bool = False) -> Failure:
    """A connection of ours that ended.

    Args:
        error: why, if not because the server closed it.
        is_within: whether a part of the answer had come.
    """
    reason = "the server closed it" if error is None else _plain(error)
    return Failure(
        _WITHIN if is_within else f"the connection was lost ({reason})",
        UnavailableError,
        Patience.FULL,
        may_have_run=True,
        is_prompt=not is_within,
    )


def _plain(error: BaseException) -> str:
    """The operating system's words if there are some, since the library's repeat the URL."""
    cause = error.__cause__ or error
    if not str(cause) or type(cause).__name__ == "ServerDisconnectedError":
        return "the server closed it"
    words = getattr(cause, "strerror", None) or getattr(cause, "verify_message", None)
    return str(words) if words else type(error).__name__
