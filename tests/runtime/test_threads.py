"""What threads share keeps its promises while many of them use it at a time, lock or no lock.

Threads of an interpreter with a lock take turns here every few microseconds, so that what only the
lock makes atomic is found there as well. All is counted: what is lost, done twice, or let in beyond
a limit.
"""

import subprocess
import sys
import sysconfig
import threading
from collections import Counter as Counts
from collections import defaultdict
from functools import partial

import numpy as np
import pytest

import tensorstore_py as ts
from tests.internals import (
    KeyedLock,
    LruCache,
    MemoryBudget,
    Settleable,
    SingleFlights,
    ThreadLimiter,
    fan_out_steps,
    flush,
    metrics,
    run_inline,
    share,
    start,
)

THREADS = 8
ROUNDS = 300


@pytest.fixture(autouse=True)
def _frequent_turns():
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(before)


def hammer(body, threads=THREADS):
    """Runs `body(number)` in so many threads, which begin together; returns what each returned."""
    barrier = threading.Barrier(threads)
    results, errors = {}, []

    def run(number):
        try:
            barrier.wait()
            results[number] = body(number)
        except BaseException as error:
            errors.append(error)

    started = [threading.Thread(target=run, args=(number,)) for number in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    if errors:
        raise errors[0]
    return [results[number] for number in range(threads)]


class Inside:
    """How many are inside at a time, and how many were at most."""

    def __init__(self):
        self._lock = threading.Lock()
        self.now = self.most = 0

    def __enter__(self):
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)

    def __exit__(self, *_error):
        with self._lock:
            self.now -= 1


class TestMetrics:
    def test_no_note_is_lost_or_counted_twice(self):
        counter = metrics.Counter("/test/hammered", "")
        metrics.register(counter)

        def body(number):
            for _ in range(10 * ROUNDS):
                counter.note(1)
            # One thread looks while the others go on.
            return metrics.collected("/test/hammered")[0].points[0].value if number == 0 else 0

        seen = hammer(body)
        assert 10 * ROUNDS <= seen[0] <= 10 * ROUNDS * THREADS
        # The threads have ended: what they noted last is here.
        assert metrics.collected("/test/hammered")[0].points[0].value == 10 * ROUNDS * THREADS
        metrics._metrics.remove(counter)

    def test_threads_that_ended_leave_nothing(self):
        counter = metrics.Counter("/test/ended", "")
        metrics.collected("/test")
        before = len(metrics._noted)
        hammer(lambda _number: counter.note(1))
        metrics.collected("/test")
        assert len(metrics._noted) <= before
        assert counter.total == THREADS


def test_a_cache_gives_each_its_own_result():
    cache: LruCache[list[int]] = LruCache(16)

    def body(number):
        for turn in range(ROUNDS):
            key = (number * 7 + turn) % 40
            assert cache.get((key, "k"), partial(list, [key])) == [key]

    hammer(body)
    assert len(cache._results) == 16


def test_of_a_result_that_two_make_there_is_one_object():
    cache: LruCache[object] = LruCache(4)
    both = threading.Barrier(2)

    def make():
        both.wait(timeout=20)
        return object()

    one, other = hammer(lambda _number: cache.get("key", make), 2)
    assert one is other


class TestKeyedLock:
    def test_one_at_a_time_for_each_key(self):
        lock = KeyedLock(inline=True)
        totals = defaultdict(int, dict.fromkeys(range(3), 0))

        async def add(key):
            async with lock.acquire(key):
                totals[key] = totals[key] + 1

        def body(number):
            for turn in range(ROUNDS):
                run_inline(add((number + turn) % 3))

        hammer(body)
        assert sum(totals.values()) == THREADS * ROUNDS
        assert not lock._entries

    def test_what_is_tried_is_held_by_one(self):
        lock = KeyedLock(inline=True)
        inside = [Inside() for _ in range(4)]

        def body(_number):
            found = 0
            for _ in range(ROUNDS):
                held = lock.try_acquire(range(4), 2)
                for key in held:
                    with inside[key]:
                        found += 1
                lock.release(held)
            return found

        assert sum(hammer(body)) > 0
        assert max(each.most for each in inside) == 1
        assert not lock._entries


class TestLimiters:
    def test_places_for_threads(self):
        limiter, inside = ThreadLimiter(3), Inside()

        def body(_number):
            for _ in range(ROUNDS):
                with limiter, inside:
                    pass

        hammer(body)
        assert inside.most <= 3
        assert limiter.available == 3

    def test_bytes(self):
        budget, lock = MemoryBudget(100), threading.Lock()
        taken, most = 0, 0

        def body(number):
            nonlocal taken, most
            size = 10 + 7 * number
            for _ in range(ROUNDS):
                run_inline(budget.acquire(True, size))
                with lock:
                    taken += size
                    most = max(most, taken)
                with lock:
                    taken -= size
                budget.release(size)

        hammer(body)
        assert 0 < most <= 100
        assert budget.held == 0


