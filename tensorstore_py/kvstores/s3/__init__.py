"""What the S3 store's contexts may say; the store itself is to come."""

from tensorstore_py.kvstores.s3.resources import (
    AwsCredentials,
    S3RateLimiter,
    S3RequestConcurrency,
    S3RequestRetries,
)

__all__ = ["AwsCredentials", "S3RateLimiter", "S3RequestConcurrency", "S3RequestRetries"]
