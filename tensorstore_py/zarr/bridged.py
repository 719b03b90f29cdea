"""What makes a store of `ts.zarr` one of zarr-python's, too, once that is imported.

The names of a `zarr.abc.store.Store` that a mapping has not are those of `as_store` of the store;
`get` is both, told apart by its arguments. Whether something is a store zarr-python finds out by
`isinstance`, which asks for the class first: that is when it is told of the class.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

from tensorstore_py.errors import UnsupportedError

if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from tensorstore_py.zarr.key_value_store import KeyValueStore

__all__ = ["Bridged", "bridge"]


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

    _bridge: KeyValueStore | None = None

    @property  # type: ignore[misc]  # nobody sets it
    def __class__(self) -> Any:  # noqa: ANN401 - mypy knows it as a type
        """The class, as it is; whoever asks may be about to ask whether zarr-python knows it."""
        promise = _promise()
        if promise is not None:
            promise.register(type(self))
        return type(self)

    @property
    def bridge(self) -> KeyValueStore:
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
