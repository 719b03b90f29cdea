"""What an array should hold, kept by NumPy: no chunks but for what lies beyond its bounds.

Elements that are not certain are those of which the rules leave open what they are: what is stored
beyond the bounds, in chunks that were written since. A version is what the array held after a
change; who may see old data sees, element by element, some version that is new enough.
"""

from dataclasses import dataclass, field
from itertools import product

import numpy as np

FILL = 0


@dataclass
class Contents:
    """The elements up to the greatest extent there may be, and which of them are certain."""

    shape: tuple[int, ...]
    chunk: tuple[int, ...]
    values: np.ndarray
    certain: np.ndarray

    @classmethod
    def empty(cls, shape, chunk, most):
        return cls(tuple(shape), tuple(chunk), np.zeros(most, "int16"), np.ones(most, bool))

    def copy(self):
        return Contents(self.shape, self.chunk, self.values.copy(), self.certain.copy())

    def write(self, region, values, known):
        """Write as a handle does that takes the array's shape to be `known`."""
        starts = [
            range(each.start - each.start % size, each.stop, size)
            for each, size in zip(region, self.chunk, strict=True)
        ]
        beyond = np.ones(self.values.shape, bool)
        beyond[tuple(map(slice, known))] = False
        for corner in product(*starts):
            cell = self.cell(corner)
            self.certain[cell] &= ~beyond[cell] | (self.values[cell] == FILL)
        self.values[region] = values
        self.certain[region] = True

    def resize(self, shape, *, listed=True):
        """Change the bounds; `listed`: what was deleted is all that is stored outside."""
        self.shape = tuple(shape)
        for corner in product(*map(range, (0,) * len(shape), self.values.shape, self.chunk)):
            if any(start >= extent for start, extent in zip(corner, shape, strict=True)):
                cell = self.cell(corner)
                if listed:
                    self.certain[cell] = True
                else:
                    self.certain[cell] &= self.values[cell] == FILL
                self.values[cell] = FILL

    def cell(self, corner):
        return tuple(
            slice(start, start + size) for start, size in zip(corner, self.chunk, strict=True)
        )

    def cells(self, region):
        """Which chunks a region touches."""
        return set(
            product(
                *(
                    range(each.start // size, -(-each.stop // size))
                    for each, size in zip(region, self.chunk, strict=True)
                )
            )
        )


@dataclass
class History:
    """Every version so far, with its time."""

    now: Contents
    times: list = field(default_factory=lambda: [float("-inf")])
    versions: list = field(default_factory=list)

    def __post_init__(self):
        self.versions.append(self.now.copy())

    def add(self, time):
        self.times.append(time)
        self.versions.append(self.now.copy())

    @property
    def number(self):
        return len(self.versions) - 1

    def at(self, time):
        """The number of the version that was there at a time."""
        return max(number for number, each in enumerate(self.times) if each <= time)

    def check(self, region, found, least):
        """Each element is of the version `least` (an array of numbers), or of a later one."""
        right = np.zeros(found.shape, bool)
        for number, version in enumerate(self.versions):
            same = ~version.certain[region] | (version.values[region] == found)
            right |= same & (number >= least)
        assert right.all(), f"{found} at {region}, but now it is {self.now.values[region]}"


@dataclass
class Staged:
    """What a transaction did so far."""

    repeatable: bool
    steps: list = field(default_factory=list)
    shape: tuple | None = None  # if it was resized
    metadata: int | None = None  # the number of the size that it rests on
    seen: dict = field(default_factory=dict)  # chunk: how often it had been stored when it was read
    touched: set = field(default_factory=set)  # chunks that it writes
    owners: list = field(default_factory=list)  # the context of each step, and what it wrote

    def over(self, now, version):
        """What the transaction sees, on top of what everybody does."""
        seen = now.copy()
        for kind, *arguments in self.steps:
            if kind == "write":
                seen.write(*arguments)
            else:
                shape, staged_at = arguments
                seen.resize(shape, listed=staged_at == version)
        return seen
