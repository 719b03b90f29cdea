"""An open array and its metadata: when it is read again, resized, or changed by others."""

import threading
import time

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py.errors import (
    DataLossError,
    FailedPreconditionError,
    NotFoundError,
    OutOfRangeError,
    UnsupportedError,
)
from tensorstore_py.testing import FaultyStore
from tests.chunked.stores import Hooked, counting, created, once, opened, pool

DOCUMENT = "a/zarr.json"
SHARDS = {"name": "sharding_indexed", "configuration": {"chunk_shape": [1, 2]}}


@pytest.fixture(params=[True, False], ids=["inline", "loop"])
def store(request):
    return counting(request.param)


def keys(store):
    """What is stored, without the document."""
    found = opened(store).kvstore.list().result()
    return sorted(key.decode() for key in found if key != b"zarr.json")


class TestRecheckMetadata:
    def reads(self, store, array, count=3):
        store.reset()
        for _ in range(count):
            array[0, 0].read().result()
        array[0, 0].write(1).result()
        return store.reads[DOCUMENT], store.bytes_read[DOCUMENT]

    @pytest.mark.parametrize("bound", ["open", False])
    def test_never_again(self, store, bound):
        array = created(store, [4, 4], [2, 2], recheck_cached_metadata=bound)
        assert self.reads(store, array) == (0, 0)

    def test_each_time_but_not_its_bytes(self, store):
        array = created(store, [4, 4], [2, 2], recheck_cached_metadata=True)
        assert self.reads(store, array) == (4, 0)

    def test_once_if_it_must_be_no_older_than_a_time_that_came_after_opening(self, store):
        array = created(store, [4, 4], [2, 2])
        state = array._driver._known.state
        since = state.time + 1e-6
        array = opened(store, recheck_cached_metadata=since)
        assert self.reads(store, array) == (0, 0)
        later = time.time()
        array._driver._spec = array._driver._spec.replace(recheck_cached_metadata=later)
        reads, _ = self.reads(store, array)
        assert reads == 1

    def test_the_same_document_stored_again_is_fetched_once(self, store):
        array = created(store, [4, 4], [2, 2], recheck_cached_metadata=True)
        known = array._driver._known.state
        opened(store).kvstore["zarr.json"] = known.metadata.serialize()
        _, size = self.reads(store, array)
        assert size == len(known.metadata.serialize())

    def test_reads_and_writes_see_what_another_handle_resized(self, store):
        watchful = created(store, [4, 4], [2, 2], recheck_cached_metadata=True)
        calm = opened(store)
        other = opened(store)
        other.resize(exclusive_max=[2, 6]).result()
        assert watchful.read().result().shape == (2, 6)
        with pytest.raises(OutOfRangeError):
            watchful[3, 0].read().result()
        with pytest.raises(OutOfRangeError):
            watchful[3, 0].write(1).result()
        assert calm[3, 0].read().result() == 0

    def test_assumed_metadata_is_never_read(self, store):
        array = opened(
            store, dtype="uint8", shape=[4, 4], open=True, assume_metadata=True,
            recheck_cached_metadata=True,
        )  # fmt: skip
        assert self.reads(store, array) == (0, 0)
        assert array.resolve().result().shape == (4, 4)
        assert store.reads[DOCUMENT] == 0


