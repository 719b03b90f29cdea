import asyncio
import threading

from tensorstore_py._runtime.loop import is_running, library_loop
from tests.runtime.processes import run_script


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
        from tensorstore_py._runtime.start import start
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
        from tensorstore_py._runtime.start import start
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
        from tensorstore_py._runtime.start import start
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
