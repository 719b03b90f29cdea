"""Jobs reach the pool exactly when somebody needs another thread for them."""

import asyncio
import gc
import threading
import weakref
from functools import partial

from tensorstore_py._runtime.hand_in import _desk
from tensorstore_py._runtime.start import Job, start
from tensorstore_py._runtime.workers import submissions


async def nothing():
    return 7


def test_a_result_asked_for_at_once_wakes_no_worker():
    start(True, nothing).result()
    before = submissions()

    for _ in range(100):
        start(True, nothing).result()

    assert submissions() - before <= 5  # a tick may fall between a start and its result


def test_a_job_that_nobody_asks_for_begins_all_the_same():
    begun = threading.Event()

    async def work():
        begun.set()

    future = start(True, work)

    assert begun.wait(30)
    future.result(30)


def test_jobs_begin_although_the_ticker_fell_asleep():
    for _ in range(3):
        begun = threading.Event()

        async def work(begun=begun):
            begun.set()

        start(True, work)
        assert begun.wait(30)
        while _desk.awake:
            threading.Event().wait(0.001)


def test_every_one_of_many_jobs_runs_once():
    runs = []

    async def work(number):
        runs.append(number)

    futures = [start(True, partial(work, number)) for number in range(500)]
    for future in futures:
        future.result(30)

    assert sorted(runs) == list(range(500))


def test_workers_take_many_jobs_at_a_time():
    start(True, nothing).result()
    before = submissions()

    futures = [start(True, nothing) for _ in range(500)]
    for future in futures:
        future.result(30)

    # A worker comes for up to sixteen; some ticks find it gone.
    assert submissions() - before <= 250


def test_what_was_handed_in_begins_when_the_result_of_another_is_asked_for():
    begun = threading.Event()

    async def wait():
        return begun.wait(30)

    async def begin():
        begun.set()

    first, second = start(True, wait), start(True, begin)

    assert first.result()  # this thread runs it, so a worker must have run the second
    second.result()


def test_a_job_that_was_never_handed_in_begins_when_somebody_waits():
    job = Job(nothing)

    assert job.future.result(timeout=30) == 7


def test_many_threads_hand_in_at_once_and_nothing_is_lost():
    done = []

    async def work(number):
        done.append(number)

    def hand_in_many(first):
        for number in range(first, first + 200):
            start(True, partial(work, number))

    threads = [threading.Thread(target=hand_in_many, args=(200 * k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    start(True, nothing).result(30)
    until = threading.Event()
    for _ in range(3000):
        if len(done) == 800:
            break
        until.wait(0.01)

    assert sorted(done) == list(range(800))


def test_awaiting_and_polling_send_the_job_to_the_pool():
    async def main():
        return await start(True, nothing)

    assert asyncio.run(main()) == 7

    future = start(True, nothing)
    while not future.done():
        threading.Event().wait(0.001)
    assert future.result() == 7


def test_a_timeout_sends_the_job_to_the_pool():
    assert start(True, nothing).result(timeout=30) == 7


def test_force_begins_the_work_elsewhere():
    where = []

    async def work():
        where.append(threading.get_ident())

    future = start(True, work)
    future.force()
    future.result(timeout=30)

    assert where != [threading.get_ident()]


def test_a_finished_job_keeps_no_result_alive():
    class Big:
        pass

    async def work():
        return Big()

    future = start(True, work)
    link = weakref.ref(future.result())
    del future
    gc.collect()

    assert link() is None
