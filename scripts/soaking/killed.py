"""Writers that are killed in the middle of every kind of write.

A victim writes 1, 2, 3, … and says after each what is done; it is killed at a random moment. Then
what is stored must be what the last turn that was done had left, or the one after it; chunk by
chunk, where a write has several. And writing goes on.
"""

from __future__ import annotations

import itertools
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import tensorstore_py as ts

SHAPE = (64, 40)


@dataclass(frozen=True)
class Write:
    """A kind of write.

    Attributes:
        turn: writes a number.
        check: what must hold when that number, or the next one, was written last.
        chunk: the shape of the array's chunks.
        inner: of the chunks in each, if they are shards.
        driver: the array's driver.
        zipped: the array is in an archive.
    """

    turn: Callable[[Any, int], object]
    check: Callable[[Any, int], None]
    chunk: tuple[int, int] = (32, 40)
    inner: tuple[int, int] | None = None
    driver: str = "zarr3"
    zipped: bool = False


def _one_of(values: Any, done: int) -> None:
    found = np.unique(values)
    if len(found) != 1 or found[0] not in (done, done + 1):
        raise AssertionError(f"{found.tolist()[:20]} after turn {done}")


def _each_chunk(array: Any, done: int) -> None:
    for row in (0, 32):
        _one_of(array[row : row + 32].read().result(), done)


def _part(array: Any, done: int) -> None:
    values = array.read().result()
    _one_of(values[3:20, 4:12], done)
    if values[:3].any() or values[20:].any() or values[:, 12:].any() or values[:, :4].any():
        raise AssertionError("something else was written")


def _append(array: Any, turn: int) -> object:
    # with others beside it, an array grows first
    return array.append(np.full((5, 40), turn, "uint32"), 0).result()


def _append_after(array: Any, turn: int) -> object:
    return array.append(np.full((5, 40), turn, "uint32"), 0, grow="after").result()


def _appended(array: Any, done: int, *, hollow: bool = True) -> None:
    values = array.read().result()
    if len(values) not in (64 + 5 * done, 64 + 5 * (done + 1)):
        raise AssertionError(f"{len(values)} rows after turn {done}")
    for turn in range(1, (len(values) - 64) // 5 + 1):
        first = 64 + 5 * (turn - 1)
        rows = values[first : first + 5]
        may_be_zero = hollow and turn > done
        if not ((rows == turn) | (may_be_zero & (rows == 0))).all():
            raise AssertionError(f"rows of turn {turn} of {done}")


def _resize(array: Any, turn: int) -> object:
    rows = 16 if turn % 2 else 64
    if turn % 2 == 0:
        ts.open(array.spec()).result()[:16].write(5).result()
    return array.resize(exclusive_max=[rows, 40]).result()


def _resized(array: Any, done: int) -> None:
    if array.shape not in ((16, 40), (64, 40)):
        raise AssertionError(f"shape {array.shape}")
    if done > 1 and not (array[:16].read().result() == 5).all():
        raise AssertionError("what was in bounds is gone")


def _attribute(array: Any, turn: int) -> object:
    return array.attrs.update({"turn": turn, "more": "x" * (turn % 9)}).result()


def _attributes(array: Any, done: int) -> None:
    found = array.attrs.read().result()
    turn = found.get("turn", 0)
    if turn not in (done, done + 1) or (turn and found["more"] != "x" * (turn % 9)):
        raise AssertionError(f"{found} after turn {done}")


def _commit(array: Any, turn: int) -> None:
    with ts.Transaction() as transaction:
        staged = array.with_transaction(transaction)
        staged[:40].write(turn).result()
        staged[40:].write(turn).result()


def _create(array: Any, turn: int) -> None:
    spec = {
        "driver": "zarr3",
        "kvstore": {"driver": "file", "path": f"{array.kvstore.path}made{turn}/"},
    }
    made = ts.open(spec, create=True, dtype="uint32", shape=[turn, 3]).result()
    made.write(turn).result()


def _created(array: Any, done: int) -> None:
    for turn in range(1, done + 1):
        made = ts.open({"driver": "file", "path": f"{array.kvstore.path}made{turn}/"}).result()
        if made.shape != (turn, 3) or not (made.read().result() == turn).all():
            raise AssertionError(f"array {turn} of {done}")


def _all(array: Any, turn: int) -> object:
    return array.write(turn).result()


def _region(array: Any, turn: int) -> object:
    return array[3:20, 4:12].write(turn).result()


WRITES: dict[str, Write] = {
    "whole": Write(_all, _each_chunk),
    "part": Write(_region, _part),
    "shards": Write(_all, _each_chunk, inner=(8, 8)),
    "part_of_shard": Write(_region, _part, inner=(8, 4)),
    "zarr": Write(_all, _each_chunk, driver="zarr"),
    "n5": Write(_all, _each_chunk, driver="n5"),
    "append": Write(_append, _appended),
    "append_after": Write(_append_after, partial(_appended, hollow=False)),
    "resize": Write(_resize, _resized, chunk=(16, 40)),
    "attributes": Write(_attribute, _attributes),
    "commit": Write(_commit, _each_chunk),
    "create": Write(_create, _created),
    "zip": Write(_all, lambda array, done: _one_of(array.read().result(), done), zipped=True),
}


def spec_of(name: str, folder: str) -> dict[str, Any]:
    """Where a kind of write goes."""
    write = WRITES[name]
    store: dict[str, Any] = {"driver": "file", "path": f"{folder}/array/"}
    if write.zipped:
        store = {"driver": "zip", "base": {"driver": "file", "path": f"{folder}/array.zip"}}
    return {"driver": write.driver, "kvstore": store}


def victim(name: str, folder: str) -> None:
    """Write for ever."""
    array = ts.open(spec_of(name, folder)).result()
    for turn in itertools.count(1):
        WRITES[name].turn(array, turn)
        print(turn, flush=True)


class Kills:
    """Victims, and what they leave behind."""

    name = "kills"

    def __init__(self, program: Path) -> None:
        self._program = program

    def run(self, number: int, folder: Path) -> None:
        """One trial."""
        rng = random.Random(f"kills {number}")
        name = sorted(WRITES)[number % len(WRITES)]
        write = WRITES[name]
        layout = ts.ChunkLayout(chunk_shape=write.chunk)
        if write.inner:
            layout = ts.ChunkLayout(write_chunk_shape=write.chunk, read_chunk_shape=write.inner)
        spec = spec_of(name, str(folder))
        ts.open(spec, create=True, dtype="uint32", shape=SHAPE, chunk_layout=layout).result()
        command = [sys.executable, str(self._program), "--victim", name, str(folder)]
        done = 0
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for _ in range(rng.randrange(1, 6)):
                line = process.stdout.readline()
                if not line:
                    raise AssertionError(f"{name}: the victim ended by itself")
                done = int(line)
            time.sleep(rng.uniform(0, 0.02))
            process.send_signal(signal.SIGKILL)
            # a line is one write to the pipe, so that none of them is cut
            done = max([done, *map(int, process.stdout.read().split())])
        try:
            array = ts.open(spec).result()
            write.check(array, done)
            array[:8].write(77).result(timeout=20)
            if not (ts.open(spec).result()[:8].read().result() == 77).all():
                raise AssertionError("what was written afterwards is not there")
        except Exception as error:
            raise AssertionError(f"{name}: after turn {done}: {error!r}") from error
