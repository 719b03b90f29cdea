"""Where work on an array is cut: into blocks of whole chunks, as few as memory allows.

Each dimension is cut by itself, so a plan of any number of blocks holds a few lists of edges. A
block is at least one chunk. It grows to several, along the dimensions where that saves the most, as
long as what is read would else be decoded for more than one block, and until it is worth its
trouble; only a single chunk may be larger than the bytes allowed. The one invariant: no two blocks
touch the same chunk of what is written, where a view has chunks at all.
"""

from __future__ import annotations

from hashlib import sha256
from itertools import pairwise, product
from math import log, prod
from typing import TYPE_CHECKING, Final, NamedTuple

from tensorstore_py._index import OutputIndexMethod

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tensorstore_py._index import IndexTransform, OutputIndexMap
    from tensorstore_py._interface.driver import Driver

__all__ = ["Block", "Blocks", "chunk_edges"]

#: A block is made grown to at most so many chunks along a dimension to save decoding.
_MOST_TOGETHER: Final = 64
#: How many edges are looked at to judge a cut: the others go on in the same way.
_SAMPLE: Final = 2048


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
    """The blocks of one operation.

    Args:
        domain: what to cut; bounds are explicit.
        mine: for each dimension, where chunks begin that no two blocks share; None: it has none.
        theirs: where larger or other parts begin that should be in as few blocks as may be; None:
            there is only one.
        least: of how many elements a block should be, at least.
        most: of how many it is at most, unless a single chunk has more.

    Attributes:
        count: how many blocks there are.
        chunks: how many chunks.
        size: number of elements.
        largest: that of the largest block.
    """

    def __init__(
        self,
        domain: IndexTransform,
        mine: Sequence[set[int] | None],
        theirs: Sequence[set[int] | None],
        least: int,
        most: int,
    ) -> None:
        bounds = zip(domain.input_origin, domain.input_shape, strict=True)
        cuts = [
            _Cut(low, low + extent, edges, others)
            for (low, extent), edges, others in zip(bounds, mine, theirs, strict=True)
        ]
        _group(cuts, most)
        _gather(cuts, min(least, most))
        _split(cuts, most)
        self._cuts = cuts
        self.count = prod(len(cut.parts()) for cut in cuts)
        self.chunks = prod(cut.chunks for cut in cuts)
        self.size = prod(domain.input_shape)
        self.largest = prod(cut.longest for cut in cuts)

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

        Args:
            target: where to.
            to: from the copy's positions to the target's; bounds are explicit.
            source: where from.
            from_: from the same positions to the source's; extent 1 where that is broadcast.
            least: see above.
            most: see above.
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

    @property
    def cut(self) -> str:
        """What is another text for any other cut: their number, and a digest of their bounds."""
        parts = repr([cut.parts() for cut in self._cuts])
        return f"{self.count}-{sha256(parts.encode()).hexdigest()[:16]}"

    def __iter__(self) -> Iterator[Block]:
        for number, parts in enumerate(product(*(cut.parts() for cut in self._cuts))):
            bounds = tuple([part[:2] for part in parts])
            yield Block(bounds, prod(part[2] for part in parts), number)


class _Cut:
    """How one dimension is cut.

    Args:
        low, high: its bounds.
        mine: where chunks begin in between; None if it has none.
        theirs: where parts begin that should not be in several blocks.
    """

    def __init__(self, low: int, high: int, mine: set[int] | None, theirs: set[int] | None) -> None:
        within = range(low + 1, high)
        theirs = {edge for edge in theirs or () if edge in within}
        chosen = theirs if mine is None else {edge for edge in mine if edge in within}
        self.edges = sorted({low, high, *chosen})
        self.chunked = mine is not None
        self.together = 1
        self._theirs = theirs
        sample = self.edges[-1] if len(self.edges) <= _SAMPLE else self.edges[_SAMPLE - 1]
        self._sampled = [edge for edge in self.edges if edge <= sample]
        self._cells = 1 + sum(edge < sample for edge in theirs)

    @property
    def chunks(self) -> int:
        """How many chunks there are."""
        return len(self.edges) - 1

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

    def parts(self) -> Sequence[tuple[int, int, int]]:
        """Bounds of each part, and its number of chunks."""
        edges, last, step = self.edges, len(self.edges) - 1, self.together
        ends = [(at, min(at + step, last)) for at in range(0, last, step)]
        return [(edges[at], edges[end], end - at) for at, end in ends]

    def split(self, longest: int) -> None:
        """Cut further, wherever."""
        edges = {self.edges[-1]}
        for low, high in pairwise(self.edges):
            edges.update(range(low, high, longest))
        self.edges = self._sampled = sorted(edges)


def _group(cuts: Sequence[_Cut], most: int) -> None:
    """Make blocks of several chunks, as long as that saves decoding."""
    while True:
        size = prod(cut.longest for cut in cuts)
        best: tuple[float, _Cut, int] | None = None
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


def _gather(cuts: Sequence[_Cut], least: int) -> None:
    """Make blocks of several chunks until that many are worth the trouble of a block."""
    for cut in reversed(cuts):
        size = prod(each.longest for each in cuts)
        if 0 < size < least:
            cut.together = min(cut.together * (least // size), max(1, cut.chunks))


def _split(cuts: Sequence[_Cut], most: int) -> None:
    """Cut dimensions along which there are no chunks until blocks are small enough."""
    for cut in cuts:
        size = prod(each.longest for each in cuts)
        if size > most and not cut.chunked:
            cut.split(max(1, cut.longest * most // size))


def chunk_edges(
    driver: Driver, transform: IndexTransform, sizes: Sequence[int | None] | None
) -> list[set[int] | None]:
    """Where, along each input dimension, chunks begin or, backwards, end; None: there are none."""
    found: list[set[int] | None] = [None] * transform.input_rank
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
            edges = {_where(each, start) for start in starts}
            found[dim] = edges | (found[dim] or set())
    return found


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
