"""The door of authors of stores that speak HTTP: requests, the client, and what responses mean.

`docs/writing_an_http_store.md` builds one.
"""

from tensorstore_py._net.client import (
    HttpClient,
)
from tensorstore_py._net.message import (
    HttpRequest,
    HttpResponse,
    show_url,
    whole_number,
)
from tensorstore_py._net.retry import (
    HttpTiming,
)
from tensorstore_py._net.service import (
    HttpDialect,
    HttpSigner,
    HttpThrottle,
    HttpVerdict,
)
from tensorstore_py._net.service_store import (
    CoalescedReads,
    EtagReads,
    Page,
    PagedListing,
)
from tensorstore_py._runtime.limiters import RateLimits
from tensorstore_py._spec.limits import (
    RateModel,
    RequestConcurrencyModel,
    RetriesModel,
)

__all__ = [
    "CoalescedReads",
    "EtagReads",
    "HttpClient",
    "HttpDialect",
    "HttpRequest",
    "HttpResponse",
    "HttpSigner",
    "HttpThrottle",
    "HttpTiming",
    "HttpVerdict",
    "Page",
    "PagedListing",
    "RateLimits",
    "RateModel",
    "RequestConcurrencyModel",
    "RetriesModel",
    "show_url",
    "whole_number",
]
