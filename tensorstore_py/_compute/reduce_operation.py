"""`ReduceArray`: a reduction of one array as an operation on blocks, with results that merge.

Each block is read once, whatever is asked for, and becomes the states of its rows.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorstore_py._api.blocks import Blocks, chunk_edges
from tensorstore_py._api.blockwise import limits, selected
from tensorstore_py._api.reread import read_surely
from tensorstore_py._compute.bins import Histogram
from tensorstore_py._compute.row_states import RowStates, states_of
from tensorstore_py._index import propagate_bounds
from tensorstore_py._runtime.fan_out import offload
from tensorstore_py.errors import IndexingError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tensorstore_py._api.blocks import Block
    from tensorstore_py._compute.measure import Array
    from tensorstore_py._compute.reductions import Reductions
    from tensorstore_py._compute.row_states import Box
    from tensorstore_py._index import IndexTransform
    from tensorstore_py._interface.driver import Driver
    from tensorstore_py._spec.json_value import Json

__all__ = ["MergeRows", "ReduceArray", "numbered"]


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

    Args:
        source: what is read.
        view: what of it.
        reductions: what is asked for.
        dims: along which dimensions; None: all.

    Attributes:
        inline: the temperament of `run`.
        blocks: what is worked on.
        item_bytes: how much memory an element takes meanwhile.
        memory: the budget that this counts in.
        told_bytes: what an element counts for progress.

    Raises:
        IndexingError: there is no such dimension.
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
        self.told_bytes = source.data_type.array_dtype.itemsize
        # Rows that do not lie side by side in memory are moved there.
        self.item_bytes = 2 * self.told_bytes
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
        """What was asked for, by name.

        Args:
            found: what all blocks know; None: there are none.

        Raises:
            MismatchError: a sum does not fit its type; there is no least of no elements.
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
    """A reduction, put together from those of parts.

    Args:
        bounds: of the dimensions that are kept.
    """

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
    """Which dimensions are meant, in ascending order.

    Args:
        dims: by number, counted from the end if negative, or by label; None: all.
        labels: of all dimensions.

    Raises:
        IndexingError: there is no such dimension, or it is named twice.

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
