"""`Selectable`: reading and writing by selections, the half of `ts.zarr.Array` that indexes.

Selections become index terms here and nothing else; the TensorStore reads and writes. `oindex`,
`vindex` and `blocks` are the array with another meaning of `[...]`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tensorstore_py._api.array_protocols import ArrayProtocols
from tensorstore_py._api.tensorstore import TensorStore, assign
from tensorstore_py.errors import MismatchError
from tensorstore_py.zarr.errors import ReadOnlyError
from tensorstore_py.zarr.form import check_fields, of_field
from tensorstore_py.zarr.selection import (
    Fields,
    Selected,
    basic_selection,
    block_selection,
    coordinate_selection,
    mask_selection,
    orthogonal_selection,
    selection,
    split_fields,
    vector_selection,
)

if TYPE_CHECKING:
    from tensorstore_py.zarr.form import Form


__all__ = ["BlockIndex", "OIndex", "Selectable", "VIndex"]

# Any: as of NumPy's own indexing: an array, or a single element.
Elements: TypeAlias = Any
Array = np.ndarray[Any, np.dtype[Any]]
Shape = tuple[int, ...]


class Selectable(ArrayProtocols, ABC):
    """What can be indexed as zarr-python's arrays are.

    Attributes:
        read_only: whether changes are refused.
    """

    __slots__ = ()
    read_only: bool

    @property
    @abstractmethod
    def ts(self) -> TensorStore:
        """The elements, from position 0 on."""

    @property
    @abstractmethod
    def form(self) -> Form:
        """How they are laid out."""

    @property
    def shape(self) -> Shape:
        """How many elements there are along each dimension."""
        return self.ts.shape

    def __getitem__(self, item: object) -> Elements:
        """The elements of a selection, as NumPy array; one element by itself.

        Args:
            item: integers, slices, an ellipsis, arrays of integers or Booleans, and names of
                fields.

        Raises:
            IndexError: it is none of that, or lies outside.
        """
        item, fields = split_fields(item)
        return self._get(selection(item, self.shape), fields)

    def __setitem__(self, item: object, value: object) -> None:
        """Write to a selection, and wait until it is stored.

        Args:
            item: as for reading.
            value: one for all, or as many as are selected; another Array or `TensorStore` is
                copied chunk by chunk. It is converted as by `astype`.
        """
        item, fields = split_fields(item)
        self._set(selection(item, self.shape), value, fields)

    def get_basic_selection(
        self, selection: object = ..., *, out: Array | None = None, fields: Fields = None
    ) -> Elements:
        """The elements of integers and slices.

        Args:
            selection: one of them for each dimension.
            out: an array that takes them, too.
            fields: which fields of records.
        """
        return self._get(basic_selection(selection, self.shape), fields, out)

    def set_basic_selection(
        self, selection: object, value: object, *, fields: Fields = None
    ) -> None:
        """Write to integers and slices."""
        self._set(basic_selection(selection, self.shape), value, fields)

    def get_orthogonal_selection(
        self, selection: object, *, out: Array | None = None, fields: Fields = None
    ) -> Elements:
        """The elements where the selections along each dimension meet."""
        return self._get(orthogonal_selection(selection, self.shape), fields, out)

    def set_orthogonal_selection(
        self, selection: object, value: object, *, fields: Fields = None
    ) -> None:
        """Write where the selections along each dimension meet."""
        self._set(orthogonal_selection(selection, self.shape), value, fields)

    def get_coordinate_selection(
        self, selection: object, *, out: Array | None = None, fields: Fields = None
    ) -> Elements:
        """The elements at some positions."""
        return self._get(coordinate_selection(selection, self.shape), fields, out)

    def set_coordinate_selection(
        self, selection: object, value: object, *, fields: Fields = None
    ) -> None:
        """Write to some positions."""
        self._set(coordinate_selection(selection, self.shape), value, fields)

    def get_mask_selection(
        self, mask: object, *, out: Array | None = None, fields: Fields = None
    ) -> Elements:
        """The elements where a mask is true."""
        return self._get(mask_selection(mask, self.shape), fields, out)

    def set_mask_selection(self, mask: object, value: object, *, fields: Fields = None) -> None:
        """Write where a mask is true."""
        self._set(mask_selection(mask, self.shape), value, fields)

    def get_block_selection(
        self, selection: object, *, out: Array | None = None, fields: Fields = None
    ) -> Elements:
        """The elements of some chunks, or shards."""
        return self._get(block_selection(selection, self.shape, self.form.grid), fields, out)

    def set_block_selection(
        self, selection: object, value: object, *, fields: Fields = None
    ) -> None:
        """Write to some chunks, or shards."""
        self._set(block_selection(selection, self.shape, self.form.grid), value, fields)

    def get_vector_selection(self, selection: object, *, fields: Fields = None) -> Elements:
        """The elements at some positions, or where a mask is true."""
        return self._get(vector_selection(selection, self.shape), fields)

    def set_vector_selection(
        self, selection: object, value: object, *, fields: Fields = None
    ) -> None:
        """Write to some positions, or where a mask is true."""
        self._set(vector_selection(selection, self.shape), value, fields)

    @property
    def oindex(self) -> OIndex:
        """Selects along each dimension by itself."""
        return OIndex(self)

    @property
    def vindex(self) -> VIndex:
        """Selects single elements."""
        return VIndex(self)

    @property
    def blocks(self) -> BlockIndex:
        """Selects whole chunks, or shards."""
        return BlockIndex(self)

    def check_writable(self) -> None:
        """Refuse a change of what is only to be read.

        Raises:
            ReadOnlyError: it is.
        """
        if self.read_only:
            raise ReadOnlyError("the array was opened to be read only; open it with mode='r+'")

    def _get(self, selected: Selected, fields: Fields, out: Array | None = None) -> Elements:
        store = of_field(self.ts, fields) if isinstance(fields, str) else self.ts
        found: Array = _indexed(store, selected).read(order=self.form.order).result()
        if isinstance(fields, list):
            check_fields(fields, self.form.dtype)
            found = found[fields]
        elif fields is None and found.dtype != self.form.dtype and self.form.dtype.names is None:
            found = found.astype(self.form.dtype)
        if out is not None:
            out[...] = found
            return out
        return found if found.ndim else found[()]

    def _set(self, selected: Selected, value: object, fields: Fields) -> None:
        self.check_writable()
        if isinstance(fields, list):
            check_fields(fields, self.form.dtype)
            array = np.asarray(value)
            for name in fields:
                self._set(selected, array[name] if array.dtype.names else array, name)
            return
        store = self.ts if fields is None else of_field(self.ts, fields)
        target = _indexed(store, selected)
        if isinstance(value, Selectable):
            value = value.ts
        if isinstance(value, TensorStore) and value.shape != target.shape:
            raise MismatchError(
                f"cannot write an array of shape {value.shape} to a selection of shape "
                f"{target.shape}"
            )
        assign(target, value)


def _indexed(store: TensorStore, selected: Selected) -> TensorStore:
    terms = selected.terms
    if selected.mode == "basic":
        return store[terms] if terms else store
    if selected.mode == "oindex":
        return store.oindex[terms]
    return store.vindex[terms]


class _Index:
    """An array with another meaning of `[...]`."""

    __slots__ = ("_array",)

    def __init__(self, array: Selectable) -> None:
        self._array = array


class OIndex(_Index):
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

    __slots__ = ()

    def __getitem__(self, item: object) -> Elements:
        item, fields = split_fields(item)
        return self._array.get_orthogonal_selection(item, fields=fields)

    def __setitem__(self, item: object, value: object) -> None:
        item, fields = split_fields(item)
        self._array.set_orthogonal_selection(item, value, fields=fields)


class VIndex(_Index):
    """Arrays of positions together name single elements; or a mask does.

    Args:
        array: to select from.

    Example:
        >>> import tensorstore_py as ts
        >>> z = ts.zarr.array([[1, 2, 3], [4, 5, 6]])
        >>> z.vindex[[0, 1], [0, 2]]
        array([1, 6])
    """

    __slots__ = ()

    def __getitem__(self, item: object) -> Elements:
        item, fields = split_fields(item)
        return self._array.get_vector_selection(item, fields=fields)

    def __setitem__(self, item: object, value: object) -> None:
        item, fields = split_fields(item)
        self._array.set_vector_selection(item, value, fields=fields)


class BlockIndex(_Index):
    """Whole chunks, by their place in the grid.

    Args:
        array: to select from.

    Example:
        >>> import tensorstore_py as ts
        >>> z = ts.zarr.array([1, 2, 3, 4, 5], chunks=2)
        >>> z.blocks[1], z.blocks[-1]
        (array([3, 4]), array([5]))
    """

    __slots__ = ()

    def __getitem__(self, item: object) -> Elements:
        item, fields = split_fields(item)
        return self._array.get_block_selection(item, fields=fields)

    def __setitem__(self, item: object, value: object) -> None:
        item, fields = split_fields(item)
        self._array.set_block_selection(item, value, fields=fields)
