"""Asking before something is lost.

On a terminal a person is asked, and "no" is the default. Where nobody can answer, nothing is
changed without `--yes`.
"""

from __future__ import annotations

import argparse
import sys

from tensorstore_py.cli.exit_codes import CALLED_WRONGLY, DONE, FAILED

__all__ = ["add_confirmation", "refusal"]


def add_confirmation(parser: argparse.ArgumentParser) -> None:
    """Declare `--yes`."""
    parser.add_argument("-y", "--yes", action="store_true", help="change it without asking")


def refusal(options: argparse.Namespace, loss: str) -> int:
    """0 if what is about to be lost may be; else the exit code to end with.

    Args:
        options: with `yes`.
        loss: what would be done, such as `"delete the attribute title"`.
    """
    if options.yes:
        return DONE
    if not sys.stdin.isatty():
        sys.stderr.write(f"this would {loss}; say --yes to do it\n")
        return CALLED_WRONGLY
    sys.stderr.write(f"{loss}? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() in ("y", "yes"):
        return DONE
    sys.stderr.write("nothing was changed\n")
    return FAILED
