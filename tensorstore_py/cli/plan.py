"""Say what a job file is going to do, and write that for workers: nothing is changed.

A plan is JSON; what is printed without `--output` is for people.
"""

from __future__ import annotations

import argparse
import json

from tensorstore_py._jobs.job_plan import plan_json, plan_text, planned
from tensorstore_py.cli.jobs import add_document, add_engine, engine, found_job, lasting_document
from tensorstore_py.cli.output import examples
from tensorstore_py.cli.places import tried, trust

__all__ = ["add", "run"]

_TERMINAL = "-"


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_document(parser, "a job file")
    parser.add_argument("-o", "--output", metavar="FILE", type=_output,
                        help="write the plan there, for tspy run; -: to the terminal")  # fmt: skip
    parser.add_argument("--json", action="store_const", const=_TERMINAL, dest="output",
                        help="print the plan, as -o - does")  # fmt: skip
    add_engine(parser)
    examples(
        parser,
        "  tspy plan job.json\n  tspy plan job.json -o s3://bucket/plan.json\n"
        "  tspy run s3://bucket/plan.json --part 0/1\n",
    )


def _output(text: str) -> object:
    return text if text == _TERMINAL else lasting_document(text)


def run(options: argparse.Namespace) -> int:
    """Plan, print what is going to be done, and write it."""
    return tried(lambda: _plan(options))


def _plan(options: argparse.Namespace) -> str:
    found = found_job(options)
    job = found.job._replace(engine=engine(options, found.job))
    if not found.planned:
        job = planned(job)
    if options.output is None:
        return plan_text(job)
    document = plan_json(job)
    if options.output == _TERMINAL:
        return json.dumps(document, indent=1)
    options.output.spec(trust(options, write=True))
    options.output.write(document)
    return plan_text(job)
