"""`DiffArrays`: comparing two arrays as an operation on blocks, with results that merge.

Blocks are whole chunks of the first array. Of each the two parts are read, compared and dropped;
what is kept is a few figures, of no more than so many blocks.
"""

from __future__ import annotations

import base64
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tensorstore_py._api.blocks import Blocks, chunk_edges
from tensorstore_py._api.blockwise import limits, selected
from tensorstore_py._api.reread import read_surely
from tensorstore_py._compute.comparison import differing, largest_distance
from tensorstore_py._compute.difference import DifferingBlock
from tensorstore_py._index import IndexTransform, OutputIndexMap, propagate_bounds
from tensorstore_py._runtime.fan_out import offload, within
from tensorstore_py.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tensorstore_py._api.blocks import Block
    from tensorstore_py._compute.comparison import Tolerance
    from tensorstore_py._compute.measure import Array
    from tensorstore_py._interface.driver import Driver
    from tensorstore_py._spec.json_value import Json

__all__ = ["DiffArrays", "Findings", "MergeFindings"]

_TOLERANT_BYTES = 25


class Findings(NamedTuple):
    """What was found in some blocks.

    Attributes:
        blocks: those that differ, by number; the first ones only.
        differing_blocks: how many there are.
        differing: how many elements differ.
        elements: how many were compared.
        most: of how many blocks to tell.
    """

    blocks: Mapping[int, DifferingBlock]
    differing_blocks: int
    differing: int
    elements: int
    most: int


class MergeFindings:
    """How what was found is merged."""

    def merge(self, one: object, other: object) -> Findings:
        """What is found in the blocks of both."""
        assert isinstance(one, Findings)
        assert isinstance(other, Findings)
        blocks = {**one.blocks, **other.blocks}
        first = sorted(blocks)[: one.most]
        return Findings(
            {number: blocks[number] for number in first},
            one.differing_blocks + other.differing_blocks,
            one.differing + other.differing,
            one.elements + other.elements,
            one.most,
        )

    def to_json(self, result: object) -> Json:
        """As JSON."""
        assert isinstance(result, Findings)
        blocks: list[Any] = [
            [number, *block[:5], [_value_json(each) for each in (*block.values, block.largest)]]
            for number, block in result.blocks.items()
        ]
        return [blocks, *result[1:]]

    def from_json(self, json: Any) -> Findings:  # noqa: ANN401 - JSON
        """Of JSON.

        Raises:
            SpecError: it is damaged.
        """
        try:
            blocks = {}
            for number, path, bounds, box, count, first, said in json[0]:
                one, other, largest = (_value_of(each) for each in said)
                blocks[int(number)] = DifferingBlock(
                    path, _sides(bounds), _sides(box), count, tuple(first), (one, other), largest
                )
            return Findings(blocks, *json[1:])
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise SpecError(f"a partial result is damaged: {error}") from error


class DiffArrays:
    """See the head of this file.

    Args:
        one: an array.
        view: what of it.
        other: another one; its elements can be compared.
        other_view: what of it; of the same shape.
        tolerance: what is no difference.
        most: of how many blocks to tell.
        path: of the arrays, to name blocks.

    Attributes:
        inline: the temperament of `run`.
        blocks: what is worked on.
        item_bytes: how much memory an element takes meanwhile.
        memory: the budget that this counts in.
        told_bytes: what an element counts for progress.
    """

    def __init__(
        self,
        one: Driver,
        view: IndexTransform,
        other: Driver,
        other_view: IndexTransform,
        tolerance: Tolerance,
        most: int,
        path: str = "",
    ) -> None:
        self._one, self._other = one, other
        self._view = propagate_bounds(one.domain.mark_bounds_implicit[False], view)
        there = propagate_bounds(other.domain.mark_bounds_implicit[False], other_view)
        self._there = _moved(there, self._view)
        self._tolerance, self._most, self._path = tolerance, most, path
        self.inline = one.inline and other.inline
        self.memory = one.memory or other.memory
        here, beside = one.data_type.array_dtype.itemsize, other.data_type.array_dtype.itemsize
        self.told_bytes = here
        self.item_bytes = here + beside + (1 if tolerance.exact else _TOLERANT_BYTES)
        sizes = limits(self.item_bytes, self.memory)
        self.blocks = Blocks(
            self._view,
            chunk_edges(one, self._view, one.schema.chunk_layout.read_chunk.shape),
            chunk_edges(other, self._there, other.schema.chunk_layout.read_chunk.shape),
            sizes["least"],
            sizes["most"],
        )

    async def run(self, block: Block) -> Findings:
        """What is found in a block."""
        part = selected(block.bounds)
        one, other = self._one, self._other
        here = await within(self.inline, one.inline, lambda: read_surely(one, self._view[part]))
        there = await within(
            self.inline, other.inline, lambda: read_surely(other, self._there[part])
        )
        return await offload(self.inline, partial(self._compared, block, here, there))

    def _compared(self, region: Block, here: Array, there: Array) -> Findings:
        where = differing(here, there, self._tolerance)
        count = int(np.count_nonzero(where))
        if not count:
            return Findings({}, 0, 0, region.size, self._most)
        first = np.unravel_index(int(np.argmax(where)), where.shape)
        found = DifferingBlock(
            self._path,
            region.bounds,
            _box_of(where, region.bounds),
            count,
            tuple(int(low + each) for (low, _), each in zip(region.bounds, first, strict=True)),
            (here[first], there[first]),
            largest_distance(here[where], there[where]),
        )
        return Findings(
            {region.number: found} if self._most else {}, 1, count, region.size, self._most
        )


def _moved(view: IndexTransform, onto: IndexTransform) -> IndexTransform:
    """A view whose positions are those of another one of its shape."""
    origins = zip(view.input_origin, onto.input_origin, strict=True)
    return view[
        IndexTransform(
            input_inclusive_min=onto.input_origin,
            input_shape=onto.input_shape,
            output=[
                OutputIndexMap(input_dimension=dim, offset=low - start)
                for dim, (low, start) in enumerate(origins)
            ],
        )
    ]


def _box_of(where: Array, bounds: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    """The smallest box that has all that is true."""
    box = []
    for dim, (low, _) in enumerate(bounds):
        others = tuple(each for each in range(where.ndim) if each != dim)
        there = np.nonzero(where.any(axis=others))[0]
        box.append((int(low + there[0]), int(low + there[-1] + 1)))
    return tuple(box)


def _sides(json: list[list[int]]) -> tuple[tuple[int, int], ...]:
    return tuple((int(low), int(high)) for low, high in json)


def _value_json(value: Any) -> object:  # noqa: ANN401 - an element
    if isinstance(value, np.generic):
        held = np.asarray(value)
        return {"dtype": held.dtype.str, "hex": held.tobytes().hex(), "text": str(value)}
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    return {"json": value}


def _value_of(json: Mapping[str, Any]) -> Any:  # noqa: ANN401 - an element
    if "json" in json:
        return json["json"]
    if "base64" in json:
        return base64.b64decode(json["base64"])
    dtype = np.dtype(json["dtype"])
    if dtype.kind == "V":  # what NumPy itself cannot name
        return json["text"]
    return np.frombuffer(bytes.fromhex(json["hex"]), dtype)[0]
