"""What every server that can be installed and started has."""

from __future__ import annotations

from abc import ABC, abstractmethod

from tests.servers.processes import Processes

Told = dict[str, str]


class Recipe(ABC):
    """How to install a server, and how to start it.

    Attributes:
        name: how it is asked for.
        front: which of its processes clients speak to.
    """

    name: str
    front: str

    @abstractmethod
    def absent(self) -> str | None:
        """Why it cannot be started; None if it can."""

    def torn(self) -> str | None:
        """What is missing of what is installed; None if it is complete."""
        return None

    @abstractmethod
    def install(self) -> None:
        """Install it, unless it is installed; raises `NotToBeHadError`."""

    @abstractmethod
    def start(self, processes: Processes) -> Told:
        """Start it, wait until it serves, and say what a client needs: `endpoint`, ..."""
