"""Read every chunk of arrays, checksums included, and name those that do not decode.

Whole stored chunks are read, a few at a time, and forgotten; of many small arrays those of several
at a time. Of a shard that is damaged every inner chunk is read by itself, so that each that is
damaged is named; a damaged index is one problem, of the whole shard. What is missing is no damage,
unless the array's spec or `--complete` says that it is.
"""

from __future__ import annotations

import argparse
import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tensorstore_py._api.blocks import Blocks
from tensorstore_py._api.open import open as open_array
from tensorstore_py._api.spec import Spec
from tensorstore_py._api.tensorstore import TensorStore
from tensorstore_py._chunked.driver import ChunkedDriver
from tensorstore_py._runtime.progress import Progress
from tensorstore_py.cli.exit_codes import DONE, FAILED
from tensorstore_py.cli.found import Entry, add_trusted_target, find, some_arrays, trusted
from tensorstore_py.cli.output import add_json, examples, painted, printable, printed
from tensorstore_py.cli.progress import add_progress, metered
from tensorstore_py.errors import TensorStoreError

if TYPE_CHECKING:
    from tensorstore_py._api.blocks import Block
    from tensorstore_py._runtime.future import Future
    from tensorstore_py.cli.progress import Meter

__all__ = ["add", "run"]

Facts = dict[str, Any]  # Any: JSON, to be walked through
Bounds = tuple[tuple[int, int], ...]

#: So many bytes of elements are on their way at a time, if a single block has not more.
_IN_FLIGHT: Final = 2**28
#: And so many blocks.
_AT_A_TIME: Final = max(16, 4 * (os.cpu_count() or 1))
#: A block has at least so many bytes of elements, if there are more chunks.
_BLOCK: Final = 2**22


class _Failure(NamedTuple):
    """A part of an array that cannot be read."""

    bounds: Bounds
    error: TensorStoreError


class _Reading(NamedTuple):
    """A block that is being read: of which array, and for how many bytes of elements it stands."""

    number: int
    block: Block
    size: int
    future: Future[Any]


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_trusted_target(parser)
    parser.add_argument("--complete", action="store_true",
                        help="chunks that are missing are problems, too")  # fmt: skip
    add_progress(parser)
    add_json(parser)
    examples(
        parser,
        "  tspy verify run.zarr && echo all right\n  tspy verify 'image.zarr[t=0]' --complete\n"
        "  tspy verify s3://bucket/run.zarr --json\n",
    )


def run(options: argparse.Namespace) -> int:
    """Print what is damaged; 1 if anything is."""

    def work() -> Facts:
        asked = some_arrays(options.target, find(trusted(options.target, options)))
        if options.complete:
            asked = [_demanding(each) for each in asked]
        with metered(options, "verify", [each.nbytes for each in asked]) as meter:
            found = _verified(asked, meter)
        return {"damaged": any(each["problems"] for each in found), "arrays": found}

    return printed(options, work, _text, lambda found: FAILED if found["damaged"] else DONE)


def _demanding(entry: Entry) -> Entry:
    """An array of which each chunk has to be stored."""
    array = entry.found
    if not isinstance(array, TensorStore):
        return entry
    if not isinstance(array._driver, ChunkedDriver):
        problem = "it is not stored in chunks of its own; name the arrays that it is of"
        return Entry(entry.name, "unreadable", problem=problem)
    model = array._bound_spec().replace(fill_missing_data_reads=False)
    return entry._replace(found=open_array(Spec.of(model), read=True).result())


class _Array:
    """One array that is verified: its blocks, and those that could not be read."""

    def __init__(self, number: int, array: TensorStore) -> None:
        self.number = number
        self.array = array
        self.blocks = _blocks(array, _BLOCK)
        self.failures: list[_Failure] = []
        self._item = array.dtype.numpy_dtype.itemsize
        self._done = self._chunks = 0

    def size(self, block: Block) -> int:
        """Bytes of elements of a block."""
        return block.size * self._item

    def take(self, reading: _Reading, meter: Meter) -> None:
        """Wait for a block."""
        self.failures += _awaited(reading.block, reading.future)
        self._done += reading.size
        self._chunks += reading.block.chunks
        part = meter.part(self.number)
        if part is not None:
            whole = self.array.size * self._item
            part(Progress(self._done, whole, self._chunks, self.blocks.chunks))

    def problems(self) -> list[Facts]:
        """What is damaged, each chunk by itself, but where one thing damages several."""
        found: dict[str, tuple[Bounds, str | None]] = {}
        for failure in self.failures:
            parts = _blocks(self.array[_index(failure.bounds)], 1)
            for each in _failures(self.array, parts) if parts.count > 1 else (failure,):
                known, text = found.get(str(each.error)), str(each.error)
                bounds = each.bounds if known is None else _around(known[0], each.bounds)
                found[text] = bounds, self._key(each.bounds)
        return [
            {"key": key, "bounds": [list(pair) for pair in bounds], "problem": text}
            for text, (bounds, key) in found.items()
        ]

    def _key(self, bounds: Bounds) -> str | None:
        """The key of the chunk that is there; None: it is not known."""
        driver = self.array._driver
        if not isinstance(driver, ChunkedDriver):
            return None
        return driver.key_at(self.array._transform([low for low, _ in bounds]))


