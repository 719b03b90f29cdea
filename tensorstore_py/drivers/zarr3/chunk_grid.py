"""Chunk grids: how an array is cut into chunks, as metadata says it.

Two are built in: `regular`, and the registered extension `rectilinear`,
https://github.com/zarr-developers/zarr-extensions/tree/main/chunk-grids/rectilinear
Others are registered by `chunk_grid`, as these are.

A rectilinear grid says for each dimension one size for all chunks, or the size of chunk after
chunk, `[size, how many]` for a run of equal ones. Here they always are runs, so that a grid takes
what its document takes, whatever the number of its chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from tensorstore_py.drivers.zarr3.members import json_array, parse_extents
from tensorstore_py.errors import SpecError
from tensorstore_py.plugin.codec import (
    Level,
    describe,
)
from tensorstore_py.plugin.driver import (
    ChainsByShape,
    ChunkGridModel,
    IrregularAxis,
    RegularAxis,
    chunk_grid,
)
from tensorstore_py.plugin.kvstore import PlainValidator

if TYPE_CHECKING:
    from tensorstore_py.plugin.codec import CodecChain
    from tensorstore_py.plugin.driver import ChunkAxis

__all__ = [
    "RectilinearGrid",
    "RegularGrid",
    "bound_chains",
]

Runs = tuple[tuple[int, int], ...]

_SIZE = Level(1, 2**63 - 2)


class _Cuts(ChunkGridModel):
    """A grid that says the size of all chunks, or of each."""

    @property
    def cuts(self) -> tuple[int | Runs, ...]:
        """For each dimension the size of all chunks, or runs `(size, how many)`."""
        return ()

    @property
    def sizes(self) -> tuple[frozenset[int], ...]:
        return tuple(
            frozenset([cut] if isinstance(cut, int) else [size for size, _ in cut])
            for cut in self.cuts
        )

    @property
    def shape(self) -> tuple[int | None, ...]:
        # A smaller last chunk is cut off where the array ends, or is not there.
        return tuple(cut if isinstance(cut, int) else _one_size(cut) for cut in self.cuts)

    def axes(self, shape: Sequence[int]) -> tuple[ChunkAxis, ...]:
        return tuple(
            RegularAxis(extent, cut)
            if isinstance(cut, int)
            else RegularAxis(extent, cut[0][0])
            if len(cut) == 1
            else IrregularAxis(extent, cut)
            for extent, cut in zip(shape, self.cuts, strict=True)
        )

    def cuts_like(self, other: ChunkGridModel) -> bool:
        return isinstance(other, _Cuts) and self.cuts == other.cuts


def _chunk_shape(json: object) -> tuple[int, ...]:
    return parse_extents(json, _SIZE)


@chunk_grid("regular")
class RegularGrid(_Cuts):
    """Asked: `regular`.

    Attributes:
        chunk_shape: shape of all chunks.

    Example:
        >>> RegularGrid.parse({"chunk_shape": [4, 5]}).shape
        (4, 5)
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset({"chunk_shape"})

    chunk_shape: Annotated[tuple[int, ...], PlainValidator(_chunk_shape)]

    @property
    def cuts(self) -> tuple[int | Runs, ...]:
        return self.chunk_shape

    # Of most arrays: as above, without a set for each dimension.

    @property
    def shape(self) -> tuple[int, ...]:
        return self.chunk_shape

    @property
    def rank(self) -> int:
        return len(self.chunk_shape)

    @property
    def is_even(self) -> bool:
        return True

    @property
    def largest(self) -> tuple[int, ...]:
        return self.chunk_shape

    def axes(self, shape: Sequence[int]) -> tuple[ChunkAxis, ...]:
        return tuple(map(RegularAxis, shape, self.chunk_shape))

    @classmethod
    def plain(cls, json: object, rank: int) -> Self | None:
        """The grid of so many dimensions in the form that most have; None if it is of another."""
        if type(json) is not dict or json.keys() != _NAMED or json["name"] != cls.grid_id:
            return None
        configuration = json["configuration"]
        if type(configuration) is not dict or configuration.keys() != _SIZES:
            return None
        sizes = _SIZE.plain(configuration["chunk_shape"])
        if sizes is None or len(sizes) != rank:
            return None
        return _of_scalars().replace(chunk_shape=sizes)  # type: ignore[return-value]


