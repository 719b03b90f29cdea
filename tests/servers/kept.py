"""Servers in processes that outlive their first user: found, started and stopped by directory.

Several processes may ask for the same server in the same directory at once: one of them starts it,
and all of them get it.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from tests.servers.alone import alone
from tests.servers.installed import NotToBeHadError
from tests.servers.processes import StartError, until
from tests.servers.recipe import Told

ROOT = Path(__file__).resolve().parents[2]
_START_S = 80.0


def ask_for(name: str, where: Path, owner: int | None = None, *, again: bool = False) -> Told:
    """What a client of a server needs, which is started if it was not yet.

    Args:
        name: which one.
        where: the directory of all servers that belong together.
        owner: the process that they end with; None if they go on until they are stopped.
        again: start it also if it has been and has ended.

    Raises:
        StartError: it does not come up; says why, to whoever asks again at once.
        NotToBeHadError: it is not installed, or not complete.
    """
    own = where / name
    told, failed, pid = own / "told.json", own / "failed", own / "keeper.pid"

    def up_or_not() -> bool:
        return told.exists() or failed.exists()

    with alone(where / f"{name}.lock"):
        if again and not send(name, where, None):
            shutil.rmtree(own, ignore_errors=True)
        if not own.exists():
            own.mkdir()
            _begin(name, own, owner)
            try:
                until(name, lambda: pid.exists() or up_or_not(), timeout_s=_START_S)
            except StartError as error:
                failed.write_text(f"{error}; its log: {own / 'keeper.log'}", "utf-8")
    until(name, up_or_not, timeout_s=_START_S)
    if failed.exists():
        why = failed.read_text("utf-8")
        raise NotToBeHadError(why) if (own / "absent").exists() else StartError(why)
    found: Told = json.loads(told.read_text("utf-8"))
    return found


def _begin(name: str, own: Path, owner: int | None) -> None:
    command = [sys.executable, "-m", "tests.servers.keeper", name, str(own)]
    if owner is not None:
        command += ["--owner", str(owner)]
    with (own / "keeper.log").open("ab") as log:
        keeper = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    # it is no child of this process: it ends with its owner, or on request
    keeper.returncode = 0


def send(name: str, where: Path, number: signal.Signals | None) -> bool:
    """Send a signal, or none, to the keeper of a server. Returns whether there is one."""
    try:
        keeper = int((where / name / "keeper.pid").read_text("utf-8"))
        with suppress(ChildProcessError):
            # one that we started and that was killed is no process any more
            os.waitpid(keeper, os.WNOHANG)
        os.kill(keeper, number or 0)
    except FileNotFoundError:
        return False
    except ProcessLookupError:
        # it was killed: its processes have died with it
        (where / name / "keeper.pid").unlink(missing_ok=True)
        (where / name / "told.json").unlink(missing_ok=True)
        return False
    return True


def running(where: Path) -> dict[str, Told]:
    """What runs in a directory."""
    return {
        path.parent.name: json.loads(path.read_text("utf-8"))
        for path in sorted(where.glob("*/told.json"))
    }


def stop(name: str, where: Path) -> bool:
    """Stop a server, and wait until it has ended. Returns whether it ran."""
    pid = where / name / "keeper.pid"
    if not send(name, where, signal.SIGTERM):
        return False
    until(f"{name} ends", lambda: not pid.exists(), timeout_s=30)
    return True
