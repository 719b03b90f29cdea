"""Output index maps: how one output coordinate follows from the input position.

`constant`: `offset`. `single_input_dimension`: `offset + stride * position[input_dimension]`.
`array`: `offset + stride * index_array[position - origin]`, where the array has the input rank
and size 1 along every dimension that it does not depend on.

Invariant: a map is never changed after construction, and its index array is read-only int64.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import SupportsIndex, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from tensorstore_py._display.public_name import public
from tensorstore_py._index.dim import Dim
from tensorstore_py._index.interval import INF, Interval, format_interval, int64_or_none
from tensorstore_py._index.selection import DimRange, resolve_range
from tensorstore_py.errors import IndexingError

__all__ = [
    "UNBOUNDED",
    "IndexArray",
    "OutputIndexMap",
    "OutputIndexMaps",
    "OutputIndexMethod",
    "array_map",
    "constant",
    "single",
]

IndexArray: TypeAlias = npt.NDArray[np.int64]

UNBOUNDED: Interval = (-INF, INF + 1)
"""The index range of an array map whose values are not restricted."""


@public
class OutputIndexMethod(Enum):
    """How an output coordinate is computed.

    Example:
        >>> OutputIndexMap(input_dimension=1).method
        <OutputIndexMethod.single_input_dimension: 1>
    """

    constant = 0
    single_input_dimension = 1
    array = 2

    def __int__(self) -> int:
        return int(self.value)

    def __index__(self) -> int:
        return int(self.value)


_CONSTANT = OutputIndexMethod.constant
_SINGLE = OutputIndexMethod.single_input_dimension
_ARRAY = OutputIndexMethod.array


@public
class OutputIndexMap:
    """Maps an input position to one output coordinate.

    Args:
        offset: added to every coordinate.
        input_dimension: the dimension whose position is used.
        stride: multiplies the position or the array's value.
        index_array: integers, one per input position, size 1 where a dimension does not matter.
        index_range: a `Dim` that the array's values must lie in (checked when they are used).

    Attributes:
        method: `OutputIndexMethod`; decides which of the others are set.
        stride: None for a constant map.
        input_dimension: None unless the method is `single_input_dimension`.
        index_array: None unless the method is `array`; read-only int64.

    Raises:
        TypeError: the arguments match none of the three forms.

    Example:
        >>> OutputIndexMap(input_dimension=0, offset=3)
        OutputIndexMap(offset=3, stride=1, input_dimension=0)
        >>> OutputIndexMap([[1, 2]]).index_array.shape
        (1, 2)
    """

    __slots__ = ("index_array", "input_dimension", "method", "offset", "stride", "value_range")
    __hash__ = None  # type: ignore[assignment]

    method: OutputIndexMethod
    offset: int
    stride: int | None
    input_dimension: int | None
    index_array: IndexArray | None
    value_range: Interval

    @overload
    def __init__(self, offset: SupportsIndex = 0) -> None: ...
    @overload
    def __init__(
        self,
        input_dimension: SupportsIndex,
        offset: SupportsIndex = 0,
        stride: SupportsIndex = 1,
    ) -> None: ...
    @overload
    def __init__(
        self,
        index_array: npt.ArrayLike,
        offset: SupportsIndex = 0,
        stride: SupportsIndex = 1,
        index_range: Dim | None = None,
    ) -> None: ...

    def __init__(self, *args: object, **named: object) -> None:
        given = _bind(args, named)
        offset = _as_int("offset", given.get("offset", 0))
        stride = _as_int("stride", given.get("stride", 1))
        if "index_array" in given:
            values = _as_index_array(given["index_array"])
            index_range = given.get("index_range")
            if not (index_range is None or isinstance(index_range, Dim)):
                raise TypeError(f"OutputIndexMap: index_range must be a Dim, not {index_range!r}")
            limits = UNBOUNDED
            if index_range is not None:
                limits = (index_range.inclusive_min, index_range.exclusive_max)
            self._set(_ARRAY, offset, stride, index_array=values, value_range=limits)
        elif "input_dimension" in given:
            dim = _as_int("input_dimension", given["input_dimension"])
            self._set(_SINGLE, offset, stride, input_dimension=dim)
        else:
            self._set(_CONSTANT, offset, None)

    def _set(
        self,
        method: OutputIndexMethod,
        offset: int,
        stride: int | None,
        *,
        input_dimension: int | None = None,
        index_array: IndexArray | None = None,
        value_range: Interval = UNBOUNDED,
    ) -> None:
        self.method = method
        self.offset = offset
        self.stride = stride
        self.input_dimension = input_dimension
        self.index_array = index_array
        self.value_range = value_range

    @property
    def index_range(self) -> Dim | None:
        """The interval that the array's values must lie in; None unless the method is `array`."""
        if self.index_array is None:
            return None
        return Dim._make(*self.value_range, False, False)

    @property
    def reaches_outside(self) -> bool:
        """Whether a value of the array is not in the interval that all must lie in."""
        values = self.index_array
        if values is None or self.value_range == UNBOUNDED or not values.size:
            return False
        lower, upper = self.value_range
        return not (lower <= values.min() and values.max() < upper)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OutputIndexMap):
            return NotImplemented
        if (self.method, self.offset, self.stride, self.input_dimension, self.value_range) != (
            other.method,
            other.offset,
            other.stride,
            other.input_dimension,
            other.value_range,
        ):
            return False
        if self.index_array is None or other.index_array is None:
            return self.index_array is other.index_array
        return np.array_equal(self.index_array, other.index_array)

    def __repr__(self) -> str:
        text = f"OutputIndexMap(offset={self.offset}"
        if self.method is not _CONSTANT:
            text += f", stride={self.stride}"
        if self.input_dimension is not None:
            text += f", input_dimension={self.input_dimension}"
        if self.index_array is not None:
            text += f", index_array={format_index_array(self.index_array)}"
            text += f", index_range={format_interval(*self.value_range)}"
        return text + ")"

    def __reduce__(self) -> tuple[object, ...]:
        if self.index_array is not None:
            parts = (self.offset, self.stride, np.array(self.index_array), self.value_range)
            return array_map, parts
        if self.input_dimension is not None:
            return single, (self.offset, self.stride, self.input_dimension)
        return constant, (self.offset,)


