"""Say how much is stored of arrays: bytes, how much they stand for, chunks that are missing.

Keys are listed with their sizes; nothing is read. Shards count as one chunk each.
"""

from __future__ import annotations

import argparse
from math import prod
from typing import Any, NamedTuple

from tensorstore_py._api.describe import array_facts
from tensorstore_py._api.tensorstore import TensorStore
from tensorstore_py._chunked.driver import ChunkedDriver
from tensorstore_py._display.info import human_size
from tensorstore_py.cli.exit_codes import DONE, FAILED
from tensorstore_py.cli.found import add_target, arrays, find, sizes_below
from tensorstore_py.cli.output import add_json, examples, printed, table
from tensorstore_py.errors import MismatchError, TensorStoreError

__all__ = ["add", "run"]

_COLUMNS = ("stored", "logical", "ratio", "chunks", "missing", "stray", "array")

Facts = dict[str, Any]  # Any: JSON, to be walked through


class _Stored(NamedTuple):
    """What is stored of one array.

    Attributes:
        size: bytes of all its keys; None: the store does not say.
        chunks: how many chunks there can be.
        present: how many of them are stored.
        stray: how many are stored outside the array's shape.
    """

    size: int | None
    chunks: int
    present: int
    stray: int


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_target(parser, selects=False)
    parser.add_argument("-b", "--bytes", action="store_true", help="print exact numbers of bytes")
    add_json(parser)
    examples(parser, "  tspy du run.zarr\n  tspy du -b s3://bucket/image.zarr\n")


def run(options: argparse.Namespace) -> int:
    """Print the sizes; 1 if an array is damaged."""

    def work() -> Facts:
        if options.target.selection is not None:
            raise MismatchError("tspy du is of whole arrays; leave out the selection")
        found = [_facts(each.name, each.found, each.problem)
                 for each in arrays(find(options.target))]  # fmt: skip
        return {"arrays": found, "total": _total(found)}

    return printed(
        options,
        work,
        lambda found: _text(found, exact=options.bytes),
        lambda found: FAILED if any("problem" in each for each in found["arrays"]) else DONE,
    )


def _facts(name: str, found: object, problem: str) -> Facts:
    if not isinstance(found, TensorStore):
        return {"array": name, "problem": problem}
    try:
        stored = _stored(found)
    except TensorStoreError as error:
        return {"array": name, "problem": str(error)}
    return {
        "array": name,
        "stored_bytes": stored.size,
        "logical_bytes": array_facts(found).get("bytes"),
        "chunks": stored.chunks,
        "missing_chunks": stored.chunks - stored.present,
        "stray_chunks": stored.stray,
    }


def _stored(array: TensorStore) -> _Stored:
    """What is stored of an array.

    Raises:
        MismatchError: it is not stored in chunks of its own.
        UnsupportedError: the store cannot list its keys.
    """
    driver, place = array._driver, array.kvstore
    if not isinstance(driver, ChunkedDriver) or place is None:
        raise MismatchError("it is not stored in chunks of its own; name the arrays that it is of")
    counts = driver.chunk_counts()
    size: int | None = 0
    present = stray = 0

    def take(key: str, bytes_: int) -> None:
        nonlocal size, present, stray
        size = None if size is None or bytes_ < 0 else size + bytes_
        cell = driver.cell_of(key)
        if cell is None:
            return
        if all(at < count for at, count in zip(cell, counts, strict=False)):
            present += 1
        else:
            stray += 1

    sizes_below(place, take)
    return _Stored(size, prod(counts), present, stray)


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
    text = table(_COLUMNS, [_cells(each, exact) for each in rows], _COLUMNS[:-1])
    problems = [
        f"{each['array'] or '.'}: {each['problem']}"
        for each in found["arrays"]
        if "problem" in each
    ]
    return "\n".join(filter(None, [text, *problems]))


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
