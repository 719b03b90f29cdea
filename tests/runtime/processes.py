"""What tests of threads and processes share: fresh interpreters, and a pool that is known busy."""

import subprocess
import sys
import textwrap
import threading
from pathlib import Path

from tensorstore_py._runtime.execution import run_inline, start
from tensorstore_py._runtime.executors import computations, operations, submissions, width
from tensorstore_py._runtime.loop import library_loop, loop_turns
from tensorstore_py._runtime.loop_turns import LoopTurns

__all__ = [
    "FOREGROUND",
    "FORK",
    "ROOT",
    "LoopTurns",
    "forked",
    "library_loop",
    "loop_turns",
    "occupy_loop",
    "occupy_workers",
    "run_inline",
    "run_script",
    "settle",
    "share",
    "start",
    "submissions",
    "width",
]

ROOT = Path(__file__).absolute().parents[2]


# A shell starts what runs in the background with SIGINT ignored, and children inherit that.
FOREGROUND = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"


def run_script(code: str, *, timeout: float = 280) -> str:
    """What `code` prints; fails the test if it warns, writes to stderr or exits with an error.

    Ctrl-C interrupts it, however the tests were started.
    """
    done = subprocess.run(
        [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", "-c",
         FOREGROUND + textwrap.dedent(code)],
        cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert not done.stderr, done.stderr
    return done.stdout


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
    """What `code`, which calls `in_child` to run functions in forked children, prints."""
    return run_script(FORK + textwrap.dedent(code))


def occupy_loop():
    """Keep the library's loop busy until the event returned is set."""
    free = threading.Event()
    library_loop().call_soon_threadsafe(free.wait)
    return free


def occupy_workers():
    """Keep every worker busy until the event returned is set."""
    free = threading.Event()
    busy = threading.Barrier(width() + 1)

    def block():
        busy.wait()
        free.wait()

    for _ in range(width()):
        operations.submit(block)
    busy.wait()
    return free


def settle():
    """Wait until all threads that ran something have gone on: of the loop, and of the executors.

    A result is there a moment before its thread lets go of what it worked on.
    """

    async def nothing():
        pass

    start(False, nothing).result()
    busy = threading.Barrier(width() + 1)

    def meet():
        busy.wait()

    for _ in range(width()):
        computations.submit(meet)
    busy.wait()
    occupy_workers().set()
    start(True, nothing).result(timeout=30)  # what was cancelled is forgotten


def share(monkeypatch, worth):
    """Decide that waking other threads is worth it, or not, whatever a piece of work takes."""
    monkeypatch.setattr("tensorstore_py._runtime.fan_out.worth_sharing", lambda _piece_s: worth)
    # Without a lock nobody asks.
    monkeypatch.setattr("tensorstore_py._runtime.fan_out.interpreter_lock", lambda: True)
