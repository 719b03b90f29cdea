"""What the answers of a service mean.

HTTP says much by the status alone, and that is the base class. Services with error codes of their
own derive from it. Pure: an answer in, a verdict or some words out.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from tensorstore_py._net.digests import stated_digests
from tensorstore_py._net.failures import status_error
from tensorstore_py.errors import TensorStoreError

if TYPE_CHECKING:
    from tensorstore_py._net.message import HttpRequest, HttpResponse

__all__ = ["HttpDialect", "HttpVerdict"]


class HttpVerdict(enum.Enum):
    """What to do about an answer that is no success.

    Attributes:
        FAIL: give up; the same would come again.
        RETRY: it may pass.
        REFRESH: the credentials were refused; others may not be.
        SKEWED: the clocks differ.
    """

    FAIL = enum.auto()
    RETRY = enum.auto()
    REFRESH = enum.auto()
    SKEWED = enum.auto()


class HttpDialect:
    """Plain HTTP.

    Attributes:
        name: of the store, which the retries resource is named after.
        retried: statuses that may pass.
    """

    name: ClassVar[str] = "http"
    retried: ClassVar[frozenset[int]] = frozenset({408, 425, 429, 500, 502, 503, 504})

    def verdict(self, response: HttpResponse) -> HttpVerdict:
        """What to do about an answer with an unexpected status."""
        if response.status in self.retried:
            return HttpVerdict.RETRY
        return HttpVerdict.REFRESH if response.status == 401 else HttpVerdict.FAIL

    def belies(self, request: HttpRequest, response: HttpResponse) -> bool:
        """Whether an answer with an expected status is an error after all."""
        return False

    def is_cut(self, response: HttpResponse) -> bool:
        """Whether of what an answer that is no success says the end is missing."""
        return False

    def error(self, response: HttpResponse) -> type[TensorStoreError]:
        """The class of error that an answer becomes."""
        return status_error(response.status)

    def digests(self, headers: Mapping[str, str]) -> Mapping[str, bytes]:
        """The checksums of the whole value that its headers state, see `check_digests`."""
        return stated_digests(headers)

    def words(self, response: HttpResponse) -> str:
        """What the service says about it, in one line; `""` if nothing is worth telling."""
        if "text/plain" not in response.headers.get("Content-Type", ""):
            return ""
        return " ".join(bytes(response.body[:200]).decode("utf-8", "replace").split())
