"""Copies by reference: values of databases as another one has them whose files are below it.

A data file is named from the root of the database that refers to it. So what another database has
in its data files is a value here, too, if these files are below the root of this one: the path from
here to there comes in front of theirs. Only values that are in leaves are copied as bytes.
"""

from __future__ import annotations

from tensorstore_py.kvstores.ocdbt.btree import Value
from tensorstore_py.kvstores.ocdbt.database import Database
from tensorstore_py.kvstores.ocdbt.references import DataFile, Reference
from tensorstore_py.plugin.kvstore import WHOLE, Buffer, ByteRange, StoredValue, encode_key

__all__ = ["CopiedValue", "path_between"]


def path_between(here: Database, there: Database) -> bytes | None:
    """What comes in front of the paths of another database's data files; None if they are not here.

    It is empty for one and the same database.
    """
    mine, other = here.data, there.data
    same = mine.store is other.store or (
        mine.store.identity is not None and mine.store.identity == other.store.identity
    )
    if not same or not other.root.startswith(mine.root):
        return None
    return encode_key(other.root[len(mine.root) :])


class CopiedValue(StoredValue):
    """A value of a database, to be stored under another key.

    Args:
        here: the database that is to have it.
        value: as a leaf of the other one has it.
        between: see `path_between`.

    Attributes:
        value: as a leaf here has it.
    """

    __slots__ = ("_here", "value")

    def __init__(self, here: Database, value: Value, between: bytes) -> None:
        self._here = here
        if between and isinstance(value, Reference):
            base, name = value.file
            value = value._replace(file=DataFile(between + base, name))
        self.value = value

    @property
    def size(self) -> int:
        value = self.value
        return value.length if isinstance(value, Reference) else len(value)

    async def read(self, byte_range: ByteRange = WHOLE) -> Buffer:
        value = self.value
        if isinstance(value, Reference):
            return await self._here.bytes_of(value, byte_range)
        start, stop = byte_range.resolve(len(value))
        return value[start:stop]
