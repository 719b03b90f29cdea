"""What commands that take job files and plans have in common: which document, and what is in it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from tensorstore_py._jobs.documents import Document, parsed
from tensorstore_py._jobs.engine import ENGINES, JobEngine
from tensorstore_py._jobs.job import Job
from tensorstore_py._jobs.job_plan import is_plan, planned_of_json
from tensorstore_py.cli.places import place
from tensorstore_py.cli.trusted import add_trust, allowed
from tensorstore_py.errors import SpecError

if TYPE_CHECKING:
    from tensorstore_py._interface.hierarchy import JsonObject

__all__ = ["Found", "add_document", "add_engine", "engine", "found_job"]

#: What a process does by itself.
_HERE: Final = "none"


class Found(NamedTuple):
    """What a user named.

    Attributes:
        job: it.
        document: where it was; None: standard input.
        planned: whether it is a plan.
    """

    job: Job
    document: Document | None
    planned: bool


def add_document(parser: argparse.ArgumentParser, what: str) -> None:
    """Declare the arguments."""
    parser.add_argument("file", metavar="FILE", help=f"{what}: a local path or a URL")


def add_engine(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--env", action="store_true", help="replace ${NAME} by the environment's")
    group = parser.add_argument_group("who does it, if not who the job says")
    group.add_argument("--engine", choices=(_HERE, *ENGINES), help="none: this process")
    group.add_argument("--workers", type=int, metavar="N", help="how many")
    group.add_argument("--address", metavar="ADDRESS", help="of dask's scheduler")
    add_trust(parser)


def engine(options: argparse.Namespace, job: Job) -> JobEngine:
    """Who does it.

    Raises:
        SpecError: the arguments do not go together.
    """
    kind = options.engine
    if kind is None and options.workers is None and options.address is None:
        return job.engine
    if kind == _HERE:
        return JobEngine()
    json: JsonObject = {
        "kind": kind or job.engine.kind or "processes",
        "workers": options.workers,
        "address": options.address,
    }
    return JobEngine.parse({name: value for name, value in json.items() if value is not None})


def found_job(options: argparse.Namespace) -> Found:
    """What is in the document that a user named.

    Raises:
        NotFoundError: it is not there.
        SpecError: something is wrong with it; has the JSON path.
    """
    may = allowed(options)
    if options.env and may is not None:
        raise SpecError(
            "--env would tell a job that is not trusted what is in the environment; drop one"
        )
    document: Document | None
    folder: Path | None
    if options.file == "-":
        document, folder = None, Path.cwd()  # relative to where it was typed
        json = parsed(sys.stdin.buffer.read(), "standard input", env=options.env)
    else:
        document = Document(place(options.file))
        folder = document.folder
        json = document.read(env=options.env)
    name = "standard input" if document is None else document.name
    try:
        if not is_plan(json):
            return Found(Job.parse(json, folder, may), document, planned=False)
        if may is not None:
            raise SpecError("a plan is what was checked before; pass --untrusted with its job file")
        return Found(planned_of_json(json), document, planned=True)
    except SpecError as error:
        raise SpecError(f"{error.problem} (in {name})", error.path) from None
