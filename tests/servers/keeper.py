"""The process that keeps one server: starts it, waits for its end, and leaves nothing behind.

    python -m tests.servers.keeper NAME DIRECTORY [--owner PID]

It tells in `DIRECTORY/told.json` what a client needs, or in `DIRECTORY/failed` why there is
nothing to tell. It ends at SIGTERM, or with its owner. SIGUSR1 stops the process that clients
speak to, SIGUSR2 starts it again, with what it had stored where the server stores it elsewhere.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path

from tests.servers.installed import NotToBeHadError
from tests.servers.processes import Processes, StartError
from tests.servers.recipes import RECIPES

_LOOK_S = 0.2
_ENDS = (signal.SIGTERM, signal.SIGINT)


def owner_is_gone(owner: int | None) -> Callable[[float], bool]:
    """Make the question whether a process has ended, which waits that long for it."""

    def look(seconds: float) -> bool:
        time.sleep(seconds)
        return owner is not None and _ended(owner)

    if owner is None or sys.platform != "linux":
        return look
    try:
        handle = os.pidfd_open(owner)
    except ProcessLookupError:
        return lambda _: True
    return lambda seconds: bool(select.select([handle], [], [], seconds)[0])


def _ended(owner: int) -> bool:
    try:
        os.kill(owner, 0)
    except ProcessLookupError:
        return True
    return False


def write(path: Path, text: str) -> None:
    """Write a file that nobody sees half of."""
    draft = path.with_suffix(".draft")
    draft.write_text(text, "utf-8")
    draft.replace(path)


def keep(name: str, where: Path, owner: int | None) -> None:
    """Start a server, and stop it when it is time."""
    recipe = RECIPES[name]
    asked: list[int] = []
    starts = True

    def hear(number: int, _: object) -> None:
        asked.append(number)
        if starts and number in _ENDS:
            raise SystemExit  # while it starts there is nobody else to look

    for number in (*_ENDS, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, hear)
    gone = owner_is_gone(owner)
    processes = Processes(where)
    try:
        write(where / "keeper.pid", str(os.getpid()))
        told = _started(name, processes)
        starts = False
        write(where / "told.json", json.dumps(told))
        while not gone(0 if asked else _LOOK_S):
            if asked:
                got = asked.pop(0)
                if got in _ENDS:
                    return
                if got == signal.SIGUSR1:
                    processes.down(recipe.front)
                elif recipe.front not in processes.alive():
                    processes.up(recipe.front)
    except (NotToBeHadError, StartError) as error:
        write(where / "failed", str(error))
    except SystemExit:
        write(where / "failed", "stopped while it started")
    except Exception as error:
        write(where / "failed", f"{type(error).__name__}: {error} ({where / 'keeper.log'})")
        raise
    finally:
        starts = False
        processes.stop(at_once=True)
        (where / "told.json").unlink(missing_ok=True)
        # the last act: who waits for our end waits for this
        (where / "keeper.pid").unlink(missing_ok=True)


def _started(name: str, processes: Processes) -> dict[str, str]:
    recipe = RECIPES[name]
    absent = recipe.absent()
    if absent is not None:
        raise NotToBeHadError(absent)
    try:
        return recipe.start(processes)
    except StartError:
        # somebody else may have taken a port that was free a moment ago
        processes.stop(at_once=True)
        return recipe.start(processes)


def main() -> None:
    """Keep the server that the command line names."""
    parser = ArgumentParser()
    parser.add_argument("name", choices=sorted(RECIPES))
    parser.add_argument("where", type=Path)
    parser.add_argument("--owner", type=int)
    options = parser.parse_args()
    keep(options.name, options.where, options.owner)


if __name__ == "__main__":
    main()
