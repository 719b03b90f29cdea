"""Chromium without a window, which takes orders of DevTools: pages are tested in it."""

from __future__ import annotations

from tests.servers.installed import Unpacked, program_of_the_machine
from tests.servers.processes import Processes, answers, free_ports
from tests.servers.recipe import Recipe, Told

_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
#: Debian's command is a script that looks for the program at the machine's own place.
_UNPACKED = "../lib/chromium/chromium"


class Chromium(Recipe):
    """The machine's Chromium, or Debian's."""

    name = "chromium"
    front = "chromium"

    def __init__(self) -> None:
        self._packages = Unpacked(
            "chromium", ["chromium", "fonts-dejavu-core"], [[_UNPACKED, "--version"]]
        )

    def absent(self) -> str | None:
        return None if _of_the_machine() else self._packages.absent()

    def torn(self) -> str | None:
        return None if _of_the_machine() else self._packages.torn()

    def install(self) -> None:
        if _of_the_machine() is None:
            self._packages.install()

    def start(self, processes: Processes) -> Told:
        (port,) = free_ports(1)
        program, environment = _of_the_machine(), {}
        if program is None:
            program, environment = self._packages.program(_UNPACKED), self._packages.environment()
        environment |= {"HOME": str(processes.where), "XDG_CONFIG_HOME": str(processes.where)}
        command = [
            program, "--headless=new", f"--remote-debugging-port={port}",
            f"--user-data-dir={processes.where / 'profile'}",
            # root has no sandbox, and containers no shared memory to speak of
            "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--force-color-profile=srgb", "--hide-scrollbars", "about:blank",
        ]  # fmt: skip
        processes.spawn(self.front, command, environment)
        processes.until(self.front, "it serves", lambda: answers(port))
        return {"endpoint": f"http://127.0.0.1:{port}"}


def _of_the_machine() -> str | None:
    found = (program_of_the_machine(name) for name in _PROGRAMS)
    return next((each for each in found if each), None)
