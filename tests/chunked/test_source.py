import pytest

from tensorstore_py._chunked.source import ChunkSource, StoredChunks
from tensorstore_py._interface.byte_range import WHOLE, ByteRange
from tensorstore_py._interface.chunk_keys import SeparatedKeys
from tensorstore_py._interface.generation import NO_VALUE, UNKNOWN
from tensorstore_py._interface.kvstore import ReadResult
from tensorstore_py._runtime.inline import run_inline
from tests.chunked.arrays import WatchedStore


@pytest.fixture
def source():
    return StoredChunks(WatchedStore(), "a/", SeparatedKeys(2, "."))


def test_a_chunk_is_one_key_below_the_path(source):
    assert source.key((3, 14)) == "a/3.14"
    assert source.describe((3, 14)) == '"a/3.14"'


def test_reading_writing_deleting(source):
    assert run_inline(source.read((0, 1))).state == "missing"
    run_inline(source.write_parts((0, 1), [b"va", b"lue"]))
    assert run_inline(source.read((0, 1))).value == b"value"
    assert run_inline(source.read((0, 1), ByteRange(1, 3))).value == b"al"
    run_inline(source.write_parts((0, 1), None))
    assert not source.store.entries


def test_conditions_are_the_stores(source):
    stamp = run_inline(source.write_parts((0, 0), [b"1"], if_equal=NO_VALUE))
    assert run_inline(source.write_parts((0, 0), [b"2"], if_equal=NO_VALUE)).generation == UNKNOWN
    assert run_inline(source.read((0, 0), if_not_equal=stamp.generation)).state == "unspecified"
    assert run_inline(source.read((0, 0), if_equal=b"other")).state == "unspecified"
    assert run_inline(source.read((0, 0), if_equal=stamp.generation)).value == b"1"


@pytest.mark.parametrize("inline", [True, False])
def test_temperament_and_width_are_the_stores(inline):
    store = WatchedStore(inline=inline)
    keys = SeparatedKeys(1, "/")
    source = StoredChunks(store, "", keys)
    assert (source.inline, source.width) == (inline, store.width)
    assert StoredChunks(store, "", keys, 3).width == 3


def test_several_chunks_by_their_keys(source):
    cells = [(0, 1), (3, 14), (0, 0)]
    run_inline(source.write_values(cells, [b"1", b"", b"3"]))
    assert source.store.entries == {"a/0.1": b"1", "a/3.14": b"", "a/0.0": b"3"}
    room = memoryview(bytearray(10))
    assert run_inline(source.values([*cells, (9, 9)], room)) == [b"1", b"", b"3", None]
    run_inline(source.write_values(cells, [None, b"2", None]))
    assert source.store.entries == {"a/3.14": b"2"}


def test_the_store_gets_the_room(source, monkeypatch):
    asked = []

    async def values(keys, room):
        asked.append((keys, room))
        return [None]

    monkeypatch.setattr(source.store, "read_values", values)
    room = memoryview(bytearray(10))
    assert run_inline(source.values([(0, 1)], room)) == [None]
    assert asked == [(["a/0.1"], room)]
    assert asked[0][1] is room


class Parts(ChunkSource):
    """Chunks of something else than a store."""

    inline = True
    width = 1

    async def read(self, cell, byte_range=WHOLE, *, if_equal=None, if_not_equal=None):
        return ReadResult("value", b"%d" % cell) if cell != (0,) else ReadResult("missing")

    def describe(self, cell):
        return f"part {cell}"


def test_other_sources_are_asked_one_by_one():
    room = memoryview(bytearray(10))
    assert run_inline(Parts().values([(3,), (0,), (4,)], room)) == [b"3", None, b"4"]
