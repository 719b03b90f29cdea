"""Plans whose workers are killed at random, over a store that fails now and then.

Each trial copies a tree with a manifest, by processes of which up to twenty are killed, and
compares what comes of it with the source; no chunk may be stored more often than the kills explain.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.plan.killing import Killing

_killing: Any = Killing  # tests have no types
KILLS = (2, 5, 10, 20)


class Plans:
    """Killed again and again."""

    name = "plans"

    def run(self, number: int, folder: Path) -> None:
        """One trial."""
        trial: Any = _killing(folder, seed=number, kills=KILLS[number % len(KILLS)])
        trial.run()
        trial.check()
