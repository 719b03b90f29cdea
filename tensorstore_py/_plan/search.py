"""What a worker knows of all parts, and where it looks for its next one.

Each worker begins somewhere else and goes on in order, without asking what there is: alone, it
never has to. Who meets another's part asks for a listing of the parts around it, a page, and goes
on at a random place of it; or right behind that part, if it is done: then somebody has been here
earlier. The one invariant: a part that is known to be taken or finished never becomes free again,
so once there is none left there never is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tensorstore_py._plan.parts import DONE, FREE, TAKEN

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["PAGE", "Search"]

#: So many parts have at most a thousand keys, which is what S3 lists at a time.
PAGE: Final = 500
#: Who was late so often listed too long ago.
_MOST_CONFLICTS: Final = 2


class Search:
    """See the head of this file.

    Args:
        count: how many parts there are.
        share: those to begin with.
        chance: a number in [0, 1).
        anywhere: begin anywhere in the share.
    """

    def __init__(
        self, count: int, share: range, chance: Callable[[], float], *, anywhere: bool
    ) -> None:
        self._count = count
        self._share = share
        self._chance = chance
        self._states = bytearray(count)
        self._conflicts: dict[int, int] = {}  # since the listing of a page
        self._wary = False  # there are others, or were
        self._crowded = False  # there are others
        self._at = share.start + int(chance() * len(share) * anywhere)
        if self._at >= count:
            self._at, self._wary = int(chance() * count), True

    def next_free(self) -> int | None:
        """The part to try next; None: there is none left."""
        if not self._count:
            return None
        low, high = self.page(self._at)
        found = self._within(self._at, high, low)
        if found < 0:
            found = self._within(high, self._count, 0)
            if found < 0:
                return None
            if self._crowded:
                self._jump(*self.page(found))
                return self.next_free()
        self._at = found
        return found

    def _within(self, at: int, high: int, low: int) -> int:
        """The first free part from somewhere on, or else from an earlier place; or -1."""
        found = self._states.find(FREE, at, high)
        return found if found >= 0 else self._states.find(FREE, low, at)

    def page(self, part: int) -> tuple[int, int]:
        """The parts that are listed together with one."""
        low = part - part % PAGE
        return low, min(self._count, low + PAGE)

    def wants_page(self, part: int) -> bool:
        """Whether to list a part's page before it is tried."""
        return self._wary and self._conflicts.get(part // PAGE, _MOST_CONFLICTS) >= _MOST_CONFLICTS

    def learn(self, low: int, states: bytearray) -> list[int]:
        """A page is listed; returns the parts that are newly known to be done."""
        self._conflicts[low // PAGE] = 0
        known = np.frombuffer(self._states, np.uint8)[low : low + len(states)]
        found = np.maximum(known, np.frombuffer(states, np.uint8))
        new: list[int] = (low + np.flatnonzero((found == DONE) & (known != DONE))).tolist()
        known[:] = found
        return new

    def note(self, part: int, state: int) -> bool:
        """A part is at least so far; returns whether it is newly known to be done."""
        before = self._states[part]
        self._states[part] = max(state, before)
        return state == DONE != before

    def claimed(self, part: int) -> None:
        """It is ours; go on behind it."""
        self.note(part, TAKEN)
        self._at = (part + 1) % self._count
        if part + 1 == self._share.stop and len(self._share) < self._count:
            self._wary = self._crowded = True

    def refused(self, part: int) -> None:
        """Somebody else has it."""
        self._wary = True
        self.note(part, TAKEN)
        page = part // PAGE
        self._conflicts[page] = self._conflicts.get(page, _MOST_CONFLICTS) + 1
        self._at = part

    def move_on(self) -> None:
        """Go on elsewhere, after one was refused, and its page is listed."""
        if self._states[self._at] != DONE:
            self._crowded = True
            self._jump(*self.page(self._at))

    def _jump(self, low: int, high: int) -> None:
        self._at = low + int(self._chance() * (high - low))

    def is_done(self, part: int) -> bool:
        """Whether a part is known to be done."""
        return self._states[part] == DONE

    def unfinished(self) -> list[int]:
        """The parts that are not known to be done."""
        states = np.frombuffer(self._states, np.uint8)
        found: list[int] = np.flatnonzero(states != DONE).tolist()
        return found
