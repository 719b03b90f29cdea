"""Each in an interpreter of its own: the test process has threads of its own to lose."""

from tests.runtime.processes import run_script

FORK = """
import os, sys, threading
def in_child(function):
    sys.stdout.flush()
    child = os.fork()
    if not child:
        try:
            function()
            sys.stdout.flush()
            os._exit(0)
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
"""


def forked(code):
    import textwrap

    return run_script(FORK + textwrap.dedent(code))


def test_the_child_works_inline_and_on_the_loop():
    out = forked("""
        import asyncio
        from tensorstore_py._runtime.loop import is_running
        from tensorstore_py._runtime.start import start
        from tensorstore_py._runtime.workers import submissions
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
        from tensorstore_py._runtime import workers
        workers._width = 1
        go_on, begun = threading.Event(), threading.Event()
        def block():
            begun.set()
            go_on.wait()
        workers.submit(block)
        begun.wait()
        workers.submit(lambda: print("queued", os.getpid() == parent))
        parent = os.getpid()
        def child():
            done = threading.Event()
            workers.submit(done.set)
            assert done.wait(30)
            print("child")
        in_child(child)
        go_on.set()
    """)
    assert out == "child\nqueued True\n"


def test_a_future_of_the_parent_is_refused_in_the_child():
    out = forked("""
        import asyncio
        from tensorstore_py._runtime import workers
        from tensorstore_py._runtime.future import Future, Promise
        from tensorstore_py._runtime.start import start
        workers._width = 1
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
        from tensorstore_py._runtime.gate import Gate, Mutex
        from tensorstore_py._runtime.inline import run_inline
        mutex, gate = Mutex(), Gate(inline=True)
        held, go_on = threading.Event(), threading.Event()
        async def hold():
            async with gate.hold("key"):
                with mutex:
                    held.set()
                    go_on.wait()
        thread = threading.Thread(target=run_inline, args=(hold(),))
        thread.start()
        held.wait()
        async def enter():
            async with gate.hold("key"):
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
        from tensorstore_py._runtime.start import start
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
        from tensorstore_py._runtime.start import start
        async def square(number): return number * number
        def work(number): return start(True, lambda: square(number)).result()
        if __name__ == "__main__":
            start(True, lambda: square(1)).result(timeout=30)
            with multiprocessing.get_context("fork").Pool(2) as pool:
                print(pool.map(work, range(5)))
    """)
    assert out == "[0, 1, 4, 9, 16]\n"
