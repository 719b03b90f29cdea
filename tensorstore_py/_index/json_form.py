"""The JSON form of domains and transforms, both ways.

The same members as the reference: `inclusive_min`, one of `exclusive_max`, `inclusive_max` and
`shape`, `labels`, or just `rank` (with the prefix `input_` in a transform), and `output`. A value
in brackets is an implicit bound, `"-inf"` and `"+inf"` are no bound.

Invariant: what is written reads back equal; defaults are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from tensorstore_py._index.build import DomainArguments, make_domain, with_output
from tensorstore_py._index.dim import Dim
from tensorstore_py._index.frame import MAX_RANK, Frame
from tensorstore_py._index.interval import INF, INF_SIZE
from tensorstore_py._index.maps import OutputIndexMap
from tensorstore_py.errors import SpecError, did_you_mean

__all__ = ["Json", "domain_from_json", "domain_to_json", "frame_from_json", "frame_to_json"]

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"

_DOMAIN_MEMBERS = ("rank", "inclusive_min", "shape", "inclusive_max", "exclusive_max", "labels")
_MAP_MEMBERS = ("offset", "stride", "input_dimension", "index_array", "index_array_bounds")
_UPPER_INF = {"shape": INF_SIZE, "inclusive_max": INF, "exclusive_max": INF + 1}


def domain_from_json(json: object) -> Frame:
    """Parse a domain.

    Raises:
        SpecError: with the path of the member that is wrong.
    """
    members = _object(json)
    _refuse_unknown(members, _DOMAIN_MEMBERS)
    return _parse_domain(members, "")


def frame_from_json(json: object) -> Frame:
    """Parse a transform.

    Raises:
        SpecError: with the path of the member that is wrong.
    """
    members = _object(json)
    names = [f"input_{name}" for name in _DOMAIN_MEMBERS]
    _refuse_unknown(members, [*names, "output"])
    domain = _parse_domain(members, "input_")
    output = None
    if "output" in members:
        items = _array(members["output"], ("output",))
        output = [_parse_map(item, ("output", i)) for i, item in enumerate(items)]
    try:
        return with_output(domain, output)
    except ValueError as problem:
        raise SpecError(str(problem), ("output",)) from None


def _parse_domain(members: Mapping[str, object], prefix: str) -> Frame:
    present = [name for name in _DOMAIN_MEMBERS if prefix + name in members]
    if not present:
        names = ", ".join(f'"{prefix}{name}"' for name in _DOMAIN_MEMBERS)
        raise SpecError(f"at least one of {names} must be specified")
    uppers = [name for name in present if name in _UPPER_INF]
    if len(uppers) > 1:
        names = ", ".join(f'"{prefix}{name}"' for name in _UPPER_INF)
        raise SpecError(f"at most one of {names} is allowed")
    given: dict[str, object] = {}
    if "rank" in present:
        given["rank"] = _rank(members[f"{prefix}rank"], (f"{prefix}rank",))
    if "inclusive_min" in present:
        name = f"{prefix}inclusive_min"
        given["inclusive_min"], given["implicit_lower_bounds"] = _bounds(
            members[name], (name,), "-inf", -INF
        )
    for upper in uppers:
        name = prefix + upper
        given[upper], given["implicit_upper_bounds"] = _bounds(
            members[name], (name,), "+inf", _UPPER_INF[upper]
        )
    if "labels" in present:
        name = f"{prefix}labels"
        labels = _array(members[name], (name,))
        for i, label in enumerate(labels):
            if not isinstance(label, str):
                raise SpecError(f"expected a string, but received {label!r}", (name, i))
        given["labels"] = labels
    try:
        return make_domain(DomainArguments(prefix, **given))
    except (ValueError, TypeError) as problem:
        raise SpecError(str(problem)) from None


def _object(json: object, path: tuple[str | int, ...] = ()) -> Mapping[str, object]:
    if isinstance(json, Mapping):
        return json
    raise SpecError(f"expected an object, but received {json!r}", path)


def _refuse_unknown(
    members: Mapping[str, object], known: Sequence[str], path: tuple[str | int, ...] = ()
) -> None:
    for name in members:
        if name not in known:
            raise SpecError(f"unknown member{did_you_mean(str(name), known)}", (*path, str(name)))


def _array(value: object, path: tuple[str | int, ...]) -> list[object]:
    if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str | bytes):
        return list(value)
    raise SpecError(f"expected an array, but received {value!r}", path)


def _integer(value: object, path: tuple[str | int, ...], allowed: str = "") -> int:
    if isinstance(value, float | np.floating) and float(value).is_integer():
        value = int(value)
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        number = int(value)
        if -(2**63) <= number < 2**63:
            return number
    raise SpecError(f"expected a 64-bit signed integer{allowed}, but received {value!r}", path)


def _rank(value: object, path: tuple[str | int, ...]) -> int:
    rank = _integer(value, path)
    if not 0 <= rank <= MAX_RANK:
        raise SpecError(f"expected an integer in the range [0, {MAX_RANK}], not {rank}", path)
    return rank


def _bounds(
    value: object, path: tuple[str | int, ...], infinity: str, infinite: int
) -> tuple[list[int], list[bool]]:
    bounds: list[int] = []
    implicit: list[bool] = []
    for i, item in enumerate(_array(value, path)):
        is_implicit = isinstance(item, list | tuple)
        if isinstance(item, list | tuple):
            if len(item) != 1:
                raise SpecError(
                    f"expected an array of size 1 indicating an implicit value, not {item!r}",
                    (*path, i),
                )
            item = item[0]
        bounds.append(_bound(item, (*path, i), infinity, infinite))
        implicit.append(is_implicit)
    return bounds, implicit


def _bound(value: object, path: tuple[str | int, ...], infinity: str, infinite: int) -> int:
    if value == infinity:
        return infinite
    if isinstance(value, str) and value.lstrip("-").isdecimal():
        value = int(value)
    return _integer(value, path, f' or "{infinity}"')


def _parse_map(json: object, path: tuple[str | int, ...]) -> OutputIndexMap:
    members = _object(json, path)
    _refuse_unknown(members, _MAP_MEMBERS, path)
    has_dimension, has_array = "input_dimension" in members, "index_array" in members
    if has_dimension and has_array:
        raise SpecError('at most one of "input_dimension", "index_array" is allowed', path)
    offset = _integer(members.get("offset", 0), (*path, "offset"))
    if "stride" in members and not (has_dimension or has_array):
        raise SpecError('only valid with "input_dimension" or "index_array"', (*path, "stride"))
    if "index_array_bounds" in members and not has_array:
        raise SpecError('only valid with "index_array"', (*path, "index_array_bounds"))
    stride = _integer(members.get("stride", 1), (*path, "stride"))
    if has_dimension:
        dim = _integer(members["input_dimension"], (*path, "input_dimension"))
        return OutputIndexMap(input_dimension=dim, offset=offset, stride=stride)
    if not has_array:
        return OutputIndexMap(offset)
    values = _nested_integers(members["index_array"], (*path, "index_array"))
    index_range = None
    if "index_array_bounds" in members:
        index_range = _index_range(members["index_array_bounds"], (*path, "index_array_bounds"))
    return OutputIndexMap(index_array=values, offset=offset, stride=stride, index_range=index_range)


def _nested_integers(json: object, path: tuple[str | int, ...]) -> np.ndarray:
    def check(value: object, here: tuple[str | int, ...]) -> object:
        if isinstance(value, list | tuple | np.ndarray):
            return [check(item, (*here, i)) for i, item in enumerate(value)]
        return _integer(value, here)

    nested = check(json, path)
    try:
        return np.array(nested, dtype=np.int64)
    except ValueError:
        raise SpecError("expected nested arrays of equal length", path) from None


def _index_range(json: object, path: tuple[str | int, ...]) -> Dim:
    limits = _array(json, path)
    if len(limits) != 2:
        raise SpecError(f"expected [inclusive_min, inclusive_max], but received {json!r}", path)
    first = _bound(limits[0], (*path, 0), "-inf", -INF)
    last = _bound(limits[1], (*path, 1), "+inf", INF)
    try:
        return Dim(inclusive_min=first, inclusive_max=last)
    except ValueError as problem:
        raise SpecError(str(problem), path) from None


def domain_to_json(frame: Frame, prefix: str = "") -> dict[str, Json]:
    """The shortest JSON form of a domain, members in alphabetical order."""
    members: dict[str, Json] = {}
    if not _all_default(frame.upper, frame.implicit_upper, INF + 1):
        members[f"{prefix}exclusive_max"] = [
            _dump_bound(bound, implicit, INF + 1, "+inf")
            for bound, implicit in zip(frame.upper, frame.implicit_upper, strict=True)
        ]
    if not _all_default(frame.lower, frame.implicit_lower, -INF):
        members[f"{prefix}inclusive_min"] = [
            _dump_bound(bound, implicit, -INF, "-inf")
            for bound, implicit in zip(frame.lower, frame.implicit_lower, strict=True)
        ]
    if any(frame.labels):
        members[f"{prefix}labels"] = list(frame.labels)
    return members or {f"{prefix}rank": frame.rank}


def _all_default(bounds: tuple[int, ...], implicit: tuple[bool, ...], infinite: int) -> bool:
    return all(implicit) and all(bound == infinite for bound in bounds)


def _dump_bound(bound: int, implicit: bool, infinite: int, infinity: str) -> Json:
    value: Json = infinity if bound == infinite else bound
    return [value] if implicit else value


def frame_to_json(frame: Frame) -> dict[str, Json]:
    """The shortest JSON form of a transform; the identity has no `output`."""
    members = domain_to_json(frame, "input_")
    maps: list[Json] = [_dump_map(index_map) for index_map in frame.maps]
    if maps != [{"input_dimension": dim} for dim in range(frame.rank)]:
        members["output"] = maps
    return members


def _dump_map(index_map: OutputIndexMap) -> dict[str, Json]:
    members: dict[str, Json] = {}
    values = index_map.index_array
    if values is not None:
        members["index_array"] = values.tolist()
        lower, upper = index_map.value_range
        if index_map.reaches_outside:
            members["index_array_bounds"] = [
                "-inf" if lower == -INF else lower,
                "+inf" if upper == INF + 1 else upper - 1,
            ]
    if index_map.input_dimension is not None:
        members["input_dimension"] = index_map.input_dimension
    if index_map.offset:
        members["offset"] = index_map.offset
    if index_map.stride is not None and index_map.stride != 1:
        members["stride"] = index_map.stride
    return members
