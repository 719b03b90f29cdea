"""Check spec and job files: one line for each that is wrong, as file:json-path: what and why.

A file holds the spec of an array, of a kvstore, a context, or a job; which of them is seen from its
members unless `--kind` says. Nothing is opened, no store is asked.
"""

from __future__ import annotations

import argparse
import glob
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._api.spec import Spec, clean_json, load_json
from tensorstore_py._jobs.job import JOB, Allowed, Job
from tensorstore_py._spec.context import Context
from tensorstore_py._spec.json_value import parse_json_text
from tensorstore_py._spec.registry import drivers, kvstores, resources
from tensorstore_py._spec.trust import Trust
from tensorstore_py.cli.exit_codes import DONE, FAILED
from tensorstore_py.cli.output import add_json, examples, printed
from tensorstore_py.cli.places import add_trust, allowed, trust
from tensorstore_py.errors import NotFoundError, SpecError, TensorStoreError

__all__ = ["add", "run"]

KINDS = ("auto", "spec", "kvstore", "context", "job")


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="files or patterns; - for stdin")
    parser.add_argument("--env", action="store_true", help="replace ${NAME} by the environment's")
    parser.add_argument("--kind", choices=KINDS, default="auto", help="what the files hold")
    add_trust(parser)
    parser.add_argument("--write", action="store_true",
                        help="with --untrusted: specs may create and delete arrays")  # fmt: skip
    add_json(parser)
    examples(
        parser,
        "  tspy validate spec.json 'jobs/*.json'\n"
        "  tspy validate --untrusted --store s3://bucket/public/ spec.json\n",
    )


def run(options: argparse.Namespace) -> int:
    """Check the files; 0 if all are right."""
    try:
        trusted = trust(options, write=options.write)
    except SpecError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    if options.env and trusted is not None:
        sys.stderr.write("--env would tell files that are not trusted the environment; drop one\n")
        return 2
    check = partial(_parse, trusted=trusted, allowed=allowed(options))

    def work() -> list[dict[str, str | None]]:
        return [
            {"file": file, "problem": _problem(file, options.kind, check, env=options.env)}
            for file in _expanded(options.files)
        ]

    def problems(found: list[dict[str, str | None]]) -> list[str]:
        return [each["problem"] for each in found if each["problem"] is not None]

    return printed(
        options,
        work,
        lambda found: "\n".join(problems(found)),
        lambda found: FAILED if problems(found) else DONE,
    )


def _expanded(patterns: Sequence[str]) -> Iterator[str]:
    """Files as they are, patterns as the files that match; one that matches none stays."""
    for pattern in patterns:
        # pathlib's glob takes no absolute pattern
        yield from sorted(glob.glob(pattern, recursive=True)) or [pattern]  # noqa: PTH207


def _problem(
    file: str, kind: str, check: Callable[[object, str, Path], None], *, env: bool
) -> str | None:
    """The line to print for a file; None if nothing is wrong."""
    try:
        if file == "-":
            json = clean_json(parse_json_text(sys.stdin.buffer.read()), env=env)
        else:
            json = load_json(file, env=env)
        check(json, kind, Path(file).absolute().parent)
    except SpecError as error:
        text = str(error).removesuffix(f" (in {file})")
        separator = "" if error.path else " "
        return f"{file}:{separator}{text}"
    except (NotFoundError, OSError) as error:
        return f"{file}: {error}"
    except (TensorStoreError, ValueError, TypeError) as error:
        return f"{file}: {error}"
    return None


def _parse(
    json: object, kind: str, folder: Path, *, trusted: Trust | None, allowed: Allowed | None
) -> None:
    """Parse what a file in a directory holds.

    Raises SpecError: it is wrong; has the path to the member.
    """
    if kind == "auto":
        kind = _kind(json)
    if kind == "job":
        Job.parse(json, folder, allowed)
    elif kind == "context":
        Context.Spec(json, trust=trusted)
    elif kind == "kvstore":
        KvStore.Spec(json, trust=trusted)
    else:
        Spec(json, trust=trusted)


def _kind(json: object) -> str:
    """What a file holds, by its members; an array's spec if that can't be told."""
    if isinstance(json, dict):
        if JOB in json:
            return "job"
        name = json.get("driver")
        if (
            name is None
            and json
            and all(isinstance(key, str) and resources.find(key.partition("#")[0]) for key in json)
        ):
            return "context"
        if isinstance(name, str) and drivers.find(name) is None and kvstores.find(name) is not None:
            return "kvstore"
    return "spec"
