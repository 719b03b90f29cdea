"""Which Python the gate takes for the newest, of the interpreters that there are."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the gate is a shell script")


def interpreter(path: Path, said: str, status: int = 0) -> str:
    """A program that answers what an interpreter of a version does when it is asked for it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho {said}\nexit {status}\n", "utf-8")
    path.chmod(0o755)
    return str(path)


def asked(function: str, *arguments: str, home: Path) -> str:
    command = f'. scripts/environment.sh; {function} "$@"'
    done = subprocess.run(
        ["bash", "-c", command, "bash", *arguments],
        cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        env={"PATH": f"{home / 'bin'}{os.pathsep}/usr/bin:/bin", "PYENV_ROOT": str(home)},
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout.strip()


def test_the_newest_is_found_on_the_path_and_among_those_that_pyenv_keeps(tmp_path: Path) -> None:
    own = interpreter(tmp_path / "own", "3711")
    interpreter(tmp_path / "bin" / "python3.12", "3712")
    assert asked("newer_python", own, home=tmp_path) == "python3.12"

    kept = interpreter(tmp_path / "versions" / "3.14.1" / "bin" / "python", "3714")
    interpreter(tmp_path / "versions" / "3.9.1" / "bin" / "python", "3709")
    # what a version manager leaves on the PATH, one without venv, and a trial version
    interpreter(tmp_path / "bin" / "python3.17", "no such version", status=127)
    interpreter(tmp_path / "bin" / "python3.18", "", status=1)
    interpreter(tmp_path / "bin" / "python3.19", "0")
    assert asked("newer_python", own, home=tmp_path) == kept


def test_nothing_is_newer_than_the_newest(tmp_path: Path) -> None:
    own = interpreter(tmp_path / "own", "3799")

    assert asked("newer_python", own, home=tmp_path) == ""


def test_an_interpreter_tells_its_version(tmp_path: Path) -> None:
    told = int(asked("version_of", sys.executable, home=tmp_path))

    assert told in (0, sys.version_info[0] * 1000 + sys.version_info[1])
    assert asked("version_of", str(tmp_path / "nothing"), home=tmp_path) == ""


def test_the_gate_explains_itself() -> None:
    done = subprocess.run(
        ["bash", "scripts/test", "--help"], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert done.returncode == 2
    assert done.stdout.startswith("The gate.")
    assert done.stdout.rstrip().endswith("another place for .venv.")
