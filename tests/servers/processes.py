"""Processes that end with the one that started them, and the wait until they answer."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG
_PAUSE_S = 0.02
_DROPPED = ("AWS_", "PYTHON", "CEPH_", "SWIFT_", "VIRTUAL_ENV", "STORAGE_", "TENSORSTORE_")


class StartError(Exception):
    """A server did not come up; says what it was doing, and where its log is."""


def free_ports(count: int) -> list[int]:
    """Ports of the loopback that no process listens at."""
    held = [socket.socket() for _ in range(count)]
    try:
        for one in held:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in held]
    finally:
        for one in held:
            one.close()


def until(what: str, done: Callable[[], bool], *, timeout_s: float) -> None:
    """Ask until it is so."""
    end = time.monotonic() + timeout_s
    while not done():
        if time.monotonic() > end:
            raise StartError(f"{what}: not within {timeout_s:g} s")
        time.sleep(_PAUSE_S)


def answers(port: int) -> bool:
    """Whether somebody accepts connections."""
    with socket.socket() as one:
        one.settimeout(1)
        return one.connect_ex(("127.0.0.1", port)) == 0


def http_status(port: int, target: str = "/") -> int:
    """The status of a GET, 0 if there is none."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as one:
            one.sendall(f"GET {target} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
            first = one.recv(64).split(b" ")
    except OSError:
        return 0
    return int(first[1]) if len(first) > 1 and first[1][:3].isdigit() else 0


def _die_with_parent() -> None:
    ctypes.CDLL(None, use_errno=True).prctl(_DEATH_SIGNAL, signal.SIGKILL)


class Processes:
    """Processes that run for one server.

    Args:
        where: the directory of their logs; they run in it.
    """

    def __init__(self, where: Path) -> None:
        self.where = where
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._commands: dict[str, tuple[list[str], dict[str, str]]] = {}

    def spawn(
        self, name: str, command: Sequence[str | Path], environment: Mapping[str, str] | None = None
    ) -> None:
        """Start one; what it says goes into `NAME.log`."""
        self._commands[name] = ([str(part) for part in command], dict(environment or {}))
        self.up(name)

    def up(self, name: str) -> None:
        """Start one again with the command that it was started with."""
        command, environment = self._commands[name]
        with (self.where / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(
                command,
                cwd=self.where,
                env=clean_environment() | environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                # whoever keeps them is a process of one thread: a fork is safe
                preexec_fn=_die_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509
            )

    def down(self, name: str, timeout_s: float = 10.0) -> None:
        """Stop one, with all that it started."""
        process = self._running.pop(name, None)
        if process is None:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(process.pid, number)
            except ProcessLookupError:
                break
            try:
                process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                continue
        process.wait()

    def stop(self, *, at_once: bool = False) -> None:
        """Stop all of them, the last one first."""
        for name in reversed(list(self._running)):
            self.down(name, 0.0 if at_once else 10.0)

    def alive(self) -> list[str]:
        """Those that run."""
        return [name for name, process in self._running.items() if process.poll() is None]

    def call(
        self, command: Sequence[str | Path], environment: Mapping[str, str] | None = None
    ) -> str:
        """What a command prints that comes to an end."""
        done = subprocess.run(
            [str(part) for part in command],
            cwd=self.where,
            env=clean_environment() | dict(environment or {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            said = f"{done.stderr}{done.stdout}".strip()[-500:]
            raise StartError(f"{Path(command[0]).name} failed ({done.returncode}): {said}")
        return done.stdout

    def until(
        self, name: str, what: str, done: Callable[[], bool], timeout_s: float = 30.0
    ) -> None:
        """Wait for one of them, as long as it runs."""

        def asked() -> bool:
            if name not in self.alive():
                log = self.where / f"{name}.log"
                said = log.read_text("utf-8", "replace").strip()[-500:]
                raise StartError(f"{name} ended before {what}: {said} ({log})")
            return done()

        until(f"{name}: {what}", asked, timeout_s=timeout_s)


def clean_environment() -> dict[str, str]:
    """Our variables without what would change how a server behaves."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_DROPPED) and not name.lower().endswith("_proxy")
    }


@contextmanager
def unless_it_fails(processes: Processes) -> Iterator[None]:
    """Leave processes running, but none behind a failure."""
    try:
        yield
    except BaseException:
        processes.stop(at_once=True)
        raise
