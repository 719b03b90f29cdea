"""Named executors, and pools for one block of code."""

import multiprocessing
import os
import threading
import time

import pytest

from tensorstore_py._runtime import executors
from tensorstore_py._runtime.executors import (
    on_worker,
    operations,
    process_pool,
    submissions,
    thread_pool,
    width,
)
from tests.runtime.processes import run_script


def ask(question):
    answers: list[object] = []
    done = threading.Event()

    def work():
        answers.append(question())
        done.set()

    operations.submit(work)
    assert done.wait(30)
    return answers[0]


def test_runs_on_a_worker():
    assert ask(on_worker) is True
    assert on_worker() is False


def test_as_many_at_a_time_as_the_pool_is_wide():
    together = threading.Barrier(width() + 1)

    def meet():
        together.wait(30)

    for _ in range(width()):
        operations.submit(meet)
    together.wait(30)


def test_never_more_threads_than_the_width():
    before = submissions()
    names: set[str] = set()
    left = threading.Semaphore(0)

    def work():
        names.add(threading.current_thread().name)
        left.release()

    for _ in range(200):
        operations.submit(work)
    for _ in range(200):
        left.acquire()
    assert submissions() == before + 200
    assert len(names) <= width()
    assert len(executors.operations.threads) <= width()


def test_threads_start_at_first_use_only():
    out = run_script("""
        import threading
        from tensorstore_py._runtime.executors import operations
        print(threading.active_count())
        done = threading.Event()
        operations.submit(done.set)
        done.wait()
        print(threading.active_count())
    """)
    assert out == "1\n2\n"


def test_an_idle_thread_is_used_again():
    out = run_script("""
        import threading
        from tensorstore_py._runtime import executors
        executors._width = 8
        for _ in range(50):
            done = threading.Event()
            executors.operations.submit(done.set)
            done.wait()
            while executors.operations.unfinished:
                pass
        print(threading.active_count())
    """)
    assert out == "2\n"


def test_work_in_the_queue_is_finished_at_exit():
    out = run_script("""
        from tensorstore_py._runtime import executors
        executors._width = 1
        import sys
        for number in range(50):
            executors.operations.submit(lambda number=number: sys.stdout.write(f"{number} "))
    """)
    assert out.split() == [str(number) for number in range(50)]


def test_futures_without_a_waiter_are_finished_at_exit():
    out = run_script("""
        import sys
        from tensorstore_py._runtime.execution import start
        async def work(number):
            sys.stdout.write(f"{number} ")
        for number in range(20):
            start(True, lambda number=number: work(number))
    """)
    assert sorted(out.split(), key=int) == [str(number) for number in range(20)]


def test_exit_never_waits_for_what_hangs():
    out = run_script("""
        import threading
        from tensorstore_py._runtime import executors
        executors.EXIT_GRACE_S = 0.05
        begun = threading.Event()
        def hang():
            begun.set()
            threading.Event().wait()
        executors.operations.submit(hang)
        begun.wait()
        print("leaving")
    """)
    assert out == "leaving\n"


def test_exit_while_an_operation_fans_out():
    out = run_script("""
        import sys
        from tensorstore_py._runtime.fan_out import fan_out
        from tensorstore_py._runtime.execution import start
        async def one(step):
            sys.stdout.write("x")
        async def body():
            await fan_out(True, range(500), one, count=500)
            await fan_out(True, range(500), one, count=500)
        start(True, body)
    """)
    assert out == "x" * 1000


def test_arrays_still_work_when_the_pool_is_closed_and_in_finalization():
    out = run_script("""
        import asyncio, atexit, os, sys
        def use(when):
            import numpy as np
            store = ts.open({"driver": "zarr3", "kvstore": "memory://"}, create=True,
                            dtype="int64", shape=[64], chunk_layout=chunks).result()
            store.write(np.arange(64)).result()
            async def total():
                return sum(await store.read())
            print(when, store[3:5].read().result().tolist(), asyncio.run(total()), flush=True)
        atexit.register(use, "exit")
        import tensorstore_py as ts
        chunks = ts.ChunkLayout(chunk_shape=[4])
        plain = sys.stdout.flush
        def flush():
            plain()
            if sys.is_finalizing():
                sys.stdout.flush = plain
                use("finalizing")
                os._exit(0)
        sys.stdout.flush = flush
    """)
    assert out.splitlines() == ["exit [3, 4] 2016", "finalizing [3, 4] 2016"]


def test_threads_are_of_this_process():
    with thread_pool(2) as pool:
        assert pool.submit(os.getpid).result() == os.getpid()


def test_processes_are_others_and_end_with_it():
    with process_pool(1) as pool:
        assert pool.submit(os.getpid).result() != os.getpid()
    assert multiprocessing.active_children() == []


def test_processes_that_are_interrupted_are_not_waited_for():
    def interrupted():
        with process_pool(1) as pool:
            pool.submit(os.getpid).result()
            pool.submit(time.sleep, 1000)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert multiprocessing.active_children() == []
