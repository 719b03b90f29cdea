"""Where keys come from: the environment, files, the machine's own service, as AWS's tools look.

AWS's rules are AWS's library's, which comes with the extra `s3` and is loaded when it is needed:
not for keys that are given or in the environment, nor for anonymous requests. Everything that asks
in the same way shares what was found. The invariant: no secret is in a repr, an error or a log.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar
from weakref import WeakKeyDictionary

from tensorstore_py.errors import PermissionDeniedError, UnsupportedError
from tensorstore_py.kvstores.s3.aws_library import (
    FrozenKeys,
    HeldCredentials,
    library_credentials,
)
from tensorstore_py.kvstores.s3.resources import AwsCredentials
from tensorstore_py.kvstores.s3.signature import AwsKeys

__all__ = ["KeySource", "shared_source"]

#: For how long it is believed that there are none: to look takes a second where nobody answers.
_NONE_S: Final = 60.0
T = TypeVar("T")


class KeySource:
    """Finds keys, and keeps them as long as they are good.

    Args:
        model: where to look.
        region: where to ask for a role, unless the environment or the profile says it.
    """

    def __init__(self, model: AwsCredentials, region: str = "") -> None:
        self._model = model
        self._region = region
        self._held: HeldCredentials | AwsKeys | None = None
        self._looked: float | None = None
        self._lock = asyncio.Lock()
        self._frozen: FrozenKeys | None = None
        self._keys: AwsKeys | None = None

    def __repr__(self) -> str:
        return f'KeySource(type="{self._model.type}")'

    async def keys(self) -> AwsKeys | None:
        """The keys to sign with now; None: requests are not signed.

        Raises:
            PermissionDeniedError: there are none where they should be.
            UnsupportedError: AWS's library is needed and not installed.
        """
        held = self._held
        if held is None:
            if self._is_known_empty():
                return None
            held = await self._look(None)
        if held is None or isinstance(held, AwsKeys):
            return held
        frozen = await self._guarded(held.get_frozen_credentials)
        if frozen is not self._frozen:
            self._frozen = frozen
            self._keys = AwsKeys(frozen.access_key, frozen.secret_key, frozen.token)
        return self._keys

    async def renew(self, refused: AwsKeys | None) -> bool:
        """Look again, after `refused` was refused. Returns whether there are others now."""
        if self._model.type in ("anonymous", "static"):
            return False
        await self._look(refused)
        return await self.keys() != refused

    def _is_known_empty(self) -> bool:
        if self._model.type == "anonymous":
            return True
        return self._looked is not None and time.monotonic() - self._looked < _NONE_S

    async def _look(self, refused: AwsKeys | None) -> HeldCredentials | AwsKeys | None:
        """Find keys; those who ask at the same time look once."""
        begun = time.monotonic()
        async with self._lock:
            present = self._held if isinstance(self._held, AwsKeys) else self._keys
            looked = self._looked is not None and self._looked >= begun
            if not looked and (self._held is None or present == refused):
                self._held = await self._found()
                self._looked = time.monotonic()
            return self._held

    async def _found(self) -> HeldCredentials | AwsKeys | None:
        model = self._model
        if model.type == "static":
            assert model.access_key_id is not None
            assert model.secret_access_key is not None
            return AwsKeys(model.access_key_id, model.secret_access_key, model.session_token)
        if model.type == "environment" or (model.type == "default" and model.profile is None):
            keys = _from_environment()
            if keys is not None:
                return keys
        if model.type == "environment":
            raise PermissionDeniedError(
                "no credentials for AWS in the environment: set the variables AWS_ACCESS_KEY_ID "
                'and AWS_SECRET_ACCESS_KEY, or another type of "aws_credentials"'
            )
        held = await self._guarded(lambda: library_credentials(model, self._region))
        if held is None and model.type != "default":
            raise PermissionDeniedError(
                f'no credentials for AWS of the type "{model.type}" were found; see the resource '
                f'"aws_credentials"'
            )
        return held

    async def _guarded(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Translate what AWS's library raises, which may repeat what it read."""
        try:
            return await ask()
        except (PermissionDeniedError, UnsupportedError):
            raise
        except Exception as error:  # noqa: BLE001 - whatever it raises, its text may be secret
            raise PermissionDeniedError(
                f'the credentials for AWS of the type "{self._model.type}" could not be had '
                f'({type(error).__name__}); see the resource "aws_credentials"'
            ) from None


_shared: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[object, KeySource]] = WeakKeyDictionary()


def shared_source(model: AwsCredentials, region: str = "") -> KeySource:
    """The source for the running loop and the environment as it is now.

    Args:
        model: where to look.
        region: see `KeySource`.
    """
    if model.type not in ("default", "profile"):
        region = ""  # which makes no difference then
    environment = [pair for pair in os.environ.items() if pair[0].startswith(("AWS_", "HOME"))]
    sources = _shared.setdefault(asyncio.get_running_loop(), {})
    asked = (model, region, frozenset(environment))
    found = sources.get(asked)
    if found is None:
        found = sources[asked] = KeySource(model, region)
    return found


def _from_environment() -> AwsKeys | None:
    environ = os.environ
    name, secret = environ.get("AWS_ACCESS_KEY_ID"), environ.get("AWS_SECRET_ACCESS_KEY")
    if not name or not secret:
        return None
    token = environ.get("AWS_SESSION_TOKEN") or environ.get("AWS_SECURITY_TOKEN")
    return AwsKeys(name, secret, token)
