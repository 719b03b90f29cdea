"""Appending: what is stored, what is refused, and that concurrent appenders lose nothing."""

import asyncio
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py.errors import (
    AbortedError,
    FailedPreconditionError,
    IndexingError,
    MismatchError,
    PermissionDeniedError,
    UnsupportedError,
)
from tensorstore_py.kvstores.memory import MemoryStore, NonAtomicMemoryStore, SharedMap
from tensorstore_py.plugin.kvstore import AtomicBatch
from tensorstore_py.testing import FaultyStore, LoopStore
from tests.chunked.stores import Hooked, counting, created, once, opened, pool

ROOT = Path(__file__).absolute().parents[2]
DOCUMENT = "a/zarr.json"
SPEC = {"driver": "zarr3", "kvstore": "memory://"}


@pytest.fixture(params=[True, False], ids=["inline", "loop"])
def store(request):
    return counting(request.param)


def grid(store, shape=(2, 3), chunks=(2, 2), **options):
    array = created(store, list(shape), list(chunks), **options)
    array.write(np.arange(np.prod(shape)).reshape(shape).astype("uint8")).result()
    return array


class TestData:
    @pytest.mark.parametrize("axis", [0, 1, -1])
    def test_is_put_behind_what_is_there_as_by_numpy(self, store, axis):
        array = grid(store)
        data = np.full((4, 3) if axis == 0 else (2, 5), 77, "uint8")
        expected = np.append(array.read().result(), data, axis)
        longer = array.append(data, axis).result()
        assert str(longer.domain) == f"{{ [0, {expected.shape[0]}*), [0, {expected.shape[1]}*) }}"
        np.testing.assert_array_equal(longer.read().result(), expected)
        np.testing.assert_array_equal(opened(store).read().result(), expected)
        assert array.shape == (2, 3)

    def test_may_be_a_list_or_nothing_at_all(self, store):
        array = grid(store)
        array = array.append([[7, 8, 9]]).result()
        assert array.read().result().tolist()[2] == [7, 8, 9]
        store.reset()
        assert array.append(np.zeros((0, 3), "uint8")).result().shape == (3, 3)
        assert store.writes.total() == 0

    def test_may_be_awaited(self, store):
        async def main():
            return await grid(store).append([[7, 8, 9]])

        assert asyncio.run(main()).shape == (3, 3)

    def test_axis_may_be_a_label(self):
        array = grid(counting())[ts.d[:].label["y", "x"]]
        assert array.append([[7], [7]], "x").result().shape == (2, 4)
        with pytest.raises(IndexingError, match='"z"'):
            array.append([[7], [7]], "z")

    def test_may_be_another_array(self, store):
        array = grid(store)
        source = ts.array([[1, 2, 3], [4, 5, 6], [7, 8, 9]], dtype="uint8")
        longer = array.append(source[1:]).result()
        assert longer.read().result().tolist() == [[0, 1, 2], [3, 4, 5], [4, 5, 6], [7, 8, 9]]
        doubled = longer.append(longer, axis=1).result()
        np.testing.assert_array_equal(
            doubled[:, :3].read().result(), doubled[:, 3:].read().result()
        )

    def test_of_another_array_is_matched_by_label_if_both_have_the_same(self):
        array = grid(counting())[ts.d[:].label["y", "x"]]
        source = ts.array([[7], [8], [9]], dtype="uint8")
        for labels in (("x", "y"), ("x", "")):
            named = source[ts.d[:].label[labels]]
            if "" in labels:
                with pytest.raises(MismatchError, match="has extent 1 in dimension 1"):
                    array.append(named).result()
            else:
                assert array.append(named).result()[2].read().result().tolist() == [7, 8, 9]
        other = ts.array([[7, 8, 9]], dtype="uint8")[ts.d[:].label["a", "b"]]
        assert array.append(other).result().shape == (4, 3)

    @pytest.mark.parametrize(
        ("dtype", "data"),
        [("string", [b"a", b"bcd"]), ("ustring", ["a", "bcd"]), ("json", [[1, [2]], {"a": None}])],
    )
    def test_elements_of_any_length(self, dtype, data):
        metadata = {"dtype": "|O", "filters": [{"id": "json2"}]} if dtype == "json" else {}
        spec = {"driver": "zarr", "kvstore": "memory://", "metadata": metadata}
        array = ts.open(spec, create=True, shape=[0], dtype=dtype).result()
        assert array.append(data).result().read().result().tolist() == data

    def test_goes_through_a_cast(self):
        cast = grid(counting()).astype("int32")
        longer = cast.append(np.array([[1, 2, 300]], "int32")).result()
        assert longer[2].read().result().tolist() == [1, 2, 44]


