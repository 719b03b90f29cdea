"""The JSON of the Google Cloud Storage store: its members, its URL, and its context resources.

Which bucket, and how to ask for it; opening sends nothing. Where the service is and who asks is up
to the environment, see `urls` and `credentials`.
"""

from __future__ import annotations

import re
from typing import ClassVar

from tensorstore_py.errors import SpecError
from tensorstore_py.kvstores.gcs.credentials import Grant
from tensorstore_py.kvstores.gcs.store import GcsStore
from tensorstore_py.kvstores.gcs.urls import Bucket, Service
from tensorstore_py.plugin.http import RateLimits, RateModel, RequestConcurrencyModel, RetriesModel
from tensorstore_py.plugin.kvstore import (
    KvStoreSpec,
    Resource,
    ResourceField,
    ResourceModel,
    Semaphore,
    ThreadLimiter,
    context_resource,
    decode_path,
    describe,
    encode_path,
    field_validator,
    kvstore,
    root_url_rest,
)

__all__ = [
    "GcsRateLimiter",
    "GcsRequestConcurrency",
    "GcsRequestRetries",
    "GcsSpec",
    "GcsUserProject",
]


@context_resource("gcs_request_concurrency")
class GcsRequestConcurrency(RequestConcurrencyModel):
    """How many requests to Google Cloud Storage run at a time.

    Attributes:
        limit: a number for this resource alone; `"shared"` is 32 for the whole process, or what
            the environment variable `TENSORSTORE_GCS_REQUEST_CONCURRENCY` says.
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset()

    variable: ClassVar[str | None] = "TENSORSTORE_GCS_REQUEST_CONCURRENCY"


@context_resource("gcs_request_retries")
class GcsRequestRetries(RetriesModel):
    """How to go on after a request to Google Cloud Storage failed in a way that may pass."""

    data_members: ClassVar[frozenset[str] | None] = frozenset()


@context_resource("experimental_gcs_rate_limiter")
class GcsRateLimiter(RateModel):
    """How many requests a second Google Cloud Storage is asked at most."""

    data_members: ClassVar[frozenset[str] | None] = frozenset()

    variable: ClassVar[str | None] = "TENSORSTORE_GCS_RATE_LIMITER_DOUBLING_TIME"


@context_resource("gcs_user_project")
class GcsUserProject(ResourceModel):
    """Who pays for requests to buckets whose requesters pay.

    Attributes:
        project_id: the project; by default the bucket's owner pays.
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset()

    config_only: ClassVar[bool] = True

    project_id: str | None = None

    @field_validator("project_id", mode="before")
    @classmethod
    def _text(cls, json: object) -> object:
        if not isinstance(json, str):  # null neither
            raise SpecError(f"expected a string, but found {describe(json)}")
        return json


_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]", re.ASCII)
_LINE_BREAK = re.compile(r"[\r\n]")


@kvstore("gcs", schemes=["gs"])
class GcsSpec(KvStoreSpec):
    """`{"driver": "gcs", "bucket": "name", "path": "a/"}`, or `gs://name/a/`.

    Attributes:
        bucket: the bucket.
        gcs_request_concurrency: how many requests run at a time.
        gcs_request_retries: how to go on after a failure that may pass.
        gcs_user_project: who pays.
        experimental_gcs_rate_limiter: how many requests a second are made at most.
        data_copy_concurrency: how many threads copy.

    Example:
        >>> GcsSpec.from_url("gs://bucket/a%20b/")
        {'driver': 'gcs', 'bucket': 'bucket', 'path': 'a b/'}
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset({
        "gcs_request_concurrency", "gcs_request_retries", "experimental_gcs_rate_limiter",
        "data_copy_concurrency",
    })  # fmt: skip
    verbose_flag: ClassVar[str | None] = "gcs_http"

    bucket: str
    gcs_request_concurrency: Resource[Semaphore] = ResourceField("gcs_request_concurrency")
    gcs_request_retries: Resource[GcsRequestRetries] = ResourceField("gcs_request_retries")
    gcs_user_project: Resource[GcsUserProject] = ResourceField("gcs_user_project")
    experimental_gcs_rate_limiter: Resource[RateLimits] | None = ResourceField(
        "experimental_gcs_rate_limiter", optional=True
    )
    data_copy_concurrency: Resource[ThreadLimiter] = ResourceField("data_copy_concurrency")

    @field_validator("bucket")
    @classmethod
    def _named(cls, bucket: str) -> str:
        parts = bucket.split(".")
        if not _BUCKET.fullmatch(bucket) or any(not 0 < len(part) <= 63 for part in parts):
            raise SpecError(
                f'"{bucket}" is no name of a bucket: 3 to 63 lower-case letters, digits, dots, '
                "dashes and underscores"
            )
        return bucket

    @field_validator("path")
    @classmethod
    def _one_line(cls, path: str) -> str:
        if _LINE_BREAK.search(path):
            raise SpecError("a path in a bucket has no line breaks")
        return path

    def open(self) -> GcsStore:
        service, limiter = Service.named(), self.experimental_gcs_rate_limiter
        return GcsStore(
            Bucket(service, self.bucket, self.gcs_user_project.value.project_id),
            slots=self.gcs_request_concurrency.value,
            retries=self.gcs_request_retries.value,
            rates=None if limiter is None else limiter.value,
            grant=None if service.is_open else Grant.found(nearby=service.is_local),
        )

    def to_url(self) -> str:
        return f"gs://{self.bucket}/{encode_path(self.path)}"

    @classmethod
    def from_url(cls, url: str) -> dict[str, object]:
        bucket, _, path = root_url_rest(url, "gs").partition("/")
        spec: dict[str, object] = {"driver": "gcs", "bucket": bucket}
        return {**spec, "path": decode_path(path)} if path else spec
