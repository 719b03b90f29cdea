"""Validated construction of frames from keyword arguments and from JSON, and their JSON form.

Shared by `IndexDomain` and `IndexTransform`, whose names differ only by the `input_` prefix.

Invariant: a frame that leaves this module is valid (see `Frame`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from tensorstore_py._index.dim import Dim, require_unique
from tensorstore_py._index.frame import MAX_RANK, Frame, identity_maps
from tensorstore_py._index.interval import (
    INF,
    INF_SIZE,
    check_closed,
    check_half_open,
    check_sized,
    int64_or_none,
)
from tensorstore_py._index.maps import IndexArray, OutputIndexMap, array_map, constant
from tensorstore_py.errors import SpecError, did_you_mean

__all__ = [
    "DOMAIN_KEYWORDS",
    "Json",
    "domain_from_json",
    "domain_to_json",
    "frame_from_dims",
    "frame_from_json",
    "frame_to_json",
    "make_domain",
    "with_output",
]

DOMAIN_KEYWORDS = (
    "rank",
    "inclusive_min",
    "implicit_lower_bounds",
    "exclusive_max",
    "inclusive_max",
    "shape",
    "implicit_upper_bounds",
    "labels",
)

_FORMS = {"exclusive_max": check_half_open, "inclusive_max": check_closed, "shape": check_sized}


def make_domain(
    prefix: str,
    *,
    rank: object = None,
    inclusive_min: object = None,
    implicit_lower_bounds: object = None,
    implicit_upper_bounds: object = None,
    labels: object = None,
    **uppers: object,
) -> Frame:
    """The frame without maps that the keyword arguments of a domain describe.

    Bounds that are not given are infinite and implicit; a shape alone starts at 0. `uppers` is at
    most one of `exclusive_max`, `inclusive_max` and `shape`; `prefix` stands before the names in
    errors.

    Raises:
        TypeError: an argument is no sequence of its kind.
        ValueError: ranks disagree, bounds form no interval, or labels repeat.
    """
    lower = _integers(f"{prefix}inclusive_min", inclusive_min)
    implicit_lower = _flags("implicit_lower_bounds", implicit_lower_bounds)
    given = [name for name in _FORMS if uppers.get(name) is not None]
    if len(given) > 1:
        raise ValueError(f"Cannot specify both `{prefix}{given[0]}` and `{prefix}{given[1]}`")
    form = given[0] if given else "exclusive_max"
    upper = _integers(f"{prefix}{form}", uppers.get(form))
    implicit_upper = _flags("implicit_upper_bounds", implicit_upper_bounds)
    names = _labels(f"{prefix}labels", labels)
    sized: dict[str, Sequence[object] | None] = {
        f"{prefix}inclusive_min": lower,
        "implicit_lower_bounds": implicit_lower,
        f"{prefix}{form}": upper,
        "implicit_upper_bounds": implicit_upper,
        f"{prefix}labels": names,
    }
    count = _common_rank(f"{prefix}rank", rank, sized)
    from_zero = form == "shape" and upper is not None
    columns = (
        (0 if from_zero else -INF,) * count if lower is None else lower,
        (INF + 1,) * count if upper is None else upper,
        (lower is None and not from_zero,) * count if implicit_lower is None else implicit_lower,
        (upper is None,) * count if implicit_upper is None else implicit_upper,
    )
    names = names or ("",) * count
    require_unique(names)
    check = _FORMS[form]
    return Frame.of(
        [(*check(low, up), one, other) for low, up, one, other in zip(*columns, strict=True)], names
    )


def _common_rank(source: str, given: object, sized: dict[str, Sequence[object] | None]) -> int:
    """The rank on which all arguments agree; ValueError where they do not."""
    rank = None
    if given is not None:
        rank = int64_or_none(given)
        if rank is None:
            raise TypeError(f"`{source}` must be an integer, not {given!r}")
        if not 0 <= rank <= MAX_RANK:
            raise ValueError(f"Invalid {source}: {rank}")
    missing = source
    for name, values in sized.items():
        if values is None:
            continue
        if rank is None:
            if len(values) > MAX_RANK:
                raise ValueError(
                    f"Rank specified by `{name}` ({len(values)}) exceeds maximum rank of {MAX_RANK}"
                )
            source, rank = name, len(values)
        elif rank != len(values):
            raise ValueError(
                f"Rank specified by `{name}` ({len(values)}) does not match rank specified by "
                f"`{source}` ({rank})"
            )
    if rank is None:
        raise ValueError(f"Must specify `{missing}`")
    return rank


def frame_from_dims(dims: object) -> Frame:
    """The frame without maps of a sequence of `Dim`."""
    sequence = tuple(dims) if isinstance(dims, Iterable) and not isinstance(dims, str) else None
    if sequence is None or not all(isinstance(dim, Dim) for dim in sequence):
        raise TypeError(f"A domain is given by its rank or by a sequence of Dim, not by {dims!r}")
    if len(sequence) > MAX_RANK:
        raise ValueError(f"Rank {len(sequence)} exceeds maximum rank of {MAX_RANK}")
    labels = tuple([dim.label for dim in sequence])
    require_unique(labels)
    return Frame.of(
        [
            (dim.inclusive_min, dim.exclusive_max, dim.implicit_lower, dim.implicit_upper)
            for dim in sequence
        ],
        labels,
    )


def with_output(domain: Frame, output: object) -> Frame:
    """The frame with validated output maps; None means the identity.

    Raises ValueError: a map names a dimension that does not exist, or an index array does not fit.
    """
    if output is None:
        return domain.with_maps(identity_maps(domain.rank))
    maps = tuple(output) if isinstance(output, Iterable) else None
    if maps is None or not all(isinstance(index_map, OutputIndexMap) for index_map in maps):
        raise TypeError(f"`output` must be a sequence of OutputIndexMap, not {output!r}")
    if len(maps) > MAX_RANK:
        raise ValueError(
            f"Number of output dimensions ({len(maps)}) exceeds maximum rank of {MAX_RANK}"
        )
    is_empty = domain.is_explicitly_empty()
    return domain.with_maps(
        tuple(_fitted(domain, index_map, out, is_empty) for out, index_map in enumerate(maps))
    )


def _fitted(domain: Frame, index_map: OutputIndexMap, out: int, is_empty: bool) -> OutputIndexMap:
    """The map in the form that frames hold."""
    values, stride = index_map.index_array, index_map.stride
    if stride is None:
        return index_map
    if values is None:
        dim = index_map.input_dimension
        if dim is None or not 0 <= dim < domain.rank:
            raise ValueError(
                f"Input dimension {dim} specified for output dimension {out} is outside valid "
                f"range [0, {domain.rank})"
            )
        return index_map if stride else constant(index_map.offset)
    values = _fit_array(domain, values, out)
    if is_empty:
        return constant(0)
    if not stride:
        return constant(index_map.offset)
    return array_map(index_map.offset, stride, values, index_map.value_range)


def _fit_array(domain: Frame, values: IndexArray, out: int) -> IndexArray:
    where = f"Index array for output dimension {out}"
    if values.ndim != domain.rank:
        raise ValueError(f"{where} has rank {values.ndim} but must have rank {domain.rank}")
    shape = [up - low for low, up in zip(domain.lower, domain.upper, strict=True)]
    for dim, size in enumerate(values.shape):
        if size == 1:
            continue
        if size != shape[dim]:
            raise ValueError(
                f"{where} has shape {_braces(values.shape)} which does not match input_shape "
                f"{_braces(shape)}"
            )
        if domain.implicit_lower[dim] or domain.implicit_upper[dim]:
            raise ValueError(f"{where} depends on input dimension {dim} with implicit bounds")
        if domain.lower[dim] == -INF or domain.upper[dim] == INF + 1:
            raise ValueError(f"{where} depends on input dimension {dim} with infinite bounds")
    return values


def _braces(shape: Iterable[int]) -> str:
    return "{" + ", ".join(map(str, shape)) + "}"


def _items(name: str, value: object) -> list[object] | None:
    if value is None:
        return None
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return list(value)
    raise TypeError(f"`{name}` must be a sequence, not {value!r}")


def _integers(name: str, value: object) -> tuple[int, ...] | None:
    items = _items(name, value)
    if items is None:
        return None
    numbers: list[int] = []
    for item in items:
        number = int64_or_none(item)
        if number is None:
            raise TypeError(f"`{name}` must hold 64-bit integers, not {item!r}")
        numbers.append(number)
    return tuple(numbers)


def _flags(name: str, value: object) -> tuple[bool, ...] | None:
    items = _items(name, value)
    return None if items is None else tuple(map(bool, items))


def _labels(name: str, value: object) -> tuple[str, ...] | None:
    items = _items(name, value)
    if items is None:
        return None
    labels: list[str] = []
    for item in items:
        if not (item is None or isinstance(item, str)):
            raise TypeError(f"`{name}` must hold str or None, not {item!r}")
        labels.append(item or "")
    return tuple(labels)


Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"

_DOMAIN_MEMBERS = ("rank", "inclusive_min", "shape", "inclusive_max", "exclusive_max", "labels")
_MAP_MEMBERS = ("offset", "stride", "input_dimension", "index_array", "index_array_bounds")
_UPPER_INF = {"shape": INF_SIZE, "inclusive_max": INF, "exclusive_max": INF + 1}


def domain_from_json(json: object) -> Frame:
    """Parse a domain. Raises SpecError: with the path of the member that is wrong."""
    members = _object(json)
    _refuse_unknown(members, _DOMAIN_MEMBERS)
    return _parse_domain(members, "")


def frame_from_json(json: object) -> Frame:
    """Parse a transform. Raises SpecError: with the path of the member that is wrong."""
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
        return make_domain(prefix, **given)
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
