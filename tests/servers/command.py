"""The command line of scripts/servers."""

from __future__ import annotations

import json
import shutil
import signal
import sys
import time
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from pathlib import Path

from tests.servers import kept
from tests.servers.installed import NotToBeHadError, cache
from tests.servers.processes import StartError
from tests.servers.recipes import RECIPES

DESCRIPTION = """\
Servers for the tests, on free ports of the loopback.

  scripts/servers install [NAME...]   install what is not installed yet
  scripts/servers status              what is installed and what runs, and why something is not
  scripts/servers start [NAME...]     start them; prints what clients need, as JSON
  scripts/servers stop [NAME...]      stop them
  scripts/servers down NAME...        stop what clients speak to, and keep what is stored behind it
  scripts/servers up NAME...          start that again, at the same port
"""


def install(options: Namespace) -> int:
    """Install servers; 1 if one could not be had."""
    missing = 0
    for name in options.names:
        began = time.monotonic()
        try:
            RECIPES[name].install()
        except (NotToBeHadError, OSError) as error:
            missing += 1
            print(f"{name}: not to be had: {error}")
        else:
            print(f"{name}: installed ({time.monotonic() - began:.1f} s)")
    return 1 if missing else 0


def status(options: Namespace) -> int:
    """Say how each server stands."""
    print(f"installed below {cache()}, running below {options.dir}")
    running = kept.running(options.dir)
    for name in options.names:
        absent = RECIPES[name].absent() or RECIPES[name].torn()
        stands = f"runs at {running[name]['endpoint']}" if name in running else "does not run"
        print(f"{name}: {absent or f'installed, {stands}'}")
    return 0


def start(options: Namespace) -> int:
    """Start servers, and print what clients need; 1 if one did not come up."""
    failed = 0
    for name in options.names:
        try:
            kept.ask_for(name, options.dir, again=True)
        except (NotToBeHadError, StartError) as error:
            failed += 1
            print(f"{name}: {error}", file=sys.stderr)
    print(json.dumps(kept.running(options.dir), indent=2))
    return 1 if failed else 0


def stop(options: Namespace) -> int:
    """Stop servers, and remove what they left."""
    for name in options.names:
        kept.stop(name, options.dir)
        shutil.rmtree(options.dir / name, ignore_errors=True)
    return 0


def down(options: Namespace) -> int:
    """Stop what clients speak to."""
    return _signalled(options, signal.SIGUSR1)


def up(options: Namespace) -> int:
    """Start again what clients speak to."""
    return _signalled(options, signal.SIGUSR2)


def _signalled(options: Namespace, number: signal.Signals) -> int:
    missing = [name for name in options.names if not kept.send(name, options.dir, number)]
    for name in missing:
        print(f"{name} does not run: scripts/servers start {name}", file=sys.stderr)
    return 1 if missing else 0


COMMANDS = {
    "install": install,
    "status": status,
    "start": start,
    "stop": stop,
    "down": down,
    "up": up,
}


def main() -> int:
    """Do what the command line says."""
    parser = ArgumentParser(
        prog="scripts/servers", description=DESCRIPTION, formatter_class=RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join([*RECIPES, "all"]))
    parser.add_argument(
        "--dir", type=Path, default=cache() / "running", help="where those that run together are"
    )
    options = parser.parse_args()
    options.dir = options.dir.absolute()
    unknown = sorted(set(options.names) - {*RECIPES, "all"})
    if unknown:
        parser.error(f"no server is named {unknown[0]}; there are {', '.join(RECIPES)}, all")
    if "all" in options.names or not options.names:
        if options.command in ("down", "up"):
            parser.error(f"{options.command} needs names")
        options.names = list(RECIPES)
    return COMMANDS[options.command](options)