class TestResolve:
    def test_shows_what_another_handle_resized(self, store):
        array = created(store, [4, 4], [2, 2])
        opened(store).resize(exclusive_max=[9, 1]).result()
        assert array.shape == (4, 4)
        resolved = array.resolve().result()
        assert str(resolved.domain) == "{ [0, 9*), [0, 1*) }"
        assert str(array[:, 0].resolve().result().domain) == "{ [0, 9*) }"
        assert str(array[1:3].resolve().result().domain) == "{ [1, 3), [0, 1*) }"

    def test_fixed_bounds_stay(self, store):
        array = created(store, [4, 4], [2, 2])
        fixed = array.resolve(fix_resizable_bounds=True).result()
        opened(store).resize(exclusive_max=[9, 1]).result()
        assert str(fixed.domain) == "{ [0, 4), [0, 4) }"

    def test_a_deleted_array_is_named(self, store):
        array = created(store, [4, 4], [2, 2])
        del array.kvstore["zarr.json"]
        with pytest.raises(NotFoundError, match=r'"a/zarr\.json".*deleted'):
            array.resolve().result()
        with pytest.raises(NotFoundError):
            array.resize(exclusive_max=[5, 5]).result()
        assert array.read().result().shape == (4, 4)
        assert DOCUMENT not in keys(created(store, [4, 4], [2, 2])._driver._file.store)

    @pytest.mark.parametrize("change", [{"dtype": "int16"}, {"shape": [4]}], ids=["type", "rank"])
    def test_an_array_that_was_replaced_by_another_must_be_opened_again(self, store, change):
        array = created(store, [4, 4], [2, 2])
        asked = {"dtype": "uint8", "shape": [4, 4], **change}
        opened(store, create=True, delete_existing=True, **asked)
        with pytest.raises(FailedPreconditionError, match="open the array again"):
            array.resolve().result()
        assert (array.dtype.name, array.shape) == ("uint8", (4, 4))

    def test_one_that_was_replaced_in_another_encoding_goes_on(self, store):
        array = created(store, [4, 4], [2, 2])
        opened(
            store, create=True, delete_existing=True, dtype="uint8", shape=[4, 4],
            chunk_layout=ts.ChunkLayout(chunk_shape=[4, 1]),
            codec=ts.CodecSpec({"driver": "zarr3", "codecs": ["gzip"]}),
        ).write(5).result()  # fmt: skip
        array = array.resolve().result()
        assert (array.read().result() == 5).all()

    def test_an_answer_that_was_overtaken_by_a_resize_changes_nothing(self):
        store = Hooked()
        array = created(store, [4, 4], [2, 2])
        # The first answer is on its way when the same handle is resized by another thread.
        store.after = once(lambda: array.resize(exclusive_max=[8, 8]).result(), "read", DOCUMENT)
        assert array.resolve().result().shape == (8, 8)
        assert array[...].shape == (4, 4)
        assert array._driver.domain.shape == (8, 8)


