"""What the HTTP store's contexts may say; the store itself is to come."""

from tensorstore_py.kvstores.http.resources import HttpRequestConcurrency, HttpRequestRetries

__all__ = ["HttpRequestConcurrency", "HttpRequestRetries"]
