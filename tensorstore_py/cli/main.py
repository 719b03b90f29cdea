"""`tspy`: parse the arguments, run one command.

Only the command that is asked for is imported, and nothing else of the package before it, so that
`tspy --help` and `tspy --version` answer at once.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Final, NoReturn

from tensorstore_py.cli.exit_codes import EXIT_CODES, FAILED, INTERRUPTED

__all__ = ["COMMANDS", "main"]

#: What there is, by what it is for; each is the module of its name.
COMMANDS: Final[Mapping[str, Mapping[str, str]]] = {
    "look at what is there": {
        "ls": "list what is in a group, a directory or an archive, one level deep",
        "tree": "draw everything below a place",
        "info": "say what is at a place: an array, a group, or the keys of a store",
        "head": "print the first elements of an array",
        "cat": "print elements, or write them as text, CSV, JSON, .npy or PNG",
        "attrs": "print, set or delete attributes",
        "du": "say how much is stored, and how much of what could be",
        "view": "show arrays in the browser",
    },
    "compute and check": {
        "stats": "minimum, maximum, mean and more of arrays",
        "hist": "draw how the elements of an array are distributed",
        "digest": "print a hash of what arrays hold, however they are stored",
        "diff": "say where two arrays or trees differ",
        "verify": "read every chunk, and name those that are damaged",
        "doctor": "say whether a store is healthy and fast, and what to do if not",
    },
    "copy and change": {
        "copy": "copy an array or a tree to any store, format and chunking",
        "rechunk": "copy with other chunks",
        "migrate": "turn Zarr 1 and 2 into 3",
        "create": "make an empty array or a group, in any format",
        "cp": "copy keys and trees of keys, encoded as they are",
        "mv": "move keys and trees of keys",
        "rm": "delete keys and trees of keys",
    },
    "share": {
        "serve": "serve arrays over HTTP, for viewers, browsers and other programs",
    },
    "databases and checkpoints": {
        "ocdbt": "look after OCDBT databases",
        "orbax": "look into checkpoints of Orbax; safetensors and back",
    },
    "specs and jobs": {
        "validate": "check spec and job files",
        "schema": "write the JSON schema of specs and jobs",
        "plan": "say what a job would do, or write a plan of it for many workers",
        "run": "do what a job or a plan says",
        "status": "say how far a plan is",
        "completion": "print the script that completes tspy in a shell",
    },
}

_EXAMPLES: Final = """\
examples:
  tspy ls s3://bucket/run/
  tspy head 'image.zarr[0, :, 100:200]'
  tspy copy old.zarr s3://bucket/new.zarr --chunks x=512,y=512
  tspy COMMAND --help

"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: without the program's name; those of the process by default.

    Returns:
        The exit code.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = _parser(given).parse_args(given)
    try:
        code: int = options.run(options)
    except BrokenPipeError:
        # The reader of our output has closed the pipe.
        sys.stderr.close()
        return FAILED
    except KeyboardInterrupt:
        sys.stderr.write("tspy: interrupted\n")
        return INTERRUPTED
    return code


def _parser(given: Sequence[str]) -> argparse.ArgumentParser:
    """The parser, with the arguments of the command that is given, and of no other."""
    parser = argparse.ArgumentParser(
        prog="tspy",
        usage="tspy [--version] [--help] COMMAND ...",
        description="Look at, check, copy and change arrays in any store and format.",
        epilog=f"{_listed()}\n{_EXAMPLES}{EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version")
    subs = parser.add_subparsers(
        dest="command", prog="tspy", required=True, metavar="COMMAND", help=argparse.SUPPRESS
    )
    asked = next((each for each in given if not each.startswith("-")), None)
    for about in COMMANDS.values():
        for name, words in about.items():
            if name != asked:
                subs.add_parser(name)
                continue
            sub = subs.add_parser(name, description=f"{words[0].upper()}{words[1:]}.")
            command = import_module(f"tensorstore_py.cli.{name}")
            command.add(sub)
            sub.set_defaults(run=command.run)
    return parser


def _listed() -> str:
    width = max(len(name) for about in COMMANDS.values() for name in about)
    lines = []
    for title, about in COMMANDS.items():
        lines += [f"{title}:", *(f"  {name:<{width}}  {words}" for name, words in about.items())]
    return "\n".join(lines) + "\n"


class _Version(argparse.Action):
    """Prints the version, which is asked for only then."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        package = import_module("tensorstore_py")
        sys.stdout.write(f"tensorstore_py {package.__version__}\n")
        parser.exit()
