"""`ts.zarr.as_store`: any store of this package as a store of zarr-python 3.

zarr-python is imported when a store is made for it, and by nothing else here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorstore_py.zarr.storage import store_of
from tensorstore_py.zarr.store import bridge

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorstore_py._interface.transaction import Transaction
    from tensorstore_py._spec.context import Context
    from tensorstore_py.zarr.key_value_store import KeyValueStore
    from tensorstore_py.zarr.storage import StoreLike

__all__ = ["as_store"]


def as_store(
    store: StoreLike,
    *,
    read_only: bool | None = None,
    transaction: Transaction | None = None,
    context: Context | None = None,
) -> KeyValueStore:
    """A `zarr.abc.store.Store` over a store of this package.

    What takes a store of zarr-python 3 takes it, such as `zarr.open_group` and `xr.open_zarr`; the
    requests are this package's.

    Args:
        store: a `ts.KvStore`, its spec or URL, a local path, a store of `ts.zarr`, or whatever
            else the functions of `ts.zarr` take.
        read_only: refuse changes. By default as `store` says, and if it can't be written.
        transaction: see the store through it, and write into it.
        context: caches, limits and credentials, for what is opened here.

    Raises:
        UnsupportedError: zarr-python 3 is not installed; names the extra.
        SpecError: something is wrong with the spec or the URL.
        FailedPreconditionError: the transaction is not open.

    Example:
        >>> import zarr
        >>> import tensorstore_py as ts
        >>> store = ts.zarr.as_store("memory://lab/")
        >>> z = zarr.create_array(store, shape=(4,), chunks=(2,), dtype="i4")
        >>> z[:] = [1, 2, 3, 4]
        >>> zarr.open_array(store, mode="r")[1:3]
        array([2, 3], dtype=int32)
    """
    made: Callable[..., KeyValueStore] = bridge().key_value_store
    found = store_of(store, mode="r" if read_only else None, context=context)
    return made(found, read_only=read_only, transaction=transaction)
