"""The zip store: an archive, in a value of any other store, as a store of its own.

Read in this order: `methods` (how an entry is compressed), `records` (the bytes of the format),
`archive` (the archive as it is stored now), `commits` (how it is changed), and `store`, which puts
them together. The one
invariant: an archive is replaced as a whole, on the condition that it is still the one that was
changed, so a reader finds all of it, and no writer undoes another one's work.
"""

from tensorstore_py.kvstores.zip.store import ZipSpec, ZipStore

__all__ = ["ZipSpec", "ZipStore"]
