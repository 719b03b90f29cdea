"""Say what a job file is going to do, and write that for workers: nothing is changed.

tspy plan job.json
tspy plan job.json -o s3://bucket/plan.json
tspy run s3://bucket/plan.json --part 3/64
"""

from __future__ import annotations

import argparse
import json

from tensorstore_py._jobs.documents import Document
from tensorstore_py._jobs.job_plan import plan_json, plan_text, planned
from tensorstore_py.cli.jobs import add_document, add_engine, engine, found_job
from tensorstore_py.cli.places import lasting_place, tried
from tensorstore_py.cli.trusted import trust

__all__ = ["add", "run"]


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_document(parser, "a job file")
    parser.add_argument("-o", "--output", metavar="FILE",
                        help="write the plan there, for tspy run; -: to the terminal")  # fmt: skip
    add_engine(parser)


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
    if options.output == "-":
        return json.dumps(document, indent=1)
    place = Document(lasting_place(options.output))
    place.spec(trust(options, write=True))
    place.write(document)
    return plan_text(job)
