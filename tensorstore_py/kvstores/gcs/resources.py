"""Context resources of the Google Cloud Storage store: limits, retries, and who pays.

JSON in, live limits out; nothing here opens a connection or needs Google's libraries.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from tensorstore_py.errors import SpecError
from tensorstore_py.plugin import (
    BeforeValidator,
    RateModel,
    RequestConcurrencyModel,
    ResourceModel,
    RetriesModel,
    context_resource,
    describe,
)

__all__ = ["GcsRateLimiter", "GcsRequestConcurrency", "GcsRequestRetries", "GcsUserProject"]


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


def _text(json: object) -> str:
    if not isinstance(json, str):
        raise SpecError(f"expected a string, but found {describe(json)}")
    return json


@context_resource("gcs_user_project")
class GcsUserProject(ResourceModel):
    """Who pays for requests to buckets whose requesters pay.

    Attributes:
        project_id: the project; by default the bucket's owner pays.
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset()

    config_only: ClassVar[bool] = True

    project_id: Annotated[str | None, BeforeValidator(_text)] = None
