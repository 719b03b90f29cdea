"""The ocdbt store: TensorStore's database of keys and versions, in the files of another store.

Read in this order: `wire` (numbers and columns), `envelope` (what manifests and nodes are wrapped
in), `references` (where something is in which file), `btree`, `versions` and `manifest` (records
from bytes and to bytes), `tree` (keys looked up), `tree_changes` (keys changed), `history` (one
more version), `database` (what is stored now), `commits` (how it is changed), `copies` (what is
copied by reference), `nodes` (what is kept), `side_document` and `names` (what the format has no
place for), and `store` and `spec`, which put them together. The one invariant: files of data never
change, and the manifest is replaced on the condition that it is still the one that was changed.
"""

from tensorstore_py.kvstores.ocdbt.spec import OcdbtSpec
from tensorstore_py.kvstores.ocdbt.store import OcdbtStore

__all__ = ["OcdbtSpec", "OcdbtStore"]
