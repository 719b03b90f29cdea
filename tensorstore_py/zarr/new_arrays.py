"""`MakesArrays`: new arrays in a group, the half of `ts.zarr.Group` that creates."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from tensorstore_py._api.tensorstore import TensorStore
from tensorstore_py._hierarchy.path import join, normalised
from tensorstore_py.errors import MismatchError
from tensorstore_py.zarr.creation import array_arguments, like
from tensorstore_py.zarr.h5py_words import from_h5py
from tensorstore_py.zarr.request import as_shape, request_for
from tensorstore_py.zarr.zarr_array import Array

if TYPE_CHECKING:
    from tensorstore_py._api.group import Group
    from tensorstore_py.zarr.store import Store

__all__ = ["MakesArrays"]

# Any: whatever NumPy makes an array of.
ArrayLike: TypeAlias = Any
Shape = tuple[int, ...]


class MakesArrays:
    """What makes arrays by the names of zarr-python's groups.

    Attributes:
        ts: the `ts.Group`.
    """

    __slots__ = ()
    ts: Group

    @property
    @abstractmethod
    def store(self) -> Store:
        """The store that the group is in."""

    @property
    @abstractmethod
    def zarr_format(self) -> int:
        """The version of the format."""

    @abstractmethod
    def check_writable(self) -> None:
        """Refuse a change of what is only to be read."""

    def create(
        self,
        name: str,
        shape: int | Shape,
        *,
        overwrite: bool = False,
        cache_metadata: bool = True,
        **arguments: Any,
    ) -> Array:
        """Create an array, and the groups above it that are not there.

        Args:
            name: a path below this group.
            shape: how many elements there are along each dimension.
            overwrite: delete whatever is there first.
            cache_metadata: as for `ts.zarr.create`.
            **arguments: those of `ts.zarr.create`, in this group's version of the format.

        Raises:
            AlreadyExistsError: something is there.
            TypeError, ValueError: an argument is wrong; says what is right.
        """
        self.check_writable()
        given = cast("Any", {**arguments, "zarr_format": self.zarr_format})
        request = request_for(shape, given, separator=self.store.separator)
        members = {key: value for key, value in request.members.items() if key != "driver"}
        made = self.ts.create_array(
            name,
            attributes=request.attributes,
            delete_existing=overwrite,
            **cast("Any", members),
            **request.options,
        ).result()
        return self._array(made, name, cache_metadata=cache_metadata)

    def _array(self, made: TensorStore, name: str, **more: Any) -> Array:
        whole = join(self.ts.path, normalised(name))
        return Array(made, store=self.store, path=whole, **more)

    def create_array(
        self,
        name: str,
        *,
        shape: int | Shape | None = None,
        data: ArrayLike = None,
        **arguments: Any,
    ) -> Array:
        """Create an array, of a shape or with data; other arguments are those of `create`.

        Raises:
            ValueError: neither a shape nor data are given.
        """
        if data is not None:
            made = self.array(name, data, **arguments)
            if shape is not None and as_shape(shape) != made.shape:
                raise ValueError(f"shape is {shape}, but the data has {made.shape}")
            return made
        if shape is None:
            raise ValueError("pass either shape= (and dtype=) or data=")
        return self.create(name, shape, **arguments)

    def create_dataset(self, name: str, **arguments: Any) -> Array:
        """`create_array` with h5py's words: `compression`, `compression_opts`, `fillvalue`."""
        return self.create_array(name, **from_h5py(arguments))

    def require_array(
        self,
        name: str,
        shape: int | Shape,
        dtype: object = None,
        exact: bool = False,
        **arguments: Any,
    ) -> Array:
        """The array at a path, created if it is not there.

        Args:
            name: a path below this group.
            shape: that it must have.
            dtype: that it must have, or that it must be possible to convert to.
            exact: it must have the very dtype.
            **arguments: those of `create`.

        Raises:
            MismatchError: a group is there, or the array has another shape.
            TypeError: the array has another type.
        """
        if not self.ts.contains(name).result():
            if dtype is not None:
                arguments["dtype"] = dtype
            return self.create_array(name, shape=shape, **arguments)
        node = self.ts.open(name).result()
        if not isinstance(node, TensorStore):
            raise MismatchError(f"there is a group, not an array, at {node.name}")
        found = self._array(node, name)
        if found.shape != as_shape(shape):
            raise MismatchError(f"{found.name} has shape {found.shape}, not {shape}")
        if dtype is not None:
            wanted = np.dtype(cast("Any", dtype))
            fits = found.dtype == wanted if exact else np.can_cast(found.dtype, wanted)
            if not fits:
                raise TypeError(f"{found.name} has dtype {found.dtype}, not {wanted}")
        return found

    def require_dataset(
        self, name: str, shape: int | Shape, dtype: object = None, exact: bool = False, **more: Any
    ) -> Array:
        """`require_array` with h5py's words."""
        return self.require_array(name, shape, dtype, exact, **from_h5py(more))

    def array(self, name: str, data: ArrayLike, **arguments: Any) -> Array:
        """Create an array that holds some data; arguments are those of `create`."""
        found, given = array_arguments(data, arguments)
        made = self.create(name, tuple(found.shape), **given)
        made[...] = found
        return made

    def empty(self, name: str, shape: int | Shape, **arguments: Any) -> Array:
        """Create an array that says nothing of what was never written."""
        return self.create(name, shape, **{"fill_value": None, **arguments})

    def zeros(self, name: str, shape: int | Shape, **arguments: Any) -> Array:
        """Create an array of zeros."""
        return self.create(name, shape, **{"fill_value": 0, **arguments})

    def ones(self, name: str, shape: int | Shape, **arguments: Any) -> Array:
        """Create an array of ones."""
        return self.create(name, shape, **{"fill_value": 1, **arguments})

    def full(self, name: str, shape: int | Shape, fill_value: object, **arguments: Any) -> Array:
        """Create an array full of one value."""
        return self.create(name, shape, fill_value=fill_value, **arguments)

    def empty_like(self, name: str, data: ArrayLike, **arguments: Any) -> Array:
        """`empty` of the shape, the type and the layout of another array."""
        return self._like(name, data, {"fill_value": None, **arguments})

    def zeros_like(self, name: str, data: ArrayLike, **arguments: Any) -> Array:
        """`zeros` of the shape, the type and the layout of another array."""
        return self._like(name, data, {"fill_value": 0, **arguments})

    def ones_like(self, name: str, data: ArrayLike, **arguments: Any) -> Array:
        """`ones` of the shape, the type and the layout of another array."""
        return self._like(name, data, {"fill_value": 1, **arguments})

    def full_like(
        self, name: str, data: ArrayLike, fill_value: object = None, **arguments: Any
    ) -> Array:
        """`full` of the shape, the type and the layout of another array."""
        different = {} if fill_value is None else {"fill_value": fill_value}
        return self._like(name, data, {**different, **arguments})

    def _like(self, name: str, data: ArrayLike, arguments: dict[str, Any]) -> Array:
        shape, given = like(data, {**arguments, "zarr_format": self.zarr_format})
        return self.create(name, shape, **given)
