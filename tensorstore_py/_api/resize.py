"""Resize requests: bounds of a view turned into bounds of the array underneath. Pure.

A view may show only a part of the array. Growing "its" upper bound then changes more than it
shows, which is refused unless the caller says that this is meant (`tied`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorstore_py._interface.driver import ResizeRequest
from tensorstore_py.errors import FailedPreconditionError, OutOfRangeError

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
        ValueError: a list of bounds has the wrong length.
        OutOfRangeError: a lower bound is above the upper bound; names the dimension.
        FailedPreconditionError: a bound is explicit in the view, or the view steps over positions
            of a dimension to resize, or more than the view shows would change and `tied` is off;
            names the dimension.
    """
    rank = transform.input_rank
    lows = _bounds("inclusive_min", inclusive_min, rank)
    highs = _bounds("exclusive_max", exclusive_max, rank)
    for axis in range(rank):
        _check_implicit(transform, axis, lows[axis], highs[axis])
    new_low: list[int | None] = [None] * transform.output_rank
    new_high: list[int | None] = [None] * transform.output_rank
    for output, each in enumerate(transform.maps):
        dim = each.input_dimension
        if dim is None or (lows[dim] is None and highs[dim] is None):
            continue
        low, high = lows[dim], highs[dim]
        if each.stride == 1:
            new_low[output] = None if low is None else low + each.offset
            new_high[output] = None if high is None else high + each.offset
        elif each.stride == -1:
            new_low[output] = None if high is None else each.offset - high + 1
            new_high[output] = None if low is None else each.offset - low + 1
        else:
            raise FailedPreconditionError(
                f"cannot resize dimension {dim} of this view: it steps over dimension {output} of "
                f"the array by {each.stride}; resize a view that does not"
            )
    if not tied and any(bound is not None for bound in (*new_low, *new_high)):
        _check_diagonals(transform)
        for output, each in enumerate(transform.maps):
            _check_shown(output, each, transform, domain)
    return ResizeRequest(tuple(new_low), tuple(new_high))


def _bounds(name: str, given: Sequence[int | None] | None, rank: int) -> tuple[int | None, ...]:
    if given is None:
        return (None,) * rank
    bounds = tuple(None if bound is None else int(bound) for bound in given)
    if len(bounds) != rank:
        raise ValueError(f"{name} has {len(bounds)} elements, but the view has rank {rank}")
    return bounds


def _check_implicit(transform: IndexTransform, dim: int, low: int | None, high: int | None) -> None:
    """Refuse bounds that are none, and bounds in place of explicit ones."""
    if low is not None and high is not None and low > high:
        raise OutOfRangeError(f"cannot resize dimension {dim} to [{low}, {high})")
    for side, bound, implicit, present in (
        ("lower", low, transform.implicit_lower_bounds, transform.input_inclusive_min),
        ("upper", high, transform.implicit_upper_bounds, transform.input_exclusive_max),
    ):
        if bound is not None and not implicit[dim]:
            raise FailedPreconditionError(
                f"Invalid resize request for input dimension {dim}: cannot change explicit {side} "
                f"bound {present[dim]}; pass None for it, or resize a view not sliced there"
                + ("; a new shape is given as exclusive_max=" if side == "lower" else "")
            )


def _check_diagonals(transform: IndexTransform) -> None:
    """Refuse if one dimension of the view stands for several of the array."""
    used = [each.input_dimension for each in transform.maps if each.input_dimension is not None]
    for dim in used:
        if used.count(dim) > 1:
            raise FailedPreconditionError(
                f"dimension {dim} of this view is a diagonal, so several dimensions of the array "
                "would change; pass resize_tied_bounds=True if that is meant"
            )


def _check_shown(
    output: int, each: OutputIndexMap, transform: IndexTransform, domain: IndexDomain
) -> None:
    """Refuse if explicit bounds of the view leave out something of this dimension of the array."""
    low, high = domain.inclusive_min[output], domain.exclusive_max[output]
    dim = each.input_dimension
    if dim is None:
        shown = each.index_array is None and (low, high) == (each.offset, each.offset + 1)
    else:
        stride = each.stride or 0
        ends = [
            None if implicit[dim] else each.offset + stride * end[dim]
            for end, implicit in (
                (transform.input_inclusive_min, transform.implicit_lower_bounds),
                (transform.input_inclusive_max, transform.implicit_upper_bounds),
            )
        ]
        start, stop = ends[::stride] if stride in (1, -1) else (low - 1, high)
        shown = start in (None, low) and stop in (None, high - 1)
    if not shown:
        raise FailedPreconditionError(
            f"the resize would also affect what this view does not show of dimension {output} "
            f"([{low}, {high}) of the array); pass resize_tied_bounds=True if that is meant"
        )
