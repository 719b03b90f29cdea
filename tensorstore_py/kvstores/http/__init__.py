"""The HTTP store: reads what web servers have."""

from tensorstore_py.kvstores.http.resources import HttpRequestConcurrency, HttpRequestRetries
from tensorstore_py.kvstores.http.spec import HttpSpec
from tensorstore_py.kvstores.http.store import HttpStore

__all__ = ["HttpRequestConcurrency", "HttpRequestRetries", "HttpSpec", "HttpStore"]
