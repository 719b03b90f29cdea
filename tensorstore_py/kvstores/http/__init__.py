"""The HTTP store: reads what web servers have."""

from tensorstore_py.kvstores.http.store import (
    HttpRequestConcurrency,
    HttpRequestRetries,
    HttpSpec,
    HttpStore,
)

__all__ = ["HttpRequestConcurrency", "HttpRequestRetries", "HttpSpec", "HttpStore"]
