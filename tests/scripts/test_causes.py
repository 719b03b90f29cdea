import os
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.causes import LINES, causes

ROOT = Path(__file__).resolve().parents[2]

FAILING = """
import pytest

@pytest.fixture
def broken():
    raise OSError("no such server")

def test_needs_it(broken):
    pass

def test_sound():
    print("E   no error")

class TestMany:
    @pytest.mark.parametrize("number", range({count}))
    def test_of_many(self, number):
        assert number == 77, "a number"
"""


def log_of(folder: Path, count: int) -> str:
    (folder / "test_failing.py").write_text(FAILING.format(count=count), "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-ra", "-c", os.devnull, "--rootdir", folder,
         "-p", "no:cacheprovider", "--color=yes", folder],
        capture_output=True, text=True, check=False, cwd=folder, timeout=240,
    )  # fmt: skip
    return done.stdout


def test_a_failure_and_an_error_are_reported_with_their_cause_and_place(tmp_path: Path) -> None:
    told = causes(log_of(tmp_path, 1))

    assert "_ ERROR at setup of test_needs_it _" in told[0]
    assert told[1:3] == ["E       OSError: no such server", "test_failing.py:6: OSError"]
    assert "_ TestMany.test_of_many[0] _" in told[3]
    assert told[4].endswith("AssertionError: a number")
    assert told[5:] == [
        "E       assert 0 == 77",
        "test_failing.py:17: AssertionError",
        told[-2],
        told[-1],
    ]
    assert told[-2].startswith("ERROR test_failing.py::test_needs_it - OSError: no such server")
    assert told[-1].startswith("FAILED test_failing.py::TestMany::test_of_many[0] - AssertionError")


def test_the_errors_of_a_group_are_printed() -> None:
    log = (
        "=== FAILURES ===\n___ test_a ___\n  + Exception Group Traceback (most recent call last):\n"
        "  |     def test_a(item):\n  | hypothesis.errors.FlakyFailure: not each time\n"
        "  +-+---------------- 1 ----------------\n    | Traceback (most recent call last):\n"
        "    |   raise OSError\n    | OSError: unplugged\n    +----\n"
        "=== short test summary info ===\nFAILED tests/a.py::test_a - Hypot...\n"
    )

    assert causes(log) == [
        "___ test_a ___",
        "  | hypothesis.errors.FlakyFailure: not each time",
        "    | OSError: unplugged",
        "FAILED tests/a.py::test_a - Hypot...",
    ]


def test_many_failures_leave_the_first_and_the_last(tmp_path: Path) -> None:
    told = causes(log_of(tmp_path, 90))

    assert len(told) <= LINES
    assert "ERROR at setup" in told[0]
    assert any("test_of_many[0] -" in line for line in told)
    assert any("test_of_many[89] -" in line for line in told)
    assert any("ERROR test_failing.py::test_needs_it" in line for line in told)
    assert sum(line.startswith("... (") for line in told) == 2


def test_of_another_step_the_last_lines_are_printed() -> None:
    log = "".join(f"line {number}\n\n" for number in range(100)) + "page.md: not so\n"

    assert causes(log)[-2:] == ["line 99", "page.md: not so"]
    assert len(causes(log)) < 20


STAND_IN = """#!/bin/sh
case "$1 $2" in
  "- "*) cat >/dev/null; echo stamp ;;
  "-m pytest") echo "..."; echo "FAILED tests/a.py::b - because" >&2; exit 1 ;;
  "scripts/servers install") echo "rgw: not to be had" ;;
  "-c "* | "scripts/causes.py "*) exec {python} "$@" ;;
  *) echo "{name} $*" ;;
esac
"""


@pytest.mark.skipif(sys.platform == "win32", reason="the gate is a shell script")
def test_the_gate_ends_with_the_causes(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    for name in ("python", "ruff", "mypy", "lint-imports"):
        program = tmp_path / "bin" / name
        program.write_text(STAND_IN.format(python=sys.executable, name=name), "utf-8")
        program.chmod(0o755)
    (tmp_path / ".installed").write_text("stamp\n", "utf-8")
    done = subprocess.run(
        ["bash", "scripts/test", "--fast"],
        cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        timeout=240,
        env={name: value for name, value in os.environ.items() if name != "CI"}
        | {"VENV": str(tmp_path)},
    )  # fmt: skip

    assert done.stderr == ""
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert "ruff check ." in lines
    assert lines.index("== tests") + 1 == lines.index("...")
    assert lines[-5:-1] == [
        "rgw: not to be had",
        "",
        "== why tests failed",
        "FAILED tests/a.py::b - because",
    ]
    assert lines[-1].startswith("gate: FAILED: tests (5 passed, ")
