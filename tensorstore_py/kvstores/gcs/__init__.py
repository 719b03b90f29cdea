"""The Google Cloud Storage store."""

from tensorstore_py.kvstores.gcs.resources import (
    GcsRateLimiter,
    GcsRequestConcurrency,
    GcsRequestRetries,
    GcsUserProject,
)
from tensorstore_py.kvstores.gcs.spec import GcsSpec
from tensorstore_py.kvstores.gcs.store import GcsStore

__all__ = [
    "GcsRateLimiter",
    "GcsRequestConcurrency",
    "GcsRequestRetries",
    "GcsSpec",
    "GcsStore",
    "GcsUserProject",
]
