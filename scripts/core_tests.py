"""Runs the core's tests where the gate itself cannot run: no bash, no servers, none of the peers.

The gate compares with other libraries, and speaks to servers; neither is to be had on every system
and for every Python. What needs no more than the package and the group `test` of pyproject.toml
runs anywhere: the rooms below, but for the files of theirs that import something that is not
installed. Which these are is printed, so that a run that left everything out does not look like
one that passed.

    python -m pip install --editable . --group test
    python scripts/core_tests.py [OPTION OF PYTEST...]
"""

import ast
import importlib.util
import subprocess
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

ROOMS = (
    "chunked",
    "codecs",
    "display",
    "drivers",
    "hierarchy",
    "index",
    "interface",
    "kvstores/file",
    "kvstores/zip",
    "runtime",
    "spec",
    "state",
)

# Less than this is no run of the core: something that all tests need is missing.
FEWEST_FILES = 100


@cache
def imported(path: Path) -> frozenset[str]:
    """The modules that a test file names at its top, and those of tests that it imports."""
    names = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    for name in sorted(names):
        helper = ROOT / (name.replace(".", "/") + ".py")
        if name.startswith(("tests.", "benchmarks.", "scripts.")) and helper.exists():
            names |= imported(helper)
    return frozenset(names)


@cache
def is_there(package: str) -> bool:
    """Whether a package can be imported, or is this repository's own."""
    return (ROOT / package).exists() or importlib.util.find_spec(package) is not None


def missing(path: Path) -> set[str]:
    """The packages that a test file imports and that are not installed."""
    return {name.split(".")[0] for name in imported(path) if not is_there(name.split(".")[0])}


def chosen() -> tuple[list[Path], dict[Path, set[str]]]:
    """The files that can run, and what each of the others lacks."""
    found = [path for room in ROOMS for path in sorted((ROOT / "tests" / room).rglob("test_*.py"))]
    lacking = {path: lacks for path in found if (lacks := missing(path))}
    return [path for path in found if path not in lacking], lacking


def main(arguments: list[str]) -> int:
    """Runs pytest on the files that can run; returns its exit code."""
    files, lacking = chosen()
    for path, lacks in lacking.items():
        print(f"left out: {path.relative_to(ROOT).as_posix()} needs {', '.join(sorted(lacks))}")
    print(f"{len(files)} files run, {len(lacking)} are left out", flush=True)
    if len(files) < FEWEST_FILES:
        print(f"fewer than {FEWEST_FILES} files can run: is the group `test` installed?")
        return 1
    command = [sys.executable, "-m", "pytest", *arguments]
    command += [path.relative_to(ROOT).as_posix() for path in files]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