@cache
def _of_scalars() -> RegularGrid:
    """A grid that others are copies of."""
    return RegularGrid.parse({"chunk_shape": ()})


_NAMED = frozenset({"name", "configuration"})
_SIZES = frozenset({"chunk_shape"})


def _chunk_shapes(json: object) -> tuple[int | Runs, ...]:
    cuts: list[int | Runs] = []
    for dim, cut in enumerate(json_array(json)):
        try:
            cuts.append(_cut(cut))
        except SpecError as error:
            raise error.inside(dim) from None
    return tuple(cuts)


@chunk_grid("rectilinear")
class RectilinearGrid(_Cuts):
    """Asked: `rectilinear`.

    Attributes:
        kind: where the sizes are; there is one way to say so.
        chunk_shapes: see `_Cuts.cuts`.

    Example:
        >>> sizes = {"kind": "inline", "chunk_shapes": [4, [1, 1, 5], [[2, 3]]]}
        >>> grid = RectilinearGrid.parse(sizes)
        >>> grid.cuts, grid.shape
        ((4, ((1, 2), (5, 1)), ((2, 3),)), (4, None, 2))
    """

    data_members: ClassVar[frozenset[str] | None] = frozenset({"kind", "chunk_shapes"})

    sizes_member: ClassVar[str] = "chunk_shapes"

    kind: Literal["inline"]
    chunk_shapes: Annotated[tuple[int | Runs, ...], PlainValidator(_chunk_shapes)]

    @property
    def cuts(self) -> tuple[int | Runs, ...]:
        return self.chunk_shapes

    def add_json(self, json: dict[str, object], include_defaults: bool) -> None:
        json["chunk_shapes"] = [
            cut if isinstance(cut, int) else _runs_to_json(cut) for cut in self.cuts
        ]

    def check_reaches(self, shape: Sequence[int]) -> None:
        for dim, (extent, cut) in enumerate(zip(shape, self.cuts, strict=True)):
            if not isinstance(cut, int) and _reach(cut) < extent:
                raise SpecError(
                    f"chunks of {_reach(cut)} elements in all, but the dimension has {extent}; "
                    "add chunks until they reach its end",
                    ("chunk_shapes", dim),
                )

    def resized(self, shape: Sequence[int], unit: Sequence[int]) -> Self:
        """What chunks don't reach becomes one more; those beyond the end stay in the document."""
        cuts: list[int | Runs] = []
        for extent, cut, step in zip(shape, self.cuts, unit, strict=True):
            if isinstance(cut, int) or _reach(cut) >= extent:
                cuts.append(cut)
            else:
                missing = extent - _reach(cut)
                cuts.append(_joined([*cut, (missing + -missing % step, 1)]))
        return self.replace(chunk_shapes=tuple(cuts))


def bound_chains(
    grid: ChunkGridModel, bind: Callable[[tuple[int, ...]], CodecChain]
) -> ChainsByShape | None:
    """The chains of an array whose chunks differ in shape; None if they don't.

    Raises:
        SpecError: a codec does not fit all chunks; the path starts with `("codecs", position)`.
    """
    if grid.is_even:
        return None
    try:
        # What demands that sizes can be divided fits all chunks if it fits this one.
        bind(grid.common)
    except SpecError:
        for shape in _shapes(grid):
            try:
                bind(shape)
            except SpecError as error:
                problem = f"{error.problem} (in chunks of shape {list(shape)})"
                raise SpecError(problem, error.path) from None
        raise
    return ChainsByShape(bind)


def _shapes(grid: ChunkGridModel) -> Iterator[tuple[int, ...]]:
    """Shapes of chunks among which every size of every dimension is."""
    distinct = [sorted(each, reverse=True) or [1] for each in grid.sizes]
    for number in range(max(map(len, distinct), default=0)):
        yield tuple(each[min(number, len(each) - 1)] for each in distinct)


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