class TestViews:
    def test_moved_and_transposed(self, store):
        view = grid(store).T.translate_to[10, 20]
        longer = view.append([[7, 8]], axis=0).result()
        assert str(longer.domain) == "{ [10, 14*), [20, 22*) }"
        assert longer[13].read().result().tolist() == [7, 8]

    @pytest.mark.parametrize(
        ("view", "data"),
        [
            (lambda array: array[:1], [[7, 7, 7]]),
            (lambda array: array[:, :1], [[7]]),
            (lambda array: array[1], [7]),
            (lambda array: array[::-1], [[7, 7, 7]]),
            (lambda array: array[None], [[[7, 7, 7], [7, 7, 7]]]),
        ],
        ids=["part", "part of the other dimension", "row", "reversed", "new dimension"],
    )
    def test_that_do_not_show_all_are_refused(self, store, view, data):
        array = grid(store)
        store.reset()
        with pytest.raises(FailedPreconditionError):
            view(array).append(data).result()
        assert store.writes.total() == 0

    def test_of_an_array_that_has_more_to_show_since_are_refused(self, store):
        array = grid(store)
        view = array[:, 0:3]
        opened(store).resize(exclusive_max=[None, 4]).result()
        with pytest.raises(FailedPreconditionError, match="does not show of dimension 1"):
            view.append([[7, 7, 7]]).result()
        assert opened(store).shape == (2, 4)


class TestErrors:
    @pytest.mark.parametrize(
        ("data", "kind", "message"),
        [
            ([7, 8, 9], MismatchError, r"1 dimensions, shape \[3\], to a view of 2"),
            (7, MismatchError, "0 dimensions"),
            ([[7, 8]], MismatchError, "extent 2 in dimension 1, but the array has 3"),
            (np.array([[0.5, 1.5, 2.5]]), TypeError, "without loss"),
            ([[7, 8, 300]], OverflowError, "300"),
            (ts.array([[0.5, 1.5, 2.5]]), MismatchError, "without loss"),
            (ts.array([[7]], dtype="uint8"), MismatchError, "extent 1 in dimension 1"),
        ],
        ids=["rank", "number", "extent", "type", "range", "array's type", "array's extent"],
    )
    def test_what_is_refused_changes_nothing(self, store, data, kind, message):
        array = grid(store)
        with pytest.raises(kind, match=message):
            array.append(data).result()
        assert opened(store).shape == (2, 3)

    def test_no_such_dimension(self, store):
        with pytest.raises(IndexingError, match="Dimension index 2"):
            grid(store).append([[7, 8, 9]], 2)

    def test_not_opened_for_it(self):
        store = counting()
        array = grid(store)
        with pytest.raises(PermissionDeniedError, match="write=True"):
            opened(store, read=True).append([[7, 8, 9]])
        with pytest.raises(PermissionDeniedError, match="read=True"):
            array.append(opened(store, write=True, read=False))

    def test_drivers_without_bounds_to_change(self):
        with pytest.raises((UnsupportedError, FailedPreconditionError)):
            ts.array([1, 2]).append([3]).result()
        assumed = ts.open(
            {"driver": "zarr3", "kvstore": "memory://"}, dtype="uint8", shape=[4], open=True,
            assume_metadata=True,
        ).result()  # fmt: skip
        with pytest.raises(FailedPreconditionError, match="assume_metadata=True"):
            assumed.append([1]).result()

    def test_when_the_write_fails_the_array_has_grown_and_the_error_says_so(self):
        store = FaultyStore(counting())
        array = grid(store, fill_value=9)
        store.fail("write", OSError("unplugged"), key="a/c/1/0")
        with pytest.raises(OSError, match="unplugged") as caught:
            array.append([[7, 8, 9]]).result()
        assert any("[2, 3) along dimension 0" in note for note in caught.value.__notes__)
        assert opened(store)[2, :2].read().result().tolist() == [9, 9]
        # The remedy: take the positions away again.
        assert array.resize(exclusive_max=[2, None]).result().shape == (2, 3)


