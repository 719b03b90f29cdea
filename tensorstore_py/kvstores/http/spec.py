"""The JSON of the HTTP store: its members, its URL, and how it opens. Opening sends nothing."""

from __future__ import annotations

from typing import Annotated, ClassVar, Self

from tensorstore_py.kvstores.http.headers import check_header, parse_headers
from tensorstore_py.kvstores.http.resources import HttpRequestRetries
from tensorstore_py.kvstores.http.store import HttpStore
from tensorstore_py.kvstores.http.urls import Place, join, split_base
from tensorstore_py.plugin import (
    AfterValidator,
    DataCopyConcurrency,
    KvStoreSpec,
    Resource,
    ResourceField,
    Slots,
    field_validator,
    kvstore,
    model_validator,
)

__all__ = ["HttpSpec"]


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

    base_url: str
    headers: tuple[Annotated[str, AfterValidator(check_header)], ...] = ()
    http_request_concurrency: Resource[Slots] = ResourceField("http_request_concurrency")
    http_request_retries: Resource[HttpRequestRetries] = ResourceField("http_request_retries")
    data_copy_concurrency: Resource[DataCopyConcurrency] = ResourceField("data_copy_concurrency")

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
        return Place.of(self.base_url).url(self.path) if self.path else self.base_url

    @classmethod
    def from_url(cls, url: str) -> dict[str, object]:
        base_url, path = split_base(url)
        return {"driver": "http", "base_url": base_url, **({"path": path} if path else {})}
