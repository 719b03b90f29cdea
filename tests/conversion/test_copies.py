"""How much copies ask of stores, how they are verified, and what they say they did."""

import concurrent.futures

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py import CopiedMember, CopySummary
from tensorstore_py.kvstores.memory import MemoryStore, SharedMap
from tensorstore_py.testing import FaultyStore
from tests.chunked.stores import counting, created, pool
from tests.conversion.breaking_memory import store_of

OLD = {"driver": "breaking_memory", "path": "old/"}


NEW = {"driver": "breaking_memory", "path": "new/"}


@pytest.fixture
def context():
    return ts.Context()


class TestTreeCopy:
    def test_nothing_is_stored_twice(self, context):
        old = ts.Group.open(OLD, create=True, attributes={"a": 1}, context=context).result()
        for number in range(20):
            array = old.create_array(f"g{number % 3}/{number}", dtype="int8", shape=[4]).result()
            array[...] = 1
        store = store_of(context)
        store.restore()

        done = ts.copy(OLD, NEW, context=context).result()

        assert (done.arrays, done.groups) == (20, 4)
        assert set(store.written.values()) == {1}
        assert len(store.written) == 20 * 2 + 4

    def test_a_manifest_is_stored_less_often_than_blocks_are(self, context):
        old = ts.Group.open(OLD, create=True, context=context).result()
        for number in range(5):
            old.create_array(f"{number}", dtype="int8", shape=[4]).result()[...] = 1
        store = store_of(context)
        store.restore()

        ts.copy(OLD, NEW, manifest={**NEW, "path": "m.json"}, context=context).result()

        # begun; each array's only block; each array
        assert store.written["m.json"] <= 1 + 2 * 5

    def test_a_dry_run_stores_nothing(self, context):
        old = ts.Group.open(OLD, create=True, context=context).result()
        old.create_array("a", dtype="int8", shape=[4]).result()
        store = store_of(context)
        store.restore()

        done = ts.copy(OLD, NEW, dry_run=True, manifest={**NEW, "path": "m.json"},
                       context=context).result()  # fmt: skip

        assert done.dry_run
        assert (done.arrays, done.groups) == (1, 1)
        assert not store.written


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


class TestVerifiedCopies:
    def test_what_was_written_is_counted(self, tree):
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

    def test_it_is_the_store_that_is_asked(self):
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
    def test_what_reads_differently_is_named(self, context):
        store = FaultyStore(MemoryStore(SharedMap()))
        target = created(store, (8, 8), [4, 4], members=PLAIN, context=context)
        store.alter("a/c/1/0", flipped)

        ts.copy(ts.array(DATA), target).result()
        with pytest.raises(ts.DataLossError) as raised:
            ts.copy(ts.array(DATA), target, verify=True).result()

        message = str(raised.value)
        assert '"a/"' in message
        assert "1 of 64 elements, the first at [4, 0]: 33 was written, and 32 is there" in message

    def test_a_lost_write_is_seen(self):
        store = FaultyStore(MemoryStore(SharedMap()))
        target = created(store, (8, 8), [4, 4], members=PLAIN)
        store.alter("a/c/0/1", lambda _: bytes(16))

        with pytest.raises(ts.DataLossError, match="16 of 64 elements"):
            ts.copy(ts.array(DATA), target, verify=True).result()

    def test_other_processes_verify_too(self, tree, tmp_path):
        ts.copy(tree, tmp_path / "old").result()

        with concurrent.futures.ProcessPoolExecutor(1) as workers:
            done = ts.copy(
                tmp_path / "old", tmp_path / "new", chunks=2, verify=True, executor=workers
            )
            same = ts.copy(tmp_path / "old", tmp_path / "same", verify=True, executor=workers)
            assert (done.result().verified, same.result().verified) == (16, 4)

        assert not ts.diff(tree, tmp_path / "new").result()

    def test_a_plan_says_it(self, tree, tmp_path):
        ts.copy(tree, tmp_path / "old").result()

        plan = ts.plan(ts.copy, tmp_path / "old", tmp_path / "new", chunks=2, verify=True).result()

        assert ts.Plan.from_json(plan.to_json()).run().result().verified == 16


MEMBERS = [
    CopiedMember("", "group", "keep", ""),
    CopiedMember("a", "group", "create", ""),
    CopiedMember("a/x", "array", "create", "chunks as they are", 3 * 2**20, 4),
    CopiedMember("a/y", "array", "skip", "it is there"),
]


class TestSummary:
    def test_sums(self):
        summary = CopySummary.of(MEMBERS, dry_run=False)

        assert summary[:5] == (1, 1, 3 * 2**20, 4, 1)
        assert repr(summary) == (
            "CopySummary(arrays=1, groups=1, bytes=3145728, chunks=4, skipped=1)"
        )

    def test_text_has_a_line_for_each_member(self):
        assert str(CopySummary.of(MEMBERS, dry_run=False)).split("\n") == [
            "copied 1 array (3.0 MiB in 4 chunks) and 1 group; 1 skipped",
            "   keep group /",
            " create group /a",
            " create array /a/x, 3.0 MiB: chunks as they are",
            "   skip array /a/y: it is there",
        ]

    def test_a_long_text_is_cut(self):
        summary = CopySummary.of(MEMBERS[1:2] * 100, dry_run=True)

        lines = str(summary).split("\n")

        assert lines[0] == "would copy 0 arrays (0.0 MiB) and 100 groups"
        assert len(lines) == 42
        assert lines[-1].strip() == "and 60 more"
        assert repr(summary).endswith("dry_run=True)")
