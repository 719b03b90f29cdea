"""Where work on an array is cut: into blocks of whole chunks, as few as memory allows.

Each dimension is cut by itself (`Cut`), and evenly spaced edges are a `range`, so a plan of any
number of blocks holds a few numbers, and any block is found by arithmetic.

A block is at least one chunk. It grows to several, along the dimensions where that saves the most,
as long as what is read would else be decoded for more than one block, and until it is worth its
trouble; only a single chunk may be larger than the bytes allowed. The one invariant: no two blocks
touch the same chunk of what is written, where a view has chunks at all.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import pairwise
from math import log, prod
from typing import TYPE_CHECKING, Final, NamedTuple

from tensorstore_py._index import OutputIndexMethod
from tensorstore_py.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tensorstore_py._index import IndexTransform, OutputIndexMap
    from tensorstore_py._interface.driver import Driver
    from tensorstore_py._spec.json_value import Json


__all__ = ["Block", "Blocks", "Cut", "chunk_edges"]

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
        if together >= self.chunks:
            return self.high - self.low
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

    def join(self) -> None:
        """Make it one part, which is never cut."""
        self.chunked, self.together = True, max(1, self.chunks)

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


#: A block is made grown to at most so many chunks along a dimension to save decoding.
_MOST_TOGETHER: Final = 64
#: What is read beyond a block's bounds is small if it is such a part of its extent.
_SMALL_PART: Final = 4


class Block(NamedTuple):
    """One part of an operation.

    Attributes:
        bounds: lower and upper bound along each dimension.
        chunks: of how many chunks it is.
        number: its place among the blocks of the operation, which is the same every time.
    """

    bounds: tuple[tuple[int, int], ...]
    chunks: int
    number: int = 0

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(high - low for low, high in self.bounds)


class Blocks:
    """The blocks of one operation, made by arithmetic: any number of them is a few numbers.

    Args:
        domain: what to cut; bounds are explicit.
        mine: for each dimension, where chunks begin that no two blocks share; None: it has none.
        theirs: where larger or other parts begin that should be in as few blocks as may be; None:
            there is only one.
        least: of how many elements a block should be, at least.
        most: of how many it is at most, unless a single chunk has more.
        whole: dimensions of which a block has all.
        reach: how far beyond its bounds a block is read along each dimension: it grows until that
            is a small part of it.
    """

    def __init__(
        self,
        domain: IndexTransform,
        mine: Sequence[Sequence[int] | None],
        theirs: Sequence[Sequence[int] | None],
        least: int,
        most: int,
        *,
        whole: Sequence[bool] = (),
        reach: Sequence[int] = (),
    ) -> None:
        bounds = zip(domain.input_origin, domain.input_shape, strict=True)
        cuts = [
            Cut(low, low + extent, edges, others)
            for (low, extent), edges, others in zip(bounds, mine, theirs, strict=True)
        ]
        for cut, all_of_it in zip(cuts, whole, strict=False):
            if all_of_it:
                cut.join()
        _widen(list(zip(cuts, reach, strict=False)), cuts, most)
        _group(cuts, most)
        _gather(cuts, min(least, most))
        _split(cuts, most)
        self._set(cuts)

    def _set(self, cuts: Sequence[Cut]) -> None:
        self._cuts = cuts
        self.count = prod(cut.parts for cut in cuts)
        self.chunks = prod(cut.chunks for cut in cuts)
        self.size = prod(cut.high - cut.low for cut in cuts)
        self.largest = prod(cut.longest for cut in cuts)

    @property
    def extents(self) -> tuple[int, ...]:
        """Those of the largest block."""
        return tuple(cut.longest for cut in self._cuts)

    @staticmethod
    def of_copy(
        target: Driver,
        to: IndexTransform,
        source: Driver,
        from_: IndexTransform,
        *,
        least: int,
        most: int,
    ) -> Blocks:
        """Whole write chunks of the target; each read chunk of the source in few blocks.

        `to` and `from_` lead from the copy's positions to the two arrays' (extent 1 where the
        source is broadcast); bounds are explicit.
        """
        write = target.schema.chunk_layout.write_chunk.shape
        read = source.schema.chunk_layout.read_chunk.shape
        return Blocks(
            to, chunk_edges(target, to, write), chunk_edges(source, from_, read), least, most
        )

    @staticmethod
    def of_write(target: Driver, to: IndexTransform, *, least: int, most: int) -> Blocks:
        """Whole write chunks; arguments as above."""
        edges = chunk_edges(target, to, target.schema.chunk_layout.write_chunk.shape)
        return Blocks(to, edges, edges, least, most)

    @staticmethod
    def of_read(source: Driver, from_: IndexTransform, *, least: int, most: int) -> Blocks:
        """Whole read chunks, those of one write chunk in few blocks; arguments as above."""
        layout = source.schema.chunk_layout
        read, write = layout.read_chunk.shape, layout.write_chunk.shape
        return Blocks(
            from_, chunk_edges(source, from_, read), chunk_edges(source, from_, write), least, most
        )

    @classmethod
    def from_json(cls, json: object) -> Blocks:
        """What `to_json` made of some.

        Raises SpecError: it is something else.
        """
        if not isinstance(json, list):
            raise SpecError(f"expected a list of cuts, but found {json!r}")
        found = cls.__new__(cls)
        found._set([Cut.from_json(each) for each in json])
        return found

    def to_json(self) -> list[Json]:
        """How each dimension is cut, as JSON."""
        return [cut.to_json() for cut in self._cuts]

    def __getitem__(self, number: int) -> Block:
        """One of them.

        Raises:
            IndexError: there are not so many.
        """
        if not 0 <= number < self.count:
            raise IndexError(f"there are {self.count} blocks, and none of number {number}")
        bounds, chunks, rest = [], 1, number
        for cut in reversed(self._cuts):
            rest, at = divmod(rest, cut.parts)
            low, high, of = cut.part(at)
            bounds.append((low, high))
            chunks *= of
        return Block(tuple(bounds[::-1]), chunks, number)

    def __iter__(self) -> Iterator[Block]:
        for number in range(self.count):
            yield self[number]


def _widen(reaching: Sequence[tuple[Cut, int]], cuts: Sequence[Cut], most: int) -> None:
    """Make blocks longer where much more than they have is read."""
    while True:
        left = [
            (reach / cut.longest, cut)
            for cut, reach in reaching
            if reach * _SMALL_PART > cut.longest and cut.together < cut.chunks
        ]
        if not left:
            return
        _, cut = max(left, key=lambda each: each[0])
        size = prod(each.longest for each in cuts)
        if size // cut.longest * cut.length(2 * cut.together) > most:
            return
        cut.together *= 2


def _group(cuts: Sequence[Cut], most: int) -> None:
    """Make blocks of several chunks, as long as that saves decoding."""
    while True:
        size = prod(cut.longest for cut in cuts)
        best: tuple[float, Cut, int] | None = None
        for cut in cuts:
            now, length = cut.decoded(cut.together), cut.longest
            if now <= 1:
                continue
            for together in range(cut.together + 1, min(cut.chunks, _MOST_TOGETHER) + 1):
                longer = cut.length(together)
                if size // length * longer > most:
                    break
                saved = log(now / cut.decoded(together))
                gain = saved / log(longer / length) if longer > length else saved
                if saved > 0 and (best is None or gain > best[0] + 1e-9):
                    best = (gain, cut, together)
        if best is None:
            return
        _, cut, together = best
        cut.together = together


def _gather(cuts: Sequence[Cut], least: int) -> None:
    """Make blocks of several chunks until that many are worth the trouble of a block."""
    for cut in reversed(cuts):
        size = prod(each.longest for each in cuts)
        if 0 < size < least:
            cut.together = min(cut.together * (least // size), max(1, cut.chunks))


def _split(cuts: Sequence[Cut], most: int) -> None:
    """Cut dimensions along which there are no chunks until blocks are small enough."""
    for cut in cuts:
        size = prod(each.longest for each in cuts)
        if size > most and not cut.chunked:
            cut.split(max(1, cut.longest * most // size))


def chunk_edges(
    driver: Driver, transform: IndexTransform, sizes: Sequence[int | None] | None
) -> list[Sequence[int] | None]:
    """Where, along each input dimension, chunks begin or, backwards, end; None: there are none.

    A `range` wherever they are evenly spaced.
    """
    found: list[Sequence[int] | None] = [None] * transform.input_rank
    origin = driver.schema.chunk_layout.grid_origin or (None,) * transform.output_rank
    for output, each in enumerate(transform.maps):
        dim = each.input_dimension
        if each.method != OutputIndexMethod.single_input_dimension or dim is None:
            continue
        low, extent = transform.input_origin[dim], transform.input_shape[dim]
        if extent == 0:
            continue
        size = sizes[output] if sizes is not None else None
        starts = _starts(driver, output, _reach(each, low, low + extent), size, origin[output] or 0)
        if starts is not None:
            edges, before = _edges(each, starts), found[dim]
            found[dim] = edges if before is None else sorted({*edges, *before})
    return found


def _edges(each: OutputIndexMap, starts: Sequence[int]) -> Sequence[int]:
    """The edges of chunks, seen from the input positions, in order."""
    stride = _stride(each)
    if isinstance(starts, range) and starts and starts.step % stride == 0:
        ends = _where(each, starts[0]), _where(each, starts[-1])
        return range(min(ends), max(ends) + 1, starts.step // abs(stride))
    return sorted({_where(each, start) for start in starts})


def _reach(each: OutputIndexMap, low: int, high: int) -> tuple[int, int]:
    """The positions that an output takes, from the first up to beyond the last."""
    stride = _stride(each)
    ends = (each.offset + stride * low, each.offset + stride * (high - 1))
    return min(ends), max(ends) + 1


def _starts(
    driver: Driver, dim: int, reach: tuple[int, int], size: int | None, origin: int
) -> Sequence[int] | None:
    """Where chunks begin within the positions of a driver's dimension; None: it has no chunks."""
    low, high = reach
    if size:
        return range(low + 1 + (origin - low - 1) % size, high, size)
    return driver.chunk_starts(dim, low, high) or None


def _where(each: OutputIndexMap, start: int) -> int:
    """The first input position on the far side of a chunk's beginning."""
    stride = _stride(each)
    if stride > 0:
        return -((each.offset - start) // stride)
    return (each.offset - start) // -stride + 1


def _stride(each: OutputIndexMap) -> int:
    assert each.stride is not None  # since it depends on an input dimension
    return each.stride