@public
class OutputIndexMaps(Sequence[OutputIndexMap]):
    """The output index maps of a transform: an immutable sequence.

    Example:
        >>> maps = OutputIndexMaps((OutputIndexMap(3), OutputIndexMap(input_dimension=0)))
        >>> maps.rank, maps[0], len(maps[::-1])
        (2, OutputIndexMap(offset=3), 2)
    """

    __slots__ = ("_maps",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, maps: tuple[OutputIndexMap, ...]) -> None:
        self._maps = maps

    @property
    def rank(self) -> int:
        """The output rank."""
        return len(self._maps)

    def __len__(self) -> int:
        return len(self._maps)

    def __iter__(self) -> Iterator[OutputIndexMap]:
        return iter(self._maps)

    @overload
    def __getitem__(self, index: int) -> OutputIndexMap: ...
    @overload
    def __getitem__(self, index: slice) -> list[OutputIndexMap]: ...

    def __getitem__(self, index: int | slice) -> OutputIndexMap | list[OutputIndexMap]:
        rank = len(self._maps)
        if isinstance(index, slice):
            step = 1 if index.step is None else index.step
            dims = resolve_range(DimRange(index.start, index.stop, step), rank)
            return [self._maps[dim] for dim in dims]
        if -rank <= index < rank:
            return self._maps[index]
        raise IndexingError(f"Index {index} is outside valid range [-{rank}, {rank})")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return list(self._maps) == list(other)

    def __repr__(self) -> str:
        return f"[{', '.join(map(repr, self._maps))}]"


