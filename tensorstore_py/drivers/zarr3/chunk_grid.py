"""The `chunk_grid` member: `regular`, and the registered extension `rectilinear`.

Extension: https://github.com/zarr-developers/zarr-extensions/tree/main/chunk-grids/rectilinear

A rectilinear grid says for each dimension one size for all chunks, or the size of chunk after
chunk, `[size, how many]` for a run of equal ones. Here they always are runs, so that a grid takes
what its document takes, whatever the number of its chunks.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from math import gcd
from typing import TYPE_CHECKING

from tensorstore_py.drivers.zarr3.members import json_array, json_object, parse_extents
from tensorstore_py.errors import SpecError
from tensorstore_py.plugin import ChainsByShape, IrregularAxis, Level, RegularAxis, describe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tensorstore_py.plugin import ChunkAxis, CodecChain

__all__ = ["ChunkGrid"]

Runs = tuple[tuple[int, int], ...]

_SIZE = Level(1, 2**63 - 2)
_NAMES = ("regular", "rectilinear")
_SHAPES_PATH = ("chunk_grid", "configuration", "chunk_shapes")


@dataclass(frozen=True, slots=True)
class ChunkGrid:
    """How an array is cut into chunks.

    Attributes:
        cuts: for each dimension the size of all chunks, or runs `(size, how many)`.
        name: how the document calls it, `"regular"` or `"rectilinear"`.

    Example:
        >>> sizes = {"kind": "inline", "chunk_shapes": [4, [1, 1, 5], [[2, 3]]]}
        >>> grid = ChunkGrid.parse({"name": "rectilinear", "configuration": sizes})
        >>> grid.cuts, grid.shape
        ((4, ((1, 2), (5, 1)), ((2, 3),)), (4, None, 2))
    """

    cuts: tuple[int | Runs, ...]
    name: str = "regular"

    @classmethod
    def parse(cls, json: object) -> ChunkGrid:
        """The grid that a document's member states.

        Raises:
            SpecError: it is of no known name or form; the path starts inside the member.
        """
        grid = json_object(json, ("name", "configuration"))
        name = grid.get("name")
        if name not in _NAMES:
            found = describe(name) if "name" in grid else "nothing"
            raise SpecError(f'expected "regular" or "rectilinear", but found {found}', ("name",))
        try:
            if name == "regular":
                return cls(_regular(grid.get("configuration")))
            return cls(_rectilinear(grid.get("configuration")), "rectilinear")
        except SpecError as error:
            raise error.inside("configuration") from None

    def to_json(self) -> dict[str, object]:
        """The member's JSON."""
        if self.name == "regular":
            configuration: dict[str, object] = {"chunk_shape": list(self.cuts)}
        else:
            shapes = [cut if isinstance(cut, int) else _runs_to_json(cut) for cut in self.cuts]
            configuration = {"chunk_shapes": shapes, "kind": "inline"}
        return {"configuration": configuration, "name": self.name}

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.cuts)

    @property
    def member(self) -> str:
        """The member of the configuration that has the sizes."""
        return "chunk_shape" if self.name == "regular" else "chunk_shapes"

    @property
    def is_even(self) -> bool:
        """Whether all chunks are of one shape."""
        return all(isinstance(cut, int) or len(cut) == 1 for cut in self.cuts)

    @property
    def shape(self) -> tuple[int | None, ...]:
        """Size of the chunks where they are of one size, but for a smaller last one; else None."""
        return tuple(cut if isinstance(cut, int) else _one_size(cut) for cut in self.cuts)

    @property
    def largest(self) -> tuple[int, ...]:
        """Shape of the largest chunk."""
        return tuple(max(sizes, default=1) for sizes in self._sizes())

    @property
    def common(self) -> tuple[int, ...]:
        """The largest shape that divides every chunk's."""
        return tuple(gcd(*sizes) or 1 for sizes in self._sizes())

    def check_reaches(self, shape: Sequence[int]) -> None:
        """Raise `SpecError` unless the chunks cover an array of that shape."""
        for dim, (extent, cut) in enumerate(zip(shape, self.cuts, strict=True)):
            if not isinstance(cut, int) and _reach(cut) < extent:
                raise SpecError(
                    f"chunks of {_reach(cut)} elements in all, but the dimension has {extent}; "
                    "add chunks until they reach its end",
                    (*_SHAPES_PATH, dim),
                )

    def resized(self, shape: Sequence[int], unit: Sequence[int]) -> ChunkGrid:
        """The grid of the array resized: what chunks don't reach becomes one more chunk.

        Chunks beyond the new end stay in the document, for the array may grow again.

        Args:
            shape: the new one.
            unit: sizes of which those of a new chunk are to be multiples.
        """
        cuts: list[int | Runs] = []
        for extent, cut, step in zip(shape, self.cuts, unit, strict=True):
            if isinstance(cut, int) or _reach(cut) >= extent:
                cuts.append(cut)
            else:
                missing = extent - _reach(cut)
                cuts.append(_joined([*cut, (missing + -missing % step, 1)]))
        return ChunkGrid(tuple(cuts), self.name)

    def axes(self, shape: Sequence[int]) -> tuple[ChunkAxis, ...]:
        """The grid of an array of that shape, as the engine wants it."""
        return tuple(
            RegularAxis(extent, cut)
            if isinstance(cut, int)
            else RegularAxis(extent, cut[0][0])
            if len(cut) == 1
            else IrregularAxis(extent, cut)
            for extent, cut in zip(shape, self.cuts, strict=True)
        )

    def chains(self, bind: Callable[[tuple[int, ...]], CodecChain]) -> ChainsByShape | None:
        """The chains of an array whose chunks differ in shape; None if they don't.

        Args:
            bind: makes the chain for a shape.

        Raises:
            SpecError: a codec does not fit all chunks; the path starts with `("codecs", position)`.
        """
        if self.is_even:
            return None
        try:
            # What demands that sizes can be divided fits all chunks if it fits this one.
            bind(self.common)
        except SpecError:
            for shape in self.shapes():
                try:
                    bind(shape)
                except SpecError as error:
                    problem = f"{error.problem} (in chunks of shape {list(shape)})"
                    raise SpecError(problem, error.path) from None
            raise
        return ChainsByShape(bind)

    def shapes(self) -> Iterator[tuple[int, ...]]:
        """Shapes of chunks among which every size of every dimension is."""
        distinct = [sorted(sizes, reverse=True) or [1] for sizes in self._sizes()]
        for number in range(max(map(len, distinct), default=0)):
            yield tuple(sizes[min(number, len(sizes) - 1)] for sizes in distinct)

    def _sizes(self) -> list[set[int]]:
        """The sizes that chunks have in each dimension."""
        return [{cut} if isinstance(cut, int) else {size for size, _ in cut} for cut in self.cuts]


