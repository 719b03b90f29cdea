"""`Cut`: how one dimension is cut into parts of whole chunks, for `Blocks`.

Where chunks begin is a `range` if they are evenly spaced, and else a list. So a cut into millions
of parts is a few numbers, and any of its parts is found by arithmetic.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from tensorstore_py.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorstore_py._spec.json_value import Json

__all__ = ["Cut"]

#: How many edges are looked at to judge a cut: the others go on in the same way.
_SAMPLE: Final = 2048


class Cut:
    """How one dimension is cut: into parts of so many chunks together.

    Args:
        low, high: its bounds.
        mine: where chunks begin in between, in order; None if it has none.
        theirs: where parts begin that should not be in several blocks, in order.
    """

    def __init__(
        self, low: int, high: int, mine: Sequence[int] | None, theirs: Sequence[int] | None
    ) -> None:
        self.low, self.high = low, high
        theirs = _between(theirs or (), low, high)
        self._edges = theirs if mine is None else _between(mine, low, high)
        self.chunked = mine is not None
        self.together = 1
        self._set_sample()
        sample = self._sampled[-1]
        self._cells = 1 + len(_between(theirs, low, sample))
        self._theirs = theirs if isinstance(theirs, range) else frozenset(theirs)

    def _set_sample(self) -> None:
        """The first edges, the first of all and, where there are few, the last."""
        found = [self.low, *self._edges[: _SAMPLE - 1]] if self.high > self.low else [self.low]
        if len(self._edges) < _SAMPLE - 1 and self.high > self.low:
            found.append(self.high)
        self._sampled = found

    @classmethod
    def from_json(cls, json: object) -> Cut:
        """Raises SpecError if it is none."""
        match json:
            case {"bounds": [int(low), int(high)], "edges": list(given), "together": int(together)}:
                edges: Sequence[int] = [each for each in given if isinstance(each, int)]
            case {"bounds": [int(low), int(high)], "edges": {"from": int(start), "step": int(step)},
                  "together": int(together)} if step > 0:  # fmt: skip
                edges = range(start, high, step)
            case _:
                raise SpecError(f"expected how a dimension is cut, but found {json!r}")
        if together < 1 or low > high or len(set(edges[:_SAMPLE])) != len(edges[:_SAMPLE]):
            raise SpecError(f"expected how a dimension is cut, but found {json!r}")
        found = cls(low, high, edges, None)
        found.together = together
        return found

    def to_json(self) -> Json:
        """It as JSON."""
        edges: Json
        if isinstance(self._edges, range) and len(self._edges):
            edges = {"from": self._edges.start, "step": self._edges.step}
        else:
            edges = [*self._edges]
        return {"bounds": [self.low, self.high], "edges": edges, "together": self.together}

    @property
    def chunks(self) -> int:
        """How many chunks there are."""
        return len(self._edges) + 1 if self.high > self.low else 0

    @property
    def parts(self) -> int:
        """How many parts there are."""
        return -(-self.chunks // self.together)

    def part(self, number: int) -> tuple[int, int, int]:
        """Bounds of a part, and its number of chunks."""
        first = number * self.together
        last = min(first + self.together, self.chunks)
        return self._edge(first), self._edge(last), last - first

    def _edge(self, number: int) -> int:
        if number == 0:
            return self.low
        return self._edges[number - 1] if number <= len(self._edges) else self.high

    @property
    def longest(self) -> int:
        """Extent of the longest part."""
        return self.length(self.together)

    def length(self, together: int) -> int:
        """Extent of the longest part of so many chunks."""
        edges = self._sampled
        last = len(edges) - 1
        return max(
            (edges[min(at + together, last)] - edges[at] for at in range(0, last, together)),
            default=0,
        )

    def decoded(self, together: int) -> float:
        """In how many blocks theirs are on average if so many of mine are one part."""
        inner = self._sampled[together:-1:together]
        return (self._cells + sum(edge not in self._theirs for edge in inner)) / self._cells

    def split(self, longest: int) -> None:
        """Cut further, wherever."""
        if not self._edges:
            self._edges = range(self.low + longest, self.high, longest)
        else:
            edges = set(self._edges)
            for low, high in pairwise([self.low, *self._edges, self.high]):
                edges.update(range(low, high, longest))
            self._edges = sorted(edges - {self.low})
        self._set_sample()


def _between(edges: Sequence[int], low: int, high: int) -> Sequence[int]:
    """The edges above one bound and below another."""
    first = bisect_right(edges, low)
    return edges[first : bisect_left(edges, high, first)]
