"""Run a job file, or a plan of one: all of it, or as one of many workers."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TextIO

from tensorstore_py._jobs.job_run import Part, run_job
from tensorstore_py._jobs.report import time_text
from tensorstore_py._plan.plan import size_text
from tensorstore_py.cli.jobs import add_document, add_engine, engine, found_job, lasting_document
from tensorstore_py.cli.output import add_json, examples, to_json
from tensorstore_py.cli.places import trust
from tensorstore_py.errors import SpecError, TensorStoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from tensorstore_py._jobs.job import Job
    from tensorstore_py._jobs.report import Report
    from tensorstore_py._runtime.progress import Progress
    from tensorstore_py.cli.jobs import FoundDocument

__all__ = ["Meter", "add", "run"]


#: A line on a terminal is drawn again after so long; in a file it is followed by another.
_TERMINAL_S: Final = 0.2
_FILE_S: Final = 10.0


class Meter:
    """A line that tells how far a job is: share, bytes, rate, time left, and per worker.

    Args:
        stream: where to; None: nothing is written.
        workers: how many work on it; 0: unknown.
        clock: seconds.
    """

    def __init__(
        self,
        stream: TextIO | None,
        workers: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = stream
        self._terminal = stream is not None and stream.isatty()
        self._workers = workers
        self._clock = clock
        self._title = ""
        self._began = self._drawn = 0.0
        self._last: Progress | None = None
        self._shown: Progress | None = None
        self._before = 0  # bytes that were done when it began

    def begin(self, title: str) -> None:
        """A step begins."""
        self._title = title
        self._began = self._drawn = self._clock()
        self._last = self._shown = None

    def __call__(self, progress: Progress) -> None:
        """It is so far."""
        if self._last is None:
            self._before = progress.bytes_done
        self._last = progress
        now = self._clock()
        if now - self._drawn >= (_TERMINAL_S if self._terminal else _FILE_S):
            self._drawn = now
            self._draw()

    def close(self) -> None:
        """The step is over: its line stays as it is."""
        if self._last is not None:
            if self._last != self._shown:
                self._draw()
            if self._stream is not None and self._terminal:
                self._stream.write("\n")

    def _draw(self) -> None:
        if self._stream is None or self._last is None:
            return
        self._shown = self._last
        begin, end = ("\r", "\x1b[K") if self._terminal else ("", "\n")
        self._stream.write(f"{begin}{self.line(self._last)}{end}")
        self._stream.flush()

    def line(self, progress: Progress) -> str:
        """What it tells."""
        seconds = self._clock() - self._began
        rate = (progress.bytes_done - self._before) / seconds if seconds > 0 else 0.0
        parts = [
            f"{self._title}: {progress.fraction:.0%}",
            f"{size_text(progress.bytes_done)} of {size_text(progress.bytes_total)}",
            f"{progress.chunks_done:,} of {progress.chunks_total:,} chunks",
            f"{size_text(rate)}/s",
        ]
        if self._workers > 1:
            parts.append(f"{self._workers} workers of {size_text(rate / self._workers)}/s")
        left = progress.bytes_total - progress.bytes_done
        if left and rate:
            parts.append(f"{time_text(left / rate)} left")
        elif not left:
            parts.append(f"in {time_text(seconds)}")
        return ", ".join(parts)


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
    examples(
        parser,
        "  tspy run job.json\n  tspy run job.json --workers 2 --report report.json\n"
        "  tspy run s3://bucket/plan.json --part 0/1\n",
        _ENDS,
    )
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
    add_json(parser)
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


def _problem(options: argparse.Namespace, found: FoundDocument) -> str | None:
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


def _run(options: argparse.Namespace, found: FoundDocument) -> int:
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
    _tell(report, as_json=options.json)
    if place is not None:
        place.write(report.to_json())
    return report.exit_code


def _stream(asked: bool | None, job: Job) -> TextIO | None:
    asked = job.progress if asked is None else asked
    shown = sys.stderr.isatty() if asked is None else asked
    return sys.stderr if shown else None


def _tell(report: Report, *, as_json: bool) -> None:
    sys.stdout.write(f"{to_json(report.to_json()) if as_json else report}\n")
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
