"""Validated construction of frames from keyword arguments.

Shared by `IndexDomain` and `IndexTransform`, whose keywords differ only by the `input_` prefix.

Invariant: a frame that leaves this module is valid (see `Frame`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tensorstore_py._index.dim import Dim
from tensorstore_py._index.frame import MAX_RANK, Frame, identity_maps
from tensorstore_py._index.interval import (
    INF,
    Interval,
    check_closed,
    check_half_open,
    check_sized,
    int64_or_none,
)
from tensorstore_py._index.labels import require_unique
from tensorstore_py._index.maps import IndexArray, OutputIndexMap, array_map, constant

__all__ = ["DOMAIN_KEYWORDS", "DomainArguments", "frame_from_dims", "make_domain", "with_output"]

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

_FORMS = {"inclusive_max": check_closed, "exclusive_max": check_half_open, "shape": check_sized}


class DomainArguments:
    """The keyword arguments that describe a domain, each checked to be a sequence of its kind."""

    __slots__ = (
        "implicit_lower",
        "implicit_upper",
        "labels",
        "lower",
        "prefix",
        "rank",
        "upper",
        "upper_form",
    )

    def __init__(
        self,
        prefix: str,
        *,
        rank: object = None,
        inclusive_min: object = None,
        implicit_lower_bounds: object = None,
        exclusive_max: object = None,
        inclusive_max: object = None,
        shape: object = None,
        implicit_upper_bounds: object = None,
        labels: object = None,
    ) -> None:
        self.prefix = prefix
        self.rank = rank
        self.lower = _integers(f"{prefix}inclusive_min", inclusive_min)
        self.implicit_lower = _flags("implicit_lower_bounds", implicit_lower_bounds)
        uppers = {
            "exclusive_max": exclusive_max,
            "inclusive_max": inclusive_max,
            "shape": shape,
        }
        given = [name for name, value in uppers.items() if value is not None]
        if len(given) > 1:
            raise ValueError(f"Cannot specify both `{prefix}{given[0]}` and `{prefix}{given[1]}`")
        self.upper_form = given[0] if given else "exclusive_max"
        self.upper = _integers(f"{prefix}{self.upper_form}", uppers[self.upper_form])
        self.implicit_upper = _flags("implicit_upper_bounds", implicit_upper_bounds)
        self.labels = _labels(f"{prefix}labels", labels)

    def find_rank(self) -> int:
        """The rank on which all arguments agree; ValueError where they do not."""
        source, rank = f"{self.prefix}rank", None
        if self.rank is not None:
            rank = int64_or_none(self.rank)
            if rank is None:
                raise TypeError(f"`{source}` must be an integer, not {self.rank!r}")
            if not 0 <= rank <= MAX_RANK:
                raise ValueError(f"Invalid {source}: {rank}")
        sized: dict[str, Sequence[object] | None] = {
            f"{self.prefix}inclusive_min": self.lower,
            "implicit_lower_bounds": self.implicit_lower,
            f"{self.prefix}{self.upper_form}": self.upper,
            "implicit_upper_bounds": self.implicit_upper,
            f"{self.prefix}labels": self.labels,
        }
        for name, values in sized.items():
            if values is None:
                continue
            if rank is None:
                if len(values) > MAX_RANK:
                    raise ValueError(
                        f"Rank specified by `{name}` ({len(values)}) exceeds maximum rank of "
                        f"{MAX_RANK}"
                    )
                source, rank = name, len(values)
            elif rank != len(values):
                raise ValueError(
                    f"Rank specified by `{name}` ({len(values)}) does not match rank specified by "
                    f"`{source}` ({rank})"
                )
        if rank is None:
            raise ValueError(f"Must specify `{self.prefix}rank`")
        return rank


def make_domain(arguments: DomainArguments) -> Frame:
    """The frame without maps that the arguments describe.

    Bounds that are not given are infinite and implicit; a shape alone starts at 0.

    Raises:
        ValueError: ranks disagree, bounds form no interval, or labels repeat.
    """
    rank = arguments.find_rank()
    starts_at_zero = arguments.upper_form == "shape" and arguments.upper is not None
    lower = arguments.lower
    if lower is None:
        lower = (0 if starts_at_zero else -INF,) * rank
    upper = arguments.upper
    if upper is None:
        upper = (INF + 1,) * rank
    implicit_lower = arguments.implicit_lower
    if implicit_lower is None:
        implicit_lower = (arguments.lower is None and not starts_at_zero,) * rank
    implicit_upper = arguments.implicit_upper
    if implicit_upper is None:
        implicit_upper = (arguments.upper is None,) * rank
    labels = arguments.labels or ("",) * rank
    require_unique(labels)
    form = _FORMS[arguments.upper_form]
    intervals: list[Interval] = [form(*pair) for pair in zip(lower, upper, strict=True)]
    return Frame(
        tuple([interval[0] for interval in intervals]),
        tuple([interval[1] for interval in intervals]),
        implicit_lower,
        implicit_upper,
        labels,
        (),
    )


def frame_from_dims(dims: object) -> Frame:
    """The frame without maps of a sequence of `Dim`."""
    sequence = tuple(dims) if isinstance(dims, Iterable) and not isinstance(dims, str) else None
    if sequence is None or not all(isinstance(dim, Dim) for dim in sequence):
        raise TypeError(f"A domain is given by its rank or by a sequence of Dim, not by {dims!r}")
    if len(sequence) > MAX_RANK:
        raise ValueError(f"Rank {len(sequence)} exceeds maximum rank of {MAX_RANK}")
    labels = tuple([dim.label for dim in sequence])
    require_unique(labels)
    return Frame(
        tuple([dim.inclusive_min for dim in sequence]),
        tuple([dim.exclusive_max for dim in sequence]),
        tuple([dim.implicit_lower for dim in sequence]),
        tuple([dim.implicit_upper for dim in sequence]),
        labels,
        (),
    )


def with_output(domain: Frame, output: object) -> Frame:
    """The frame with validated output maps; None means the identity.

    Raises:
        ValueError: a map names a dimension that does not exist, or an index array does not fit.
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
