"""Who sends a request: keys, where they come from, and AWS's signature, version 4.

What is signed is the method, the path and query as they go over the wire, the headers given, the
time, and the hash of the body. TLS protects the body already, and hashing costs as much as all
else, so there a checksum goes along instead, which S3 keeps.

Where keys are looked for is AWS's library's matter, which is loaded when it is needed: not for keys
that are given or in the environment, nor for anonymous requests. All who ask in the same way share
what was found. The invariant: no secret is in a repr, an error or a log.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
import time
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from typing import Final, Protocol, TypeVar, cast
from weakref import WeakKeyDictionary

from tensorstore_py.errors import PermissionDeniedError, UnsupportedError
from tensorstore_py.kvstores.s3.dialect import DAMAGED_CODES, error_code, stated_region
from tensorstore_py.kvstores.s3.resources import AwsCredentials
from tensorstore_py.plugin.http import HttpRequest, HttpResponse, HttpSigner
from tensorstore_py.plugin.kvstore import Buffer, crc32c, offload

__all__ = [
    "EMPTY_HASH",
    "UNSIGNED",
    "AwsKeys",
    "FrozenKeys",
    "HeldCredentials",
    "KeySource",
    "S3Signer",
    "checksum_header",
    "library_credentials",
    "shared_source",
    "signed_headers",
]

#: What stands for the hash of a body that is not signed.
UNSIGNED: Final = "UNSIGNED-PAYLOAD"
#: The hash of no body.
EMPTY_HASH: Final = hashlib.sha256(b"").hexdigest()

_ALGORITHM: Final = "AWS4-HMAC-SHA256"
#: What proxies on the way may change, in lower case.
_NOT_SIGNED: Final = frozenset(
    {"accept", "accept-encoding", "connection", "expect", "transfer-encoding", "user-agent"}
)


class AwsKeys:
    """What signs requests; the secrets in it are never printed."""

    __slots__ = ("access_key_id", "secret_access_key", "session_token")

    def __init__(
        self, access_key_id: str, secret_access_key: str, session_token: str | None = None
    ) -> None:
        self.access_key_id = access_key_id
        self.secret_access_key = secret_access_key
        self.session_token = session_token or None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AwsKeys) and self._all() == other._all()

    def __hash__(self) -> int:
        return hash(self._all())

    def __repr__(self) -> str:
        return "AwsKeys(...)"

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("keys are not pickled: whoever unpickles has to have their own")

    def _all(self) -> tuple[str, str, str | None]:
        return self.access_key_id, self.secret_access_key, self.session_token


@lru_cache(maxsize=64)
def _signing_key(secret: str, day: str, region: str, service: str) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in (day, region, service, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key


@lru_cache(maxsize=16)
def _timestamp(now: int) -> str:
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))


@lru_cache(maxsize=256)
def _covered(names: tuple[str, ...]) -> tuple[list[tuple[str, str]], str]:
    """Which headers are signed: in order, by their names in lower case, and these as one text."""
    covered = {"host": ""} | {name.lower(): name for name in names}
    plan = sorted(pair for pair in covered.items() if pair[0] not in _NOT_SIGNED)
    return plan, ";".join([lower for lower, _ in plan])


def signed_headers(
    method: str,
    url: str,
    headers: Mapping[str, str],
    payload: str,
    keys: AwsKeys,
    region: str,
    now: float,
    service: str = "s3",
) -> dict[str, str]:
    """The headers to send instead of `headers`.

    Args:
        method: such as `"GET"`.
        url: absolute, with a path, encoded as it goes over the wire.
        headers: what else is sent; a `Host` among them replaces the one of the URL.
        payload: the hash of the body in hexadecimal, or `UNSIGNED`.
        keys: what to sign with.
        region: AWS's name of the region.
        now: seconds since the epoch by the service's clock.
        service: AWS's name of the service.

    Example:
        >>> keys = AwsKeys("AKIA", "secret")
        >>> url = "https://b.s3.amazonaws.com/a"
        >>> signed_headers("GET", url, {}, EMPTY_HASH, keys, "eu-west-1", 0)["Authorization"][:56]
        'AWS4-HMAC-SHA256 Credential=AKIA/19700101/eu-west-1/s3/a'
    """
    stamp = _timestamp(int(now))
    sent = {**headers, "x-amz-content-sha256": payload, "x-amz-date": stamp}
    if keys.session_token is not None:
        sent["x-amz-security-token"] = keys.session_token
    start = url.index("://") + 3
    slash = url.find("/", start)
    path, _, query = url[slash:].partition("?")
    plan, listed = _covered(tuple(sent))
    values = {
        name: value if " " not in value else " ".join(value.split()) for name, value in sent.items()
    }
    values[""] = url[start:slash]
    lines = "".join([f"{lower}:{values[name]}\n" for lower, name in plan])
    sorted_query = _canonical_query(query) if query else ""
    asked = f"{method}\n{path}\n{sorted_query}\n{lines}\n{listed}\n{payload}"
    scope = f"{stamp[:8]}/{region}/{service}/aws4_request"
    digest = hashlib.sha256(asked.encode("utf-8", "surrogateescape")).hexdigest()
    text = f"{_ALGORITHM}\n{stamp}\n{scope}\n{digest}"
    key = _signing_key(keys.secret_access_key, stamp[:8], region, service)
    proof = hmac.digest(key, text.encode(), "sha256").hex()
    sent["Authorization"] = (
        f"{_ALGORITHM} Credential={keys.access_key_id}/{scope}, SignedHeaders={listed}, "
        f"Signature={proof}"
    )
    return sent


def _canonical_query(query: str) -> str:
    pairs = [part.partition("=") for part in query.split("&")]
    return "&".join([f"{name}={value}" for name, _, value in sorted(pairs)])


_ENDPOINT = "AWS_CONTAINER_CREDENTIALS_FULL_URI"
_TOKEN_FILE = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"  # noqa: S105 - the name of a variable


class FrozenKeys(Protocol):
    """Keys at one moment."""

    @property
    def access_key(self) -> str:
        """Which key."""

    @property
    def secret_key(self) -> str:
        """The secret."""

    @property
    def token(self) -> str | None:
        """Of temporary keys."""


class HeldCredentials(Protocol):
    """Credentials as the library holds them."""

    async def get_frozen_credentials(self) -> FrozenKeys:
        """The keys as they are now; renewed first if they are about to expire."""


async def library_credentials(model: AwsCredentials, region: str = "") -> HeldCredentials | None:
    """What the library finds; None if there is nothing.

    Args:
        model: of type `"default"`, `"profile"`, `"imds"` or `"ecs"`.
        region: where to ask for a role, unless the environment or the profile says it.

    Raises:
        UnsupportedError: the library is not installed.
        Exception: whatever the library raises about what it found.
    """
    await offload(False, _load)  # a third of a second, which would hold the loop up
    if model.type == "ecs":
        return await _of_container(model)
    return await _of_session(model, region)


def _load() -> None:
    try:
        import aiobotocore.session  # noqa: F401, PLC0415 - only who needs it pays for it
    except ImportError:
        raise UnsupportedError(
            "to look for credentials for AWS takes the library aiobotocore: pip install "
            "'tensorstore-py[s3]'; or say in \"aws_credentials\" where they come from without it: "
            '{"type": "anonymous"}, "environment" or "static"'
        ) from None


async def _of_session(model: AwsCredentials, region: str) -> HeldCredentials | None:
    from aiobotocore.credentials import create_credential_resolver  # noqa: PLC0415 - as above
    from aiobotocore.session import AioSession  # noqa: PLC0415 - as above

    session = AioSession(profile=model.profile)
    for name in ("config_file", "credentials_file"):
        path = getattr(model, name)
        if path is not None:
            session.set_config_variable(name, path)
    if region and session.get_config_variable("region") is None:
        # Roles are asked for in a region, which files for other tools may leave to the command.
        session.set_config_variable("region", region)
    resolver = create_credential_resolver(session)
    if model.type == "imds":
        return cast(HeldCredentials | None, await resolver.get_provider("iam-role").load())
    if model.type == "profile":
        for name in ("env", "container-role", "iam-role"):
            if any(name == provider.METHOD for provider in resolver.providers):
                resolver.remove(name)
    return cast(HeldCredentials | None, await resolver.load_credentials())


async def _of_container(model: AwsCredentials) -> HeldCredentials | None:
    from aiobotocore.credentials import AioContainerProvider  # noqa: PLC0415 - as above

    environ = dict(os.environ)
    if model.endpoint is not None:
        environ[_ENDPOINT] = model.endpoint
        environ.pop("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", None)
    if model.auth_token_file is not None:
        environ[_TOKEN_FILE] = model.auth_token_file
    return cast(HeldCredentials | None, await AioContainerProvider(environ=environ).load())


#: For how long it is believed that there are none: to look takes a second where no service answers.
_NONE_S: Final = 60.0
T = TypeVar("T")


class KeySource:
    """Finds keys, and keeps them as long as they are good.

    A role is asked for in `region`, unless the environment or the profile says another one.
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

    async def described(self) -> str | None:
        """Where the keys come from, in words; None: requests are not signed. Errors as by `keys`.

        What AWS's library found is told by its method, such as `shared-credentials-file`.
        """
        if await self.keys() is None:
            return None
        method = getattr(self._held, "method", None)
        if isinstance(method, str):
            return f"AWS's library ({method})"
        if self._model.type == "static":
            return 'the spec (type "static")'
        return "the environment (AWS_ACCESS_KEY_ID)"

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
    """The source for the running loop and the environment as it is now."""
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


