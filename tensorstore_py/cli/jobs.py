"""What commands that take job files and plans have in common: which document, and what is in it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from tensorstore_py._jobs.documents import Document, parsed
from tensorstore_py._jobs.job import ENGINES, Job, JobEngine
from tensorstore_py._jobs.job_plan import is_plan, planned_of_json
from tensorstore_py._spec.json_value import parse_json_text
from tensorstore_py.cli.places import add_trust, allowed, lasting_place, place
from tensorstore_py.errors import SpecError

if TYPE_CHECKING:
    from tensorstore_py._interface.hierarchy import JsonObject

__all__ = [
    "FoundDocument",
    "add_document",
    "add_engine",
    "document",
    "engine",
    "found_job",
    "lasting_document",
]

#: What a process does by itself.
_HERE: Final = "none"


class FoundDocument(NamedTuple):
    """What a user named."""

    job: Job
    document: Document | None
    planned: bool


def add_document(parser: argparse.ArgumentParser, what: str) -> None:
    """Declare the arguments."""
    parser.add_argument("file", metavar="FILE", help=f"{what}: a local path or a URL")


def document(text: str) -> Document:
    """The document that a user names, by a path, a URL or the JSON of a store's spec."""
    found = place(text)
    is_json = isinstance(found, str) and found.lstrip()[:1] == "{"
    return Document(parse_json_text(text) if is_json else found)


def lasting_document(text: str) -> Document:
    """The same, as an argument: it is still there when the command has ended.

    Raises ArgumentTypeError: it is in memory, or no place of a document.
    """
    lasting_place(text)
    try:
        found = document(text)
        found.spec()
    except SpecError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return found


def add_engine(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--env", action="store_true", help="replace ${NAME} by the environment's")
    group = parser.add_argument_group("who does it, if not who the job says")
    group.add_argument("--engine", choices=(_HERE, *ENGINES), help="none: this process")
    group.add_argument("--workers", type=int, metavar="N", help="how many")
    group.add_argument("--address", metavar="ADDRESS", help="of dask's scheduler")
    add_trust(parser)


def engine(options: argparse.Namespace, job: Job) -> JobEngine:
    """What runs it.

    Raises SpecError: the arguments do not go together.
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


def found_job(options: argparse.Namespace) -> FoundDocument:
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
    where: Document | None
    folder: Path | None
    if options.file == "-":
        where, folder = None, Path.cwd()  # relative to where it was typed
        json = parsed(sys.stdin.buffer.read(), "standard input", env=options.env)
    else:
        where = document(options.file)
        folder = where.folder
        json = where.read(env=options.env)
    name = "standard input" if where is None else where.name
    try:
        if not is_plan(json):
            return FoundDocument(Job.parse(json, folder, may), where, planned=False)
        if may is not None:
            raise SpecError("a plan is what was checked before; pass --untrusted with its job file")
        return FoundDocument(planned_of_json(json), where, planned=True)
    except SpecError as error:
        raise SpecError(f"{error.problem} (in {name})", error.path) from None
