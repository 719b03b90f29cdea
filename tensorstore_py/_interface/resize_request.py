"""What is asked of a driver that is to change its bounds: a plain value in its own dimensions.

What the bounds may become is the driver's matter.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["ResizeRequest"]


class ResizeRequest(NamedTuple):
    """New bounds in the driver's own dimensions; None leaves a bound as it is.

    Attributes:
        inclusive_min: new lower bounds.
        exclusive_max: new upper bounds.
        metadata_only: leave chunks outside the new bounds where they are.
        expand_only: fail if a dimension would shrink.
        shrink_only: fail if a dimension would grow.
    """

    inclusive_min: tuple[int | None, ...]
    exclusive_max: tuple[int | None, ...]
    metadata_only: bool = False
    expand_only: bool = False
    shrink_only: bool = False
