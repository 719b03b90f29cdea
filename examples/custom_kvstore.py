"""A store of your own: a whole array in one SQLite file, with conditional writes."""

import sqlite3
import tempfile
from collections.abc import AsyncIterator
from contextlib import closing

import tensorstore_py as ts
from tensorstore_py import plugin
from tensorstore_py.plugin import ALL, NO_VALUE, UNKNOWN, WHOLE
from tensorstore_py.plugin import TimestampedStorageGeneration as Stamp

TABLE = (
    "CREATE TABLE IF NOT EXISTS kv"
    " (version INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT UNIQUE, value BLOB)"
)


@plugin.kvstore("sqlite")
class SqliteSpec(plugin.KvStoreSpec):
    """`{"driver": "sqlite", "file": "data.db", "path": "image/"}`."""

    file: str

    def open(self) -> plugin.KvStore:
        """Makes the store; no I/O here."""
        return SqliteStore(self.file)


class SqliteStore(plugin.KvStore):
    """Keys and values in one table; a row's number, never used twice, is its generation."""

    inline = True  # methods may block, and never suspend: worker threads run them

    def __init__(self, file: str) -> None:
        self._file = file

    def _begin(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._file, isolation_level="IMMEDIATE")
        connection.execute(TABLE)
        return connection

    async def read(
        self,
        key: str,
        byte_range: plugin.ByteRange = WHOLE,
        *,
        if_equal: bytes | None = None,
        if_not_equal: bytes | None = None,
    ) -> plugin.ReadResult:
        """Reads a value or a part of it."""
        with closing(self._begin()) as db:
            found = db.execute("SELECT version, value FROM kv WHERE key = ?", (key,)).fetchone()
        if found is None:
            return plugin.ReadResult("missing", b"", Stamp.now(NO_VALUE))
        stamp, value = Stamp.now(b"%d" % found[0]), found[1]
        if stamp.generation == if_not_equal or if_equal not in (None, UNKNOWN, stamp.generation):
            return plugin.ReadResult("unspecified", b"", stamp)
        start, stop = byte_range.resolve(len(value))
        return plugin.ReadResult("value", value[start:stop], stamp)

    async def write(
        self, key: str, value: plugin.Buffer | None, *, if_equal: bytes | None = None
    ) -> Stamp:
        """Replaces or (with None) deletes a value, if its generation is still `if_equal`."""
        with closing(self._begin()) as db, db:
            db.execute("BEGIN IMMEDIATE")  # nobody else writes until this ends
            found = db.execute("SELECT version FROM kv WHERE key = ?", (key,)).fetchone()
            present = NO_VALUE if found is None else b"%d" % found[0]
            if if_equal not in (None, UNKNOWN, present):
                return Stamp.now(UNKNOWN)
            db.execute("DELETE FROM kv WHERE key = ?", (key,))
            if value is None:
                return Stamp.now(NO_VALUE)
            row = db.execute("INSERT INTO kv (key, value) VALUES (?, ?)", (key, bytes(value)))
            return Stamp.now(b"%d" % (row.lastrowid or 0))

    async def list(self, key_range: plugin.KeyRange = ALL) -> AsyncIterator[plugin.ListEntry]:
        """Yields keys and sizes."""
        with closing(self._begin()) as db:
            rows = db.execute("SELECT key, length(value) FROM kv").fetchall()
        for key, size in rows:
            if key in key_range:
                yield plugin.ListEntry(key, size)


def main() -> None:
    """Runs the example."""
    with tempfile.TemporaryDirectory() as directory:
        place = {"driver": "sqlite", "file": f"{directory}/data.db", "path": "image/"}
        spec = {"driver": "zarr3", "kvstore": place}
        store = ts.open(spec, create=True, dtype="uint8", shape=[64, 64]).result()
        store[10:20, 10:20] = 5
        print(ts.open(spec).result()[9:12, 9:12].read().result())
        print(sorted(ts.KvStore.open(place).result().list().result()))


if __name__ == "__main__":
    main()
