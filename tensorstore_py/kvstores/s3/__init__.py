"""The S3 store: values in buckets of AWS, and of everything that speaks its language.

Read `spec`, then `store` (reads, listings) and `writes`; `bucket` sends requests, `signing` proves
who sends them, `dialect` says what answers mean.
"""

from tensorstore_py.kvstores.s3.resources import (
    AwsCredentials,
    S3RateLimiter,
    S3RequestConcurrency,
    S3RequestRetries,
)
from tensorstore_py.kvstores.s3.spec import S3Spec
from tensorstore_py.kvstores.s3.store import S3Store

__all__ = [
    "AwsCredentials",
    "S3RateLimiter",
    "S3RequestConcurrency",
    "S3RequestRetries",
    "S3Spec",
    "S3Store",
]
