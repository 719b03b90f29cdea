"""`Checkpoint`: a tree of arrays as users hold it.

What the tree is, is known when it is open; an array is opened when it is asked for, and read by
its own methods, or many at a time by `read`. Calls return Futures; the dictionary forms block.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy
from typing import TYPE_CHECKING, Any, Final, NoReturn

from tensorstore_py._api.array import array as in_memory
from tensorstore_py._api.begin import begin
from tensorstore_py._api.group_nodes import Tree, TreeFuture
from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._api.kvstore_spec import place as place_of
from tensorstore_py._api.open import open as open_array
from tensorstore_py._api.spec import Spec, parse_spec
from tensorstore_py._api.tensorstore import TensorStore
from tensorstore_py._display.info import rows
from tensorstore_py._display.outline import outline
from tensorstore_py._display.page import page
from tensorstore_py._runtime.fan_out import fan_out
from tensorstore_py.errors import (
    DataLossError,
    NotFoundError,
    TensorStoreError,
    UnsupportedError,
)
from tensorstore_py.orbax.layout import Directory
from tensorstore_py.orbax.leaves import (
    Keys,
    Leaf,
    Node,
    branches,
    flat_name,
    leaves_of,
    mapped,
    matching,
    selected,
)

if TYPE_CHECKING:
    from tensorstore_py._runtime.future import Future
    from tensorstore_py._spec.dtype import dtype as DType  # noqa: N812

__all__ = ["Checkpoint", "raise_damaged"]

#: So many arrays are opened or read at a time; `memory_limit` bounds what is in memory.
_AT_A_TIME: Final = 16


class Checkpoint:
    """A checkpoint, or a branch of its tree, made by `ts.orbax.open`.

    As a dictionary, or a list or tuple where the tree has one, it gives branches, open arrays, and
    values that are no arrays. Where nothing has the name itself, a flat name is one, too:
    `"dense.bias"`.

    Attributes:
        step: which step it is; None: it was not found among steps.
        metadata: what Orbax stored of it besides; None: nothing.

    Example:
        >>> import numpy as np
        >>> import tensorstore_py as ts
        >>> context = ts.Context()
        >>> tree = {"layers": [{"w": np.ones((2, 3), "float32")}], "step": 7, "name": "small"}
        >>> ts.orbax.save(tree, "memory://run/", context=context).result()
        >>> found = ts.orbax.open("memory://run/", context=context).result()
        >>> found["layers"][0]["w"].dtype, found["layers.0.w"].shape, found["name"]
        (dtype("float32"), (2, 3), 'small')
        >>> print(found.tree().result())
        /
        ├── layers
        │   └── 0
        │       └── w (2, 3) float32
        ├── name 'small'
        └── step 7
        >>> found.read(["step", "name"]).result()
        {'step': 7, 'name': 'small'}
    """

    __slots__ = ("_directory", "_dtype", "_keys", "_node", "metadata", "step")
    _node: Node
    _directory: Directory
    _dtype: DType | None
    _keys: Keys
    step: int | None
    metadata: object

    def __init__(self) -> None:
        raise TypeError("a Checkpoint is made by ts.orbax.open(where)")

    @classmethod
    def _of(
        cls,
        node: Node,
        directory: Directory,
        step: int | None,
        metadata: object,
        dtype: DType | None,
        keys: Keys = (),
    ) -> Checkpoint:
        found = cls.__new__(cls)
        found._node, found._directory, found._dtype, found._keys = node, directory, dtype, keys
        found.step, found.metadata = step, metadata
        return found

    def _branch(self, key: str | int, node: Node) -> Checkpoint:
        keys = (*self._keys, key)
        return Checkpoint._of(node, self._directory, self.step, self.metadata, self._dtype, keys)

    def _as_type(self, dtype: DType | None) -> Checkpoint:
        """The same with floating-point arrays of another type."""
        dtype = self._dtype if dtype is None else dtype
        return Checkpoint._of(
            self._node, self._directory, self.step, self.metadata, dtype, self._keys
        )

    # What it is.

    @property
    def kvstore(self) -> KvStore:
        """The store, at the directory of the checkpoint."""
        model = self._directory.model
        return KvStore.of(model, model.open())

    @property
    def url(self) -> str:
        """The URL of the directory.

        Raises:
            UnsupportedError: the store has no URL form.
        """
        return self._directory.model.to_url()

    @property
    def layout(self) -> list[str]:
        """How its arrays are stored: `"ocdbt, zarr3"` for instance; several if items differ.

        A `union` is the databases of several processes that were never merged.
        """
        places = [leaf.place for _, leaf in leaves_of(self._node)]
        return sorted({f"{each.store.driver}, {each.driver}" for each in places if each})

    @property
    def damaged(self) -> dict[str, Exception]:
        """What could not be opened with the rest, by flat name, and why: its error.

        The error is raised when it is asked for. What is damaged inside an array is found by
        reading it: see `check`.
        """
        return {
            flat_name(keys): leaf.value
            for keys, leaf in leaves_of(self._node)
            if isinstance(leaf.value, Exception)
        }

    def names(self) -> list[str]:
        """The flat names of everything below: of arrays and other values."""
        return sorted(flat_name(keys) for keys, _ in leaves_of(self._node))

    def array_names(self) -> list[str]:
        """The flat names of the arrays below."""
        return sorted(name for name, _ in self._arrays(None))

    def leaf(self, name: str) -> Leaf:
        """What is known of a leaf without opening it.

        Raises:
            NotFoundError: no leaf has this flat name.
        """
        for keys, leaf in leaves_of(self._node):
            if flat_name(keys) == name:
                return leaf
        raise NotFoundError(f'nothing is named "{name}" in {self!r}')

    # Arrays.

    def open(self, name: str) -> Future[Any]:
        """Open the array of a flat name, or give its value if it is none.

        Raises:
            NotFoundError: (at once) no leaf has this name; (by the Future) its array is gone.
            DataLossError, UnsupportedError: (by the Future) as by `ts.open`.
        """
        leaf = self.leaf(name)

        async def body() -> object:
            return await self._opened(leaf)

        return begin(False, body, None)

    def arrays(self, names: Iterable[str] | None = None) -> Future[dict[str, TensorStore]]:
        """Open all arrays below, or some: by flat name.

        Args:
            names: only these: flat names, branches or patterns such as `"*.kernel"`.

        Raises as `open`; (at once) the error of something damaged among them.
        """
        asked = None if names is None else list(names)

        async def body() -> dict[str, TensorStore]:
            return await self._open_all(self._arrays(asked))

        self._refuse_damaged(asked)
        return begin(False, body, None)

    def read(self, names: Iterable[str] | None = None) -> Future[Any]:
        """Read everything below, or a part of it, into memory.

        Args:
            names: only these, as for `arrays`; what has nothing else in it is left out.

        Returns:
            A Future of nested dicts, lists and tuples of NumPy arrays, numbers and other values.

        Raises as `open`.
        """
        wanted = self._node if names is None else selected(self._node, list(names))
        leaves = [leaf for _, leaf in leaves_of(wanted)]
        values: dict[int, object] = {}

        async def fetch(leaf: Leaf) -> None:
            found = await self._opened(leaf)
            if isinstance(found, TensorStore):
                read = await found.read()
                found = read.item() if leaf.kind == "scalar" and read.size == 1 else read
            values[id(leaf)] = found

        async def body() -> object:
            await fan_out(False, leaves, fetch, count=len(leaves), width=_AT_A_TIME)
            return mapped(wanted, lambda leaf: values[id(leaf)])

        return begin(False, body, None)

    def _refuse_damaged(self, names: list[str] | None) -> None:
        for keys, leaf in leaves_of(self._node):
            if leaf.kind == "damaged" and matching(flat_name(keys), names):
                raise_damaged(leaf)

    def _arrays(self, names: list[str] | None) -> list[tuple[str, Leaf]]:
        found = [(flat_name(keys), leaf) for keys, leaf in leaves_of(self._node)]
        return [
            (name, leaf)
            for name, leaf in found
            if matching(name, names) and (leaf.place or _is_array(leaf.value))
        ]

    async def _open_all(self, leaves: list[tuple[str, Leaf]]) -> dict[str, TensorStore]:
        found: dict[str, TensorStore] = {}

        async def look(each: tuple[str, Leaf]) -> None:
            found[each[0]] = await self._opened(each[1])

        await fan_out(False, leaves, look, count=len(leaves), width=_AT_A_TIME)
        return {name: found[name] for name, _ in sorted(leaves, key=lambda each: each[0])}

    async def _survey(
        self, leaves: list[tuple[str, Leaf]]
    ) -> dict[str, TensorStore | TensorStoreError]:
        """Each array, or why it cannot be opened."""
        found: dict[str, TensorStore | TensorStoreError] = {}

        async def look(each: tuple[str, Leaf]) -> None:
            try:
                found[each[0]] = await self._opened(each[1])
            except (DataLossError, NotFoundError, UnsupportedError) as error:
                found[each[0]] = error

        await fan_out(False, leaves, look, count=len(leaves), width=_AT_A_TIME)
        return {name: found[name] for name, _ in sorted(leaves, key=lambda each: each[0])}

    async def _opened(self, leaf: Leaf) -> Any:  # noqa: ANN401 - an array or a value
        if leaf.kind == "damaged":
            raise_damaged(leaf)
        if leaf.place is None:
            return in_memory(leaf.value) if _is_array(leaf.value) else leaf.value
        where = leaf.place.store
        path = f"{where.path}{leaf.param}/" if leaf.param else where.path
        spec = parse_spec({
            "driver": leaf.place.driver,
            "kvstore": where.replace(path=path),
            "fill_missing_data_reads": not leaf.place.every_chunk,
        })  # fmt: skip
        array = await open_array(Spec.of(spec), read=True, context=self._directory.context)
        floats = leaf.kind == "array" and array.dtype.name.lstrip("b").startswith("float")
        return array if self._dtype is None or not floats else array.astype(self._dtype)

    # As a dictionary or a list.

    def __getitem__(self, key: str | int) -> Any:  # noqa: ANN401 - a branch, an array or a value
        """A branch, or what is at a leaf: an array is opened.

        Raises:
            KeyError, IndexError: there is no such key.
        """
        node = self._node
        if isinstance(key, int) and isinstance(node, list | tuple):
            return self._given(self.keys()[key], node[key])
        if isinstance(key, str):
            known = self._children.get(key)
            if known is not None:
                return self._given(key, known)
            found: Checkpoint | None = self
            for part in key.split("."):
                found = None if found is None else found._child(part)
            if found is not None:
                return found._given_self()
        raise KeyError(f"{key!r} is not in {self!r}")

    def _child(self, part: str) -> Checkpoint | None:
        for key in (part, int(part)) if part.isdecimal() else (part,):
            if key in self._children:
                return self._branch(key, self._children[key])
        return None

    @property
    def _children(self) -> dict[str | int, Node]:
        node = self._node
        if isinstance(node, Leaf):
            return {}
        found: dict[str | int, Node] = node if isinstance(node, dict) else dict(branches(node))
        return found

    def _given(self, key: str | int, node: Node) -> Any:  # noqa: ANN401
        return self._branch(key, node)._given_self()

    def _given_self(self) -> Any:  # noqa: ANN401
        leaf = self._node
        if not isinstance(leaf, Leaf):
            return self

        async def body() -> object:
            return await self._opened(leaf)

        return begin(False, body, None).result()

    def __contains__(self, key: object) -> bool:
        try:
            return self._child(str(key)) is not None or self.leaf(str(key)) is not None
        except NotFoundError:
            return False

    def __iter__(self) -> Iterator[Any]:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self._node)

    def __bool__(self) -> bool:
        return True  # an empty tree is one

    def keys(self) -> list[Any]:
        """The keys of this branch; of a list or a tuple its numbers, of a named one its fields."""
        return [key for key, _ in branches(self._node)]

    def _ipython_key_completions_(self) -> list[Any]:
        return [*self.keys(), *self.names()]

    # How it looks.

    def tree(self) -> TreeFuture:
        """A picture of everything below, as text and, in notebooks, as HTML.

        Costs as much as opening all arrays. What is damaged is named, and why.
        """
        leaves = [(keys, leaf) for keys, leaf in leaves_of(self._node)]

        async def label(leaf: Leaf, array: TensorStore | TensorStoreError | None) -> str:
            if isinstance(array, TensorStoreError):
                return _damage(array)
            if array is None:
                return _label(leaf)
            if leaf.kind == "scalar":
                return str((await array.read()).item())
            return f"{array.shape} {array.dtype.name}"

        async def body() -> Tree:
            open_ = await self._survey(self._arrays(None))
            labels = {
                _path(keys): await label(leaf, open_.get(flat_name(keys))) for keys, leaf in leaves
            }
            return Tree("/" + _path(self._keys), _with_parents(labels))

        return TreeFuture.of(begin(False, body, None))

    def __repr__(self) -> str:
        where = place_of(self._directory.model)
        branch = f", {flat_name(self._keys)!r}" if self._keys else ""
        step = "" if self.step is None else f", step={self.step}"
        return f"Checkpoint({where!r}{branch}{step}, arrays={len(self._arrays(None))})"

    def _repr_html_(self) -> str:
        labels = {}
        for keys, leaf in leaves_of(self._node):
            labels[_path(keys)] = _label(leaf)
        children: dict[str, list[str]] = {}
        for path, _ in _with_parents(labels):
            children.setdefault(path.rpartition("/")[0], []).append(path)
        lines: list[tuple[str, object]] = [("Arrays", len(self._arrays(None)))]
        if self.step is not None:
            lines.insert(0, ("Step", self.step))
        where = place_of(self._directory.model)
        return page("Checkpoint", where, rows(lines), outline(children, labels))


def raise_damaged(leaf: Leaf) -> NoReturn:
    """Raise the error of what is damaged: a new one each time, since raising it changes it."""
    assert isinstance(leaf.value, TensorStoreError)
    raise copy(leaf.value)


def _label(leaf: Leaf) -> str:
    """What a picture says of a leaf that is not opened."""
    if isinstance(leaf.value, TensorStoreError):
        return _damage(leaf.value)
    if leaf.kind == "value":
        return f"{leaf.value!r:.60}"
    return leaf.kind if leaf.shape is None else str(leaf.shape)


def _damage(error: TensorStoreError) -> str:
    return f"damaged: {error}"


def _is_array(value: object) -> bool:
    return hasattr(value, "__array__") and hasattr(value, "shape")


def _path(keys: Iterable[str | int]) -> str:
    return "/".join(map(str, keys))


def _with_parents(labels: dict[str, str]) -> list[tuple[str, str]]:
    """Also the branches, which have no labels."""
    found = dict(labels)
    for path in labels:
        parts = path.split("/")
        for size in range(1, len(parts)):
            found.setdefault("/".join(parts[:size]), "")
    return sorted(found.items())
