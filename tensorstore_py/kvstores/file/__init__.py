"""The file store: a directory tree as a key-value store, shared safely with other processes.

Read in this order: `paths` (what a key may be), `resources` and `spec` (the JSON), `reading`,
`locking` (one writer per key), `status` (generations, and who may use a file), `staging` (how a
value reaches its key), `tree` (listing), and `store`, which puts them together. The one invariant:
a reader of a key finds the whole of one value that a writer stored.
"""

from tensorstore_py.kvstores.file.spec import FileSpec
from tensorstore_py.kvstores.file.store import FileStore

__all__ = ["FileSpec", "FileStore"]
