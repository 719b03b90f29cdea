"""Say how far a plan is: tasks and bytes done, who is at work, and what is damaged."""

from __future__ import annotations

import argparse
import json
import sys

from tensorstore_py._jobs.job_plan import is_plan, planned_of_json
from tensorstore_py._jobs.job_status import job_status
from tensorstore_py.cli.jobs import add_document, document
from tensorstore_py.cli.output import examples
from tensorstore_py.errors import SpecError, TensorStoreError

__all__ = ["add", "run"]

_ENDS = """\
exit codes:
  0    done
  1    failed: there is no plan, or it cannot be read
  3    not done, or not all of it can be
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    examples(parser, "  tspy status s3://bucket/plan.json\n", _ENDS)
    add_document(parser, "a plan, or the manifest of a job")
    parser.add_argument("--json", action="store_true", help="as JSON")


def run(options: argparse.Namespace) -> int:
    """Print it."""
    try:
        where = document(options.file)
        found = where.read()
        if not is_plan(found):
            raise SpecError(
                f"{where.name} is no plan; `tspy plan {options.file} -o plan.json` makes one"
            )
        status = job_status(planned_of_json(found), where)
    except (TensorStoreError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    text = json.dumps(status.to_json(), indent=1) if options.json else str(status)
    sys.stdout.write(f"{text}\n")
    return 0 if status.state == "done" and not status.failed else 3
