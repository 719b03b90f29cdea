#!/usr/bin/env python3
"""Run the reference's own Python tests on this package.

    scripts/peer_suite.py DIR [--only dim,spec] [--package tensorstore_py] [--verbose]

DIR is a checkout of the reference implementation. Each `DIR/python/tensorstore/tests/*_test.py`
runs unmodified in a process of its own, with the module name `tensorstore` standing for this
package (in its subprocesses too). Prints passed/total per file and overall; the exit status is 0
if all pass. Nothing is copied into the project.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

ROOT = Path(__file__).resolve().parent.parent
SUITE = Path("python", "tensorstore", "tests")
ALIAS = """\
import sys

import {package}

sys.modules[__name__] = {package}
"""


@dataclass
class Outcome:
    """What one test file gave."""

    name: str
    passed: int
    total: int
    failures: list[str]

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
            return Outcome(path.name, 0, count_tests(path), [f"no end after {timeout_s:g} s"])
        if not report.exists():
            last = (done.stderr or done.stdout).strip().splitlines()[-1:]
            why = f"the process ended with status {done.returncode}: {' '.join(last)}"
            return Outcome(path.name, 0, count_tests(path), [why])
        return read_report(path, report)


def count_tests(path: Path) -> int:
    """How many tests a file has at least, where it could not be run to its end."""
    return path.read_text("utf-8").count("\ndef test_")


def read_report(path: Path, report: Path) -> Outcome:
    """Passed and failed tests of a JUnit file; a test that was skipped counts for nothing."""
    passed, failures = 0, []
    for case in ET.parse(report).iter("testcase"):  # noqa: S314 - our own pytest wrote it
        problem = case.find("failure")
        if problem is None:
            problem = case.find("error")
        if problem is not None:
            reason = problem.get("message", "").splitlines()
            failures.append(f"{case.get('name')}: {reason[0] if reason else ''}"[:200])
        elif case.find("skipped") is None:
            passed += 1
    total = passed + len(failures)
    if not passed and failures:
        total = max(total, count_tests(path))
    return Outcome(path.name, passed, total, failures)


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
        if options.verbose:
            for failure in outcome.failures:
                print(f"    {failure}", flush=True)
    passed = sum(outcome.passed for outcome in outcomes)
    total = sum(outcome.total for outcome in outcomes)
    print(Outcome("all", passed, total, []))
    return 0 if passed == total else 1


if __name__ == "__main__":
    sys.exit(main())
