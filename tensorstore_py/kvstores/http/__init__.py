"""What the HTTP store's specs and contexts may say; the store itself is to come."""

from tensorstore_py.kvstores.http.resources import HttpRequestConcurrency, HttpRequestRetries
from tensorstore_py.kvstores.http.spec import HttpSpec

__all__ = ["HttpRequestConcurrency", "HttpRequestRetries", "HttpSpec"]
