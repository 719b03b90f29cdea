"""The process that keeps one server: starts it, waits for its end, and leaves nothing behind.

    python -m tests.servers.keeper NAME DIRECTORY [--owner PID]

It tells in `DIRECTORY/told.json` what a client needs, or in `DIRECTORY/failed` why there is
nothing to tell; `DIRECTORY/absent` is there, too, if that is because the server is not installed or
not complete. It ends at SIGTERM, or with its owner. SIGUSR1 stops the process that clients
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

#: How long a server may take to start, a second attempt included. Callers wait longer.
START_S = 75
_LOOK_S = 0.2
_ENDS = (signal.SIGTERM, signal.SIGINT)


class LateError(StartError):
    """There is no time left for another attempt."""


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
    """Write a file that no reader sees half of."""
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
            raise SystemExit  # while it starts there is no other process to look

    def late(*_: object) -> None:
        if starts:
            raise LateError(f"{name} did not start within {START_S} s; its logs: {where}")

    for number in (*_ENDS, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, hear)
    signal.signal(signal.SIGALRM, late)
    signal.alarm(START_S)
    gone = owner_is_gone(owner)
    processes = Processes(where)
    try:
        write(where / "keeper.pid", str(os.getpid()))
        told = _started(name, processes)
        starts = False
        signal.alarm(0)
        write(where / "told.json", json.dumps(told))
        while not gone(0 if asked else _LOOK_S):
            if asked and asked[0] in _ENDS:
                return
            if asked:
                _turn(processes, recipe.front, on=asked.pop(0) == signal.SIGUSR2)
    except (Exception, SystemExit) as error:
        if not _told_why(error, where):
            raise
    finally:
        starts = False
        processes.stop(at_once=True)
        (where / "told.json").unlink(missing_ok=True)
        # the last act: those that wait for our end wait for this
        (where / "keeper.pid").unlink(missing_ok=True)


def _turn(processes: Processes, front: str, *, on: bool) -> None:
    """Stop the process that clients speak to, or start it if it does not run."""
    if not on:
        processes.down(front)
    elif front not in processes.alive():
        processes.up(front)


def _told_why(error: BaseException, where: Path) -> bool:
    """Tell those who ask why there is no server. Returns whether that is all there is to say."""
    if isinstance(error, NotToBeHadError):
        write(where / "absent", "")
    expected = isinstance(error, (NotToBeHadError, StartError))
    if expected:
        write(where / "failed", str(error))
    elif isinstance(error, SystemExit):
        write(where / "failed", "stopped while it started")
    else:
        write(where / "failed", f"{type(error).__name__}: {error} ({where / 'keeper.log'})")
    return expected or isinstance(error, SystemExit)


def _started(name: str, processes: Processes) -> dict[str, str]:
    recipe = RECIPES[name]
    problem = recipe.absent() or recipe.torn()
    if problem is not None:
        raise NotToBeHadError(problem)
    try:
        return recipe.start(processes)
    except LateError:
        raise
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
