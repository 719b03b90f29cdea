"""Run a job file, or a plan of one: all of it, or as one of many workers.

tspy run job.json
tspy run plan.json --part 3/64
tspy run job.json --engine processes --workers 4 --report report.json
"""

from __future__ import annotations

import argparse
import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TextIO

from tensorstore_py._jobs.job_run import Part, run_job
from tensorstore_py.cli.jobs import add_document, add_engine, engine, found_job, lasting_document
from tensorstore_py.cli.meter import Meter
from tensorstore_py.cli.trusted import trust
from tensorstore_py.errors import SpecError, TensorStoreError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from tensorstore_py._jobs.job import Job
    from tensorstore_py._jobs.report import Report
    from tensorstore_py.cli.jobs import Found

__all__ = ["add", "run"]

_ENDS: Final = """\
exit codes:
  0    done
  1    failed: what was done stays done; remove the cause, and run it again
  2    the arguments are wrong
  3    partly done: some of the source is damaged, or (--no-wait) others are at the rest
  130  interrupted, by Ctrl-C or SIGTERM: run it again to go on

With a manifest, and a plan always has one, a second run goes on where the first one ended, and
the run of what is done does nothing.
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _ENDS
    add_document(parser, "a job file or a plan; -: standard input")
    parser.add_argument("--part", type=_part, metavar="K/N",
                        help="of a plan: be worker K of N, numbered from 0 on: begin with that "
                        "share, and then do what others have left")  # fmt: skip
    parser.add_argument("--no-wait", action="store_true",
                        help="with --part: leave to others what they are at")  # fmt: skip
    parser.add_argument("--manifest", type=lasting_document, metavar="FILE",
                        help="of a job file: where to keep what is done")  # fmt: skip
    parser.add_argument("--report", type=lasting_document, metavar="FILE",
                        help="write what was done there, as JSON")  # fmt: skip
    parser.add_argument("--progress", action=argparse.BooleanOptionalAction, default=None,
                        help="tell how far it is; to a terminal by default")  # fmt: skip
    add_engine(parser)


def _part(text: str) -> Part:
    try:
        return Part.parse(text)
    except SpecError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def run(options: argparse.Namespace) -> int:
    """Run it, print what was done, and report it."""
    try:
        found = found_job(options)
        problem = _problem(options, found)
        if problem is not None:
            sys.stderr.write(f"{problem}\n")
            return 2
        return _run(options, found)
    except (TensorStoreError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1


def _problem(options: argparse.Namespace, found: Found) -> str | None:
    """What does not go together; None: nothing."""
    if found.planned and found.document is None:
        return "a plan is run where it is stored: what is done is kept beside it; name its place"
    if options.part is not None and not found.planned:
        return (
            "--part is for plans, which workers share: make one with "
            f"`tspy plan {options.file} -o plan.json`, and run that"
        )
    if options.no_wait and options.part is None:
        return "--no-wait needs --part"
    if options.manifest is not None and found.planned:
        return "a plan keeps what is done beside it; leave --manifest out"
    return None


def _run(options: argparse.Namespace, found: Found) -> int:
    job = found.job
    part = options.part
    if part is not None:
        part = part._replace(wait=not options.no_wait)
    who = engine(options, job)
    if part is not None and options.engine is None:
        who = who._replace(kind=None)  # workers are the engine
    manifest = found.document if found.planned else job.manifest
    if options.manifest is not None:
        manifest = options.manifest
    place = job.report if part is None else None  # which tells of all
    if options.report is not None:
        place = options.report
    for given in (options.manifest, options.report):
        if given is not None:
            given.spec(trust(options, write=True))
    meter = Meter(_stream(options.progress, job), who.workers or 0)
    with _ended_by_sigterm(), who.running() as executor:
        report = run_job(job, executor, meter, manifest, part)
    report.engine, report.part = who.to_json(), None if part is None else str(part)
    _tell(report)
    if place is not None:
        place.write(report.to_json())
    return report.exit_code


def _stream(asked: bool | None, job: Job) -> TextIO | None:
    asked = job.progress if asked is None else asked
    shown = sys.stderr.isatty() if asked is None else asked
    return sys.stderr if shown else None


def _tell(report: Report) -> None:
    sys.stdout.write(f"{report}\n")
    for each in report.steps:
        if each.error:
            sys.stderr.write(f"{each.operation}: {each.error}\n")


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Batch systems end jobs by SIGTERM, which is taken for Ctrl-C: what is begun is let go of."""

    def interrupt(_: int, __: FrameType | None) -> None:
        raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGTERM, interrupt)
    except ValueError:  # not the main thread, which has no signals
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
