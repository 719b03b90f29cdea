"""Access tokens: from whom, for how long, and what goes into a request because of them.

They come from google-auth, which the extra `[gcs]` brings along: a file that
`GOOGLE_APPLICATION_CREDENTIALS` names, what `gcloud auth application-default login` left, workload
identity, or the metadata server of a machine in Google's cloud. Where nothing is found, requests go
out without a token, which public buckets accept. The library blocks, so it runs off the loop; it is
loaded at the first request. The invariant: a token is in no `repr`, error, log or spec.
"""

from __future__ import annotations

import calendar
import os
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple, Protocol

from tensorstore_py.errors import PermissionDeniedError, TensorStoreError, UnavailableError
from tensorstore_py.plugin.http import HttpSigner
from tensorstore_py.plugin.kvstore import KeyedLock, offload

if TYPE_CHECKING:
    from tensorstore_py.plugin.http import HttpRequest, HttpResponse

__all__ = ["GcsSigner", "Grant", "Token"]

_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
#: Tokens are renewed so long before they end, as google-auth does.
_EARLY_S: Final = 225.0
#: After a renewal that failed, the token that still holds is used for so long.
_AGAIN_S: Final = 10.0
#: What decides who we are, so that stores that were opened under the same ones share a token.
_VARIABLES: Final = (
    "GOOGLE_AUTH_TOKEN_FOR_TESTING",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "CLOUDSDK_CONFIG",
    "GCE_METADATA_HOST",
    "GCE_METADATA_ROOT",
    "NO_GCE_CHECK",
    "APPDATA",
    "HOME",
)


class Token(NamedTuple):
    """A token and how long it holds.

    Attributes:
        text: the token; secret.
        until: seconds since the epoch; infinite if it is not known to end.
    """

    text: str
    until: float = float("inf")

    def __repr__(self) -> str:
        return f"Token(..., until={self.until:.0f})"


class _Credentials(Protocol):
    """What is used of a google-auth object."""

    token: str | None
    expiry: datetime | None

    def refresh(self, request: object) -> None: ...


