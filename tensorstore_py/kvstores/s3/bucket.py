"""One bucket: sends requests to wherever it is, signed for the region that it is in.

Where no region is given, AWS is asked once a process. A bucket that has moved, or that the spec
places wrongly, says where it is; the request follows. The invariant: a request goes from HTTPS to
HTTPS only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from typing import Final
from urllib.parse import urljoin

from tensorstore_py.errors import FailedPreconditionError, NotFoundError
from tensorstore_py.kvstores.s3.address import (
    DEFAULT_REGION,
    Address,
    aws_address,
    encode,
)
from tensorstore_py.kvstores.s3.dialect import S3Dialect, error_code, stated_region
from tensorstore_py.kvstores.s3.resources import AwsCredentials, S3RequestRetries
from tensorstore_py.kvstores.s3.signing import S3Signer
from tensorstore_py.plugin.http import (
    HttpClient,
    HttpRequest,
    HttpResponse,
    HttpThrottle,
    HttpTiming,
    RateLimits,
    show_url,
)
from tensorstore_py.plugin.kvstore import WHOLE, Buffer, ByteRange, Semaphore

__all__ = ["S3Bucket"]

_MOVED: Final = frozenset({301, 302, 307, 308})
_HOPS: Final = 4
#: By name, where AWS has a bucket; buckets do not move.
_regions: dict[str, str] = {}


@lru_cache(maxsize=64)
def _or_moved(statuses: frozenset[int]) -> frozenset[int]:
    return statuses | _MOVED


class S3Bucket:
    """A bucket, and how it is talked to.

    Args:
        name: of the bucket; `""` where the endpoint says it.
        address: where it is; None to find out at AWS.
        credentials: where keys come from.
        slots: how many requests at a time.
        retries: how often to try again.
        rates: how many requests a second; None for no limits.
        requester_pays: whether we pay.
        timing: the clock.

    Attributes:
        name: as given.
        credentials: as given.
    """

    def __init__(
        self,
        name: str,
        address: Address | None,
        credentials: AwsCredentials,
        *,
        slots: Semaphore,
        retries: S3RequestRetries,
        rates: RateLimits | None = None,
        requester_pays: bool = False,
        timing: HttpTiming | None = None,
    ) -> None:
        self.name = name
        self.credentials = credentials
        self._address = address
        self._shown = address.base if address and not address.is_aws else f"s3://{name}"
        region = address.region if address is not None else DEFAULT_REGION
        self._signer = S3Signer(credentials, region)
        secure = address is None or address.base.startswith("https:")

        pacer = HttpThrottle(rates)

        def client(signer: S3Signer | None) -> HttpClient:
            return HttpClient(
                slots=slots,
                retries=retries,
                describe=self.describe,
                dialect=S3Dialect(trusts_line=secure),
                signer=signer,
                throttle=pacer,
                timing=timing,
            )

        self._client = client(self._signer)
        self._finder = client(None)
        self._headers: dict[str, str] = {}
        if address is not None and address.host is not None:
            self._headers["Host"] = address.host
        if requester_pays:
            self._headers["x-amz-request-payer"] = "requester"

    def describe(self, key: str) -> str:
        """How to name a key to a person."""
        return f'"{self._shown}/{key}"'

    async def credentials_described(self) -> str | None:
        """Where credentials come from, in words; None: requests are not signed.

        Raises PermissionDeniedError: there are none where they should be.
        """
        await self.address()  # which knows the region that a role is asked for in
        return await self._signer.described()

    async def address(self) -> Address:
        """Where the bucket is."""
        return self._address or await self._find()

    async def send(
        self,
        method: str,
        key: str,
        headers: Mapping[str, str],
        expected: frozenset[int],
        *,
        action: str,
        query: str = "",
        body: Buffer | None = None,
        byte_range: ByteRange = WHOLE,
        resolve_ambiguous: Callable[[], Awaitable[HttpResponse | None]] | None = None,
        parse: Callable[[HttpResponse], object] | None = None,
    ) -> HttpResponse:
        """The answer to a request about a key, or about the bucket (key `""`).

        See `HttpClient.send`; the query is encoded, and in the order of the names.

        Raises:
            TensorStoreError: no expected answer was had; the class says why.
        """
        address = self._address or await self._find()
        url = f"{address.url(key)}?{query}" if query else address.url(key)
        headers = {**self._headers, **headers}
        request = HttpRequest(method, url, headers, body, action=action, key=key)
        statuses = _or_moved(expected)
        for _ in range(_HOPS):
            response = await self._client.send(
                request, statuses, byte_range, resolve_ambiguous=resolve_ambiguous, parse=parse
            )
            status = response.status
            if status < 300 or status not in _MOVED:
                if status == 404 and error_code(response) == "NoSuchBucket":
                    raise NotFoundError(
                        f'cannot {action} {self.describe(key)}: there is no bucket "{self.name}" '
                        f"there; correct the name, or create it"
                    )
                return response
            url = self._moved(request, response, query)
            request = HttpRequest(method, url, headers, body, action=action, key=key)
        raise FailedPreconditionError(
            f"cannot {action} {self.describe(key)}: the service leads on and on, last to "
            f'{show_url(request.url)}; set "aws_region" or "endpoint" to where the bucket is'
        )

    async def _find(self) -> Address:
        """Ask AWS for the region of the bucket, which takes no credentials."""
        region = _regions.get(self.name)
        if region is None:
            request = HttpRequest(
                "HEAD", aws_address(self.name, DEFAULT_REGION).base + "/", {}, action="find"
            )
            statuses = {200, 400, 403, 404, *_MOVED}
            response = await self._finder.send(request, statuses)
            found = stated_region(response)
            if found is None and response.status == 404:
                raise NotFoundError(
                    f'there is no bucket "{self.name}" at AWS; correct the name, create it, or '
                    f'set "endpoint" to the service that has it'
                )
            region = _regions[self.name] = found or DEFAULT_REGION
        self._signer.region = region
        self._address = aws_address(self.name, region)
        return self._address

    def _moved(self, request: HttpRequest, response: HttpResponse, query: str) -> str:
        """Where to send the request instead."""
        address = self._address
        assert address is not None
        region = stated_region(response)
        location = response.headers.get("Location")
        if region is not None and address.is_aws and region != self._signer.region:
            self._signer.region = region
            self._address = aws_address(self.name, region) if self.name else address
            _regions[self.name] = region
            return self._address.url(request.key) + (f"?{query}" if query else "")
        if region is not None:
            self._signer.region = region
        url = urljoin(request.url, location.strip()) if location else request.url
        there = url.partition("?")[0]
        safe = there.startswith("https:") or request.url.startswith("http:")
        if location and safe and there.startswith(("http:", "https:")):
            tail = f"/{encode(request.key)}"
            return there.removesuffix(tail) + tail + (f"?{query}" if query else "")
        raise FailedPreconditionError(
            f"cannot {request.action} {self.describe(request.key)}: the service answered "
            f"{response.status} and leads to {show_url(url)}; set "
            f'"aws_region" or "endpoint" to where the bucket is'
        )
