"""`MapOptions`: how a function is mapped over blocks, as a user says it; checked, and as JSON.

What is said by label is known to be wrong only when the arrays are open (`halos`); all else is
refused at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tensorstore_py._compute.dimension_names import listed, named
from tensorstore_py._compute.halo import BOUNDARIES, Boundary, Halo
from tensorstore_py.errors import SpecError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tensorstore_py._compute.alignment import Alignment
    from tensorstore_py._interface.hierarchy import JsonObject
    from tensorstore_py._spec.dtype import dtype

    #: By label or number of a dimension.
    Reach = int | tuple[int, int]

__all__ = ["MapOptions"]


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

        Args:
            alignment: which dimensions there are.
            types: the data types of the sources.

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