class Grant:
    """Who we are to the service, in this process: finds credentials once, keeps a token fresh.

    Args:
        source: fetches a token, blocking; it returns None if there are no credentials. By default
            google-auth is asked.
        now: seconds since the epoch.
    """

    _shared: ClassVar[dict[tuple[str | None, ...], Grant]] = {}

    def __init__(
        self,
        source: Callable[[], Token | None],
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._source = source
        self._now = now
        self._gate = KeyedLock(inline=False)
        self._token: Token | None = None
        self._fetched_at = float("-inf")
        self._fresh_until = float("-inf")

    @classmethod
    def found(cls, *, nearby: bool) -> Grant:
        """The one for what the environment says now.

        Args:
            nearby: only credentials that were put there on purpose count, and no metadata server
                is looked for: the service is on this machine.
        """
        said = (str(nearby), *(os.environ.get(name) for name in _VARIABLES))
        grant = cls._shared.get(said)
        if grant is None:
            fixed = os.environ.get("GOOGLE_AUTH_TOKEN_FOR_TESTING")
            grant = Grant((lambda: Token(fixed)) if fixed else _Library(nearby=nearby))
            cls._shared[said] = grant
        return grant

    async def token(self) -> str | None:
        """A token that holds for a while yet; None if there are no credentials.

        Raises:
            PermissionDeniedError: there are credentials, and they are refused.
            UnavailableError: no service could be asked for a token.
        """
        if self._now() >= self._fresh_until:
            async with self._gate.acquire(""):
                if self._now() >= self._fresh_until:
                    await self._fetch()
        return None if self._token is None else self._token.text

    async def described(self) -> str | None:
        """Where the token comes from, in words; None: there is none. Errors as by `token`."""
        if await self.token() is None:
            return None
        for name in ("GOOGLE_AUTH_TOKEN_FOR_TESTING", "GOOGLE_APPLICATION_CREDENTIALS"):
            if os.environ.get(name):
                return f"the environment ({name})"
        return "google-auth (gcloud, or the machine's own service)"

    async def renew(self, refused_at: float) -> bool:
        """Get another token after one was refused.

        Args:
            refused_at: when the request was made that carried it.

        Returns:
            Whether there is another one.
        """
        async with self._gate.acquire(""):
            if self._fetched_at <= refused_at and self._token is not None:
                self._token = None
                await self._fetch()
        return self._token is not None

    async def _fetch(self) -> None:
        now = self._now()
        try:
            token = await offload(False, self._source)
        except TensorStoreError:
            if self._token is None or now >= self._token.until:
                raise
            self._fresh_until = min(self._token.until, now + _AGAIN_S)
            return
        self._token = token
        self._fetched_at = self._now()
        self._fresh_until = float("inf") if token is None else token.until - _EARLY_S
        if token is not None and self._fresh_until <= self._fetched_at:
            # Metadata servers hand out the same token until shortly before its end.
            self._fresh_until = min(token.until, self._fetched_at + _AGAIN_S)


class GcsSigner(HttpSigner):
    """Puts a token into requests.

    Attributes:
        anonymous: the last request had none.
    """

    def __init__(self, grant: Grant) -> None:
        self._grant = grant
        self.anonymous = False

    async def sign(self, request: HttpRequest, now: float) -> Mapping[str, str]:
        token = await self._grant.token()
        self.anonymous = token is None
        if token is None:
            return request.headers
        return {**request.headers, "Authorization": f"Bearer {token}"}

    async def refresh(self, response: HttpResponse) -> bool:
        return await self._grant.renew(response.time)


class _Library:
    """Asks google-auth."""

    def __init__(self, *, nearby: bool) -> None:
        self._nearby = nearby
        self._found: _Credentials | None = None

    def __call__(self) -> Token | None:
        """A new token; None if there are no credentials."""
        if self._nearby and not _on_purpose():
            return None
        try:
            errors = import_module("google.auth.exceptions")
            transport = import_module("google.auth.transport.requests")
        except ImportError:
            if not _on_purpose():
                return None
            raise PermissionDeniedError(
                "there are credentials for Google Cloud Storage, but the library that reads them "
                'is not installed; run pip install "tensorstore-py[gcs]"'
            ) from None
        try:
            if self._found is None:
                self._found, _ = import_module("google.auth").default(scopes=[_SCOPE])
            assert self._found is not None
            self._found.refresh(transport.Request())
        except errors.DefaultCredentialsError as error:
            if os.environ.get("GOOGLE_APPLICATION_CREDENTIALS"):
                raise _refused("the credentials cannot be read", error) from None
            return None
        except errors.TransportError as error:
            raise UnavailableError(f"no token could be fetched: {_first_line(error)}") from None
        except errors.GoogleAuthError as error:
            raise _refused("no token was given", error) from None
        text, expiry = self._found.token, self._found.expiry
        if text is None:
            raise PermissionDeniedError("the credentials for Google Cloud Storage give no token")
        if expiry is None:
            return Token(text)
        # It is in UTC, without saying so.
        return Token(text, calendar.timegm(expiry.timetuple()))


def _on_purpose() -> bool:
    """Whether there are credentials where they are looked for."""
    if os.environ.get("GOOGLE_APPLICATION_CREDENTIALS"):
        return True
    said = os.environ.get("CLOUDSDK_CONFIG")
    if said:
        folder = Path(said)
    elif os.name == "nt":
        folder = Path(os.environ.get("APPDATA", "")) / "gcloud"
    else:
        folder = Path("~/.config/gcloud").expanduser()
    return (folder / "application_default_credentials.json").exists()


def _refused(what: str, error: Exception) -> PermissionDeniedError:
    return PermissionDeniedError(
        f"{what} for Google Cloud Storage: {_first_line(error)}; check "
        f"GOOGLE_APPLICATION_CREDENTIALS, or run gcloud auth application-default login"
    )


def _first_line(error: Exception) -> str:
    text = str(error.args[0]) if error.args else type(error).__name__
    return text.strip().partition("\n")[0][:200]
