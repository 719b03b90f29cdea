"""`ts.zarr.Store`: a mapping of keys to bytes over a `ts.KvStore`, which is its `kvstore`.

It is thin: opening, reading and writing is the key-value store's. What it adds is what zarr users
call: listings of a directory, sizes, deleting a directory.

Once zarr-python is imported, a store is one of zarr-python's, too (`Bridged`). The names of a
`zarr.abc.store.Store` that a mapping has not are those of `as_store` of the store; `get` is both,
told apart by its arguments. zarr-python finds out by `isinstance` whether something is a store,
which asks for the class first: that is when zarr-python is told of the class.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, MutableMapping
from importlib import import_module
from typing import TYPE_CHECKING, Self

from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._interface.key_range import KeyRange
from tensorstore_py._interface.kvstore import KvStoreSpec
from tensorstore_py._runtime.execution import start
from tensorstore_py._spec.context import Context
from tensorstore_py._spec.held import Held, kvstore_object
from tensorstore_py._spec.resource import Resource
from tensorstore_py.errors import SpecError, UnsupportedError
from tensorstore_py.zarr.errors import ReadOnlyError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType, TracebackType
    from typing import Any

    from zarr.abc.store import Store as ZarrStore


__all__ = ["Bridged", "Store", "bridge"]


class Bridged:
    """The base of stores that zarr-python takes as they are.

    Example:
        >>> import zarr
        >>> import tensorstore_py as ts
        >>> store = ts.zarr.MemoryStore()
        >>> zarr.create_array(store, shape=4, dtype="i4")[:] = 7
        >>> zarr.open_array(store, mode="r")[1:3], "zarr.json" in store
        (array([7, 7], dtype=int32), True)
    """

    _bridge: ZarrStore | None = None

    @property  # type: ignore[misc]  # it is never set
    def __class__(self) -> Any:  # noqa: ANN401 - mypy knows it as a type
        """The class itself, which zarr-python is told of, as `isinstance` asks for it first."""
        promise = _promise()
        if promise is not None:
            promise.register(type(self))
        return type(self)

    @property
    def bridge(self) -> ZarrStore:
        """The same store, by the names of zarr-python only."""
        if self._bridge is None:
            self._bridge = bridge().key_value_store(self)
        assert self._bridge is not None
        return self._bridge

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever it is there
        promise = None if name.startswith("__") else _promise()
        if promise is None or not (hasattr(promise, name) or name in promise.__annotations__):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.bridge, name)


def bridge() -> ModuleType:
    """What has to do with zarr-python, which is imported with it.

    Raises:
        UnsupportedError: zarr-python 3 is not installed; names the extra.
    """
    try:
        return import_module("tensorstore_py.zarr.key_value_store")
    except ImportError as error:
        raise UnsupportedError(
            f"that needs zarr-python 3.1 or later ({error}): pip install 'tensorstore-py[zarr]'"
        ) from None


def _promise() -> Any:  # noqa: ANN401 - a class of a library that need not be there
    """What zarr-python says a store is; None if it is not imported."""
    return getattr(sys.modules.get("zarr.abc.store"), "Store", None)


class Store(Bridged, MutableMapping[str, bytes]):
    """A store of keys and bytes.

    Args:
        kvstore: a `ts.KvStore`, or what opens one: JSON, a URL.
        read_only: refuse changes.
        context: shared resources, for who opens it here.

    Attributes:
        kvstore: the `ts.KvStore`.
        read_only: whether changes are refused.
        context: what its arrays share.
        zarr_format: of new nodes, if nothing else is said.
        separator: between the parts of a chunk's key in new arrays of version 2, if nothing else
            is said.

    Example:
        >>> import tensorstore_py as ts
        >>> store = ts.zarr.MemoryStore()
        >>> store.update({"notes.txt": b"calibrated", "run/1/log": b"ok", "run/2/log": b"late"})
        >>> store.listdir(), store.listdir("run"), store["run/2/log"]
        (['notes.txt', 'run'], ['1', '2'], b'late')
        >>> store.rmdir("run/1")
        >>> sorted(store)
        ['notes.txt', 'run/2/log']
    """

    zarr_format: int | None = None
    separator: str = "."

    def __init__(
        self, kvstore: object, *, read_only: bool = False, context: Context | None = None
    ) -> None:
        self.context = Context() if context is None else context
        if not isinstance(kvstore, KvStore):
            kvstore = KvStore.open(kvstore, context=self.context).result()
        if kvstore.path and not kvstore.path.endswith("/"):
            kvstore = kvstore / "/"
        self.kvstore = kvstore
        self.read_only = read_only

    def __getitem__(self, key: str) -> bytes:
        return self.kvstore[key]

    def __setitem__(self, key: str, value: bytes) -> None:
        self.check_writable()
        self.kvstore[key] = value

    def __delitem__(self, key: str) -> None:
        self.check_writable()
        if key not in self:
            raise KeyError(key)
        del self.kvstore[key]

    def get(self, key: str, default: object = None, *request: Any, **requests: Any) -> Any:  # noqa: ANN401 - bytes, or what is awaited
        """The value of a key, or `default`.

        With a buffer prototype of zarr-python, by its name or in place of `default`, what the
        method of a store of zarr-python gives: something to await.

        Args:
            key: below the store's path.
            default: what there is if nothing is stored.
            *request: zarr-python's `byte_range`.
            **requests: zarr-python's `prototype` and `byte_range`, by their names.
        """
        if requests or hasattr(default, "nd_buffer"):
            said = () if default is None else (default,)
            return self.bridge.get(key, *said, *request, **requests)
        try:
            return self[key]
        except KeyError:
            return default

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and key in self.kvstore

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self.sizes()))

    def __len__(self) -> int:
        return len(self.sizes())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Store):
            return NotImplemented
        mine, theirs = self.kvstore, other.kvstore
        return mine.spec().to_json() == theirs.spec().to_json() and (
            _memories(mine.model) == _memories(theirs.model)
        )

    def __hash__(self) -> int:
        return hash(self.kvstore.path)

    def __reduce__(self) -> tuple[Callable[..., Store], tuple[object, ...]]:
        return _made_again, (self.kvstore, self.read_only)

    def check_writable(self) -> None:
        """Refuse a change if the store is only to be read.

        Raises:
            ReadOnlyError: it is.
        """
        if self.read_only:
            raise ReadOnlyError("the store was opened to be read only; open it with mode='r+'")

    def at(self, path: str) -> KvStore:
        """The place of a node: what its keys are relative to."""
        prefix = _prefix(path)
        return self.kvstore / prefix if prefix else self.kvstore

    @property
    def url(self) -> str:
        """The URL; the JSON of the spec if it has none."""
        try:
            return self.kvstore.url
        except UnsupportedError:
            return str(self.kvstore.spec().to_json())

    def sizes(self, path: str = "") -> dict[str, int]:
        """The keys below a path, without it, and how many bytes their values have."""
        store, prefix = self.kvstore.store, self.kvstore.path + _prefix(path)

        async def body() -> dict[str, int]:
            found: dict[str, int] = {}
            async for entry in store.list(KeyRange.prefix(prefix)):
                size = entry.size
                if size < 0:
                    size = len((await store.read(entry.key)).value)
                found[entry.key.removeprefix(prefix)] = size
            return found

        return start(store.inline, body).result()

    def listdir(self, path: str = "") -> list[str]:
        """The names right below a path, sorted."""
        return sorted({key.partition("/")[0] for key in self.sizes(path)})

    def getsize(self, path: str = "") -> int:
        """The bytes of a value, or of all values below a path."""
        sizes = self.sizes(path)
        return sum(sizes.values()) if sizes or not path else len(self.get(path, b""))

    def rmdir(self, path: str = "") -> None:
        """Delete whatever is below a path."""
        self.check_writable()
        store, prefix = self.kvstore.store, self.kvstore.path + _prefix(path)
        start(store.inline, lambda: store.delete_range(KeyRange.prefix(prefix))).result()

    def clear(self) -> None:
        """Delete everything."""
        self.rmdir()

    def flush(self) -> None:
        """Does nothing: whatever is written is stored when the call returns."""

    def close(self) -> None:
        """Does nothing: whatever is written is stored when the call returns."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.url}>"


def _made_again(kvstore: KvStore, read_only: bool) -> Store:
    return Store(kvstore, read_only=read_only)


@kvstore_object("tensorstore_py.zarr", "Store")
def _of_store(store: Store) -> KvStoreSpec:
    """A store stands for its `ts.KvStore`, which may always be written."""
    if store.read_only:
        raise SpecError(
            "the store is read only, which no spec can say; pass store.kvstore, and read=True"
        )
    return store.kvstore.model


def _memories(model: object) -> list[object]:
    """What of a store is only in this process, and in no spec."""
    found: list[object] = []
    for member in vars(model).values():
        if isinstance(member, Held):
            found.append(member)
        elif isinstance(member, Resource) and member.spec.resource_id == "memory_key_value_store":
            found.append(member.value)
        elif isinstance(member, KvStoreSpec):
            found += _memories(member)
    return found


def _prefix(path: str) -> str:
    return f"{path.strip('/')}/" if path.strip("/") else ""
