"""`DiffArrays`: comparing two arrays as an operation on blocks, with results that merge.

Blocks are whole chunks of the first array. Of each the two parts are read, compared and dropped;
what is kept is a few figures, of a bounded number of blocks. Values are compared, not bits: -0.0
equals 0.0, and NaN equals NaN unless the caller asks otherwise.
"""

from __future__ import annotations

import base64
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tensorstore_py._api.blocks import Blocks, chunk_edges
from tensorstore_py._api.blockwise import limits, read_surely, selected
from tensorstore_py._compute.difference import DifferingBlock
from tensorstore_py._compute.measure import computable, equal_to
from tensorstore_py._index import IndexTransform, OutputIndexMap, propagate_bounds
from tensorstore_py._runtime.fan_out import offload, within
from tensorstore_py.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tensorstore_py._api.blocks import Block
    from tensorstore_py._compute.measure import Array
    from tensorstore_py._interface.driver import Driver
    from tensorstore_py._spec.json_value import Json

__all__ = [
    "DiffArrays",
    "Findings",
    "MergeFindings",
    "Tolerance",
    "comparable",
    "differing",
    "largest_distance",
]


_NUMBERS = "biufc"


class Tolerance(NamedTuple):
    """How far apart elements may be, as `numpy.isclose` has it."""

    equal_nan: bool = True
    rtol: float = 0.0
    atol: float = 0.0

    @property
    def exact(self) -> bool:
        """Whether they must be equal."""
        return not self.rtol and not self.atol


def comparable(one: np.dtype[Any], other: np.dtype[Any]) -> bool:
    """Whether elements of two types can be compared: those of one type, and numbers.

    Example:
        >>> (
        ...     comparable(np.dtype("i2"), np.dtype("f4")),
        ...     comparable(np.dtype("i2"), np.dtype("M8[s]")),
        ... )
        (True, False)
    """
    return one == other or (_is_number(one) and _is_number(other))


def _is_number(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in _NUMBERS or (dtype.kind == "V" and dtype.type is not np.void)


def differing(one: Array, other: Array, tolerance: Tolerance) -> Array:
    """Where elements differ.

    Example:
        >>> nan = np.nan
        >>> differing(np.array([1, nan, 3.01]), np.array([2, nan, 3]), Tolerance(atol=0.1))
        array([ True, False, False])
    """
    if not _is_number(one.dtype) or (tolerance.exact and one.dtype == other.dtype):
        same = equal_to(one, other)
        if tolerance.equal_nan:
            return ~same
        return ~np.asarray(one == other, bool)
    wide = _wide(one.dtype, other.dtype)
    if tolerance.exact:
        found = np.asarray(_known(one) != _known(other))
    else:
        here, there = one.astype(wide), other.astype(wide)
        with np.errstate(all="ignore"):
            far = np.abs(here - there) > tolerance.atol + tolerance.rtol * np.abs(there)
            finite = np.isfinite(here) & np.isfinite(there)
        found = np.where(finite, far, here != there)
    if tolerance.equal_nan and wide.kind in "fc":
        found &= ~(_is_nan(one) & _is_nan(other))
    return found


def _is_nan(data: Array) -> Array:
    known = _known(data)
    found: Array = np.isnan(known) if known.dtype.kind in "fc" else np.zeros(known.shape, bool)
    return found


def _known(data: Array) -> Array:
    """The elements, of a type that NumPy compares."""
    return data if data.dtype.kind in _NUMBERS else data.astype(computable(data.dtype))


def _wide(one: np.dtype[Any], other: np.dtype[Any]) -> np.dtype[Any]:
    """A type to compute differences in."""
    return np.dtype(np.complex128 if "c" in (one.kind, other.kind) else np.float64)


def largest_distance(one: Array, other: Array) -> Any:  # noqa: ANN401 - of whichever type
    """The largest absolute difference of some elements; None where there is no such thing.

    Where one is NaN and the other is not, it is NaN if there are no others.

    Example:
        >>> largest_distance(np.array([-100, 3], "i1"), np.array([100, 3], "i1"))
        200
        >>> largest_distance(np.array(["2020-01-01"], "M8[D]"), np.array(["2020-01-03"], "M8[D]"))
        np.timedelta64(2,'D')
    """
    if not one.size:
        return None
    if one.dtype == other.dtype and one.dtype.kind in "iu":
        # The difference of two whole numbers always fits their type without a sign.
        word = np.dtype(f"u{one.dtype.itemsize}")
        high, low = np.maximum(one, other), np.minimum(one, other)
        return int((high.view(word) - low.view(word)).max())
    if _is_number(one.dtype) and _is_number(other.dtype):
        wide = _wide(one.dtype, other.dtype)
        with np.errstate(all="ignore"):
            return float(np.fmax.reduce(np.abs(one.astype(wide) - other.astype(wide))))
    if one.dtype == other.dtype and one.dtype.kind in "mM":
        apart = np.abs(one - other)
        there = apart[~np.isnat(apart)]
        return there.max() if there.size else None
    return None


_TOLERANT_BYTES = 25


class Findings(NamedTuple):
    """What was found in some blocks.

    Attributes:
        blocks: those that differ, by number; the first ones only.
        differing_blocks: how many there are.
        differing: how many elements differ.
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

        Raises SpecError: it is damaged.
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

    `most` is of how many blocks to tell, `path` that of the arrays, which names blocks.
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
        self.progress_bytes = here
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
