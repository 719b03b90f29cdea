"""The obstore store: object stores as the Rust library `object_store` speaks to them.

For services that have no store of their own here, Azure above all. Read `spec`, then `store`;
`clients` has the library's clients, `protocol` translates what it says. It needs the extra
`obstore`; sockets, retries and credentials are the library's.
"""

from tensorstore_py.kvstores.obstore.clients import ObstoreClients, ObstoreConfig
from tensorstore_py.kvstores.obstore.spec import ObstoreSpec
from tensorstore_py.kvstores.obstore.store import ObstoreStore

__all__ = ["ObstoreClients", "ObstoreConfig", "ObstoreSpec", "ObstoreStore"]
