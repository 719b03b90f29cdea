"""Appending: which positions an append may have, and the order of growing and writing.

The driver grows the dimension from whatever it is by then, so concurrent appenders get positions
one after the other and never the same ones. What is checked against the bounds is checked again
each time they turn out to have changed: an append that is refused has changed nothing. A single
appender may write first and grow after: `WriteAhead` is what sees when he is not the only one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from tensorstore_py._api.resize import resize_request
from tensorstore_py._index import d
from tensorstore_py._index.selection import parse_specs, resolve
from tensorstore_py._interface.opened import resolved_view
from tensorstore_py._interface.write_ahead import WriteAhead
from tensorstore_py.errors import FailedPreconditionError, MismatchError, SpecError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from typing import Any

    from tensorstore_py._index import IndexDomain, IndexTransform
    from tensorstore_py._interface.driver import Driver, ResizeRequest

__all__ = ["Append", "Grow", "ahead_of", "matched"]

#: When an append grows the array: before it writes, or after.
Grow: TypeAlias = Literal["before", "after"]


def ahead_of(driver: Driver, grow: Grow) -> WriteAhead | None:
    """What writes ahead of the metadata, where that is asked for; a transaction does it anyway.

    Raises:
        SpecError: it is neither.
    """
    if grow not in get_args(Grow):
        raise SpecError(f'expected "before" or "after", not "{grow}"', ("grow",))
    return WriteAhead() if grow == "after" and driver.transaction is None else None


class Append:
    """One append, checked as far as it can be before anything is stored.

    Args:
        driver: the array.
        view: of the array.
        axis: the view's dimension that grows, by index or label.
        shape: the data's.
        ahead: the driver is within this, so that it grows after it was written; or None.

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
        now = resolved_view(domain, self._view).input_shape
        for dim, (extent, wanted) in enumerate(zip(self._shape, now, strict=True)):
            if dim != self._dim and extent != wanted:
                raise MismatchError(
                    f"cannot append along dimension {self._dim}: the data has extent {extent} in "
                    f"dimension {dim}, but the array has {wanted}"
                )

    async def run(self, write: Callable[[IndexTransform], Coroutine[Any, Any, None]]) -> None:
        """Grow the array and write to the new positions, in the order that was asked for.

        Args:
            write: stores the data where the transform, whose bounds are explicit, says.

        Raises:
            MismatchError, FailedPreconditionError, UnsupportedError: nothing has changed.
            AbortedError: somebody else changed the bounds of what was to grow after.
            Exception: whatever `write` raises, with a note of what the array has grown by.
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
        now = resolved_view(domain, self._view)
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
