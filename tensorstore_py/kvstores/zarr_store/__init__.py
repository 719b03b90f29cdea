"""The store zarr_store: a store object of zarr-python 3, or of who made one for it.

`zarr.storage.FsspecStore`, an icechunk session's store, and whatever else is a
`zarr.abc.store.Store`. Read `spec`, then `store`.
"""

from tensorstore_py.kvstores.zarr_store.spec import ZarrStoreSpec
from tensorstore_py.kvstores.zarr_store.store import ZarrStore

__all__ = ["ZarrStore", "ZarrStoreSpec"]
