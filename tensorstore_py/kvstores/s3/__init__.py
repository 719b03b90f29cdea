"""What the S3 store's specs and contexts may say; the store itself is to come."""

from tensorstore_py.kvstores.s3.resources import (
    AwsCredentials,
    S3RateLimiter,
    S3RequestConcurrency,
    S3RequestRetries,
)
from tensorstore_py.kvstores.s3.spec import S3Spec

__all__ = ["AwsCredentials", "S3RateLimiter", "S3RequestConcurrency", "S3RequestRetries", "S3Spec"]
