"""Changing an array's bounds through a view: resize requests, and appending.

A view may show only a part of the array. Growing "its" upper bound then changes more than it
shows, which is refused unless the caller says that this is meant (`tied`).

An append grows one dimension and writes there. The driver grows it from whatever it is by then, so
concurrent appends get positions one after the other and never the same ones. What is checked
against the bounds is checked again each time they turn out to have changed: an append that is
refused has changed nothing. A single writer may write first and grow after: `WriteAhead` finds out
if there is another writer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from tensorstore_py._index import d, propagate_bounds
from tensorstore_py._index.selection import parse_specs, resolve
from tensorstore_py._interface.driver import ResizeRequest
from tensorstore_py._interface.write_ahead import WriteAhead
from tensorstore_py.errors import FailedPreconditionError, MismatchError, OutOfRangeError, SpecError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from typing import Any

    from tensorstore_py._index import IndexDomain, IndexTransform, OutputIndexMap
    from tensorstore_py._interface.driver import Driver


__all__ = ["Append", "Grow", "ahead_of", "matched", "resize_request"]


def resize_request(
    transform: IndexTransform,
    domain: IndexDomain,
    inclusive_min: Sequence[int | None] | None,
    exclusive_max: Sequence[int | None] | None,
    *,
    tied: bool,
) -> ResizeRequest:
    """What the driver must do so that the view gets these bounds.

    `tied` allows changes to bounds that the view does not show in full.

    Raises:
        ValueError: a list of bounds has the wrong length.
        OutOfRangeError: a lower bound is above the upper bound; names the dimension.
        FailedPreconditionError: a bound is explicit in the view, or the view steps over positions
            of a dimension to resize, or more than the view shows would change and `tied` is off.
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


#: When an append grows the array: before it writes, or after.
Grow: TypeAlias = Literal["before", "after"]


def ahead_of(driver: Driver, grow: Grow) -> WriteAhead | None:
    """What writes ahead of the metadata, if that is asked for; a transaction does so anyway.

    Raises SpecError: `grow` is neither `"before"` nor `"after"`.
    """
    if grow not in get_args(Grow):
        raise SpecError(f'expected "before" or "after", not "{grow}"', ("grow",))
    return WriteAhead() if grow == "after" and driver.transaction is None else None


class Append:
    """One append of data of a shape, checked as far as it can be before anything is stored.

    With `ahead`, within which the driver then is, the array grows after it was written.

    Raises:
        IndexingError: no such dimension.
        MismatchError: the data has another number of dimensions than the view.
        FailedPreconditionError: the bound can't be changed through this view.
    """

    __slots__ = ("_ahead", "_dim", "_driver", "_output", "_shape", "_view")

    def __init__(
        self,
        driver: Driver,
        view: IndexTransform,
        axis: int | str,
        shape: Sequence[int],
        ahead: WriteAhead | None = None,
    ) -> None:
        (self._dim,) = resolve(parse_specs(axis), view.input_labels)
        self._driver = driver
        self._ahead = ahead
        self._view = view
        self._shape = tuple(shape)
        if len(self._shape) != view.input_rank:
            raise MismatchError(
                f"cannot append data of {len(self._shape)} dimensions, shape {list(self._shape)}, "
                f"to a view of {view.input_rank}; give it as many"
            )
        grown = self._request(driver.domain).exclusive_max
        found = [dim for dim, bound in enumerate(grown) if bound is not None]
        if not found:
            raise FailedPreconditionError(
                f"cannot append along dimension {self._dim}: it was added to this view and the "
                "array has nothing of it"
            )
        self._output = found[0]

    def _request(self, domain: IndexDomain) -> ResizeRequest:
        """The same as a resize, which has the same limits."""
        high: list[int | None] = [None] * self._view.input_rank
        high[self._dim] = self._view.input_exclusive_max[self._dim] + self._shape[self._dim]
        return resize_request(self._view, domain, None, high, tied=False)

    def _check(self, domain: IndexDomain) -> None:
        """Refuse what does not fit the array as it is now.

        Raises:
            FailedPreconditionError: the view does not show all that would grow.
            MismatchError: another extent than the view's; names the dimension.
        """
        self._request(domain)
        now = propagate_bounds(domain, self._view).input_shape
        for dim, (extent, wanted) in enumerate(zip(self._shape, now, strict=True)):
            if dim != self._dim and extent != wanted:
                raise MismatchError(
                    f"cannot append along dimension {self._dim}: the data has extent {extent} in "
                    f"dimension {dim}, but the array has {wanted}"
                )

    async def run(self, write: Callable[[IndexTransform], Coroutine[Any, Any, None]]) -> None:
        """Grow the array and write to the new positions, in the order that was asked for.

        Raises:
            MismatchError, FailedPreconditionError, UnsupportedError: nothing has changed.
            AbortedError: another writer changed the bounds of an array that was to grow after.
            Exception: what `write` raises, with a note of what the array has grown by.
        """
        if self._ahead is None:
            await self._run(write)
            return
        try:
            await self._run(write)
            await self._ahead.finish()
        except BaseException:
            self._ahead.give_up()
            raise

    async def _run(self, write: Callable[[IndexTransform], Coroutine[Any, Any, None]]) -> None:
        count = self._shape[self._dim]
        domain = await self._driver.grow(self._output, count, self._check)
        now = propagate_bounds(domain, self._view)
        high = now.input_exclusive_max[self._dim]
        # Dimensions are matched by now, so labels must not match them again.
        fixed = now[d[:].mark_bounds_implicit[False].label[("",) * now.input_rank]]
        try:
            await write(fixed[d[self._dim][high - count : high]])
        except Exception as error:
            if self._ahead is not None:
                error.add_note(
                    "The array has not grown. What of the data was written lies outside of its "
                    "bounds: the next append writes over it."
                )
                raise
            error.add_note(
                f"The array has grown by [{high - count}, {high}) along dimension {self._dim} of "
                "this view; what of that was not written reads as the fill value."
            )
            raise


def matched(source: IndexTransform, target: IndexTransform) -> IndexTransform:
    """The source with its dimensions in the target's order, by label if both have the same ones."""
    labels = target.input_labels
    if all(labels) and sorted(source.input_labels) == sorted(labels):
        source = source[d[labels].transpose[:]]
    return source