def _regular(json: object) -> tuple[int, ...]:
    configuration = json_object(json, ("chunk_shape",))
    try:
        return parse_extents(configuration.get("chunk_shape"), _SIZE)
    except SpecError as error:
        raise error.inside("chunk_shape") from None


def _rectilinear(json: object) -> tuple[int | Runs, ...]:
    configuration = json_object(json, ("kind", "chunk_shapes"))
    kind = configuration.get("kind")
    if kind != "inline":
        found = describe(kind) if "kind" in configuration else "nothing"
        raise SpecError(f'expected "inline", but found {found}', ("kind",))
    cuts: list[int | Runs] = []
    try:
        for dim, cut in enumerate(json_array(configuration.get("chunk_shapes"))):
            try:
                cuts.append(_cut(cut))
            except SpecError as error:
                raise error.inside(dim) from None
    except SpecError as error:
        raise error.inside("chunk_shapes") from None
    return tuple(cuts)


def _cut(json: object) -> int | Runs:
    """One dimension's sizes."""
    if not isinstance(json, list | tuple):
        return _SIZE.check(json)
    runs: list[tuple[int, int]] = []
    for position, entry in enumerate(json):
        try:
            runs.append(_run(entry))
        except SpecError as error:
            raise error.inside(position) from None
    return _joined(runs)


def _run(json: object) -> tuple[int, int]:
    if not isinstance(json, list | tuple):
        return _SIZE.check(json), 1
    if len(json) != 2:
        raise SpecError(f"expected [size, how many], but found {describe(json)}")
    size, count = parse_extents(json, _SIZE)
    return size, count


def _joined(runs: Sequence[tuple[int, int]]) -> Runs:
    """The runs, neighbours of one size as one."""
    return tuple(
        (size, sum(count for _, count in same))
        for size, same in groupby(runs, key=lambda run: run[0])
    )


def _runs_to_json(runs: Runs) -> list[object]:
    return [size if count == 1 else [size, count] for size, count in runs]


def _reach(runs: Runs) -> int:
    return sum(size * count for size, count in runs)


def _one_size(runs: Runs) -> int | None:
    if len(runs) == 1 or (len(runs) == 2 and runs[1][1] == 1 and runs[1][0] < runs[0][0]):
        return runs[0][0]
    return None
