"""Resize requests: bounds of a view turned into bounds of the array underneath. Pure.

A view may show only a part of the array. Growing "its" upper bound then changes more than it
shows, which is refused unless the caller says that this is meant (`tied`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorstore_py._interface.driver import ResizeRequest
from tensorstore_py.errors import FailedPreconditionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorstore_py._index import IndexDomain, IndexTransform, OutputIndexMap

__all__ = ["resize_request"]


def resize_request(
    transform: IndexTransform,
    domain: IndexDomain,
    inclusive_min: Sequence[int | None] | None,
    exclusive_max: Sequence[int | None] | None,
    *,
    tied: bool,
) -> ResizeRequest:
    """What the driver must do so that the view gets these bounds.

    Args:
        transform: the view.
        domain: the array's domain.
        inclusive_min: the view's new lower bounds.
        exclusive_max: the view's new upper bounds.
        tied: allow changes to bounds that the view does not show in full.

    Raises:
        ValueError: a list of the wrong length, or an explicit bound; names the dimension.
        FailedPreconditionError: more than the view shows would change, and `tied` is off.
    """
    rank = transform.input_rank
    lows = _bounds("inclusive_min", inclusive_min, rank)
    highs = _bounds("exclusive_max", exclusive_max, rank)
    _check_implicit(transform, lows, highs)
    new_low: list[int | None] = [None] * transform.output_rank
    new_high: list[int | None] = [None] * transform.output_rank
    changed = any(bound is not None for bound in (*lows, *highs))
    for output, each in enumerate(transform.maps):
        if changed and not tied:
            _check_shown(output, each, transform, domain)
        dim = each.input_dimension
        if dim is None or each.stride not in (1, -1):
            continue
        low, high = lows[dim], highs[dim]
        if each.stride == 1:
            new_low[output] = None if low is None else low + each.offset
            new_high[output] = None if high is None else high + each.offset
        else:
            new_low[output] = None if high is None else each.offset - high + 1
            new_high[output] = None if low is None else each.offset - low + 1
    return ResizeRequest(tuple(new_low), tuple(new_high))


def _bounds(name: str, given: Sequence[int | None] | None, rank: int) -> tuple[int | None, ...]:
    if given is None:
        return (None,) * rank
    bounds = tuple(None if bound is None else int(bound) for bound in given)
    if len(bounds) != rank:
        raise ValueError(f"{name} has {len(bounds)} elements, but the view has rank {rank}")
    return bounds


def _check_implicit(
    transform: IndexTransform, lows: Sequence[int | None], highs: Sequence[int | None]
) -> None:
    for dim in range(transform.input_rank):
        if lows[dim] is not None and not transform.implicit_lower_bounds[dim]:
            if lows[dim] == transform.input_origin[dim]:
                continue
            raise FailedPreconditionError(
                f"Invalid resize request for input dimension {dim}: cannot change explicit lower "
                f"bound {transform.input_origin[dim]}"
            )
        if highs[dim] is not None and not transform.implicit_upper_bounds[dim]:
            if highs[dim] == transform.input_exclusive_max[dim]:
                continue
            raise FailedPreconditionError(
                f"Invalid resize request for input dimension {dim}: cannot change explicit upper "
                f"bound {transform.input_exclusive_max[dim]}; resize a view not sliced there"
            )


def _check_shown(
    output: int, each: OutputIndexMap, transform: IndexTransform, domain: IndexDomain
) -> None:
    """Refuse if the view leaves out something of this dimension of the array."""
    low, high = domain.inclusive_min[output], domain.exclusive_max[output]
    dim = each.input_dimension
    if dim is not None and each.stride in (1, -1):
        ends = (
            each.offset + each.stride * transform.input_origin[dim],
            each.offset + each.stride * (transform.input_exclusive_max[dim] - 1),
        )
        upper_open = transform.implicit_upper_bounds[dim] and each.stride == 1
        if min(ends) <= low and (max(ends) >= high - 1 or upper_open):
            return
    raise FailedPreconditionError(
        f"the resize would also affect what this view does not show of dimension {output} "
        f"([{low}, {high}) of the array); pass resize_tied_bounds=True if that is meant"
    )
