"""`RowStates`: what is known of the rows that some blocks have a part of, and how it merges.

Blocks that lie behind each other along the reduced dimensions have the same rows: their states are
merged. Others have rows of their own. So states are kept by the bounds of blocks along the other
dimensions, and those of all blocks together tile the result.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from tensorstore_py._compute.measure import Piece, state_from_json, state_json
from tensorstore_py._compute.reductions import MEASURES
from tensorstore_py.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tensorstore_py._compute.measure import Array, Measure, State

__all__ = ["Box", "RowStates", "states_of"]

Box = tuple[tuple[int, int], ...]
#: So many elements at a time fit a processor's cache with what is computed of them.
_PIECE = 2**16
_SIDE_BY_SIDE = 2**9


class RowStates(NamedTuple):
    """See the head of this file.

    Attributes:
        states: what is known of each measure, by the bounds along the dimensions that are kept.
    """

    states: dict[Box, Mapping[str, State]]

    def merged(self, other: RowStates) -> RowStates:
        """What both know; the one that knows more rows is used up."""
        more, less = (self, other) if len(self.states) >= len(other.states) else (other, self)
        found = more.states
        for box, there in less.states.items():
            here = found.get(box)
            found[box] = there if here is None else {
                name: MEASURES[name].merge(here[name], there[name]) for name in here
            }  # fmt: skip
        return RowStates(found)

    def to_json(self) -> list[Any]:
        """As JSON."""
        return [
            [[list(side) for side in box], {name: state_json(each) for name, each in known.items()}]
            for box, known in self.states.items()
        ]

    @staticmethod
    def from_json(json: Sequence[Any]) -> RowStates:
        """What `to_json` gave.

        Raises:
            SpecError: it is damaged.
        """
        try:
            return RowStates(
                {
                    tuple((low, high) for low, high in box): {
                        name: state_from_json(each) for name, each in known.items()
                    }
                    for box, known in json
                }
            )
        except (AttributeError, TypeError, ValueError) as error:
            raise SpecError(f"a partial result is damaged: {error}") from error


def states_of(
    data: Array, reduced: Sequence[int], measures: Mapping[str, Measure], *, skips: bool
) -> dict[str, State]:
    """What is known of the rows of a block.

    Args:
        data: its elements.
        reduced: the dimensions that rows lie along.
        measures: what is to be known.
        skips: whether NaN is passed over.
    """
    kept = [dim for dim in range(data.ndim) if dim not in reduced]
    rows = prod(data.shape[dim] for dim in kept)
    columns = prod(data.shape[dim] for dim in reduced)
    table = data.transpose(*kept, *reduced).reshape(rows, columns)
    states = {name: measure.begin(rows) for name, measure in measures.items()}
    high = max(1, _PIECE // max(1, columns))
    if not table.flags.c_contiguous:  # its neighbours in memory are of several rows
        high = max(high, _SIDE_BY_SIDE)
    wide = max(1, _PIECE // high)
    for top in range(0, rows, high):
        some = slice(top, min(top + high, rows))
        for left in range(0, columns, wide):
            piece = Piece(table[some, left : left + wide], skips=skips)
            for name, measure in measures.items():
                measure.take(states[name], some, piece)
    return {name: measure.close(states[name]) for name, measure in measures.items()}
