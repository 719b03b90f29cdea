"""What the Google Cloud Storage store's contexts may say; the store itself is to come."""

from tensorstore_py.kvstores.gcs.resources import (
    GcsRateLimiter,
    GcsRequestConcurrency,
    GcsRequestRetries,
    GcsUserProject,
)

__all__ = ["GcsRateLimiter", "GcsRequestConcurrency", "GcsRequestRetries", "GcsUserProject"]