class TestConcurrency:
    def test_a_stale_handle_appends_behind_what_others_appended(self, store):
        one = grid(store)
        other = opened(store)
        one.append([[7, 7, 7]]).result()
        longer = other.append([[8, 8, 8]]).result()
        assert longer.read().result()[2:].tolist() == [[7, 7, 7], [8, 8, 8]]

    def test_one_that_comes_in_between_goes_first(self):
        store = Hooked()
        one = grid(store)
        other = opened(store)
        store.before = once(lambda: other.append([[8, 8, 8]]).result(), "write", DOCUMENT)
        longer = one.append([[7, 7, 7]]).result()
        assert longer.read().result()[2:].tolist() == [[8, 8, 8], [7, 7, 7]]

    def test_one_that_changes_the_other_dimension_is_seen(self):
        store = Hooked()
        one = grid(store)
        other = opened(store)
        store.before = once(
            lambda: other.resize(exclusive_max=[None, 5]).result(), "write", DOCUMENT
        )
        with pytest.raises(MismatchError, match="extent 3 in dimension 1, but the array has 5"):
            one.append([[7, 7, 7]]).result()
        assert opened(store).shape == (2, 5)

    def test_the_last_chunk_is_shared_with_the_next_append(self):
        # The first appender covers all of the chunk that it knows to be inside the array; before
        # that is stored, the second one stores the next position of the same chunk.
        store = Hooked()
        one = created(store, [0], [4])
        other = opened(store)
        store.before = once(lambda: other.append([8]).result(), "write", "a/c/0")
        one.append([7]).result()
        assert opened(store).read().result().tolist() == [7, 8]

    def test_many_handles_and_threads(self, store):
        created(store, [0, 2], [3, 2])
        handles = [opened(store) for _ in range(4)]

        def work(handle, start):
            for value in range(start, start + 6):
                handle.append([[value, value]]).result()

        threads = [
            threading.Thread(target=work, args=(handle, 100 * which + 10 * turn))
            for which, handle in enumerate(handles[:2])
            for turn in range(2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = opened(store).read().result()
        assert sorted(found[:, 0].tolist()) == sorted(
            100 * which + 10 * turn + step
            for which in range(2)
            for turn in range(2)
            for step in range(6)
        )
        assert (found[:, 0] == found[:, 1]).all()

    def test_all_at_once_through_one_handle_costs_one_document_each(self, store):
        array = created(store, [0], [4])
        store.reset()
        appends = [array.append([value]) for value in range(10)]
        assert max(future.result().shape[0] for future in appends) == 10
        assert store.writes[DOCUMENT] == 10
        assert sorted(opened(store).read().result().tolist()) == list(range(10))


class TestTransactions:
    def begun(self):
        context = ts.Context()
        layout = ts.ChunkLayout(chunk_shape=[4])
        array = ts.open(
            SPEC, create=True, dtype="int32", shape=[2], chunk_layout=layout, context=context
        ).result()
        array[...] = [1, 2]
        transaction = ts.Transaction()
        longer = array.with_transaction(transaction).append([3]).result()
        return array, longer, transaction, ts.open(SPEC, context=context).result()

    def test_show_what_was_appended_in_them_and_store_it_when_committed(self):
        array, longer, transaction, other = self.begun()
        assert longer.read().result().tolist() == [1, 2, 3]
        assert other.resolve().result().read().result().tolist() == [1, 2]
        transaction.commit_sync()
        assert other.resolve().result().read().result().tolist() == [1, 2, 3]
        assert array.append([4]).result().read().result().tolist() == [1, 2, 3, 4]

    def test_are_refused_if_others_appended_meanwhile(self):
        array, _, transaction, other = self.begun()
        other.append([9]).result()
        with pytest.raises(AbortedError, match="changed by somebody else"):
            transaction.commit_sync()
        assert array.append([3]).result().read().result().tolist() == [1, 2, 9, 3]

    def test_that_are_given_up_leave_nothing(self):
        array, _, transaction, _ = self.begun()
        transaction.abort()
        assert array.append([4]).result().read().result().tolist() == [1, 2, 4]


class TestCounts:
    def test_whole_chunks_are_stored_without_a_look_at_chunks(self, store):
        array = created(store, [4], [4])
        store.reset()
        array.append([1, 2, 3, 4, 5, 6]).result()
        assert dict(store.writes) == {DOCUMENT: 1, "a/c/1": 1, "a/c/2": 1}
        assert set(store.reads) == {DOCUMENT}
        assert store.lists.total() == 0

    def test_the_rest_of_the_last_chunk_is_read_once(self, store):
        array = created(store, [0], [4])
        array = array.append([1, 2]).result()
        store.reset()
        array.append([3, 4]).result()
        assert store.reads["a/c/0"] == 1
        assert store.writes["a/c/0"] == 1


#: Appends numbers of its own, a few at a time, when it gets a line of input.
APPENDER = """
import sys
import tensorstore_py as ts
path, first = sys.argv[1], int(sys.argv[2])
kvstore = {"driver": "file", "path": path, "file_io_sync": False}
store = ts.open({"driver": "zarr3", "kvstore": kvstore}).result()
print("ready", flush=True)
sys.stdin.readline()
for value in range(first, first + 40, 2):
    store.append([value, value + 1]).result()
"""


def test_processes_append_to_one_array(tmp_path):
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{tmp_path}/"}}
    layout = ts.ChunkLayout(chunk_shape=[7])
    ts.open(spec, create=True, dtype="int32", shape=[0], chunk_layout=layout).result()
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", APPENDER, f"{tmp_path}/", str(first)],
            cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )
        for first in (1, 1001, 2001)
    ]  # fmt: skip
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    for process in processes:
        process.communicate(timeout=240)
        assert process.returncode == 0
    found = ts.open(spec).result().read().result().tolist()
    assert sorted(found) == [n for first in (1, 1001, 2001) for n in range(first, first + 40)]
    # What was appended together stands together.
    assert [second - first for first, second in zip(found[::2], found[1::2], strict=True)] == [
        1
    ] * 60


