"""Random programs on one archive, beside a dictionary; Python's own library takes part."""

import io
import zipfile

from hypothesis import given, settings
from hypothesis import strategies as st

from tensorstore_py.kvstores.memory import MemoryStore, SharedMap
from tensorstore_py.kvstores.zip.store import SharedArchive, ZipStore
from tensorstore_py.plugin.kvstore import KeyRange
from tensorstore_py.testing import drive

KEYS = st.sampled_from(["a", "b", "a/b", "a/c", "é", "x" * 300])
VALUES = st.builds(
    lambda piece, times: piece * times, st.binary(max_size=9), st.sampled_from([0, 1, 50, 3000])
)
METHODS = st.sampled_from(["store", "deflate", "zstd", "xz"])
#: Python's library knows no more, before 3.14.
THEIRS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
STEPS = st.one_of(
    st.tuples(st.just("write"), METHODS, KEYS, VALUES),
    st.tuples(st.just("delete"), METHODS, KEYS),
    st.tuples(st.just("delete range"), METHODS, KEYS),
    st.tuples(st.just("together"), METHODS, st.dictionaries(KEYS, st.none() | VALUES, max_size=4)),
    st.tuples(st.just("zipfile"), METHODS, KEYS, VALUES, st.booleans()),
    st.tuples(st.just("reopen"), METHODS),
)


class Archive:
    """The archive, opened in each way of compressing, and what has to be in it."""

    def __init__(self) -> None:
        self.base = MemoryStore(SharedMap())
        self.expected: dict[str, bytes] = {}
        self.reopen()

    def reopen(self) -> None:
        self.shared = SharedArchive(self.base, "a.zip")

    def do(self, action, method, *arguments) -> None:
        store = ZipStore(self.shared, method)
        if action == "reopen":
            self.reopen()
        elif action == "together":
            (values,) = arguments
            assert drive(store, lambda: store.write_batch(values, {})) is None
            self.expected |= {key: value for key, value in values.items() if value is not None}
            for key in [key for key, value in values.items() if value is None]:
                self.expected.pop(key, None)
        elif action == "zipfile":
            self.append(*arguments)
        else:
            key = arguments[0]
            if action == "write":
                drive(store, lambda: store.write(key, arguments[1]))
                self.expected[key] = arguments[1]
            elif action == "delete":
                drive(store, lambda: store.write(key, None))
                self.expected.pop(key, None)
            else:
                drive(store, lambda: store.delete_range(KeyRange.prefix(key)))
                for gone in [each for each in self.expected if each.startswith(key)]:
                    del self.expected[gone]

    def append(self, key, value, streamed) -> None:
        """What another program does."""
        found = drive(self.base, lambda: self.base.read("a.zip"))
        file = io.BytesIO(bytes(found.value))
        if key not in self.expected:
            with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as archive:
                if streamed:
                    with archive.open(key, "w", force_zip64=True) as entry:
                        entry.write(value)
                else:
                    archive.writestr(key, value)
            drive(self.base, lambda: self.base.write("a.zip", file.getvalue()))
            self.expected[key] = value

    def check(self) -> None:
        store = ZipStore(self.shared)

        async def everything():
            return {
                entry.key: bytes((await store.read(entry.key)).value)
                async for entry in store.list()
            }

        assert drive(store, everything) == self.expected
        found = drive(self.base, lambda: self.base.read("a.zip"))
        if found.state == "value":
            with zipfile.ZipFile(io.BytesIO(bytes(found.value))) as archive:
                for entry in archive.infolist():
                    if entry.compress_type in THEIRS:
                        assert archive.read(entry) == self.expected[entry.filename]
                assert sorted(archive.namelist()) == sorted(self.expected)


@settings(max_examples=settings().max_examples // 2)
@given(st.lists(STEPS, max_size=12))
def test_an_archive_holds_what_was_put_in(steps):
    archive = Archive()
    for step in steps:
        archive.do(*step)
        archive.check()
