"""Context resources of the HTTP store: how many requests at a time, how often to try again.

JSON in, live limits out; nothing here opens a connection or needs an HTTP library.
"""

from __future__ import annotations

from typing import ClassVar

from tensorstore_py.plugin import RequestConcurrencyModel, RetriesModel, context_resource

__all__ = ["HttpRequestConcurrency", "HttpRequestRetries"]


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
