"""What a driver tells of how much of a region is stored: a plain value, equal to its like.

Who counts, and how, is the engine's matter.
"""

from __future__ import annotations

from tensorstore_py._display.info import rows
from tensorstore_py._display.page import page

__all__ = ["StorageStatistics"]


class StorageStatistics:
    """What is stored of a region.

    Attributes:
        not_stored: True if nothing of it is stored; None if not asked.
        fully_stored: True if all of it is stored; None if not asked.
    """

    __slots__ = ("fully_stored", "not_stored")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, *, not_stored: bool | None = None, fully_stored: bool | None = None) -> None:
        self.not_stored = not_stored
        self.fully_stored = fully_stored

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StorageStatistics):
            return NotImplemented
        return (self.not_stored, self.fully_stored) == (other.not_stored, other.fully_stored)

    def _repr_html_(self) -> str:
        answers = [("Not stored", self.not_stored), ("Fully stored", self.fully_stored)]
        words = {None: "not asked", True: "yes", False: "no"}
        return page("StorageStatistics", "", rows((name, words[told]) for name, told in answers))

    def __repr__(self) -> str:
        return (
            f"TensorStore.StorageStatistics(not_stored={self.not_stored}, "
            f"fully_stored={self.fully_stored})"
        )
