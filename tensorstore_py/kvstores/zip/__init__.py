"""The zip store: an archive, in a value of any other store, as a store of its own.

Read in this order: `names` and `methods` (what an entry may be called, how it is compressed),
`records` (the bytes of the format), `directory` (what is in an archive), `archive` (the archive as
it is stored now), `commits` (how it is changed), and `store`, which puts them together. The one
invariant: an archive is replaced as a whole, on the condition that it is still the one that was
changed, so whoever opens it finds all of it, and no writer undoes another one's work.
"""

from tensorstore_py.kvstores.zip.spec import ZipSpec
from tensorstore_py.kvstores.zip.store import ZipStore

__all__ = ["ZipSpec", "ZipStore"]