def _verified(asked: Sequence[Entry], meter: Meter) -> list[Facts]:
    known = {
        number: _Array(number, each.found)
        for number, each in enumerate(asked)
        if isinstance(each.found, TensorStore)
    }
    waiting: deque[_Reading] = deque()
    in_flight = 0
    for reading in _readings(known.values()):
        waiting.append(reading)
        in_flight += reading.size
        while len(waiting) > 1 and (len(waiting) > _AT_A_TIME or in_flight > _IN_FLIGHT):
            first = waiting.popleft()
            in_flight -= first.size
            known[first.number].take(first, meter)
    for reading in waiting:
        known[reading.number].take(reading, meter)
    told: list[Facts] = []
    for number, each in enumerate(asked):
        array = known.get(number)
        chunks = 0 if array is None else array.blocks.chunks
        problems = [{"problem": each.problem}] if array is None else array.problems()
        told.append({"array": each.name, "chunks": chunks, "problems": problems})
        meter.finish(number)
    return told


def _readings(known: Iterable[_Array]) -> Iterator[_Reading]:
    """All blocks, each of which begins to be read when it is asked for."""
    for each in known:
        for block in each.blocks:
            future = each.array[_index(block.bounds)].read()
            yield _Reading(each.number, block, each.size(block), future)


def _around(one: Bounds, other: Bounds) -> Bounds:
    """The smallest box that holds two."""
    return tuple((min(a, c), max(b, d)) for (a, b), (c, d) in zip(one, other, strict=True))


def _blocks(array: TensorStore, size: int) -> Blocks:
    """What is read at a time: whole chunks of so many bytes, or of a few more."""
    elements = max(1, size // max(1, array.dtype.numpy_dtype.itemsize))
    return Blocks.of_read(array._driver, array._transform, least=elements, most=elements)


def _failures(array: TensorStore, blocks: Blocks) -> Iterator[_Failure]:
    """The blocks of one array that cannot be read."""
    waiting: deque[tuple[Block, Future[Any]]] = deque()
    for block in blocks:
        waiting.append((block, array[_index(block.bounds)].read()))
        if len(waiting) >= _AT_A_TIME:
            yield from _awaited(*waiting.popleft())
    for each in waiting:
        yield from _awaited(*each)


def _awaited(block: Block, reading: Future[Any]) -> Iterator[_Failure]:
    try:
        reading.result()
    except TensorStoreError as error:
        yield _Failure(block.bounds, error)


def _index(bounds: tuple[tuple[int, int], ...]) -> tuple[slice, ...]:
    return tuple(slice(low, high) for low, high in bounds)


def _text(found: Facts) -> str:
    lines = []
    for each in found["arrays"]:
        lines += [
            f"{painted(each['array'] or '.', 'damage', sent=True)}{_box(problem)}: "
            f"{printable(problem['problem'], lines=True)}"
            for problem in each["problems"]
        ]
    chunks = sum(each["chunks"] for each in found["arrays"])
    count = sum(len(each["problems"]) for each in found["arrays"])
    arrays_ = f"{len(found['arrays'])} array{'s' * (len(found['arrays']) != 1)}"
    what = f"{count} problem{'s' * (count != 1)}" if count else "nothing is damaged"
    what = painted(what, "damage" if count else "good", sent=True)
    lines.append(f"{what}, in {chunks:,} chunk{'s' * (chunks != 1)} of {arrays_}")
    return "\n".join(lines)


def _box(problem: Facts) -> str:
    pairs = problem.get("bounds", ())
    return f" [{', '.join(f'{low}:{high}' for low, high in pairs)}]" if pairs else ""
