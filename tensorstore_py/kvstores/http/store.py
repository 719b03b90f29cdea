"""The HTTP store: values that any web server has, to read; its JSON, and its context resources.

A read is one GET, never a HEAD: signed URLs allow one and not the other. Conditions go out as ETags
and are checked again when the answer is here, since servers may ignore them.

A generation is what a server says of a value: its ETag, else the date of its last change. The
layout is the reference's: a zero byte and the text of a strong ETag. A date that is certain to
change with the value will do, too; it cannot be sent as a condition, so it is compared here. The
invariant: two values with the same generation are the same value, unless the server gives no sign
at all, which is the generation `NO_SIGN`.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from tensorstore_py.errors import SpecError, UnsupportedError
from tensorstore_py.kvstores.http.urls import BaseUrl, check_key, join, split_base
from tensorstore_py.plugin.http import (
    EtagReads,
    HttpClient,
    HttpRequest,
    HttpResponse,
    RequestConcurrencyModel,
    RetriesModel,
    show_url,
    whole_number,
)
from tensorstore_py.plugin.kvstore import (
    ALL,
    UNKNOWN,
    WHOLE,
    Buffer,
    ByteRange,
    CachedRead,
    KeyRange,
    KvStore,
    KvStoreSpec,
    ListEntry,
    ReadResult,
    Resource,
    ResourceField,
    Semaphore,
    ThreadLimiter,
    TimestampedStorageGeneration,
    context_resource,
    field_validator,
    kvstore,
    model_validator,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine


__all__ = [
    "NO_SIGN",
    "HttpRequestConcurrency",
    "HttpRequestRetries",
    "HttpSpec",
    "HttpStore",
    "check_header",
    "etag_of",
    "generation_of",
    "parse_headers",
]


@context_resource("http_request_concurrency")
class HttpRequestConcurrency(RequestConcurrencyModel):
    """How many requests to HTTP servers run at a time.

    Attributes:
        limit: a number for this resource alone; `"shared"` is 32 for the whole process, or what
            the environment variable `TENSORSTORE_HTTP_REQUEST_CONCURRENCY` says.
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset()

    variable: ClassVar[str | None] = "TENSORSTORE_HTTP_REQUEST_CONCURRENCY"


@context_resource("http_request_retries")
class HttpRequestRetries(RetriesModel):
    """How to go on after a request to an HTTP server failed in a way that may pass."""

    data_members: ClassVar[frozenset[str] | None] = frozenset()


_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_BAD_VALUE: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def check_header(line: str) -> str:
    """The line, if it can be sent.

    Raises:
        SpecError: it has no colon, no name, or characters that would end the line. The message
            does not repeat the value, which may be secret.
    """
    name, colon, value = line.partition(":")
    if not colon:
        raise SpecError('expected "Name: value", but found no colon')
    if _NAME.match(name) is None:
        raise SpecError(f"expected a header name before the colon, but found {name!r}")
    if _BAD_VALUE.search(value):
        raise SpecError(f'the value of the header "{name}" has control characters in it')
    return line


def parse_headers(lines: Iterable[str]) -> dict[str, str]:
    """Headers by name; of several with one name the last one, and none that are empty.

    Example:
        >>> parse_headers(["X-A: 1", "x-a: 2", "Empty:"])
        {'x-a': '2'}
    """
    found: dict[str, tuple[str, str]] = {}
    for line in lines:
        name, _, value = line.partition(":")
        if value.strip():
            found[name.lower()] = (name, value.strip())
    return dict(found.values())


#: The reference's, too: there is a value, and nothing is known of its version.
NO_SIGN: Final = b"\x10"
_BY_DATE: Final = b"\x01"
_STRONG: Final = re.compile(r'\s*"([^"]+)"\s*\Z')
#: What may go into a header between quotes.
_SENDABLE: Final = re.compile(rb"\x00[\x20\x21\x23-\x7e]+\Z")


