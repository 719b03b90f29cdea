"""Where workers have time and chance from: the clocks of this machine, or a test's.

Leases of other workers are watched by `now`, which no other machine need agree with. `wall` is what
is written down for people, and for who comes much later. Nothing rests on either but how soon
abandoned work is done again.
"""

from __future__ import annotations

import time

from tensorstore_py._runtime.attempts import Clock as _Clock

__all__ = ["Clock"]


class Clock(_Clock):
    """Time and chance.

    Example:
        >>> clock = Clock()
        >>> clock.wall() > 1.7e9, 0 <= clock.chance() < 1
        (True, True)
    """

    def wall(self) -> float:
        """Seconds since the epoch, as this machine believes."""
        return time.time()