class TestGrowingAfter:
    """`grow="after"`: what is seen is written."""

    @pytest.fixture(params=["memory", "plain", "loop"])
    def place(self, request):
        """A store that stores several keys at once, one that does not, and one that waits."""
        kind = MemoryStore if request.param == "memory" else NonAtomicMemoryStore
        memory = kind(SharedMap())
        return Hooked(LoopStore(memory) if request.param == "loop" else memory)

    def test_gives_the_same_array(self, place):
        array = grid(place)
        expected = np.append(array.read().result(), np.full((4, 3), 77, "uint8"), 0)

        longer = array.append(np.full((4, 3), 77, "uint8"), grow="after").result()

        np.testing.assert_array_equal(longer.read().result(), expected)
        np.testing.assert_array_equal(opened(place).read().result(), expected)
        assert array.resolve().result().shape == (6, 3)
        again = longer.append([[1, 2, 3]], grow="after").result()
        assert again.append(ts.array([[4, 5, 6]], dtype="uint8"), grow="after").result()[
            6:
        ].read().result().tolist() == [[1, 2, 3], [4, 5, 6]]

    def test_stores_chunks_first_and_metadata_last(self, place):
        array = grid(place, shape=(3, 3))
        written = []
        place.before = lambda what, key: written.append(key) if what == "write" else None

        array.append(np.full((4, 3), 77, "uint8"), grow="after").result()

        if not isinstance(place, AtomicBatch):
            assert written[-1] == DOCUMENT
            assert written.count(DOCUMENT) == 1
            assert len(written) > 4

    @pytest.mark.parametrize("place", ["plain", "loop"], indirect=True)
    def test_a_store_that_fails_in_between_shows_nothing(self, place):
        array = grid(place)
        before = array.read().result()
        written = []

        def fail(what, key):
            if what == "write":
                written.append(key)
                if len(written) == 3:
                    raise OSError("pulled the plug")

        place.before = fail
        with pytest.raises(Exception, match="pulled the plug") as caught:
            array.append(np.full((4, 3), 77, "uint8"), grow="after").result()
        place.before = lambda *_: None

        assert "has not grown" in caught.value.__notes__[0]
        now = opened(place)
        np.testing.assert_array_equal(now.read().result(), before)
        np.testing.assert_array_equal(array.read().result(), before)
        # The next one writes over what was left.
        longer = now.append(np.full((4, 3), 78, "uint8"), grow="after").result()
        assert (longer[2:].read().result() == 78).all()

    @pytest.mark.parametrize("number", range(1, 7))
    def test_another_appender_loses_nothing(self, number):
        """He comes before each of the writes in turn."""
        place = Hooked(NonAtomicMemoryStore(SharedMap()))
        array = grid(place, shape=(3, 3))
        other = opened(place)
        seen = 0

        def interfere(what, _key):
            nonlocal seen
            if what == "write":
                seen += 1
                if seen == number:
                    place.before = lambda *_: None
                    other.append(np.full((2, 3), 99, "uint8")).result()

        place.before = interfere
        with pytest.raises(AbortedError, match=r'zarr\.json": .*nothing of others is lost'):
            array.append(np.full((4, 3), 77, "uint8"), grow="after").result()

        now = opened(place).read().result()
        assert now.shape == (5, 3)
        assert (now[3:] == 99).all()
        np.testing.assert_array_equal(now[:3], np.arange(9).reshape(3, 3))
        again = array.append(np.full((4, 3), 77, "uint8"), grow="after").result()
        assert (again.shape, (again[5:].read().result() == 77).all()) == ((9, 3), True)

    def test_in_a_transaction_it_is_as_any_append(self, place):
        array = grid(place)
        with ts.Transaction() as transaction:
            inside = array.with_transaction(transaction)
            inside.append([[7, 8, 9]], grow="after").result()
            assert array.resolve().result().shape == (2, 3)
        assert array.resolve().result()[2].read().result().tolist() == [7, 8, 9]
        transaction = ts.Transaction()
        array.with_transaction(transaction).append([[7, 8, 9]], grow="after").result()
        transaction.abort()
        assert array.resolve().result().shape == (3, 3)

    def test_what_is_cached_is_not_old(self):
        place = Hooked(NonAtomicMemoryStore(SharedMap()))
        array = grid(place, shape=(3, 3), context=pool())
        assert array.read().result().shape == (3, 3)

        longer = array.append(np.full((4, 3), 77, "uint8"), grow="after").result()

        assert (longer[3:].read().result() == 77).all()

    def test_files_and_archives(self, tmp_path):
        for url in (f"file://{tmp_path}/a/", f"file://{tmp_path}/a.zip|zip:b/"):
            layout = ts.ChunkLayout(chunk_shape=[2, 2])
            array = ts.open(
                f"{url}|zarr3:", create=True, dtype="uint8", shape=[0, 2], chunk_layout=layout
            ).result()
            for number in range(5):
                array = array.append([[number, number]], grow="after").result()
            found = ts.open(f"{url}|zarr3:").result().read().result()
            assert found[:, 1].tolist() == [0, 1, 2, 3, 4]

    def test_is_refused_where_it_has_no_meaning(self):
        with pytest.raises(ts.SpecError, match=r'^grow: expected "before" or "after", not "later"'):
            grid(counting()).append([[1, 2, 3]], grow="later")
