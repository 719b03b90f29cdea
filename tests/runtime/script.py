"""Run a piece of Python in a fresh interpreter: what forks, exits or is killed cannot run here."""

import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run_script(code: str, *, timeout: float = 30) -> str:
    """What `code` prints; fails the test if it warns, writes to stderr or exits with an error."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", "-c",
         textwrap.dedent(code)],
        cwd=ROOT, capture_output=True, text=True, timeout=timeout, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert not done.stderr, done.stderr
    return done.stdout
