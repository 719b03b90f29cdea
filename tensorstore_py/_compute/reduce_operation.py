"""`ReduceArray`: a reduction of one array as an operation on blocks, with results that merge.

Each block is read once, whatever is asked for, and becomes the states of its rows.
"""

from __future__ import annotations

from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tensorstore_py._api.blocks import Blocks, chunk_edges
from tensorstore_py._api.blockwise import limits, read_surely, selected
from tensorstore_py._compute.distribution import Histogram
from tensorstore_py._compute.measure import Piece, state_from_json, state_json
from tensorstore_py._compute.reductions import MEASURES
from tensorstore_py._index import propagate_bounds
from tensorstore_py._runtime.fan_out import offload
from tensorstore_py.errors import IndexingError, SpecError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tensorstore_py._api.blocks import Block
    from tensorstore_py._compute.measure import Array, Measure, State
    from tensorstore_py._compute.reductions import Reductions
    from tensorstore_py._index import IndexTransform
    from tensorstore_py._interface.driver import Driver
    from tensorstore_py._spec.json_value import Json

__all__ = ["Box", "MergeRows", "ReduceArray", "RowStates", "numbered", "states_of"]


Box = tuple[tuple[int, int], ...]
#: So many elements at a time fit a processor's cache with what is computed of them.
_PIECE = 2**16
_SIDE_BY_SIDE = 2**9


class RowStates(NamedTuple):
    """What is known of the rows that some blocks have a part of, and how it merges.

    Blocks that lie behind each other along the reduced dimensions have the same rows: their states
    are merged. Others have rows of their own. So `states` has those of each measure by the bounds
    of blocks along the dimensions that are kept, and those of all blocks together tile the result.
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

        Raises SpecError: it is damaged.
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
    """What is known of the rows of a block."""
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


class MergeRows:
    """How what is known of rows is merged."""

    def merge(self, one: object, other: object) -> RowStates:
        """What both know."""
        assert isinstance(one, RowStates)
        assert isinstance(other, RowStates)
        return one.merged(other)

    def to_json(self, result: object) -> Json:
        """As JSON."""
        assert isinstance(result, RowStates)
        return result.to_json()

    def from_json(self, json: Any) -> RowStates:  # noqa: ANN401 - JSON
        """Of JSON; raises SpecError if it is damaged."""
        return RowStates.from_json(json)


class ReduceArray:
    """See the head of this file.

    Raises IndexingError: there is no such dimension.
    """

    def __init__(
        self,
        source: Driver,
        view: IndexTransform,
        reductions: Reductions,
        dims: Iterable[int | str] | int | str | None,
    ) -> None:
        self._source = source
        self._view = propagate_bounds(source.domain.mark_bounds_implicit[False], view)
        self._reductions = reductions
        self._reduced = numbered(dims, self._view.input_labels)
        self.inline = source.inline
        self.memory = source.memory
        self.progress_bytes = source.data_type.array_dtype.itemsize
        # Rows that do not lie side by side in memory are moved there.
        self.item_bytes = 2 * self.progress_bytes
        layout = source.schema.chunk_layout
        edges = chunk_edges(source, self._view, layout.read_chunk.shape)
        few = chunk_edges(source, self._view, layout.write_chunk.shape)
        if len(self._reduced) < len(edges):
            # Of rows that few blocks have a part of, few states are merged.
            few = [None if dim in self._reduced else each for dim, each in enumerate(few)]
        self.blocks = Blocks(self._view, edges, few, **limits(self.item_bytes, self.memory))

    async def run(self, block: Block) -> RowStates:
        """What is known of a block."""
        data = await read_surely(self._source, self._view[selected(block.bounds)])
        skips = self._reductions.asked.skipna
        make = partial(states_of, data, self._reduced, self._reductions.measures, skips=skips)
        return RowStates({self._kept(block.bounds): await offload(self.inline, make)})

    def _kept(self, box: Sequence[tuple[int, int]]) -> Box:
        return tuple(side for dim, side in enumerate(box) if dim not in self._reduced)

    def result(self, found: RowStates | None) -> dict[str, Any]:
        """What was asked for, by name; None: there are no blocks.

        Raises MismatchError: a sum does not fit its type; there is no least of no elements.
        """
        view, reductions = self._view, self._reductions
        whole = self._kept(
            [
                (low, low + extent)
                for low, extent in zip(view.input_origin, view.input_shape, strict=True)
            ]
        )
        known = {} if found is None else found.states
        if not known:
            rows = int(np.prod([high - low for low, high in whole]))
            known = {whole: {name: each.begin(rows) for name, each in reductions.measures.items()}}
        parts = {name: _Result(whole) for name in reductions.asked.names}
        for box, states in known.items():
            rows = int(np.prod([high - low for low, high in box]))
            for name, part in parts.items():
                part.put(box, reductions.result(name, states, rows))
        return {name: part.whole() for name, part in parts.items()}


class _Result:
    """A reduction, put together from those of parts."""

    def __init__(self, bounds: Box) -> None:
        self._bounds = bounds
        self._array: Array | None = None
        self._edges: Array | None = None

    def put(self, box: Box, rows: Array | Histogram) -> None:
        if isinstance(rows, Histogram):
            rows, self._edges = rows
        if self._array is None:
            shape = [high - low for low, high in self._bounds]
            self._array = np.empty([*shape, *rows.shape[1:]], rows.dtype)
        shape = [high - low for low, high in box]
        where = tuple(
            slice(low - start, high - start)
            for (low, high), (start, _) in zip(box, self._bounds, strict=True)
        )
        self._array[where] = rows.reshape([*shape, *rows.shape[1:]])

    def whole(self) -> Any:  # noqa: ANN401 - a scalar or an array, of whichever type
        assert self._array is not None
        if self._edges is not None:
            return Histogram(self._array, self._edges)
        return self._array[()]


def numbered(
    dims: Iterable[int | str] | int | str | None, labels: Sequence[str]
) -> tuple[int, ...]:
    """Which dimensions are meant, in ascending order; None: all.

    Raises IndexingError: there is no such dimension, or it is named twice.

    Example:
        >>> numbered(("x", 0), ["t", "y", "x"]), numbered(-1, ["", ""]), numbered(None, ["", ""])
        ((0, 2), (1,), (0, 1))
    """
    rank = len(labels)
    if dims is None:
        return tuple(range(rank))
    found = []
    for dim in (dims,) if isinstance(dims, int | str) else dims:
        if isinstance(dim, str):
            if not dim or dim not in labels:
                there = ", ".join(f'"{label}"' for label in labels if label)
                raise IndexingError(
                    f'no dimension is named "{dim}"; '
                    + (f"there are {there}" if there else "none has a name: give numbers")
                )
            found.append(list(labels).index(dim))
        elif -rank <= dim < rank:
            found.append(dim % rank)
        else:
            raise IndexingError(f"there is no dimension {dim}; there are {rank}, counted from 0")
    if len({*found}) < len(found):
        raise IndexingError(f"a dimension is named twice in {dims!r}")
    return tuple(sorted(found))