def generation_of(response: HttpResponse) -> bytes:
    r"""The generation of the value in a successful answer.

    Example:
        >>> generation_of(HttpResponse(200, {"ETag": '"5f-2"'}))
        b'\x005f-2'
    """
    etag = _STRONG.match(response.headers.get("ETag", ""))
    if etag is not None:
        return b"\0" + etag[1].encode("utf-8", "surrogateescape")
    changed, now, size = response.date("Last-Modified"), response.date(), response.size
    # A date counts seconds: within the second of a change there may be another one.
    if changed is None or now is None or now <= changed or size is None:
        return NO_SIGN
    return _BY_DATE + f"{changed:.0f}:{size}".encode()


def etag_of(generation: bytes) -> str | None:
    r"""The ETag to send as a condition; None if the generation is not made of one.

    Example:
        >>> etag_of(b"\x005f-2"), etag_of(b"\x10")
        ('"5f-2"', None)
    """
    if _SENDABLE.match(generation) is None:
        return None
    return f'"{generation[1:].decode()}"'


#: Beside those of any GET. By HTTP, 204 says that there is nothing to send, not that there is no
#: value.
_ANSWERS: Final = frozenset({203, 410})


@lru_cache(maxsize=16)
def _with_answers(statuses: frozenset[int]) -> frozenset[int]:
    return statuses | _ANSWERS


class HttpStore(EtagReads, CachedRead, KvStore):
    """Values below a URL.

    Args:
        base_url: scheme, host, maybe the beginning of the path, maybe a query.
        headers: extra ones, sent with every request.
        slots: how many requests at a time.
        retries: how often to try again.
        client: sends the requests; by default one is made.
    """

    inline = False
    writable = False
    listable = False

    def __init__(
        self,
        base_url: str,
        headers: Mapping[str, str] | None = None,
        *,
        slots: Semaphore | None = None,
        retries: HttpRequestRetries | None = None,
        client: HttpClient | None = None,
    ) -> None:
        slots = Semaphore(32) if slots is None else slots
        self.width = slots.limit
        self._base = BaseUrl.of(base_url)
        self._headers = headers or {}
        self._says_how_fresh = "cache-control" in {name.lower() for name in self._headers}
        self._client = client or HttpClient(
            slots=slots,
            retries=HttpRequestRetries() if retries is None else retries,
            describe=self.describe_key,
            redirects=True,
            unpack=True,
        )

    def read(
        self,
        key: str,
        byte_range: ByteRange = WHOLE,
        *,
        if_equal: bytes | None = None,
        if_not_equal: bytes | None = None,
    ) -> Coroutine[Any, Any, ReadResult]:
        return self._read(key, byte_range, None, if_equal, if_not_equal)

    async def read_as_of(
        self,
        key: str,
        byte_range: ByteRange,
        staleness_bound: float,
        *,
        if_equal: bytes | None = None,
        if_not_equal: bytes | None = None,
    ) -> ReadResult:
        return await self._read(key, byte_range, staleness_bound, if_equal, if_not_equal)

    def _read(
        self,
        key: str,
        byte_range: ByteRange,
        staleness_bound: float | None,
        if_equal: bytes | None,
        if_not_equal: bytes | None,
    ) -> Coroutine[Any, Any, ReadResult]:
        freshness = None if self._says_how_fresh else _freshness(staleness_bound)
        headers = {} if freshness is None else {"Cache-Control": freshness}
        if if_not_equal in (NO_SIGN, UNKNOWN):
            if_not_equal = None  # which proves nothing
        return self.read_by_get(key, byte_range, headers, if_equal, if_not_equal)

    async def get(
        self,
        key: str,
        byte_range: ByteRange,
        headers: Mapping[str, str],
        statuses: frozenset[int],
    ) -> HttpResponse:
        check_key(key)
        request = HttpRequest("GET", self._base.url(key), {**self._headers, **headers}, key=key)
        response = await self._client.send(request, _with_answers(statuses), byte_range)
        if byte_range.stop is None and response.size == byte_range.start > 0 == len(response.body):
            # Nothing is left there, which is said in an error that most servers give no version.
            nothing = ByteRange(byte_range.start, byte_range.start)
            return await self.get(key, nothing, headers, statuses)
        # Of what a cache kept, when it was new.
        age = response.headers.get("Age")
        if age is not None:
            response.time -= whole_number(age) or 0
        return response

    def generation_of(self, response: HttpResponse) -> bytes:
        return generation_of(response)

    def etag_of(self, generation: bytes) -> str | None:
        return etag_of(generation)

    async def write(
        self, key: str, value: Buffer | None, *, if_equal: bytes | None = None
    ) -> TimestampedStorageGeneration:
        raise UnsupportedError(
            f"cannot {'delete' if value is None else 'write'} {self.describe_key(key)}: the http "
            f"store is read-only"
        )

    def list(self, key_range: KeyRange = ALL) -> AsyncIterator[ListEntry]:
        raise UnsupportedError(
            f"cannot list {show_url(self._base.url(''))}: HTTP has no listing; open what is there "
            f"by its path"
        )

    async def delete_range(self, key_range: KeyRange = ALL) -> None:
        raise UnsupportedError(
            f"cannot delete at {show_url(self._base.url(''))}: the http store is read-only"
        )

    def describe_key(self, key: str) -> str:
        return f'"{show_url(self._base.url(key))}"'