def test_what_many_want_is_fetched_by_one_at_a_time():
    flights: SingleFlights[int] = SingleFlights(inline=True)
    inside, kept = Inside(), dict[int, int]()
    fetched = Counts[int]()

    def body(number):
        for turn in range(ROUNDS):
            key = turn // 3

            async def fetch(key=key):
                with inside:
                    fetched[key] += 1
                    kept[key] = key + 1000
                    return key + 1000

            found = run_inline(flights.get(key, partial(kept.get, key), fetch))
            assert found == key + 1000, number

    hammer(body)
    assert fetched == dict.fromkeys(range(ROUNDS // 3), 1)


class TestOperations:
    def test_each_is_run_once(self):
        ran = [0] * (THREADS * ROUNDS)

        def body(number):
            futures = []
            for turn in range(ROUNDS):
                index = number * ROUNDS + turn

                async def work(index=index):
                    ran[index] += 1
                    return index

                futures.append(start(True, work))
                if turn % 7 == 0:
                    flush()
                if turn % 5 == 0:
                    assert futures[turn // 2].result() == number * ROUNDS + turn // 2
            return [future.result() for future in futures]

        results = hammer(body)
        assert [each for found in results for each in found] == list(range(THREADS * ROUNDS))
        assert ran == [1] * (THREADS * ROUNDS)

    def test_one_that_many_wait_for(self):
        for _ in range(ROUNDS // 3):
            ran: list[int] = []

            async def work(ran=ran):
                ran.append(1)
                return 7

            future = start(True, work)
            assert hammer(lambda _number, future=future: future.result(), 4) == [7] * 4
            assert ran == [1]

    def test_one_that_is_cancelled_and_asked_for(self):
        for _ in range(ROUNDS // 3):
            ran: list[int] = []

            async def work(ran=ran):
                ran.append(1)
                return 7

            future = start(True, work)

            def body(number, future=future):
                if number % 2:
                    return future.cancel()
                try:
                    return future.result()
                except BaseException as error:
                    return type(error).__name__

            found = hammer(body, 4)
            cancelled = [each for each in found if each is True]
            assert len(cancelled) <= 1
            assert len(ran) <= 1
            assert set(found) - {True, False} == {"CancelledError"} if cancelled else {7}


class TestFutures:
    def test_are_settled_once_and_tell_each_follower_once(self):
        for _ in range(ROUNDS // 3):
            settle, told = Settleable[int](), Counts[int]()
            future = settle.future

            def body(number, settle=settle, told=told, future=future):
                lock_free = [number]
                future.follow(lambda _done: told.update(lock_free))
                settle.value(number)
                return future.result()

            assert len(set(hammer(body, 4))) == 1
            assert sorted(told.elements()) == [0, 1, 2, 3]


def test_a_fan_out_does_each_step_once():
    for count in (1, 7, 64, 1000):

        def body(_number, count=count):
            done = [0] * count

            async def work(step):
                done[step] += 1

            run_inline(fan_out_steps(True, iter(range(count)), work, count=count))
            return done

        assert hammer(body, 4) == [[1] * count] * 4


class TestArrays:
    @pytest.fixture
    def store(self, tmp_path):
        return ts.open(
            {
                "driver": "zarr3",
                "kvstore": f"file://{tmp_path}/",
                "metadata": {
                    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [8, 8]}},
                    "codecs": [{"name": "bytes"}, {"name": "zstd"}, {"name": "crc32c"}],
                },
                "context": {"cache_pool": {"total_bytes_limit": 2000}},
            },
            create=True,
            dtype="int32",
            shape=[8 * THREADS, 64],
        ).result()

    def test_threads_that_write_rows_of_their_own_and_read_all(self, store):
        def body(number):
            rows = slice(8 * number, 8 * number + 8)
            for turn in range(10):
                store[rows].write(np.int32(100 * number + turn)).result()
                assert (store[rows].read().result() == 100 * number + turn).all()
                whole = store.read().result().reshape(THREADS, -1)
                # Of others' chunks each is of one write or of none.
                assert (whole % 100 < 10).all()

        hammer(body)
        expected = np.repeat(100 * np.arange(THREADS) + 9, 8 * 64).reshape(8 * THREADS, 64)
        assert (store.read().result() == expected).all()

    def test_threads_that_write_parts_of_the_same_chunks(self, store):
        def body(number):
            for turn in range(8):
                store[turn::8, number].write(np.int32(number + 1)).result()

        hammer(body)
        found = store[:, :THREADS].read().result()
        assert (found == np.arange(1, THREADS + 1)).all()

    def test_threads_that_open_the_same_array(self, store):
        store.write(np.int32(5)).result()
        spec = store.spec()
        found = hammer(lambda _number: int(ts.open(spec).result().read().result().sum()))
        assert found == [5 * store.size] * THREADS


USES_ALL = """
import sys
import numpy as np
import aiofiles, aiohappyeyeballs, httptools, ml_dtypes, pydantic
import tensorstore_py as ts
from tensorstore_py.errors import UnavailableError

zarr3 = [["blosc"], ["zstd"], ["gzip"], ["zstd", "crc32c"], ["numcodecs.lz4"]]
for number, names in enumerate(zarr3):
    codecs = [{"name": name} for name in ["bytes", *names]]
    if "blosc" in names:
        codecs[1]["configuration"] = {"cname": "lz4", "clevel": 5, "shuffle": "shuffle",
                                      "typesize": 2, "blocksize": 0}
    store = ts.open(
        {"driver": "zarr3", "kvstore": f"file://{sys.argv[1]}/{number}/",
         "metadata": {"codecs": codecs}},
        create=True, dtype="uint16", shape=[100],
    ).result()
    store.write(np.arange(100, dtype=np.uint16)).result()
    assert store.read().result().sum() == 4950, names
try:
    context = ts.Context({"http_request_retries": {"max_retries": 1}})
    ts.KvStore.open("http://127.0.0.1:9/", context=context).result().read("x").result()
except UnavailableError:
    pass
print(sys._is_gil_enabled())
"""


@pytest.mark.skipif(
    not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python has a lock"
)
def test_nothing_that_is_imported_turns_the_lock_on(tmp_path):
    command = [sys.executable, "-W", "error::RuntimeWarning", "-c", USES_ALL, str(tmp_path)]
    ran = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (ran.stdout.strip(), ran.stderr) == ("False", "")


def test_what_is_shared_is_found_by_all():
    table = {(int, number): number for number in range(10)}
    share(table)
    assert hammer(lambda number: table[int, number]) == list(range(THREADS))
