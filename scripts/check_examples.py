"""Runs every file of examples/ as its reader would: alone, in an empty directory, to its end."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMIT_S = 120.0


def complaint(example: Path) -> str | None:
    """Runs one example, its warnings as errors; returns what went wrong, or None."""
    with tempfile.TemporaryDirectory(prefix="example-") as directory:
        try:
            done = subprocess.run(
                [sys.executable, "-W", "error", str(example)],
                cwd=directory,
                env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"did not end within {LIMIT_S:.0f} s"
    if done.returncode == 0:
        return None
    return f"ended with code {done.returncode}\n{done.stdout}"


def main() -> int:
    """Runs them all, prints a line each, and returns the exit code."""
    examples = sorted((ROOT / "examples").glob("*.py"))
    failures = 0
    for example in examples:
        problem = complaint(example)
        failures += problem is not None
        print(f"{example.relative_to(ROOT)}: {problem or 'ok'}", flush=True)
    if not examples:
        print("examples/ holds no example")
        return 1
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
