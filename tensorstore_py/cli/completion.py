"""Print the script that completes `tspy` in a shell: commands, options, choices, files.

The script holds all that there is to complete, so that a press of the key starts no Python. It is
made by the library shtab, from the commands' own parsers, and is to be made again after an upgrade.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from typing import Any, Final

from tensorstore_py.cli.exit_codes import DONE, FAILED
from tensorstore_py.cli.main import COMMANDS
from tensorstore_py.cli.output import examples

__all__ = ["add", "run"]

_SHELLS: Final = ("bash", "zsh", "fish")
#: What arguments that name local files are called, among other places.
_PLACES: Final = frozenset(
    {"CHECKPOINT", "DB", "DEST", "FILE", "FILES", "INPUT", "OUTPUT", "PLACE", "PREFIX", "SOURCE",
     "STORE", "TARGET", "WHERE"}
)  # fmt: skip


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("shell", choices=_SHELLS, help="which shell the script is for")
    examples(
        parser,
        "  tspy completion bash > ~/.local/share/bash-completion/completions/tspy\n"
        "  tspy completion zsh > ~/.zfunc/_tspy     # with fpath+=~/.zfunc before compinit\n"
        "  tspy completion fish > ~/.config/fish/completions/tspy.fish\n",
    )


def run(options: argparse.Namespace) -> int:
    """Print the script."""
    try:
        # Any: a library without types of its own that may not be here.
        shtab: Any = import_module("shtab")
    except ImportError:
        sys.stderr.write(
            "the scripts are made by the library shtab, which is not installed: "
            "pip install 'tensorstore_py[cli]'\n"
        )
        return FAILED
    parser = _whole_parser()
    _mark_files(parser, shtab.FILE)
    sys.stdout.write(f"{shtab.complete(parser, shell=options.shell)}\n")
    return DONE


def _whole_parser() -> argparse.ArgumentParser:
    """The parser with the arguments of all commands."""
    parser = argparse.ArgumentParser(prog="tspy")
    parser.add_argument("--version", action="store_true", help="print the version")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for about in COMMANDS.values():
        for name, words in about.items():
            sub = commands.add_parser(name, help=words, description=words)
            import_module(f"tensorstore_py.cli.{name}").add(sub)
            sub.description = words  # which shells show beside the name
    return parser


def _mark_files(parser: argparse.ArgumentParser, files: object) -> None:
    """Have arguments that name places be completed by files, of all commands."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                _mark_files(inner, files)
            continue
        name = action.metavar or action.dest
        if action.nargs != 0 and not action.choices and str(name).upper() in _PLACES:
            action.complete = files  # type: ignore[attr-defined]  # where shtab looks
