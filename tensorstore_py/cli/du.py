"""Say how much is stored of arrays: bytes, how much they stand for, chunks that are missing.

Keys are listed with their sizes; nothing is read. Shards count as one chunk each.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

from tensorstore_py._api.describe import array_facts
from tensorstore_py._api.tensorstore import TensorStore
from tensorstore_py._chunked.driver import ChunkedDriver
from tensorstore_py._display.info import human_size
from tensorstore_py.cli.exit_codes import DONE, FAILED
from tensorstore_py.cli.facts import problem_lines
from tensorstore_py.cli.found import (
    add_trusted_target,
    find,
    sizes_below,
    some_arrays,
    together,
    trusted,
)
from tensorstore_py.cli.output import add_json, examples, printed, table
from tensorstore_py.cli.progress import add_progress, metered
from tensorstore_py.errors import MismatchError, TensorStoreError

if TYPE_CHECKING:
    from tensorstore_py._runtime.future import Future
    from tensorstore_py.cli.found import Entry
    from tensorstore_py.cli.progress import Meter

__all__ = ["add", "run"]

_COLUMNS = ("stored", "logical", "ratio", "chunks", "missing", "stray", "array")

Facts = dict[str, Any]  # Any: JSON, to be walked through


class _Stored:
    """What is stored of one array, counted while its keys are listed.

    Attributes:
        size: bytes of all its keys; None: the store does not say.
        chunks: how many chunks there can be.
        present: how many of them are stored.
        stray: how many are stored outside the array's shape.

    Raises MismatchError: it is not stored in chunks of its own.
    """

    def __init__(self, array: TensorStore) -> None:
        driver, place = array._driver, array.kvstore
        if not isinstance(driver, ChunkedDriver) or place is None:
            raise MismatchError(
                "it is not stored in chunks of its own; name the arrays that it is of"
            )
        self._driver, self._place = driver, place
        self._counts = driver.chunk_counts()
        self.size: int | None = 0
        self.chunks = prod(self._counts)
        self.present = self.stray = 0

    def count(self) -> Future[None]:
        """List the keys.

        Raises UnsupportedError: (by the Future) the store cannot.
        """
        return sizes_below(self._place, self._take)

    def _take(self, key: str, bytes_: int) -> None:
        self.size = None if self.size is None or bytes_ < 0 else self.size + bytes_
        cell = self._driver.cell_of(key)
        if cell is None:
            return
        if all(at < count for at, count in zip(cell, self._counts, strict=False)):
            self.present += 1
        else:
            self.stray += 1


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_trusted_target(parser, selects=False)
    parser.add_argument("-b", "--bytes", action="store_true", help="print exact numbers of bytes")
    add_progress(parser)
    add_json(parser)
    examples(parser, "  tspy du run.zarr\n  tspy du -b s3://bucket/image.zarr\n")


def run(options: argparse.Namespace) -> int:
    """Print the sizes; 1 if an array is damaged."""

    def work() -> Facts:
        if options.target.selection is not None:
            raise MismatchError("tspy du is of whole arrays; leave out the selection")
        asked = some_arrays(options.target, find(trusted(options.target, options)))
        with metered(options, "du", [0] * len(asked)) as meter:
            found = _measured(asked, meter)
        return {"arrays": found, "total": _total(found)}

    return printed(
        options,
        work,
        lambda found: _text(found, exact=options.bytes),
        lambda found: FAILED if any("problem" in each for each in found["arrays"]) else DONE,
    )


def _measured(asked: Sequence[Entry], meter: Meter) -> list[Facts]:
    """What is stored of each array; many are listed at a time."""
    counted: list[_Stored | str] = []
    for each in asked:
        try:
            array = each.found
            counted.append(_Stored(array) if isinstance(array, TensorStore) else each.problem)
        except MismatchError as error:
            counted.append(str(error))
    places = {at: each for at, each in enumerate(counted) if isinstance(each, _Stored)}

    def count(number: int, stored: _Stored) -> Future[None]:
        future = stored.count()
        future.add_done_callback(lambda _: meter.finish(number))
        return future

    outcomes = together(partial(count, at, stored) for at, stored in places.items())
    failed = {
        at: str(outcome)
        for at, outcome in zip(places, outcomes, strict=True)
        if isinstance(outcome, TensorStoreError)
    }
    return [
        {"array": each.name, "problem": failed.get(at, str(stored))}
        if at in failed or isinstance(stored, str)
        else _facts(each, stored)
        for at, (each, stored) in enumerate(zip(asked, counted, strict=True))
    ]


def _facts(entry: Entry, stored: _Stored) -> Facts:
    assert isinstance(entry.found, TensorStore)
    return {
        "array": entry.name,
        "stored_bytes": stored.size,
        "logical_bytes": array_facts(entry.found).get("bytes"),
        "chunks": stored.chunks,
        "missing_chunks": stored.chunks - stored.present,
        "stray_chunks": stored.stray,
    }


def _total(found: list[Facts]) -> Facts:
    whole = [each for each in found if "problem" not in each]
    total: Facts = {"array": f"{len(found)} arrays"}
    for name in ("stored_bytes", "logical_bytes", "chunks", "missing_chunks", "stray_chunks"):
        values = [each[name] for each in whole]
        total[name] = None if None in values else sum(values)
    return total


def _text(found: Facts, *, exact: bool) -> str:
    rows = [each for each in found["arrays"] if "problem" not in each]
    if len(found["arrays"]) != 1:
        rows.append(found["total"])
    cells = [_cells(each, exact) for each in rows]
    text = table(_COLUMNS, cells, _COLUMNS[:-1], {"array": "array"})
    return "\n".join(filter(None, [text, *problem_lines(found["arrays"], "array")]))


def _cells(row: Facts, exact: bool) -> list[str]:
    def size(bytes_: int | None) -> str:
        if bytes_ is None:
            return "?"
        return str(bytes_) if exact else human_size(bytes_)

    stored, logical = row["stored_bytes"], row["logical_bytes"]
    ratio = f"{logical / stored:.1f}" if stored and logical else ""
    stray = row["stray_chunks"]
    return [
        size(stored), size(logical), ratio, f"{row['chunks']:,}", f"{row['missing_chunks']:,}",
        f"{stray:,}" if stray else "", row["array"] or ".",
    ]  # fmt: skip
