"""`tspy`: parse the arguments, run one command.

tspy validate config/*.json
tspy info s3://bucket/image.zarr
tspy copy old.zarr s3://bucket/new.zarr --chunks x=512,y=512 --manifest copy.json
tspy rechunk a.zarr b.zarr --chunks 1,-1
tspy migrate old.zarr --dry-run
tspy orbax to-safetensors gs://bucket/run/ model.safetensors
tspy run job.json
tspy plan job.json -o plan.json
tspy run plan.json --part 3/64
tspy status plan.json
tspy schema --output tensorstore.schema.json
tspy ocdbt versions ckpt/
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import tensorstore_py
from tensorstore_py.cli import (
    copy,
    info,
    migrate,
    ocdbt,
    orbax,
    plan,
    rechunk,
    run,
    schema,
    status,
    validate,
)

__all__ = ["main"]

_COMMANDS = (copy, info, migrate, ocdbt, orbax, plan, rechunk, run, schema, status, validate)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: without the program's name; those of the process by default.

    Returns:
        The exit code.
    """
    parser = argparse.ArgumentParser(prog="tspy", description="Tools for tensorstore_py.")
    parser.add_argument(
        "--version", action="version", version=f"tensorstore_py {tensorstore_py.__version__}"
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in _COMMANDS:
        name = command.__name__.rpartition(".")[2]
        about = (command.__doc__ or "").split("\n")[0]
        sub = commands.add_parser(name, help=about, description=about)
        command.add(sub)
        sub.set_defaults(run=command.run)
    options = parser.parse_args(arguments)
    try:
        code: int = options.run(options)
    except BrokenPipeError:
        # The reader of our output has closed the pipe.
        sys.stderr.close()
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("tspy: interrupted\n")
        return 130  # what shells say of a program that Ctrl-C ended
    return code
