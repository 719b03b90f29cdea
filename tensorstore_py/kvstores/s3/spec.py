"""The JSON of the S3 store: its members, its URL, and how it opens. Opening sends nothing."""

from __future__ import annotations

import re
from typing import ClassVar

from tensorstore_py.errors import SpecError, UnsupportedError
from tensorstore_py.kvstores.s3.address import (
    DEFAULT_REGION,
    Address,
    aws_address,
    endpoint_address,
    environment_endpoint,
)
from tensorstore_py.kvstores.s3.bucket import S3Bucket
from tensorstore_py.kvstores.s3.resources import (
    AwsCredentials,
    S3RequestRetries,
)
from tensorstore_py.kvstores.s3.store import S3Store
from tensorstore_py.plugin.http import RateLimits
from tensorstore_py.plugin.kvstore import (
    KvStoreSpec,
    Resource,
    ResourceField,
    Semaphore,
    ThreadLimiter,
    decode_path,
    encode_path,
    field_validator,
    kvstore,
    model_validator,
    root_url_rest,
)

__all__ = ["S3Spec"]

#: Lower-case letters, digits, dots and dashes; old buckets may have underscores and capitals.
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]", re.ASCII)
#: Names from before there were regions are all in the first one.
_HOST_NAME = re.compile(r"[a-z0-9.-]{3,63}", re.ASCII)
_ADDRESS = re.compile(r"\d+\.\d+\.\d+\.\d+", re.ASCII)


@kvstore("s3", schemes=["s3"])
class S3Spec(KvStoreSpec):
    """`{"driver": "s3", "bucket": "name", "path": "a/"}`, or `s3://name/a/`.

    Attributes:
        bucket: the bucket; may be left out where the endpoint says which.
        aws_region: the region; found out by default.
        endpoint: URL of the service, for anything that is not AWS itself; by default what the
            environment variable `AWS_ENDPOINT_URL_S3`, else `AWS_ENDPOINT_URL` says.
        host_header: what to put into the header `Host`, where that is not the endpoint's.
        requester_pays: pay for requests to buckets whose requesters pay.
        use_conditional_write: whether writes may be made conditional; found out by default.
        aws_credentials: where credentials come from.
        s3_request_concurrency: how many requests run at a time.
        s3_request_retries: how to go on after a failure that may pass.
        experimental_s3_rate_limiter: how many requests a second are made at most.
        data_copy_concurrency: how many threads copy.

    Example:
        >>> S3Spec.from_url("s3://bucket/a%20b/")
        {'driver': 's3', 'bucket': 'bucket', 'path': 'a b/'}
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset({
        "aws_credentials", "s3_request_concurrency", "s3_request_retries",
        "experimental_s3_rate_limiter", "data_copy_concurrency",
    })  # fmt: skip

    bucket: str = ""
    aws_region: str = ""
    endpoint: str | None = None
    host_header: str | None = None
    requester_pays: bool = False
    use_conditional_write: bool | None = None
    aws_credentials: Resource[AwsCredentials] = ResourceField("aws_credentials")
    s3_request_concurrency: Resource[Semaphore] = ResourceField("s3_request_concurrency")
    s3_request_retries: Resource[S3RequestRetries] = ResourceField("s3_request_retries")
    experimental_s3_rate_limiter: Resource[RateLimits] | None = ResourceField(
        "experimental_s3_rate_limiter", optional=True
    )
    data_copy_concurrency: Resource[ThreadLimiter] = ResourceField("data_copy_concurrency")

    @field_validator("bucket")
    @classmethod
    def _named(cls, bucket: str) -> str:
        if bucket and (
            not _BUCKET.fullmatch(bucket) or ".." in bucket or _ADDRESS.fullmatch(bucket)
        ):
            raise SpecError(
                f'"{bucket}" is no name of a bucket: 3 to 63 letters, digits, dots and dashes'
            )
        return bucket

    @model_validator(mode="after")
    def _somewhere(self) -> S3Spec:
        if not self.bucket and self.endpoint is None:
            raise SpecError('this member is required where no "endpoint" is given', ("bucket",))
        return self

    def open(self) -> S3Store:
        limiter = self.experimental_s3_rate_limiter
        bucket = S3Bucket(
            self.bucket,
            self.address(),
            self.aws_credentials.value,
            slots=self.s3_request_concurrency.value,
            retries=self.s3_request_retries.value,
            rates=None if limiter is None else limiter.value,
            requester_pays=self.requester_pays,
        )
        return S3Store(
            bucket,
            width=self.s3_request_concurrency.value.limit,
            use_conditional_write=self.use_conditional_write,
        )

    def address(self) -> Address | None:
        """Where the bucket is; None if AWS has to be asked for its region.

        Raises:
            SpecError: the endpoint is no URL of an HTTP server.
        """
        if self.endpoint is not None:
            return endpoint_address(self.endpoint, self.bucket, self.aws_region, self.host_header)
        if self.host_header is not None:
            raise SpecError(
                '"host_header" cannot be set without also setting "endpoint"', ("host_header",)
            )
        name, endpoint = environment_endpoint()
        if endpoint:
            try:
                return endpoint_address(endpoint, self.bucket, self.aws_region, None)
            except SpecError as error:
                raise SpecError(f"the environment variable {name}: {error.problem}") from None
        if not _HOST_NAME.fullmatch(self.bucket):
            return aws_address(self.bucket, self.aws_region or DEFAULT_REGION)
        return aws_address(self.bucket, self.aws_region) if self.aws_region else None

    def to_url(self) -> str:
        if self.endpoint is not None:
            raise UnsupportedError("an s3 store with an endpoint of its own has no URL form")
        return f"s3://{self.bucket}/{encode_path(self.path)}"

    @classmethod
    def from_url(cls, url: str) -> dict[str, object]:
        bucket, _, path = root_url_rest(url, "s3").partition("/")
        spec: dict[str, object] = {"driver": "s3", "bucket": bucket}
        return {**spec, "path": decode_path(path)} if path else spec
