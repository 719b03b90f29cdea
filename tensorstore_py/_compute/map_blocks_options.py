"""`MapOptions`: how a function is mapped over blocks, as a user says it; checked, and as JSON.

What is said by label is known to be wrong only when the arrays are open (`halos`); all else is
refused at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tensorstore_py._compute.alignment import listed, named
from tensorstore_py.errors import SpecError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from tensorstore_py._compute.alignment import Alignment
    from tensorstore_py._interface.hierarchy import JsonObject
    from tensorstore_py._spec.dtype import dtype

    Positions = NDArray[np.intp]
    Reach = int | tuple[int, int]

__all__ = ["BOUNDARIES", "Boundary", "Halo", "MapOptions", "Window"]


BOUNDARIES = ("none", "reflect", "nearest", "periodic")

#: One of `BOUNDARIES`, or a constant.
Boundary = str | float


class Window(NamedTuple):
    """What a block is made of along one dimension.

    Attributes:
        read: what is read: a range, or positions in order.
        take: for each position of the window, which of those that are read it is; None: they are
            the same.
        constant: how many positions before and after are a constant.
        margins: how many positions before and after do not belong to the block itself.
    """

    read: range | Positions
    take: Positions | None
    constant: tuple[int, int]
    margins: tuple[int, int]

    @property
    def extent(self) -> int:
        """How many positions it has."""
        return sum(self.constant) + len(self.read if self.take is None else self.take)


class Halo(NamedTuple):
    """How far a block reaches beyond its bounds along one dimension, and what is there.

    Positions are counted from the beginning of the dimension. What is wanted beyond its ends is
    either not there, or made of what is inside, or a constant; so all that is read lies inside.

    Attributes:
        before: how many elements.
        after: how many elements.
        boundary: what is beyond the ends: `"none"`: nothing, so the block is smaller there;
            `"reflect"`: the elements in reverse order, the outermost one again at first;
            `"nearest"`: the outermost element; `"periodic"`: those of the other end; or a constant.

    Example:
        >>> Halo(1, 2, "none").window(0, 4, 5)
        Window(read=range(0, 5), take=None, constant=(0, 0), margins=(0, 1))
        >>> Halo(2, 2, "reflect").window(0, 2, 5).take
        array([1, 0, 0, 1, 2, 3])
        >>> Halo(1, 1, 7).window(0, 5, 5).constant
        (1, 1)
    """

    before: int = 0
    after: int = 0
    boundary: Boundary = "none"

    def window(self, low: int, high: int, extent: int) -> Window:
        """What a block with some bounds is made of."""
        first, last = low - self.before, high + self.after
        inside = range(max(0, first), min(extent, last))
        if first >= 0 and last <= extent:
            return Window(inside, None, (0, 0), (self.before, self.after))
        if self.boundary == "none":
            return Window(inside, None, (0, 0), (low - inside.start, inside.stop - high))
        margins = self.before, self.after
        if not isinstance(self.boundary, str):
            return Window(inside, None, (inside.start - first, last - inside.stop), margins)
        wanted = _inside(np.arange(first, last), extent, self.boundary)
        read, take = np.unique(wanted, return_inverse=True)
        start, stop = int(read[0]), int(read[-1]) + 1
        together = stop - start == len(read)
        return Window(range(start, stop) if together else read, take.reshape(-1), (0, 0), margins)

    def largest(self, longest: int, extent: int) -> int:
        """How many positions the window of a block of some extent has at most."""
        reach = longest + self.before + self.after
        return min(reach, extent) if self.boundary == "none" else reach


def _inside(wanted: Positions, extent: int, boundary: str) -> Positions:
    """The position whose element stands at each that is wanted."""
    if boundary == "nearest":
        return np.clip(wanted, 0, extent - 1)
    if boundary == "periodic":
        return wanted % extent
    folded = wanted % (2 * extent)
    return np.minimum(folded, 2 * extent - 1 - folded)


def extended(data: NDArray[Any], dim: int, window: Window, constant: Boundary) -> NDArray[Any]:
    """What was read along a dimension, with what is beyond its ends."""
    if window.take is not None:
        data = data.take(window.take, axis=dim)
    if any(window.constant):
        widths = [window.constant if each == dim else (0, 0) for each in range(data.ndim)]
        data = np.pad(data, widths, constant_values=constant)
    return data


class MapOptions(NamedTuple):
    """See the head of this file.

    Attributes:
        drop: dimensions that the target lacks.
        new: extents of those that the function makes.
        halo: overlap, for all dimensions, for each, or by dimension.
        boundary: what is beyond the ends, likewise.
    """

    drop: tuple[int | str, ...]
    new: dict[int | str, int]
    halo: Reach | tuple[Reach, ...] | dict[int | str, Reach]
    boundary: Boundary | dict[int | str, Boundary]

    @staticmethod
    def of(drop: object, new: object, halo: object, boundary: object) -> MapOptions:
        """What was given, in forms of its own.

        Raises:
            SpecError: a value is wrong; names the argument.
            TypeError: an argument is of a wrong type.
        """
        extents = {} if new is None else _by_dimension(new, "new")
        made = {name: _count(extent, "new") for name, extent in extents.items()}
        return MapOptions(listed(drop, "drop"), made, _halo(halo), _boundary(boundary))

    def to_json(self) -> JsonObject:
        """The arguments that say the same."""
        said: JsonObject = {
            "drop": list(self.drop),
            "new": {str(name): extent for name, extent in self.new.items()},
            "halo": _json(self.halo),
            "boundary": _json(self.boundary),
        }
        return {name: value for name, value in said.items() if value not in ([], {}, None)}

    def halos(self, alignment: Alignment, types: Iterable[dtype]) -> tuple[Halo, ...]:
        """The halo along each dimension of the space.

        Raises:
            SpecError: there is no such dimension, or one is wholly in each block; or a constant is
                none of a source's type.
        """
        labels, rank = alignment.space.labels, len(alignment.space.shape)
        kept = [dim for dim in range(rank) if dim not in alignment.dropped]
        if isinstance(self.halo, dict):
            reach = named(self.halo, labels, "halo")
        elif isinstance(self.halo, int):
            reach = dict.fromkeys(kept, self.halo)
        elif len(self.halo) == rank:
            reach = dict(enumerate(self.halo))
        else:
            raise SpecError(
                f"there are {rank} dimensions, but {len(self.halo)} numbers; give one for each, "
                "one for all, or some by label",
                ("halo",),
            )
        given = self.boundary
        boundary = dict.fromkeys(kept, given) if not isinstance(given, dict) else named(
            given, labels, "boundary")  # fmt: skip
        found = []
        for dim in range(rank):
            before, after = _pair(reach.get(dim, 0))
            if dim not in kept and before + after:
                raise SpecError(
                    f"the target has no dimension {labels[dim] or dim}, so each block has all of "
                    "it and needs no halo along it; leave it out",
                    ("halo",),
                )
            found.append(Halo(before, after, boundary.get(dim, "none")))
        _check_constants(found, types)
        return tuple(found)


def _pair(reach: Reach) -> tuple[int, int]:
    return (reach, reach) if isinstance(reach, int) else reach


def _check_constants(halos: Iterable[Halo], types: Iterable[dtype]) -> None:
    constants = {halo.boundary for halo in halos if not isinstance(halo.boundary, str)}
    for kind in types:
        for constant in constants:
            if kind.array_dtype.kind in "biu" and not _fits(constant, kind.array_dtype):
                raise SpecError(
                    f"the constant {constant} is no value of {kind.name}; use another, or one of "
                    f"{', '.join(BOUNDARIES)}",
                    ("boundary",),
                )


def _fits(constant: Boundary, kind: np.dtype[Any]) -> bool:
    if kind.kind == "b":
        return constant in (0, 1)
    limits = np.iinfo(kind)
    return constant == constant // 1 and limits.min <= constant <= limits.max  # type: ignore[operator]


def _by_dimension(given: object, argument: str) -> dict[int | str, object]:
    if not isinstance(given, Mapping):
        raise TypeError(f"{argument} is a dict by label or number, not {given!r}")
    found: dict[int | str, object] = {}
    for name, value in given.items():
        if isinstance(name, bool) or not isinstance(name, int | str):
            raise TypeError(f"{argument} is a dict by label or number, but has {name!r}")
        number = isinstance(name, str) and name.lstrip("-").isdecimal()
        found[int(name) if number else name] = value
    return found


def _count(given: object, argument: str) -> int:
    if isinstance(given, np.integer):
        given = int(given)
    if not isinstance(given, int) or isinstance(given, bool) or given < 0:
        raise SpecError(f"expected a number of elements, but found {given!r}", (argument,))
    return given


def _halo(given: object) -> Reach | tuple[Reach, ...] | dict[int | str, Reach]:
    if given is None:
        return 0
    if isinstance(given, Mapping):
        return {name: _reach(each) for name, each in _by_dimension(given, "halo").items()}
    if isinstance(given, Sequence) and not isinstance(given, str):
        return tuple(_reach(each) for each in given)
    return _count(given, "halo")


def _reach(given: object) -> Reach:
    if isinstance(given, Sequence) and not isinstance(given, str) and len(given) == 2:
        return _count(given[0], "halo"), _count(given[1], "halo")
    return _count(given, "halo")


def _boundary(given: object) -> Boundary | dict[int | str, Boundary]:
    if isinstance(given, Mapping):
        found = _by_dimension(given, "boundary")
        return {name: _beyond(each) for name, each in found.items()}
    return _beyond(given)


def _beyond(given: object) -> Boundary:
    if given is None:
        return "none"
    if isinstance(given, str):
        if given in BOUNDARIES:
            return given
        if given in ("nan", "inf", "-inf"):  # numbers that JSON lacks
            return float(given)
        raise SpecError(
            f"expected one of {', '.join(BOUNDARIES)}, or a number, but found {given!r}"
            + did_you_mean(given, BOUNDARIES),
            ("boundary",),
        )
    value = given.item() if isinstance(given, np.generic) else given
    if not isinstance(value, bool | int | float):
        raise SpecError(f"expected one of {', '.join(BOUNDARIES)}, or a number, "
                        f"but found {given!r}", ("boundary",))  # fmt: skip
    return value


def _json(given: object) -> object:
    if isinstance(given, dict):
        return {str(name): _json(each) for name, each in given.items()}
    if isinstance(given, tuple):
        return [_json(each) for each in given]
    return str(given) if isinstance(given, float) and not np.isfinite(given) else given
