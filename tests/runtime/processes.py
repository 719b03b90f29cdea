"""What tests of threads and processes share: fresh interpreters, and a pool that is known busy."""

import subprocess
import sys
import textwrap
import threading
from pathlib import Path

from tensorstore_py._runtime.loop import library_loop
from tensorstore_py._runtime.start import start
from tensorstore_py._runtime.workers import compute, submit, width

ROOT = Path(__file__).absolute().parents[2]


# A shell starts what runs in the background with SIGINT ignored, and children inherit that.
FOREGROUND = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"


def run_script(code: str, *, timeout: float = 30) -> str:
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
        submit(block)
    busy.wait()
    return free


def settle():
    """Wait until whoever ran something has gone on: the loop, who decodes for it, and the workers.

    A result is there a moment before its thread lets go of what it worked on.
    """

    async def nothing():
        pass

    start(False, nothing).result()
    busy = threading.Barrier(width() + 1)

    for _ in range(width()):
        compute(busy.wait)
    busy.wait()
    occupy_workers().set()
    start(True, nothing).result(timeout=30)  # what was cancelled is forgotten
