"""`ts.zarr.Group`: a group with zarr-python's face, over a `ts.Group`, which is its `ts`.

Calls wait. Members come as `Array` and `Group` of this package; how they are found and made is the
`ts.Group`'s affair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, Self, TypeAlias, cast

import numpy as np

from tensorstore_py._api.describe_group import group_html
from tensorstore_py._api.group import Group as EngineGroup
from tensorstore_py._api.tensorstore import TensorStore
from tensorstore_py._hierarchy.path import join, normalised
from tensorstore_py.errors import MismatchError, NotFoundError
from tensorstore_py.zarr.attributes import Attributes
from tensorstore_py.zarr.creation import array_arguments, like
from tensorstore_py.zarr.described import Info
from tensorstore_py.zarr.errors import ReadOnlyError
from tensorstore_py.zarr.request import as_shape, from_h5py, request_for
from tensorstore_py.zarr.store import Store
from tensorstore_py.zarr.zarr_array import Array

if TYPE_CHECKING:
    from tensorstore_py._api.group_nodes import Tree
    from tensorstore_py._interface.transaction import Transaction

__all__ = ["Group"]

# Any: whatever NumPy makes an array of.
ArrayLike: TypeAlias = Any
# Any: an Array or a Group; only what is stored tells.
Node: TypeAlias = Any
Shape = tuple[int, ...]


class Group(MutableMapping[str, Any]):
    """A Zarr group as zarr-python has it: a mapping of names to arrays and groups.

    Made by `ts.zarr.open`, `open_group` and `group`, or of a `ts.Group`:

    Args:
        ts: an open group.
        store: that it is in; by default that of the `ts.Group`.
        read_only: refuse changes.

    Raises:
        TypeError: it is no `ts.Group`.

    Attributes:
        ts: the `ts.Group`: everything asynchronous, transactions, depth of members.
        read_only: whether changes are refused.

    Example:
        >>> import tensorstore_py as ts
        >>> root = ts.zarr.group()
        >>> day = root.create_group("monday")
        >>> wells = day.full("plate/wells", shape=(8, 12), fill_value=20.5, dtype="f4")
        >>> wells[3, 7:] = 37
        >>> root["monday/plate/wells"][3, 6:8], list(day), "plate" in day
        (array([20.5, 37. ], dtype=float32), ['plate'], True)
        >>> print(root.tree())
        /
        └── monday
            └── plate
                └── wells (8, 12) float32
    """

    __slots__ = ("_store", "read_only", "ts")

    def __init__(
        self, ts: EngineGroup, *, store: Store | None = None, read_only: bool = False
    ) -> None:
        if not isinstance(ts, EngineGroup):
            raise TypeError(
                f"a Group is made of a ts.Group, not of {type(ts).__name__}; to open what is in a "
                "store call ts.zarr.open_group(store, path=…)"
            )
        self.ts = ts
        self._store = Store(ts.kvstore) if store is None else store
        self.read_only = read_only

    # What it is.

    @property
    def store(self) -> Store:
        """The store that the group is in."""
        return self._store

    @property
    def path(self) -> str:
        """Its path in the store; `""` if it is all of it."""
        return self.ts.path

    @property
    def name(self) -> str:
        """The path with a `/` in front, as in h5py."""
        return self.ts.name

    @property
    def basename(self) -> str:
        """The last part of the path."""
        return self.ts.basename

    @property
    def zarr_format(self) -> int:
        """The version of the format: 2 or 3."""
        return self.ts.zarr_format or 3

    @property
    def attrs(self) -> Attributes:
        """The attributes."""
        return Attributes(self.ts.attrs, self.check_writable)

    def update_attributes(self, new_attributes: dict[str, object]) -> Self:
        """Set some attributes; the others stay."""
        self.attrs.update(new_attributes)
        return self

    @property
    def info(self) -> Info:
        """What it is and what is in it, as a table."""
        arrays, groups = list(self.array_keys()), list(self.group_keys())
        return Info(
            [
                ("Name", self.name),
                ("Type", "Group"),
                ("Zarr format", self.zarr_format),
                ("Read-only", self.read_only),
                ("Store type", type(self.store).__name__),
                ("No. members", len(arrays) + len(groups)),
                ("No. arrays", len(arrays)),
                ("No. groups", len(groups)),
                ("Arrays", ", ".join(arrays)),
                ("Groups", ", ".join(groups)),
            ]
        )

    def tree(self, expand: bool | None = None, level: int | None = None) -> Tree:
        """A picture of what is in it, as text and, in notebooks, as HTML.

        Args:
            expand: accepted; all is shown.
            level: how many levels; all by default.
        """
        return self.ts.tree(None if level is None else level - 1).result()

    # What is in it.

    def __getitem__(self, path: str) -> Node:
        """The array or the group at a path.

        Raises:
            KeyError: nothing is there.
        """
        try:
            return self._face(self.ts.open(path).result(), path)
        except NotFoundError as error:
            raise KeyError(path) from error

    def _face(self, node: TensorStore | EngineGroup, path: str) -> Node:
        if isinstance(node, EngineGroup):
            return Group(node, store=self._store, read_only=self.read_only)
        whole = join(self.path, normalised(path))
        return Array(node, store=self._store, path=whole, read_only=self.read_only)

    def __getattr__(self, name: str) -> Node:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"a Group has no {name!r}, and no member of that name") from None

    def __setitem__(self, path: str, value: ArrayLike) -> None:
        """Store an array at a path, in place of whatever is there."""
        self.array(path, value, overwrite=True)

    def __delitem__(self, path: str) -> None:
        self.check_writable()
        try:
            self.ts.delete(path).result()
        except NotFoundError as error:
            raise KeyError(path) from error

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and self.ts.contains(path).result()

    def __iter__(self) -> Iterator[str]:
        for name, _ in self.ts.members():
            yield name

    def __len__(self) -> int:
        return len(self.ts.members().result())

    def nmembers(self, max_depth: int | None = 0) -> int:
        """How many arrays and groups there are.

        Args:
            max_depth: 0: right in it; 1: in groups in it, too; None: all.
        """
        return len(self.ts.members(max_depth).result())

    def members(self, max_depth: int | None = 0) -> tuple[tuple[str, Node], ...]:
        """Paths with what is there; `max_depth` as for `nmembers`."""
        found = self.ts.members(max_depth)
        return tuple((path, self._face(node, path)) for path, node in found)

    def array_keys(self) -> Iterator[str]:
        """The names of arrays."""
        return (name for name, _ in self.ts.arrays())

    def array_values(self) -> Iterator[Array]:
        """The arrays."""
        return (array for _, array in self.arrays())

    def arrays(self) -> Iterator[tuple[str, Array]]:
        """Names and arrays."""
        for name, node in self.ts.arrays():
            yield name, cast("Array", self._face(node, name))

    def group_keys(self) -> Iterator[str]:
        """The names of groups."""
        return (name for name, _ in self.ts.groups())

    def group_values(self) -> Iterator[Group]:
        """The groups."""
        return (group for _, group in self.groups())

    def groups(self) -> Iterator[tuple[str, Group]]:
        """Names and groups."""
        for name, node in self.ts.groups():
            yield name, cast("Group", self._face(node, name))

    def visititems(self, func: Callable[[str, Node], object]) -> object:
        """Call a function with the path of each node below, and the node.

        Returns:
            The first result that is not None, where it stops.
        """
        for path, node in self.ts.members(None):
            found = func(path, self._face(node, path))
            if found is not None:
                return found
        return None

    def visitkeys(self, func: Callable[[str], object]) -> object:
        """Call a function with the path of each node below, as `visititems`."""
        return self.visititems(lambda path, _: func(path))

    visit = visitkeys

    def visitvalues(self, func: Callable[[Node], object]) -> object:
        """Call a function with each node below, as `visititems`."""
        return self.visititems(lambda _, node: func(node))

    # New members.

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

    def create_group(
        self,
        name: str,
        overwrite: bool = False,
        attributes: Mapping[str, object] | None = None,
    ) -> Group:
        """Create a group, and those above it that are not there.

        Args:
            name: a path below this group.
            overwrite: delete whatever is there first.
            attributes: of the group.

        Raises:
            AlreadyExistsError: something is there.
        """
        self.check_writable()
        made = self.ts.create_group(name, attributes=attributes, delete_existing=overwrite)
        return cast("Group", self._face(made.result(), name))

    def require_group(self, name: str, overwrite: bool = False) -> Group:
        """The group at a path, created if it is not there.

        Args:
            name: a path below this group.
            overwrite: delete whatever is there first.

        Raises:
            MismatchError: an array is there.
        """
        if overwrite:
            return self.create_group(name, overwrite=True)
        self.check_writable()
        return cast("Group", self._face(self.ts.require_group(name).result(), name))

    def create_groups(self, *names: str, overwrite: bool = False) -> tuple[Group, ...]:
        """`create_group` for each name."""
        return tuple(self.create_group(name, overwrite) for name in names)

    def require_groups(self, *names: str) -> tuple[Group, ...]:
        """`require_group` for each name."""
        return tuple(self.require_group(name) for name in names)

    def move(self, source: str, dest: str) -> None:
        """Move what is at a path to another one, with all below it."""
        self.check_writable()
        self.ts.move(source, dest).result()

    def check_writable(self) -> None:
        """Refuse a change of what is only to be read.

        Raises:
            ReadOnlyError: it is.
        """
        if self.read_only:
            raise ReadOnlyError("the group was opened to be read only; open it with mode='r+'")
        self._store.check_writable()

    def with_transaction(self, transaction: Transaction | None) -> Group:
        """This group, seen through a transaction, with everything in it.

        Args:
            transaction: where changes go; None: straight to the store.
        """
        seen = self.ts.with_transaction(transaction)
        return Group(seen, store=self._store, read_only=self.read_only)

    # As a value.

    def __eq__(self, other: object) -> bool:
        """Whether it is the same stored group; what is in it is not compared."""
        if not isinstance(other, Group):
            return NotImplemented
        return (
            Store(self.ts.kvstore) == Store(other.ts.kvstore)
            and self.zarr_format == other.zarr_format
            and self.read_only == other.read_only
        )

    __hash__ = None  # type: ignore[assignment]  # what it equals changes

    def __reduce__(self) -> tuple[Callable[..., Group], tuple[object, ...]]:
        return _again, (self.ts, self._store, self.read_only)

    def _repr_html_(self) -> str:
        return group_html(self.ts, "zarr.Group")

    def __repr__(self) -> str:
        return f"<Group {Store(self.ts.kvstore).url}>"


def _again(ts: EngineGroup, store: Store, read_only: bool) -> Group:
    return Group(ts, store=store, read_only=read_only)