def constant(offset: int) -> OutputIndexMap:
    """A map to one coordinate, without validation."""
    new = OutputIndexMap.__new__(OutputIndexMap)
    new.method = _CONSTANT
    new.offset = offset
    new.stride = new.input_dimension = new.index_array = None
    new.value_range = UNBOUNDED
    return new


def single(offset: int, stride: int, input_dimension: int) -> OutputIndexMap:
    """A strided map of one input dimension, without validation; `stride` is not 0."""
    new = OutputIndexMap.__new__(OutputIndexMap)
    new.method = _SINGLE
    new.offset = offset
    new.stride = stride
    new.input_dimension = input_dimension
    new.index_array = None
    new.value_range = UNBOUNDED
    return new


def array_map(
    offset: int, stride: int, index_array: IndexArray, value_range: Interval = UNBOUNDED
) -> OutputIndexMap:
    """A map by index array, without validation; the array is frozen, so pass one you own."""
    index_array.flags.writeable = False
    new = OutputIndexMap.__new__(OutputIndexMap)
    new._set(_ARRAY, offset, stride, index_array=index_array, value_range=value_range)
    return new


def _bind(args: tuple[object, ...], named: dict[str, object]) -> dict[str, object]:
    """Name the positional arguments after the form they select."""
    first = "offset"
    if args:
        if int64_or_none(args[0]) is None or "index_range" in named or len(args) == 4:
            first = "index_array"
        elif len(args) > 1 or "offset" in named or "stride" in named:
            first = "input_dimension"
    names: tuple[str, ...] = (first,)
    if first != "offset":
        names = (first, "offset", "stride", "index_range")
    given = {**dict(zip(names, args, strict=False)), **named}
    forms = ({"offset"}, {"input_dimension", "offset", "stride"})
    array_form = {"index_array", "offset", "stride", "index_range"}
    fits = any(given.keys() <= form for form in forms[:1])
    fits = fits or ("input_dimension" in given and given.keys() <= forms[1])
    fits = fits or ("index_array" in given and given.keys() <= array_form)
    if not fits or len(args) > len(names) or named.keys() & set(names[: len(args)]):
        raise TypeError(
            f"OutputIndexMap: no form takes {args!r} with {sorted(named)}; use "
            "OutputIndexMap(offset), OutputIndexMap(input_dimension, offset, stride) or "
            "OutputIndexMap(index_array, offset, stride, index_range)"
        )
    return given


def _as_int(name: str, value: object) -> int:
    number = int64_or_none(value)
    if number is not None:
        return number
    raise TypeError(f"OutputIndexMap: {name} must be a 64-bit integer, not {value!r}")


def _as_index_array(value: object) -> IndexArray:
    source = np.asarray(value)
    if source.size and not np.can_cast(source.dtype, np.int64, "safe"):
        raise TypeError(f"OutputIndexMap: index_array must hold integers, not {source.dtype}")
    array = np.array(source, dtype=np.int64, order="C")
    array.flags.writeable = False
    return array


_SUMMARY_THRESHOLD = 1000
_EDGE_ITEMS = 3


def format_index_array(array: IndexArray) -> str:
    """Nested braces; long dimensions of large arrays are shortened to three items at each end."""
    return _format_nested(array, summarize=array.size > _SUMMARY_THRESHOLD)


def _format_nested(array: IndexArray, *, summarize: bool) -> str:
    if array.ndim == 0:
        return str(int(array))
    count = len(array)
    shown: Sequence[int] = range(count)
    parts: list[str] = []
    if summarize and count > 2 * _EDGE_ITEMS:
        shown = [*range(_EDGE_ITEMS), *range(count - _EDGE_ITEMS, count)]
    for position in shown:
        if position == count - _EDGE_ITEMS and len(shown) < count:
            parts.append("...")
        parts.append(_format_nested(array[position], summarize=summarize))
    return "{" + ", ".join(parts) + "}"
