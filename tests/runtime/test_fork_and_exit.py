"""The library's loop, forks and the end of the process, each in a fresh interpreter."""

import asyncio
import threading

from tensorstore_py._runtime.loop import is_running, library_loop
from tests.runtime.processes import forked, run_script


def test_one_loop_on_a_thread_of_its_own():
    loop = library_loop()
    assert library_loop() is loop
    assert is_running()

    async def where():
        return threading.current_thread()

    thread = asyncio.run_coroutine_threadsafe(where(), loop).result()
    assert thread is not threading.current_thread()
    assert thread.daemon


def test_started_once_however_many_threads_ask():
    out = run_script("""
        import threading
        from tensorstore_py._runtime.loop import library_loop
        together = threading.Barrier(8)
        loops = []
        def ask():
            together.wait()
            loops.append(library_loop())
        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print(len(loops), len(set(map(id, loops))), threading.active_count())
    """)
    assert out == "8 1 2\n"


def test_inline_work_never_starts_it():
    out = run_script("""
        from tensorstore_py._runtime.fan_out import fan_out
        from tensorstore_py._runtime.loop import is_running
        from tensorstore_py._runtime.execution import start
        async def one(step): pass
        async def body():
            await fan_out(True, range(100), one, count=100)
            return 1
        print(start(True, body).result(), is_running())
    """)
    assert out == "1 False\n"


def test_pending_work_is_cancelled_at_exit():
    out = run_script("""
        import asyncio, threading
        from tensorstore_py._runtime.execution import start
        begun = threading.Event()
        async def endless():
            try:
                begun.set()
                await asyncio.Event().wait()
            finally:
                print("cleaned up")
        future = start(False, endless)
        begun.wait()
    """)
    assert out == "cleaned up\n"


def test_exit_never_waits_for_what_refuses_to_stop():
    out = run_script("""
        import threading
        from tensorstore_py._runtime import loop
        from tensorstore_py._runtime.execution import start
        loop.EXIT_GRACE_S = 0.05
        begun = threading.Event()
        async def hang():
            begun.set()
            threading.Event().wait()
        future = start(False, hang)
        begun.wait()
        print("leaving")
    """)
    assert out == "leaving\n"


def test_no_loop_is_begun_when_the_interpreter_ends():
    out = run_script("""
        import sys
        from tensorstore_py._runtime.loop import library_loop
        sys.is_finalizing = lambda: True
        try:
            library_loop()
        except Exception as error:
            print(error)
    """)
    assert out.startswith("the interpreter is ending")


def test_the_child_works_inline_and_on_the_loop():
    out = forked("""
        import asyncio
        from tensorstore_py._runtime.loop import is_running
        from tensorstore_py._runtime.execution import start
        from tensorstore_py._runtime.executors import submissions
        async def answer(): return 7
        async def waits():
            await asyncio.sleep(0)
            return 8
        assert start(True, answer).result(timeout=30) == 7
        assert start(False, waits).result() == 8
        def child():
            print(is_running(), submissions(), threading.active_count())
            print(start(True, answer).result(timeout=30), start(False, waits).result())
        in_child(child)
        print(start(True, answer).result(timeout=30), start(False, waits).result())
    """)
    assert out == "False 0 1\n7 8\n7 8\n"


def test_the_child_drops_what_the_parent_had_queued():
    out = forked("""
        from tensorstore_py._runtime import executors
        executors._width = 1
        go_on, begun = threading.Event(), threading.Event()
        def block():
            begun.set()
            go_on.wait()
        executors.operations.submit(block)
        begun.wait()
        executors.operations.submit(lambda: print("queued", os.getpid() == parent))
        parent = os.getpid()
        def child():
            done = threading.Event()
            executors.operations.submit(done.set)
            assert done.wait(30)
            print("child")
        in_child(child)
        go_on.set()
    """)
    assert out == "child\nqueued True\n"


def test_a_future_of_the_parent_is_refused_in_the_child():
    out = forked("""
        import asyncio
        from tensorstore_py._runtime import executors
        from tensorstore_py._runtime.future import Future, Promise
        from tensorstore_py._runtime.execution import start
        executors._width = 1
        go_on, begun = threading.Event(), threading.Event()
        async def block():
            begun.set()
            go_on.wait()
        async def write(): print("written")
        running = start(True, block)
        begun.wait()
        queued = start(True, write)
        promise, promised = Promise.new()
        done = Future(5)
        def child():
            for future in (running, queued, promised):
                for ask in (future.result, future.exception, lambda: asyncio.run(wait(future))):
                    try:
                        ask()
                    except RuntimeError as error:
                        assert "before a fork" in str(error)
                        print("refused")
            print(done.result())
        async def wait(future): await future
        in_child(child)
        go_on.set()
        queued.result(timeout=30)
    """)
    assert out == "refused\n" * 9 + "5\nwritten\n"


def test_locks_that_the_parent_held_are_free_in_the_child():
    out = forked("""
        from tensorstore_py._runtime.keyed_lock import KeyedLock, Mutex
        from tensorstore_py._runtime.execution import run_inline
        mutex, lock = Mutex(), KeyedLock(inline=True)
        held, go_on = threading.Event(), threading.Event()
        async def hold():
            async with lock.acquire("key"):
                with mutex:
                    held.set()
                    go_on.wait()
        thread = threading.Thread(target=run_inline, args=(hold(),))
        thread.start()
        held.wait()
        async def enter():
            async with lock.acquire("key"):
                with mutex:
                    print("in")
        in_child(lambda: run_inline(enter()))
        go_on.set()
        thread.join()
        run_inline(enter())
    """)
    assert out == "in\nin\n"


def test_a_fork_in_the_middle_of_a_fan_out():
    out = forked("""
        from tensorstore_py._runtime.fan_out import fan_out
        from tensorstore_py._runtime.execution import start
        seen = []
        async def work(step): seen.append(step)
        async def body(): await fan_out(True, range(20_000), work, count=20_000)
        future = start(True, body)
        def child():
            seen.clear()
            start(True, body).result()
            print(sorted(seen) == list(range(20_000)))
        in_child(child)
        future.result()
        print(sorted(seen) == list(range(20_000)))
    """)
    assert out == "True\nTrue\n"


def test_what_registered_runs_in_every_child_and_grandchild():
    out = forked("""
        from tensorstore_py._runtime.fork import epoch, on_fork
        calls = []
        on_fork(lambda: calls.append(epoch()))
        def child():
            print(epoch(), calls)
            in_child(lambda: print(epoch(), calls))
        in_child(child)
        print(epoch(), calls)
    """)
    assert out == "1 [1]\n2 [1, 2]\n0 []\n"


def test_multiprocessing_pools():
    out = run_script("""
        import multiprocessing
        from tensorstore_py._runtime.execution import start
        async def square(number): return number * number
        def work(number): return start(True, lambda: square(number)).result()
        if __name__ == "__main__":
            start(True, lambda: square(1)).result(timeout=30)
            with multiprocessing.get_context("fork").Pool(2) as pool:
                print(pool.map(work, range(5)))
    """)
    assert out == "[0, 1, 4, 9, 16]\n"
