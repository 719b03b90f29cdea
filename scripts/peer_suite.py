#!/usr/bin/env python3
"""Run the reference's own Python tests on this package.

    scripts/peer_suite.py DIR [--only dim,spec] [--package tensorstore_py] [--verbose]

DIR is a checkout of the reference implementation. Each `DIR/python/tensorstore/tests/*_test.py`
runs unmodified in a process of its own, with the module name `tensorstore` standing for this
package (in its subprocesses too). A file without tests is a program, which passes if it ends
well. Prints passed/total per file and overall. Nothing is copied into the project.

Some tests demand what this package does not do on purpose: `EXPECTED` says which, and why. The exit
status is 0 if exactly these fail; one of them that passes is named, so that it leaves the table.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

ROOT = Path(__file__).resolve().parent.parent
#: Stands for a file that is one program, or could not be run to its end.
PROGRAM = "(all)"
SUITE = Path("python", "tensorstore", "tests")
ALIAS = """\
import sys

import {package}

sys.modules[__name__] = {package}
"""


#: Tests that fail on purpose, by file and name, and what they demand.
EXPECTED = {
    ("fork_test.py", "test_fork_with_tensorstore_use_does_crash"): (
        "that a forked child crashes when it uses a store; here it works"
    ),
    ("kvstore_test.py", "test_copy_memory"): (
        "that a deep copy of a store in memory finds nothing; here it is the same store"
    ),
    ("kvstore_test.py", "test_copy_range_to_file_fails"): (
        "that a range cannot be copied between stores of files; here it can"
    ),
    ("kvstore_test.py", "test_copy_range_to_memory_fails"): (
        "that a range cannot be copied between stores in memory; here it can"
    ),
    ("kvstore_test.py", "test_copy_range_to_ocdbt_memory_bad_path"): (
        "that a range cannot be copied by value between databases; here it can"
    ),
    ("kvstore_test.py", "test_spec_pickle"): "that the module is named tensorstore",
}


@dataclass
class Outcome:
    """What one test file gave.

    Attributes:
        name: of the file.
        passed: how many tests passed.
        total: how many there are.
        failures: the others by name, with the reason.
        names: all tests that were run.
    """

    name: str
    passed: int
    total: int
    failures: dict[str, str]
    names: frozenset[str] = frozenset()

    @property
    def surprises(self) -> list[str]:
        """What is not as `EXPECTED` says."""
        expected = {name for file, name in EXPECTED if file == self.name}
        found = [
            f"{name}: {reason}" for name, reason in self.failures.items() if name not in expected
        ]
        passed = sorted((expected & self.names) - set(self.failures))
        return found + [f"{name}: passes now; take it out of EXPECTED" for name in passed]

    def __str__(self) -> str:
        return f"{self.name:32} {self.passed:4} / {self.total}"


def run_file(path: Path, package: str, timeout_s: float) -> Outcome:
    """Run one test file with the alias in front of the import path."""
    with tempfile.TemporaryDirectory() as scratch:
        Path(scratch, "tensorstore.py").write_text(ALIAS.format(package=package), "utf-8")
        Path(scratch, "pytest.ini").write_text("[pytest]\nasyncio_mode = auto\n", "utf-8")
        report = Path(scratch, "report.xml")
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "pytest_asyncio.plugin",
        ]
        command += ["-c", f"{scratch}/pytest.ini", f"--junit-xml={report}", str(path)]
        search = [scratch, str(ROOT), os.environ.get("PYTHONPATH", "")]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, search)),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        }
        try:
            done = subprocess.run(
                command,
                cwd=scratch,
                env=environment,
                capture_output=True,
                text=True,
                timeout=timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return _not_run(path, f"no end after {timeout_s:g} s")
        is_program = not count_tests(path)
        if is_program and not done.returncode:
            return Outcome(path.name, 1, 1, {}, frozenset({PROGRAM}))
        if is_program or not report.exists():
            last = (done.stderr or done.stdout).strip().splitlines()[-1:]
            return _not_run(
                path, f"the process ended with status {done.returncode}: {' '.join(last)}"
            )
        return read_report(path, report)


def _not_run(path: Path, why: str) -> Outcome:
    return Outcome(path.name, 0, max(1, count_tests(path)), {PROGRAM: why})


def count_tests(path: Path) -> int:
    """How many tests a file has at least, where it could not be run to its end."""
    return len(re.findall(r"^(?:async )?def test_", path.read_text("utf-8"), re.MULTILINE))


def read_report(path: Path, report: Path) -> Outcome:
    """Passed and failed tests of a JUnit file; a test that was skipped counts for nothing."""
    passed, failures, names = 0, {}, set()
    for case in ET.parse(report).iter("testcase"):  # noqa: S314 - our own pytest wrote it
        problem = case.find("failure")
        if problem is None:
            problem = case.find("error")
        if problem is not None:
            reason = problem.get("message", "").splitlines()
            failures[case.get("name", "")] = (reason[0] if reason else "")[:200]
        elif case.find("skipped") is None:
            passed += 1
            names.add(case.get("name", ""))
    total = passed + len(failures)
    if not passed and failures:
        total = max(total, count_tests(path))
    return Outcome(path.name, passed, total, failures, frozenset(names) | set(failures))


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, run the files, print the table."""
    parser = argparse.ArgumentParser(description="Run the reference's own tests on this package.")
    parser.add_argument("checkout", type=Path, help="a checkout of the reference implementation")
    parser.add_argument("--only", default="", help="file names to keep, comma separated, no _test")
    parser.add_argument("--package", default="tensorstore_py", help="what to import instead")
    parser.add_argument("--timeout", type=float, default=300, help="seconds for one file")
    parser.add_argument("--verbose", action="store_true", help="name the tests that fail")
    options = parser.parse_args(arguments)
    wanted = set(filter(None, options.only.split(",")))
    files = sorted((options.checkout / SUITE).resolve().glob("*_test.py"))
    files = [file for file in files if not wanted or file.name.removesuffix("_test.py") in wanted]
    if not files:
        print(f"no tests under {options.checkout / SUITE}: give the root of a checkout")
        return 2
    outcomes = []
    for file in files:
        outcome = run_file(file, options.package, options.timeout)
        outcomes.append(outcome)
        print(outcome, flush=True)
        for surprise in outcome.surprises:
            print(f"    {surprise}", flush=True)
        if options.verbose:
            for name in sorted(outcome.failures):
                if (why := EXPECTED.get((outcome.name, name))) is not None:
                    print(f"    {name}: as expected, it demands {why}", flush=True)
    passed = sum(outcome.passed for outcome in outcomes)
    total = sum(outcome.total for outcome in outcomes)
    surprises = sum(len(outcome.surprises) for outcome in outcomes)
    print(Outcome("all", passed, total, {}))
    failed = sum(len(outcome.failures) for outcome in outcomes)
    print(f"{failed} failed, {surprises} not as expected")
    return 1 if surprises else 0


if __name__ == "__main__":
    sys.exit(main())