class TestResize:
    def test_deletes_the_chunks_outside_and_nothing_else(self, store):
        array = created(store, [6, 6], [2, 2])
        array.write(1).result()
        array.kvstore["c/9/x"] = b"mine"
        array.kvstore["c/9/9/9"] = b"mine"
        array.kvstore["notes"] = b"mine"
        store.reset()
        array.resize(exclusive_max=[3, 2]).result()
        mine = ["c/9/9/9", "c/9/x", "notes"]
        assert keys(store) == sorted(["c/0/0", "c/1/0", *mine])
        assert sum(store.deletes.values()) == 7

    @pytest.mark.parametrize(
        ("driver", "metadata", "kept"),
        [
            ("zarr", {"dimension_separator": "."}, ["0.0", "1.0"]),
            ("zarr", {"dimension_separator": "/"}, ["0/0", "1/0"]),
            ("zarr3", {"chunk_key_encoding": {"name": "v2"}}, ["0.0", "1.0"]),
            ("zarr3", {"codecs": [SHARDS]}, ["c/0/0", "c/1/0"]),
        ],
        ids=["v2", "v2 nested", "v2 keys", "shards"],
    )
    def test_knows_the_keys_of_every_encoding(self, store, driver, metadata, kept):
        members = {"metadata": metadata}
        layout = ts.ChunkLayout(write_chunk_shape=[2, 2])
        array = opened(
            store, driver=driver, members=members, create=True, dtype="uint8", shape=[6, 6],
            chunk_layout=layout,
        )  # fmt: skip
        document = ".zarray" if driver == "zarr" else "zarr.json"
        array.write(1).result()
        smaller = array.resize(exclusive_max=[3, 2]).result()
        found = sorted(key.decode() for key in smaller.kvstore.list().result())
        assert found == sorted([document, *kept])
        grown = smaller.resize(exclusive_max=[4, 4]).result()
        # What lay in a chunk that is kept in part was not cleared.
        assert grown.read().result().tolist() == [[1, 1, 0, 0]] * 4

    def test_what_was_cut_off_is_gone_when_it_grows_again(self, store):
        array = created(store, [6], [2], fill_value=9)
        array.write([1, 2, 3, 4, 5, 6]).result()
        shrunk = array.resize(exclusive_max=[2]).result()
        grown = shrunk.resize(exclusive_max=[6]).result()
        assert grown.read().result().tolist() == [1, 2, 9, 9, 9, 9]

    def test_only_metadata(self, store):
        array = created(store, [6], [2])
        array.write([1, 2, 3, 4, 5, 6]).result()
        shrunk = array.resize(exclusive_max=[1], resize_metadata_only=True).result()
        assert keys(store) == ["c/0", "c/1", "c/2"]
        grown = shrunk.resize(exclusive_max=[6]).result()
        assert grown.read().result().tolist() == [1, 2, 3, 4, 5, 6]

    def test_to_the_size_it_has_stores_nothing(self, store):
        array = created(store, [6], [2])
        store.reset()
        array.resize(exclusive_max=[6]).result()
        assert (store.writes.total(), store.lists.total()) == (0, 0)

    def test_growing_lists_nothing(self, store):
        array = created(store, [6], [2])
        store.reset()
        array.resize(exclusive_max=[100]).result()
        assert (dict(store.writes), store.lists.total()) == ({DOCUMENT: 1}, 0)

    def test_two_handles_change_two_dimensions(self):
        store = Hooked()
        one, other = created(store, [4, 4], [2, 2]), opened(store)
        # Between the first one's read of the document and its write, the other one's write comes.
        store.before = once(
            lambda: other.resize(exclusive_max=[None, 9]).result(), "write", DOCUMENT
        )
        assert one.resize(exclusive_max=[7, None]).result().shape == (7, 9)
        assert other.resolve().result().shape == (7, 9)

    def test_many_handles_grow_it_together(self):
        store = counting()
        created(store, [1] * 8, [1] * 8)
        handles = [opened(store) for _ in range(8)]

        def grow(dim):
            wanted = [None] * 8
            wanted[dim] = dim + 2
            handles[dim].resize(exclusive_max=wanted).result()

        threads = [threading.Thread(target=grow, args=(dim,)) for dim in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert opened(store).shape == tuple(range(2, 10))

    @pytest.mark.parametrize(
        ("options", "kind", "dimension"),
        [
            ({"exclusive_max": [3, None], "expand_only": True}, FailedPreconditionError, 0),
            ({"exclusive_max": [None, 7], "shrink_only": True}, FailedPreconditionError, 1),
            ({"exclusive_max": [None, -1]}, OutOfRangeError, 1),
        ],
        ids=["expand_only", "shrink_only", "negative"],
    )
    def test_what_is_refused_changes_nothing(self, store, options, kind, dimension):
        array = created(store, [6, 6], [2, 2])
        array.write(1).result()
        before = array.kvstore["zarr.json"]
        with pytest.raises(kind, match=f"dimension {dimension}"):
            array.resize(**options).result()
        assert array.kvstore["zarr.json"] == before
        assert len(keys(store)) == 9

    @pytest.mark.parametrize("same", [5, None])
    def test_flags_allow_the_size_it_has(self, store, same):
        array = created(store, [5], [2])
        options = {"expand_only": True, "shrink_only": True}
        assert array.resize(exclusive_max=[same], **options).result().shape == (5,)

    def test_lower_bounds_stay_at_zero(self, store):
        array = created(store, [5], [2])
        with pytest.raises(FailedPreconditionError, match="explicit lower bound"):
            array.resize(inclusive_min=[1], exclusive_max=[7]).result()
        assert array.resolve().result().shape == (5,)

    def test_flags_are_about_the_size_that_is_stored_now(self, store):
        array = created(store, [6], [2])
        opened(store).resize(exclusive_max=[20]).result()
        with pytest.raises(FailedPreconditionError, match="from 20 to 10"):
            array.resize(exclusive_max=[10], expand_only=True).result()

    def test_bounds_inside_an_element_are_fixed(self):
        store = counting()
        members = {"metadata": {"dtype": "|S3", "shape": [4], "chunks": [2]}}
        array = opened(store, driver="zarr", create=True, members=members)
        assert array.shape == (4, 3)
        with pytest.raises((FailedPreconditionError, UnsupportedError), match="dimension 1"):
            array.resize(exclusive_max=[None, 5]).result()
        assert array.resize(exclusive_max=[6, None]).result().shape == (6, 3)

    def test_assumed_metadata_is_never_written(self, store):
        array = opened(store, dtype="uint8", shape=[4], open=True, assume_metadata=True)
        store.reset()
        with pytest.raises(FailedPreconditionError, match="assume_cached_metadata=True"):
            array.resize(exclusive_max=[9]).result()
        assert store.writes.total() == 0

    def test_an_error_while_chunks_are_deleted_is_raised_and_the_new_size_holds(self):
        store = FaultyStore(counting())
        array = created(store, [6], [2])
        array.write(1).result()
        store.fail("delete", OSError("unplugged"), key="a/c/2")
        with pytest.raises(OSError, match="unplugged"):
            array.resize(exclusive_max=[2]).result()
        assert array.resolve().result().shape == (2,)

    def test_what_the_pool_held_of_the_chunks_outside_is_not_seen_again(self, store):
        array = created(store, [6], [2], context=pool(), recheck_cached_data=False)
        array.write([1, 2, 3, 4, 5, 6]).result()
        array.read().result()
        array.resize(exclusive_max=[2]).result()
        grown = array.resize(exclusive_max=[6]).result()
        assert grown.read().result().tolist() == [1, 2, 0, 0, 0, 0]

    def test_nor_what_it_held_of_those_that_a_transaction_deleted(self, store):
        array = created(store, [6], [2], context=pool(), recheck_cached_data=False)
        array.write([1, 2, 3, 4, 5, 6]).result()
        array.read().result()
        with ts.Transaction() as transaction:
            array.with_transaction(transaction).resize(exclusive_max=[2]).result()
        grown = array.resize(exclusive_max=[6]).result()
        assert grown.read().result().tolist() == [1, 2, 0, 0, 0, 0]

    def test_others_may_write_to_the_last_chunk_while_a_transaction_does(self, store):
        array = created(store, [3], [4])
        array = array.resize(exclusive_max=[7]).result()
        with ts.Transaction() as transaction:
            array.with_transaction(transaction)[4:].write(1).result()
            array.resize(exclusive_max=[8]).result()[7].write(2).result()
        found = array.resolve().result().read().result()
        assert found.tolist() == [0, 0, 0, 0, 1, 1, 1, 2]


class TestStorageStatistics:
    """What a view has stored is found by listing keys and reading the indices of shards."""

    @staticmethod
    def counted(view):
        found = view.storage_statistics(query_not_stored=True, query_fully_stored=True).result()
        return found.not_stored, found.fully_stored

    def test_of_the_chunks_that_a_view_touches(self, store):
        array = created(store, [10], [2])
        assert self.counted(array) == (True, False)
        array[3:7] = 1
        store.reset()
        assert self.counted(array) == (False, False)
        assert self.counted(array[4:5]) == self.counted(array[2:8]) == (False, True)
        assert self.counted(array[[0, 9, 5]]) == (False, False)
        assert self.counted(array[[0, 9]]) == (True, False)
        assert store.bytes_read.total() == 0

    def test_of_inner_chunks(self, store):
        shard = {"name": "sharding_indexed", "configuration": {"chunk_shape": [2]}}
        array = opened(
            store, create=True, dtype="uint8", shape=[16],
            members={"metadata": {"codecs": [shard]}},
            chunk_layout=ts.ChunkLayout(write_chunk_shape=[8]),
        )  # fmt: skip
        array[:8] = [1, 1, 0, 0, 0, 0, 1, 1]
        assert self.counted(array) == self.counted(array[1:5]) == (False, False)
        assert self.counted(array[:2]) == (False, True)
        assert self.counted(array[2:6]) == self.counted(array[8:]) == (True, False)
        stored = array.kvstore["c/0"]
        for rotten in (stored[:10], stored[:-1] + b"!"):
            array.kvstore["c/0"] = rotten
            with pytest.raises(DataLossError, match="a/c/0"):
                self.counted(array)


class TestBounds:
    def test_views_may_reach_outside_until_they_are_read(self, store):
        array = created(store, [4], [2])
        view = array[2:9]
        with pytest.raises(OutOfRangeError, match=r"dimension 0.*\[2, 9\)|\[2, 9\).*dimension 0"):
            view.read().result()
        array.resize(exclusive_max=[9]).result()
        assert view.read().result().tolist() == [0] * 7

    def test_nothing_is_read_or_written_for_nothing(self, store):
        array = created(store, [4], [2])
        store.reset()
        assert array[2:2].read().result().shape == (0,)
        array[2:2].write(5).result()
        assert (store.reads.total(), store.writes.total()) == (0, 0)


def test_the_spec_of_an_open_array_says_what_is_known_now(store):
    array = created(store, [4], [2], assume_cached_metadata=False)
    opened(store).resize(exclusive_max=[9]).result()
    assert array.spec().to_json()["metadata"]["shape"] == [4]
    array.resolve().result()
    assert array.spec().to_json()["metadata"]["shape"] == [9]


def test_memory_order_is_as_asked(store):
    array = created(store, [3, 4], [2, 2])
    array.write(np.arange(12).reshape(3, 4).astype("uint8")).result()
    for view in (array, array.transpose(), array[::-1, 1:]):
        c, f = view.read(order="C").result(), view.read(order="F").result()
        assert c.flags.c_contiguous
        assert f.flags.f_contiguous
        np.testing.assert_array_equal(c, f)


@pytest.mark.parametrize(
    ("dtype", "value"),
    [("U3", "abc"), ("S3", b"abc"), ("string", b"abc"), ("ustring", "abc"), ("int32", 3)],
)
def test_an_array_without_dimensions_holds_text_too(dtype, value):
    spec = {"driver": "zarr3", "kvstore": "memory://"}
    array = ts.open(spec, create=True, dtype=dtype, shape=[]).result()
    array.write(value).result()
    assert array.read().result() == value
