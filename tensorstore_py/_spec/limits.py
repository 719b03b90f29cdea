"""Context resources that stores have alike: how many requests at a time, how often to retry.

Base classes only: a store derives from them, registers the result under its own name with
`@context_resource("file_io_retries")`, and sets its own defaults. Nothing here waits or counts.
"""

from __future__ import annotations

import os
import random
from typing import Annotated, ClassVar, Literal

from tensorstore_py._spec.duration import Duration
from tensorstore_py._spec.json_value import describe
from tensorstore_py._spec.model import BeforeValidator, Level, NonNegativeInt, integral
from tensorstore_py._spec.resource import ResourceModel
from tensorstore_py.errors import SpecError

__all__ = ["ConcurrencyModel", "RetriesModel"]

_LIMIT = Level(1, 2**64 - 1)


def _check_limit(json: object) -> object:
    if json == "shared":
        return json
    try:
        return _LIMIT.check(integral(json))
    except SpecError:
        raise SpecError(
            f'expected "shared" or a positive integer, but found {describe(json)}'
        ) from None


class ConcurrencyModel(ResourceModel):
    """`{"limit": "shared"}` or `{"limit": 8}`: how many requests may be under way at a time.

    Attributes:
        limit: a number for this resource alone; `"shared"` is the number for the whole process.
    """

    limit: Annotated[int | Literal["shared"], BeforeValidator(_check_limit)] = "shared"

    def create(self) -> int:
        return self.shared_limit() if self.limit == "shared" else self.limit

    @classmethod
    def shared_limit(cls) -> int:
        """What `"shared"` stands for; the number of cores, but at least 4, unless overridden."""
        return max(4, os.cpu_count() or 1)


class RetriesModel(ResourceModel):
    """How to go on after a failure that may pass.

    Attributes:
        max_retries: how often after the first attempt.
        initial_delay: the wait after the first failure; doubled after each further one.
        max_delay: the longest wait.
    """

    config_only: ClassVar[bool] = True

    max_retries: NonNegativeInt = 32
    initial_delay: Duration = Duration.parse("1s")
    max_delay: Duration = Duration.parse("32s")

    def delay_s(self, attempt: int) -> float:
        """Seconds to wait after failure number `attempt`, counted from 0, with some jitter."""
        initial = max(0.0, self.initial_delay.seconds)
        # Many clients that failed together should not come back together.
        jitter = random.uniform(0, min(1.0, initial))  # noqa: S311 - nothing secret
        return max(0.0, min(initial * 2.0 ** min(attempt, 64) + jitter, self.max_delay.seconds))
