"""What NumPy, and libraries that take "anything array-like", ask of an array that is elsewhere.

A class with a known shape and type and with elements that can be read answers as NumPy's arrays
do: conversions, truth, length, iteration. All of it reads, and waits. What is refused is
refused before anything is read.
"""

from __future__ import annotations

from abc import abstractmethod
from math import prod
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import DTypeLike

__all__ = ["ArrayComputing", "ArrayProtocols"]

# Any: whichever type the elements are of, or a single one.
Array = np.ndarray[Any, np.dtype[Any]]
Elements: TypeAlias = Any
Axis: TypeAlias = "int | tuple[int, ...] | None"
Number = TypeVar("Number", int, float, complex)

#: NumPy's `__dlpack__` takes nothing but a stream before.
_DLPACK_1: Final = np.lib.NumpyVersion(np.__version__) >= "2.1.0"


class ArrayProtocols:
    """NumPy's protocols, over a shape, a type, and two ways of reading."""

    __slots__ = ()

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Number of positions along each dimension."""

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of an element in memory."""
        return self._numpy_dtype().itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements in memory."""
        return self.size * self.itemsize

    @abstractmethod
    def _numpy_dtype(self) -> np.dtype[Any]:
        """NumPy's type of what is read."""

    @abstractmethod
    def _elements(self) -> Array:
        """All of it, as an array that nothing else uses."""

    @abstractmethod
    def _rows(self) -> Iterator[Array]:
        """All of it, cut along the first dimension, of which there is one."""

    def __array__(
        self,
        dtype: np.dtype[Any] | None = None,
        copy: bool | None = None,
        context: object = None,
    ) -> Array:
        """Read it all, for `numpy.asarray` and friends.

        Raises:
            ValueError: `copy=False`: the data is not in memory, so reading always copies.
        """
        if copy is False:
            raise ValueError(
                f"a {type(self).__name__} can't be seen as an array without copying: its elements "
                "are not in memory; leave copy=False out"
            )
        found = self._elements()
        return found if dtype is None else found.astype(dtype, copy=False)

    def __dlpack__(
        self,
        *,
        stream: object = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:  # noqa: ANN401 - a capsule
        """Read it all, for `from_dlpack` of any library.

        Raises:
            BufferError: `copy=False`, or elements that DLPack has no type for.
        """
        if copy is False:
            raise BufferError(
                f"a {type(self).__name__} can't be exported without copying: its elements are not "
                "in memory; leave copy=False out"
            )
        dtype = self._numpy_dtype()
        try:
            np.empty(0, dtype).__dlpack__()
        except (BufferError, TypeError):
            raise BufferError(
                f"DLPack has no type for elements of {dtype}; convert them first, as by "
                "astype('float32')"
            ) from None
        asked: dict[str, Any] = {"stream": stream}
        if _DLPACK_1:
            asked |= {"max_version": max_version, "dl_device": dl_device}
        return self._elements().__dlpack__(**asked)

    def __dlpack_device__(self) -> tuple[int, int]:
        """The memory of the CPU."""
        return 1, 0

    def __len__(self) -> int:
        return self._first_extent("len() of unsized object")

    def _first_extent(self, otherwise: str) -> int:
        shape = self.shape
        if not shape:
            raise TypeError(f"{otherwise}: an array without dimensions")
        return shape[0]

    def __iter__(self) -> Iterator[Elements]:
        """Iterate over the first dimension; what is read at once are whole chunks, if not large."""
        self._first_extent("iteration over it is not possible")
        return (row for rows in self._rows() for row in rows)

    def __contains__(self, value: object) -> bool:
        if not self.shape:
            return bool((self._elements() == value).any())
        return any((rows == value).any() for rows in self._rows())

    def __bool__(self) -> bool:
        shape = self.shape
        if shape.count(1) != len(shape):
            raise ValueError(
                f"the truth value of an array of shape {list(shape)} is ambiguous; compare it to "
                "None, or read it and use any() or all()"
            )
        return bool(self._elements().item())

    def __float__(self) -> float:
        return self._one(float)

    def __int__(self) -> int:
        return self._one(int)

    def __complex__(self) -> complex:
        return self._one(complex)

    def __index__(self) -> int:
        if self.shape or self._numpy_dtype().kind not in "iu":
            # Not even one of several dimensions: as an index it means an array of positions.
            raise TypeError("only an integer array without dimensions can be used as an index")
        return self._one(int)

    def _one(self, kind: type[Number]) -> Number:
        shape = self.shape
        if shape.count(1) != len(shape):
            raise TypeError(
                f"only an array of one element can be converted to {kind.__name__}, not one of "
                f"shape {list(shape)}"
            )
        return kind(self._elements().item())


class ArrayComputing(ArrayProtocols):
    """NumPy's functions and the most usual methods, on elements that are read for it."""

    __slots__ = ()

    @abstractmethod
    def _store(self, elements: Array) -> None:
        """Write all of it."""

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any
    ) -> Elements:
        read: dict[int, Array] = {}

        def elements(of: object) -> object:
            if not isinstance(of, ArrayComputing):
                return of
            if id(of) not in read:
                read[id(of)] = of._elements()
            return read[id(of)]

        targets = options.get("out", ())
        if targets:
            options["out"] = tuple(map(elements, targets))
        if "where" in options:
            options["where"] = elements(options["where"])
        found = getattr(ufunc, method)(*map(elements, inputs), **options)
        if method == "at":  # changes its first argument, and gives nothing
            targets = inputs[:1]
        changed = [target for target in targets if isinstance(target, ArrayComputing)]
        for target in changed:
            target._store(read[id(target)])
        if not changed or method == "at":
            return found
        return targets[0] if len(targets) == 1 else targets

    def min(self, axis: Axis = None, out: Elements = None, **options: Any) -> Elements:
        """The smallest element; arguments as of NumPy's method. Reads everything."""
        return self._elements().min(axis, out=out, **options)

    def max(self, axis: Axis = None, out: Elements = None, **options: Any) -> Elements:
        """The largest element; arguments as of NumPy's method. Reads everything."""
        return self._elements().max(axis, out=out, **options)

    def sum(
        self,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: Elements = None,
        **options: Any,
    ) -> Elements:
        """The sum; arguments as of NumPy's method. Reads everything."""
        return self._elements().sum(axis, dtype, out, **options)

    def mean(
        self,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: Elements = None,
        **options: Any,
    ) -> Elements:
        """The mean; arguments as of NumPy's method. Reads everything."""
        return self._elements().mean(axis, dtype, out, **options)

    def std(
        self,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: Elements = None,
        **options: Any,
    ) -> Elements:
        """The standard deviation; arguments as of NumPy's method. Reads everything."""
        return self._elements().std(axis, dtype, out, **options)

    def any(self, axis: Axis = None, out: Elements = None, **options: Any) -> Elements:
        """Whether some element is true; arguments as of NumPy's method. Reads everything."""
        return self._elements().any(axis, out=out, **options)

    def all(self, axis: Axis = None, out: Elements = None, **options: Any) -> Elements:
        """Whether every element is true; arguments as of NumPy's method. Reads everything."""
        return self._elements().all(axis, out=out, **options)
