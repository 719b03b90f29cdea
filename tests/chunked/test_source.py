import pytest

from tensorstore_py._chunked.source import StoredChunks
from tensorstore_py._interface.byte_range import ByteRange
from tensorstore_py._interface.chunk_keys import SeparatedKeys
from tensorstore_py._interface.generation import NO_VALUE, UNKNOWN
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
