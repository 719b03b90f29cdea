"""The Google Cloud Storage store.

Read `spec`, then `store`; `protocol` says what the service's answers mean, `uploads` how values are
sent, `own_writes` what the writers of this process know of each other.
"""

from tensorstore_py.kvstores.gcs.spec import (
    GcsRateLimiter,
    GcsRequestConcurrency,
    GcsRequestRetries,
    GcsSpec,
    GcsUserProject,
)
from tensorstore_py.kvstores.gcs.store import GcsStore

__all__ = [
    "GcsRateLimiter",
    "GcsRequestConcurrency",
    "GcsRequestRetries",
    "GcsSpec",
    "GcsStore",
    "GcsUserProject",
]
