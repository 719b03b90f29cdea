"""Read every chunk of arrays, checksums included, and name those that do not decode.

Whole stored chunks are read, a few at a time, and forgotten. Of a shard that is damaged every inner
chunk is read by itself, so that each that is damaged is named. What is missing is no damage.
"""

from __future__ import annotations

import argparse
import os
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from tensorstore_py._api.blocks import Blocks
from tensorstore_py._api.tensorstore import TensorStore
from tensorstore_py.cli.exit_codes import DONE, FAILED
from tensorstore_py.cli.found import add_target, arrays, find
from tensorstore_py.cli.output import add_json, examples, printed
from tensorstore_py.errors import TensorStoreError

if TYPE_CHECKING:
    from tensorstore_py._api.blocks import Block
    from tensorstore_py._runtime.future import Future
    from tensorstore_py.cli.found import Entry

__all__ = ["add", "run"]

Facts = dict[str, Any]  # Any: JSON, to be walked through

#: So many bytes of elements are on their way at a time, if a single block has not more.
_IN_FLIGHT = 2**28
#: A block has at least so many bytes of elements, if there are more chunks.
_BLOCK = 2**22


class _Failure(NamedTuple):
    """A part of an array that cannot be read."""

    bounds: tuple[tuple[int, int], ...]
    error: TensorStoreError


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_target(parser)
    add_json(parser)
    examples(
        parser,
        "  tspy verify run.zarr && echo all right\n  tspy verify 'image.zarr[t=0]'\n"
        "  tspy verify s3://bucket/run.zarr --json\n",
    )


def run(options: argparse.Namespace) -> int:
    """Print what is damaged; 1 if anything is."""

    def work() -> Facts:
        found = [_facts(each) for each in arrays(find(options.target))]
        return {"damaged": any(each["problems"] for each in found), "arrays": found}

    return printed(options, work, _text, lambda found: FAILED if found["damaged"] else DONE)


def _facts(entry: Entry) -> Facts:
    if not isinstance(entry.found, TensorStore):
        return {"array": entry.name, "chunks": 0,
                "problems": [{"problem": entry.problem}]}  # fmt: skip
    array, problems = entry.found, dict[str, Facts]()
    blocks = _blocks(array, _BLOCK)
    for failure in _failures(array, blocks):
        parts = _blocks(array[_index(failure.bounds)], 1)
        for each in _failures(array, parts) if parts.count > 1 else (failure,):
            # A shard whose index is damaged is one problem, though no chunk in it can be read.
            problems.setdefault(
                str(each.error),
                {"bounds": [list(pair) for pair in each.bounds], "problem": str(each.error)},
            )
    return {"array": entry.name, "chunks": blocks.chunks, "problems": [*problems.values()]}


def _blocks(array: TensorStore, size: int) -> Blocks:
    """What is read at a time: whole chunks of so many bytes, or of a few more."""
    elements = max(1, size // max(1, array.dtype.numpy_dtype.itemsize))
    return Blocks.of_read(array._driver, array._transform, least=elements, most=elements)


def _failures(array: TensorStore, blocks: Blocks) -> Iterator[_Failure]:
    """The blocks that cannot be read."""
    size = max(1, array.dtype.numpy_dtype.itemsize * blocks.largest)
    width = max(2, min(4 * (os.cpu_count() or 1), _IN_FLIGHT // size))
    waiting: deque[tuple[Block, Future[Any]]] = deque()
    for block in blocks:
        waiting.append((block, array[_index(block.bounds)].read()))
        if len(waiting) >= width:
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
            f"{each['array'] or '.'}{_box(problem)}: {problem['problem']}"
            for problem in each["problems"]
        ]
    chunks = sum(each["chunks"] for each in found["arrays"])
    count = sum(len(each["problems"]) for each in found["arrays"])
    arrays_ = f"{len(found['arrays'])} array{'s' * (len(found['arrays']) != 1)}"
    what = "nothing is damaged" if not count else f"{count} problem{'s' * (count != 1)}"
    lines.append(f"{what}, in {chunks:,} chunk{'s' * (chunks != 1)} of {arrays_}")
    return "\n".join(lines)


def _box(problem: Facts) -> str:
    pairs = problem.get("bounds", ())
    return f" [{', '.join(f'{low}:{high}' for low, high in pairs)}]" if pairs else ""
