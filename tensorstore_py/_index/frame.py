"""`Frame`: the plain record that all index algebra works on, and its text form.

A frame is a box with named axes (the input domain) and one output index map per output
dimension. A domain is a frame without maps. The public classes wrap a frame; the algebra modules
are functions from frames to frames and know no public class but the maps.

Invariant: a frame is never changed after construction, and it is valid: bounds form intervals,
labels are unique, index arrays have the input rank with size 1 where they do not vary and vary
only along dimensions with explicit finite bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import sub

from tensorstore_py._index.dim import quote
from tensorstore_py._index.interval import INF, BoundState, format_interval
from tensorstore_py._index.maps import OutputIndexMap, constant, format_index_array, single
from tensorstore_py.errors import IndexingError

__all__ = [
    "MAX_RANK",
    "Frame",
    "check_rank",
    "format_domain",
    "format_frame",
    "identity_maps",
]

MAX_RANK = 32
"""The largest number of dimensions of a domain."""

Ints = tuple[int, ...]
Bools = tuple[bool, ...]

_IDENTITY = [tuple(single(0, 1, dim) for dim in range(rank)) for rank in range(MAX_RANK + 1)]


class Frame:
    """Bounds, labels and maps; all tuples of the input rank except `maps` (output rank)."""

    __slots__ = ("implicit_lower", "implicit_upper", "labels", "lower", "maps", "upper")

    def __init__(
        self,
        lower: Ints,
        upper: Ints,
        implicit_lower: Bools,
        implicit_upper: Bools,
        labels: tuple[str, ...],
        maps: tuple[OutputIndexMap, ...],
    ) -> None:
        self.lower = lower
        self.upper = upper
        self.implicit_lower = implicit_lower
        self.implicit_upper = implicit_upper
        self.labels = labels
        self.maps = maps

    @classmethod
    def of(
        cls,
        bounds: Sequence[BoundState],
        labels: Iterable[str],
        maps: tuple[OutputIndexMap, ...] = (),
    ) -> Frame:
        """The frame with these bounds and labels, one for each dimension."""
        if not bounds:
            return cls((), (), (), (), (), maps)
        lower, upper, implicit_lower, implicit_upper = zip(*bounds)  # noqa: B905 - tuples of four
        return cls(lower, upper, implicit_lower, implicit_upper, tuple(labels), maps)

    @property
    def rank(self) -> int:
        """Number of input dimensions."""
        return len(self.lower)

    @property
    def shape(self) -> Ints:
        """Number of positions along each input dimension."""
        return tuple(map(sub, self.upper, self.lower))

    def bounds(self, dim: int) -> BoundState:
        """The interval of one dimension with its two implicit flags."""
        return (
            self.lower[dim],
            self.upper[dim],
            self.implicit_lower[dim],
            self.implicit_upper[dim],
        )

    def all_bounds(self) -> list[BoundState]:
        """The bounds of each dimension."""
        columns = (self.lower, self.upper, self.implicit_lower, self.implicit_upper)
        return [*zip(*columns)]  # noqa: B905 - all are of the same rank

    def effective(self, dim: int) -> tuple[int, int]:
        """The interval that indices must lie in: implicit bounds do not bind."""
        return (
            -INF if self.implicit_lower[dim] else self.lower[dim],
            INF + 1 if self.implicit_upper[dim] else self.upper[dim],
        )

    def with_maps(self, maps: tuple[OutputIndexMap, ...]) -> Frame:
        """The same domain with other maps."""
        return Frame(
            self.lower, self.upper, self.implicit_lower, self.implicit_upper, self.labels, maps
        )

    def without_arrays(self) -> Frame:
        """The same frame, where it has no positions and hence no use for index arrays."""
        return self.with_maps(
            tuple([m if m.index_array is None else constant(0) for m in self.maps])
        )

    def is_explicitly_empty(self) -> bool:
        """Whether no index exists and no later operation can change that."""
        if not any(map(int.__eq__, self.lower, self.upper)):
            return False
        return any(
            low == up and not implicit_low and not implicit_up
            for low, up, implicit_low, implicit_up in self.all_bounds()
        )

    def same_domain(self, other: Frame) -> bool:
        """Whether bounds, flags and labels are equal."""
        return (
            self.lower == other.lower
            and self.upper == other.upper
            and self.implicit_lower == other.implicit_lower
            and self.implicit_upper == other.implicit_upper
            and self.labels == other.labels
        )


def check_rank(rank: int) -> int:
    """Return `rank`, or raise IndexingError beyond the maximum."""
    if rank > MAX_RANK:
        raise IndexingError(f"Rank {rank} is outside valid range [0, {MAX_RANK}]")
    return rank


def identity_maps(rank: int) -> tuple[OutputIndexMap, ...]:
    """Output dimension i = input dimension i; the tuples are shared."""
    return _IDENTITY[rank]


def format_domain(frame: Frame) -> str:
    """`{ "x": [0, 3), [0*, 4) }`."""
    dims = []
    for dim, text in enumerate(frame.labels):
        prefix = f"{quote(text)}: " if text else ""
        dims.append(prefix + format_interval(*frame.bounds(dim)))
    return "{ " + ", ".join(dims) + " }"


def format_frame(frame: Frame) -> str:
    """One line per dimension and map, ending with a newline."""
    lines = [
        f"Rank {frame.rank} -> {len(frame.maps)} index space transform:",
        "  Input domain:",
    ]
    for dim, text in enumerate(frame.labels):
        suffix = f" {quote(text)}" if text else ""
        lines.append(f"    {dim}: {format_interval(*frame.bounds(dim))}{suffix}")
    lines.append("  Output index maps:")
    lines += [f"    out[{out}] = {_format_map(m)}" for out, m in enumerate(frame.maps)]
    return "\n".join(lines) + "\n"


def _format_map(index_map: OutputIndexMap) -> str:
    text = str(index_map.offset)
    if index_map.stride is None:
        return text
    text += f" + {index_map.stride} * "
    if index_map.index_array is None:
        return f"{text}in[{index_map.input_dimension}]"
    limits = format_interval(*index_map.value_range)
    values = format_index_array(index_map.index_array)
    return f"{text}bounded({limits}, array(in)), where array =\n      {values}"
