"""Signs the requests of one store: which keys, which region, and what is said of the body.

Over plain HTTP the body is signed, too. TLS protects it already, and hashing costs as much as all
else, so there a checksum goes along instead, which S3 verifies and keeps.
"""

from __future__ import annotations

import hashlib
import time
from base64 import b64encode
from collections.abc import Mapping
from typing import Final

from tensorstore_py.kvstores.s3.credentials import KeySource, shared_source
from tensorstore_py.kvstores.s3.dialect import DAMAGED_CODES, error_code, stated_region
from tensorstore_py.kvstores.s3.resources import AwsCredentials
from tensorstore_py.kvstores.s3.signature import EMPTY_HASH, UNSIGNED, AwsKeys, signed_headers
from tensorstore_py.plugin import Buffer, HttpRequest, HttpResponse, HttpSigner, crc32c, offload

__all__ = ["S3Signer", "checksum_header"]

#: Hashing more than this is not done on the loop, which would stand still.
_ON_LOOP_BYTES: Final = 2**19


class S3Signer(HttpSigner):
    """Signs for one store.

    Args:
        credentials: where keys come from.
        region: what requests are signed for.

    Attributes:
        region: as given; corrected by what the service says.
    """

    def __init__(self, credentials: AwsCredentials, region: str) -> None:
        self._credentials = credentials
        self._source: KeySource | None = None
        self._used: AwsKeys | None = None
        self._renewed = 0.0
        self.region = region

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
            return True  # somebody else's refusal led to new keys meanwhile
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
        >>> from tensorstore_py._runtime.inline import run_inline
        >>> run_inline(checksum_header(b"123456789"))
        {'x-amz-checksum-crc32c': '4waSgw=='}
    """
    large = len(body) > _ON_LOOP_BYTES
    value = await offload(False, lambda: crc32c(body)) if large else crc32c(body)
    return {"x-amz-checksum-crc32c": b64encode(value.to_bytes(4, "big")).decode()}
