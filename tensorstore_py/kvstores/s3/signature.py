"""AWS's signature, version 4: the headers that prove who sent a request. Pure.

What is signed is the method, the path and query as they go over the wire, the headers given, the
time, and the hash of the body. The key that signs is derived once for a day and a region.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

__all__ = ["EMPTY_HASH", "UNSIGNED", "AwsKeys", "signed_headers"]

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
    """What signs requests; the secrets in it are never printed.

    Args:
        access_key_id: which key.
        secret_access_key: the secret.
        session_token: of temporary keys.
    """

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


def _plain(value: str) -> str:
    """The value without blanks that say nothing."""
    return " ".join(value.split()) if " " in value else value


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
    lines = "".join(
        [f"{lower}:{_plain(sent[name]) if name else url[start:slash]}\n" for lower, name in plan]
    )
    asked = f"{method}\n{path}\n{_canonical_query(query)}\n{lines}\n{listed}\n{payload}"
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
    if not query:
        return ""
    pairs = [part.partition("=") for part in query.split("&")]
    return "&".join([f"{name}={value}" for name, _, value in sorted(pairs)])
