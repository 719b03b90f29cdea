"""The JSON of the HTTP store: its members and its URL.

The URL is kept in two parts: `base_url` has the host and the query, which go with every key, and
`path` what is between them. What opens it comes with the store.
"""

from __future__ import annotations

from typing import Annotated, Self
from urllib.parse import urlsplit, urlunsplit

from tensorstore_py.errors import SpecError, UnsupportedError
from tensorstore_py.kvstores.http.resources import HttpRequestRetries
from tensorstore_py.plugin import (
    BeforeValidator,
    KvStoreSpec,
    Places,
    Resource,
    ResourceField,
    Slots,
    decode_path,
    describe,
    encode_path,
    kvstore,
    model_validator,
)

__all__ = ["HttpSpec"]


def _base_url(json: object) -> str:
    if not isinstance(json, str):
        raise SpecError(f"expected a string, but found {describe(json)}")
    try:
        parts = urlsplit(json)
    except ValueError as error:
        raise SpecError(f"not a URL: {error}") from None
    if parts.scheme not in ("http", "https"):
        raise SpecError(f'expected a URL that begins with "http://" or "https://", not "{json}"')
    if parts.fragment or json.endswith("#"):
        raise SpecError('fragment identifier not supported; write a literal "#" as "%23"')
    return json


def _header(json: object) -> str:
    if not isinstance(json, str):
        raise SpecError(f"expected a string, but found {describe(json)}")
    name, colon, value = json.partition(":")
    if not colon or not name.strip() or any(mark in json for mark in "\r\n\0"):
        # the value may be a secret
        raise SpecError('expected a header, "name: value"')
    return f"{name}:{value}"


@kvstore("http", schemes=["http", "https"])
class HttpSpec(KvStoreSpec):
    """`{"driver": "http", "base_url": "https://host", "path": "/a/"}`, or `https://host/a/`.

    Attributes:
        base_url: the URL; its own path, if it has one, is moved to `path`.
        headers: headers of every request, each `"name: value"`.
        http_request_concurrency: how many requests run at a time.
        http_request_retries: how to go on after a failure that may pass.
        data_copy_concurrency: how many threads copy.

    Example:
        >>> HttpSpec.from_url("https://host/a%20b/?version=2")
        {'driver': 'http', 'base_url': 'https://host?version=2', 'path': '/a b/'}
    """

    base_url: Annotated[str, BeforeValidator(_base_url)]
    headers: tuple[Annotated[str, BeforeValidator(_header)], ...] = ()
    http_request_concurrency: Resource[Slots] = ResourceField("http_request_concurrency")
    http_request_retries: Resource[HttpRequestRetries] = ResourceField("http_request_retries")
    data_copy_concurrency: Resource[Places] = ResourceField("data_copy_concurrency")

    @model_validator(mode="after")
    def _one_path(self) -> Self:
        parts = urlsplit(self.base_url)
        if not parts.path:
            return self
        if self.path.startswith("/"):
            raise SpecError(
                f'the absolute path "{self.path}" contradicts the path in the base URL; '
                "leave one of them out",
                ("path",),
            )
        path = decode_path(parts.path)
        joint = "/" if self.path and not path.endswith("/") else ""
        base_url = urlunsplit((parts.scheme, parts.netloc, "", parts.query, ""))
        return self.replace(base_url=base_url, path=f"{path}{joint}{self.path}")

    def to_url(self) -> str:
        if self.headers:
            raise UnsupportedError("an http store with headers has no URL form")
        parts = urlsplit(self.base_url)
        path = encode_path(self.path)
        return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))

    @classmethod
    def from_url(cls, url: str) -> dict[str, object]:
        parts = urlsplit(_base_url(url))
        base_url = urlunsplit((parts.scheme, parts.netloc, "", parts.query, ""))
        if not parts.netloc:
            base_url = f"{parts.scheme}://"
        spec: dict[str, object] = {"driver": "http", "base_url": base_url}
        return {**spec, "path": decode_path(parts.path)} if parts.path else spec
