"""What users of `ts.copy(..., verify=True)` see."""

import concurrent.futures

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py._conversion import stored_chunks
from tensorstore_py.kvstores.memory import MemoryStore, SharedMap
from tensorstore_py.testing import FaultyStore
from tests.chunked.stores import counting, created, pool

DATA = np.arange(1, 65, dtype="uint8").reshape(8, 8)
PLAIN = {"metadata": {"codecs": ["bytes"]}}


def flipped(value):
    return bytes([value[0] ^ 1]) + value[1:]


@pytest.fixture
def tree():
    root = ts.Group.open("memory://old/", create=True).result()
    layout = ts.ChunkLayout(chunk_shape=[4, 4])
    array = root.create_array("a/b", dtype="uint8", shape=[8, 8], chunk_layout=layout).result()
    array[...] = DATA
    return root


def test_what_was_written_is_counted(tree):
    where = ts.KvStore.open("memory://new/").result()

    as_they_are = ts.copy(tree, where / "same", verify=True).result()
    anew = ts.rechunk(tree, where / "other", 2, verify=True).result()
    unseen = ts.copy(tree, where / "unseen").result()

    assert (as_they_are.verified, anew.verified, unseen.verified) == (4, 16, 0)
    assert str(anew).startswith(
        "copied 1 array (0.0 MiB in 16 chunks) and 2 groups; 16 chunks verified\n"
    )
    assert repr(anew).endswith("skipped=0, verified=16)")
    assert repr(unseen).endswith("skipped=0)")


def test_it_is_the_store_that_is_asked():
    store = counting()
    target = created(
        store, (8, 8), [4, 4], members=PLAIN, context=pool(), recheck_cached_data=False
    )

    ts.copy(ts.array(DATA), target, verify=True).result()

    assert {key: count for key, count in store.reads.items() if "/c/" in key} == dict.fromkeys(
        ["a/c/0/0", "a/c/0/1", "a/c/1/0", "a/c/1/1"], 1
    )
    np.testing.assert_array_equal(target, DATA)


@pytest.mark.parametrize("context", [None, pool()])
def test_what_reads_differently_is_named(context):
    store = FaultyStore(MemoryStore(SharedMap()))
    target = created(store, (8, 8), [4, 4], members=PLAIN, context=context)
    store.alter("a/c/1/0", flipped)

    ts.copy(ts.array(DATA), target).result()
    with pytest.raises(ts.DataLossError) as raised:
        ts.copy(ts.array(DATA), target, verify=True).result()

    message = str(raised.value)
    assert '"a/"' in message
    assert "1 of 64 elements, the first at [4, 0]: 33 was written, and 32 is there" in message


def test_a_lost_write_is_seen():
    store = FaultyStore(MemoryStore(SharedMap()))
    target = created(store, (8, 8), [4, 4], members=PLAIN)
    store.alter("a/c/0/1", lambda _: bytes(16))

    with pytest.raises(ts.DataLossError, match="16 of 64 elements"):
        ts.copy(ts.array(DATA), target, verify=True).result()


def test_bytes_that_were_copied(tree, monkeypatch):
    async def copy_key(source, key, target, target_key):
        result = await source.read(key)
        await target.write(target_key, flipped(bytes(result.value)))

    monkeypatch.setattr(stored_chunks, "copy_key", copy_key)
    where = ts.KvStore.open("memory://new/").result()

    with pytest.raises(ts.DataLossError, match=r'"old/a/b/c/.*" to "new/a/b/c/.*" is not the same'):
        ts.copy(tree, where, verify=True).result()


def test_other_processes_verify_too(tree, tmp_path):
    ts.copy(tree, tmp_path / "old").result()

    with concurrent.futures.ProcessPoolExecutor(1) as workers:
        done = ts.copy(tmp_path / "old", tmp_path / "new", chunks=2, verify=True, executor=workers)
        same = ts.copy(tmp_path / "old", tmp_path / "same", verify=True, executor=workers)
        assert (done.result().verified, same.result().verified) == (16, 4)

    assert not ts.diff(tree, tmp_path / "new").result()


def test_a_plan_says_it(tree, tmp_path):
    ts.copy(tree, tmp_path / "old").result()

    plan = ts.plan(ts.copy, tmp_path / "old", tmp_path / "new", chunks=2, verify=True).result()

    assert ts.Plan.from_json(plan.to_json()).run().result().verified == 16