#: Hashing more than this is not done on the loop, which would stand still.
_ON_LOOP_BYTES: Final = 2**19


class S3Signer(HttpSigner):
    """Signs for one store.

    Attributes:
        region: as given; corrected by what the service says.
    """

    def __init__(self, credentials: AwsCredentials, region: str) -> None:
        self._credentials = credentials
        self._source: KeySource | None = None
        self._used: AwsKeys | None = None
        self._renewed = 0.0
        self.region = region

    async def described(self) -> str | None:
        """Where the keys come from, see `KeySource.described`."""
        return await shared_source(self._credentials, self.region).described()

    async def sign(self, request: HttpRequest, now: float) -> Mapping[str, str]:
        if self._source is None:
            self._source = shared_source(self._credentials, self.region)
        keys = self._used = await self._source.keys()
        if keys is None:
            return request.headers
        payload = EMPTY_HASH
        if request.body is not None:
            payload = await _payload_hash(request)
        return signed_headers(
            request.method, request.url, request.headers, payload, keys, self.region, now
        )

    async def refresh(self, response: HttpResponse) -> bool:
        """Correct the region or get other keys, whichever was refused."""
        if error_code(response) in DAMAGED_CODES:
            return True  # nothing is wrong with the signature; it may go better
        region = stated_region(response)
        if region is not None and region != self.region:
            self.region = region
            return True
        if response.time < self._renewed:
            return True  # another request's refusal led to new keys meanwhile
        renewed = self._source is not None and await self._source.renew(self._used)
        if renewed:
            self._renewed = time.time()
        return renewed


async def _payload_hash(request: HttpRequest) -> str:
    body = request.body
    assert body is not None
    if request.url.startswith("https:"):
        return UNSIGNED
    pieces = body if isinstance(body, tuple) else (body,)

    def hashed() -> str:
        digest = hashlib.sha256()
        for piece in pieces:
            digest.update(piece)
        return digest.hexdigest()

    small = sum([len(piece) for piece in pieces]) <= _ON_LOOP_BYTES
    return hashed() if small else await offload(False, hashed)


async def checksum_header(body: Buffer) -> dict[str, str]:
    """The header that says what a body must be.

    Example:
        >>> from tensorstore_py._runtime.execution import run_inline
        >>> run_inline(checksum_header(b"123456789"))
        {'x-amz-checksum-crc32c': '4waSgw=='}
    """
    large = len(body) > _ON_LOOP_BYTES
    value = await offload(False, lambda: crc32c(body)) if large else crc32c(body)
    return {"x-amz-checksum-crc32c": b64encode(value.to_bytes(4, "big")).decode()}