def _freshness(staleness_bound: float | None) -> str | None:
    """What to say to caches on the way; by default they have to look again."""
    if staleness_bound is None:
        return "no-cache"
    age_s = time.time() - staleness_bound
    if age_s == math.inf:
        return None
    return f"max-age={age_s:.0f}" if age_s >= 1 else "no-cache"


@kvstore("http", schemes=["http", "https"])
class HttpSpec(KvStoreSpec):
    """`{"driver": "http", "base_url": "https://host/data/"}`, or `https://host/data/`.

    Attributes:
        base_url: where; a query goes along with every request.
        headers: extra headers, each `"Name: value"`.
        http_request_concurrency: the limit on requests at a time.
        http_request_retries: how often to try again.
        data_copy_concurrency: accepted as the reference does; decoding has limits of its own.
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset({
        "http_request_concurrency", "http_request_retries", "data_copy_concurrency",
    })  # fmt: skip
    verbose_flag: ClassVar[str | None] = "http_kvstore"

    base_url: str
    headers: tuple[str, ...] = ()
    http_request_concurrency: Resource[Semaphore] = ResourceField("http_request_concurrency")
    http_request_retries: Resource[HttpRequestRetries] = ResourceField("http_request_retries")
    data_copy_concurrency: Resource[ThreadLimiter] = ResourceField("data_copy_concurrency")

    @field_validator("headers")
    @classmethod
    def _sendable(cls, headers: tuple[str, ...]) -> tuple[str, ...]:
        for number, line in enumerate(headers):
            try:
                check_header(line)
            except SpecError as error:
                raise SpecError(error.problem, (number,)) from None
        return headers

    @field_validator("base_url")
    @classmethod
    def _check(cls, base_url: str) -> str:
        split_base(base_url)
        return base_url

    @model_validator(mode="after")
    def _normal(self) -> Self:
        base_url, above = split_base(self.base_url)
        object.__setattr__(self, "base_url", base_url)
        object.__setattr__(self, "path", join(above, self.path))
        return self

    def open(self) -> HttpStore:
        return HttpStore(
            self.base_url,
            parse_headers(self.headers),
            slots=self.http_request_concurrency.value,
            retries=self.http_request_retries.value,
        )

    def to_url(self) -> str:
        return BaseUrl.of(self.base_url).url(self.path) if self.path else self.base_url

    @classmethod
    def from_url(cls, url: str) -> dict[str, object]:
        base_url, path = split_base(url)
        return {"driver": "http", "base_url": base_url, **({"path": path} if path else {})}
