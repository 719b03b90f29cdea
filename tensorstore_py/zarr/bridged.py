"""What makes a store of `ts.zarr` one of zarr-python's, too, once that is imported.

The names of a `zarr.abc.store.Store` that a mapping has not are those of `as_store` of the store;
`get` is both, told apart by its arguments. Whether something is a store zarr-python finds out by
`isinstance`, which asks for the class first: that is when it is told of the class.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from tensorstore_py.zarr.key_value_store import KeyValueStore

__all__ = ["Bridged"]


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

    @property
    def __class__(self) -> Any:  # type: ignore[override]  # noqa: ANN401 - mypy knows it as a type
        """The class, as it is; whoever asks may be about to ask whether zarr-python knows it."""
        promise = _promise()
        if promise is not None:
            promise.register(type(self))
        return type(self)

    @property
    def bridge(self) -> KeyValueStore:
        """The same store, by the names of zarr-python only."""
        if self._bridge is None:
            made = import_module("tensorstore_py.zarr.key_value_store").key_value_store
            self._bridge = made(self)
        assert self._bridge is not None
        return self._bridge

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever it is there
        promise = None if name.startswith("__") else _promise()
        if promise is None or not (hasattr(promise, name) or name in promise.__annotations__):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.bridge, name)


def _promise() -> Any:  # noqa: ANN401 - a class of a library that need not be there
    """What zarr-python says a store is; None if it is not imported."""
    return getattr(sys.modules.get("zarr.abc.store"), "Store", None)
