"""`oindex`, `vindex` and `blocks`: an array with another meaning of `[...]`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from tensorstore_py.zarr.selection import split_fields

if TYPE_CHECKING:
    from tensorstore_py.zarr.selectable import Selectable

__all__ = ["BlockIndex", "OIndex", "VIndex"]

# Any: as of NumPy's own indexing: an array, or a single element.
Elements: TypeAlias = Any


class OIndex:
    """Arrays of positions select along their own dimensions.

    Args:
        array: to select from.

    Example:
        >>> import tensorstore_py as ts
        >>> z = ts.zarr.array([[1, 2, 3], [4, 5, 6]])
        >>> z.oindex[[0, 1], [0, 2]]
        array([[1, 3],
               [4, 6]])
    """

    __slots__ = ("_array",)

    def __init__(self, array: Selectable) -> None:
        self._array = array

    def __getitem__(self, item: object) -> Elements:
        item, fields = split_fields(item)
        return self._array.get_orthogonal_selection(item, fields=fields)

    def __setitem__(self, item: object, value: object) -> None:
        item, fields = split_fields(item)
        self._array.set_orthogonal_selection(item, value, fields=fields)


class VIndex:
    """Arrays of positions together name single elements; or a mask does.

    Args:
        array: to select from.

    Example:
        >>> import tensorstore_py as ts
        >>> z = ts.zarr.array([[1, 2, 3], [4, 5, 6]])
        >>> z.vindex[[0, 1], [0, 2]]
        array([1, 6])
    """

    __slots__ = ("_array",)

    def __init__(self, array: Selectable) -> None:
        self._array = array

    def __getitem__(self, item: object) -> Elements:
        item, fields = split_fields(item)
        return self._array.get_vector_selection(item, fields=fields)

    def __setitem__(self, item: object, value: object) -> None:
        item, fields = split_fields(item)
        self._array.set_vector_selection(item, value, fields=fields)


class BlockIndex:
    """Whole chunks, by their place in the grid.

    Args:
        array: to select from.

    Example:
        >>> import tensorstore_py as ts
        >>> z = ts.zarr.array([1, 2, 3, 4, 5], chunks=2)
        >>> z.blocks[1], z.blocks[-1]
        (array([3, 4]), array([5]))
    """

    __slots__ = ("_array",)

    def __init__(self, array: Selectable) -> None:
        self._array = array

    def __getitem__(self, item: object) -> Elements:
        item, fields = split_fields(item)
        return self._array.get_block_selection(item, fields=fields)

    def __setitem__(self, item: object, value: object) -> None:
        item, fields = split_fields(item)
        self._array.set_block_selection(item, value, fields=fields)
