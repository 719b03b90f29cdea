"""Read-ahead: blocks of data files, from which small values that lie close together are answered.

Values of neighbouring keys mostly lie side by side, as the documents and small chunks of a
checkpoint do. A reader that blocks its thread asks for one after the other, and each
request of a file system costs more than some dozen KiB do. So a small read in a block of which, or
of the one before it, something was read not long ago is made of all of the block, which is kept.
What is read here and there in a large file is read as it is.

Data files never change, so what is kept is never out of date. What checks or changes a database as
a whole reads the files themselves.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, NamedTuple

from tensorstore_py.plugin.kvstore import Buffer, Mutex

__all__ = ["SMALL_BYTES", "Block", "ReadAhead", "block_of"]

#: What is small, and how much a block has, in bytes.
SMALL_BYTES: Final = 1 << 13
_BLOCK_BYTES: Final = 1 << 16
#: How many blocks are kept: 1 MiB.
_BLOCKS: Final = 16
#: Of how many blocks it is known that something of them was read.
_TOUCHED: Final = 256


class Block(NamedTuple):
    """A block of a data file; blocks lie side by side from the beginning of the file.

    Attributes:
        key: of the file.
        number: of the block.
    """

    key: str
    number: int

    @property
    def start(self) -> int:
        """Where it begins."""
        return self.number * _BLOCK_BYTES

    @property
    def stop(self) -> int:
        """Where the next one begins."""
        return self.start + _BLOCK_BYTES


def block_of(key: str, position: int) -> Block:
    """The block of a file that has that byte."""
    return Block(key, position // _BLOCK_BYTES)


class ReadAhead:
    """See the head of this file."""

    def __init__(self) -> None:
        self._mutex = Mutex()
        self._kept: OrderedDict[Block, Buffer] = OrderedDict()
        self._touched: OrderedDict[Block, None] = OrderedDict()

    def get(self, block: Block) -> Buffer | None:
        """What is kept of a block from its beginning on; None if nothing is."""
        with self._mutex:
            found = self._kept.get(block)
            if found is not None:
                self._kept.move_to_end(block)
        return found

    def touch(self, block: Block) -> bool:
        """Note that something of a block is read; whether to read all of it."""
        touched = self._touched
        with self._mutex:
            if block in touched or block._replace(number=block.number - 1) in touched:
                return True
            self._note(block)
        return False

    def keep(self, block: Block, data: Buffer) -> None:
        """Keep a block: more if a value in it goes on, less at the end of the file."""
        kept = self._kept
        with self._mutex:
            kept[block] = data
            self._note(block)  # the next one may be wanted, too
            while len(kept) > _BLOCKS:
                kept.popitem(last=False)

    def _note(self, block: Block) -> None:
        """The mutex is held."""
        self._touched[block] = None
        if len(self._touched) > _TOUCHED:
            self._touched.popitem(last=False)
