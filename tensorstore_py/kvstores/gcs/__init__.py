"""What the Google Cloud Storage store's specs and contexts may say; the store itself is to come."""

from tensorstore_py.kvstores.gcs.resources import (
    GcsRateLimiter,
    GcsRequestConcurrency,
    GcsRequestRetries,
    GcsUserProject,
)
from tensorstore_py.kvstores.gcs.spec import GcsSpec

__all__ = [
    "GcsRateLimiter",
    "GcsRequestConcurrency",
    "GcsRequestRetries",
    "GcsSpec",
    "GcsUserProject",
]
