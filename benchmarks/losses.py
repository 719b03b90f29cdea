"""Programs that share an array, as honest users write them, and what is wrong afterwards.

`python -m benchmarks.losses LIBRARY WORKLOAD SEED FOLDER` runs one of them in a process of its own
and prints a JSON line, an `Outcome`. Which library is used is in the arguments alone: the programs
are the same for all.
"""

import functools
import http.server
import json
import multiprocessing
import os
import random
import re
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.faces import DTYPE, Face, Values, face_of

WORKERS = 4
#: Seconds after which a child that should take one or two is taken for hung.
PATIENCE = 25.0
LENGTH = 7400
CHUNK = 100
#: No multiple or divisor of a chunk, so that regions begin and end anywhere.
REGION = 37
KILLS = 6


@dataclass
class Outcome:
    """What is wrong after a program.

    Attributes:
        wrong: elements (or reads, or rows) that are not what was written.
        total: how many there are.
        hangs: processes that did not end.
        crashes: processes that a signal of their own ended.
        errors: processes and reads that ended with an exception.
    """

    wrong: int = 0
    total: int = 0
    hangs: int = 0
    crashes: int = 0
    errors: int = 0

    def compare(self, found: Values, expected: Values) -> None:
        """Count the elements that differ; a missing one differs."""
        self.total += expected.size
        if found.shape == expected.shape:
            self.wrong += int((found != expected).sum())
        else:
            self.wrong += expected.size

    def check(self, face: Face, path: str, expected: Values) -> None:
        """Count what a fresh look at the array finds; what cannot be read is wrong."""
        try:
            self.compare(face.read(face.open(path)), expected)
        except Exception:  # noqa: BLE001 - a library's failure is a result to report
            traceback.print_exc()
            self.total += expected.size
            self.wrong += expected.size
            self.errors += 1

    def join(self, processes: Sequence[Any], *, patience: float = PATIENCE) -> None:
        """Wait for processes, and count how they ended."""
        deadline = time.monotonic() + patience
        for process in processes:
            process.join(max(0.1, deadline - time.monotonic()))
            if process.exitcode is None:
                self.hangs += 1
                process.kill()
                process.join()
            elif process.exitcode < 0:
                self.crashes += 1
            elif process.exitcode > 0:
                self.errors += 1


@dataclass
class Bench:
    """What a program is given: a library by its name and its face, chance, and an empty folder."""

    library: str
    face: Face
    rng: random.Random
    folder: Path
    begin: Any = None

    def path(self, name: str = "array") -> str:
        return str(self.folder / name)

    def start(self, method: str, function: Callable[..., None], *arguments: Any) -> list[Any]:
        """Start workers that begin together, each with its number."""
        context: Any = multiprocessing.get_context(method)
        self.begin = context.Barrier(WORKERS)  # has to live until the last one has it
        processes = [
            context.Process(target=function, args=(self.library, number, self.begin, *arguments))
            for number in range(WORKERS)
        ]
        for process in processes:
            process.start()
        return processes


def meet(begin: Any) -> None:
    """Wait for the others, but not for those that have crashed."""
    try:
        begin.wait(10)
    except threading.BrokenBarrierError:
        pass


# --------------------------------------------------------- regions, shards, appends, growing arrays


def numbers(length: int = LENGTH) -> Values:
    return np.arange(1, length + 1, dtype=DTYPE)


def write_regions(face: Face, array: Any, number: int, size: int) -> None:
    """Write every fourth region; no two workers write the same element."""
    values = numbers()
    for start in range(number * size, LENGTH, WORKERS * size):
        region = slice(start, min(start + size, LENGTH))
        face.write(array, region, values[region])


def region_worker(library: str, number: int, begin: Any, path: str, size: int) -> None:
    face = face_of(library)
    array = face.open(path)
    meet(begin)
    write_regions(face, array, number, size)


def threads(bench: Bench) -> Outcome:
    array = bench.face.create(bench.path(), (LENGTH,), (CHUNK,))
    workers = [
        threading.Thread(target=write_regions, args=(bench.face, array, number, REGION))
        for number in range(WORKERS)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    outcome = Outcome()
    outcome.check(bench.face, bench.path(), numbers())
    return outcome


def processes(bench: Bench, *, method: str) -> Outcome:
    bench.face.create(bench.path(), (LENGTH,), (CHUNK,))
    outcome = Outcome()
    outcome.join(bench.start(method, region_worker, bench.path(), REGION))
    outcome.check(bench.face, bench.path(), numbers())
    return outcome


def shards(bench: Bench) -> Outcome:
    """Each region is one whole inner chunk; a shard has ten of them."""
    bench.face.create(bench.path(), (LENGTH,), (CHUNK,), (CHUNK // 10,), gzip=True)
    outcome = Outcome()
    outcome.join(bench.start("spawn", region_worker, bench.path(), CHUNK // 10))
    outcome.check(bench.face, bench.path(), numbers())
    return outcome


APPENDS = 20
ROWS = 7


def append_worker(library: str, number: int, begin: Any, path: str) -> None:
    face = face_of(library)
    face.open(path)
    meet(begin)
    for turn in range(APPENDS):
        face.append(path, np.full(ROWS, 1 + number * APPENDS + turn, DTYPE))


def appends(bench: Bench) -> Outcome:
    """Each block of rows is there once; where, is up to the library."""
    bench.face.create(bench.path(), (0,), (CHUNK,))
    outcome = Outcome()
    outcome.join(bench.start("spawn", append_worker, bench.path()))
    try:
        found = bench.face.read(bench.face.open(bench.path()))
    except Exception:  # noqa: BLE001 - a library's failure is a result to report
        traceback.print_exc()
        found = np.zeros(0, DTYPE)
        outcome.errors += 1
    counts = np.bincount(found.astype(np.int64), minlength=WORKERS * APPENDS + 1)[1:]
    outcome.total = ROWS * WORKERS * APPENDS
    # rows that are missing; rows that are there twice are as many more, or in the place of others
    outcome.wrong = int(np.abs(counts - ROWS).clip(max=ROWS).sum())
    return outcome


def growing_worker(library: str, number: int, begin: Any, path: str) -> None:
    face = face_of(library)
    face.open(path)
    meet(begin)
    values = numbers(WORKERS * APPENDS * CHUNK)
    for turn in range(APPENDS):
        start = (turn * WORKERS + number) * CHUNK
        region = slice(start, start + CHUNK)
        face.write(face.grow(path, region.stop), region, values[region])


def growing(bench: Bench) -> Outcome:
    """Each writer makes the array as long as it needs and writes whole chunks of its own."""
    bench.face.create(bench.path(), (CHUNK,), (CHUNK,))
    outcome = Outcome()
    outcome.join(bench.start("spawn", growing_worker, bench.path()))
    outcome.check(bench.face, bench.path(), numbers(WORKERS * APPENDS * CHUNK))
    return outcome


# ------------------------------------------------------------------------------ reads beside writes

SIDE = 512
SECONDS = 1.5


def constant_worker(library: str, path: str, began: Any, ended: Any) -> None:
    face = face_of(library)
    array = face.open(path)
    value = 0
    while not ended.is_set():
        value += 1
        face.write(array, ..., np.full((SIDE, SIDE), value, DTYPE))
        began.set()


def torn(bench: Bench) -> Outcome:
    """One chunk, then one shard, always of one value: so is all that a reader sees."""
    outcome = Outcome()
    context: Any = multiprocessing.get_context("spawn")
    for name, inner in (("plain", None), ("shard", (SIDE // 4, SIDE // 4))):
        array = bench.face.create(bench.path(name), (SIDE, SIDE), (SIDE, SIDE), inner)
        bench.face.write(array, ..., np.full((SIDE, SIDE), 1, DTYPE))
        began, ended = context.Event(), context.Event()
        writer = context.Process(
            target=constant_worker, args=(bench.library, bench.path(name), began, ended)
        )
        writer.start()
        while writer.is_alive() and not began.is_set():
            time.sleep(0.001)
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            outcome.total += 1
            try:
                found = bench.face.read(array)
                outcome.wrong += int(found.min() != found.max() or found[0, 0] == 0)
            except Exception:  # noqa: BLE001 - half a chunk that cannot be decoded
                outcome.wrong += 1
        ended.set()
        outcome.join([writer])
    return outcome


# ----------------------------------------------------------------------------------- kill -9

KILL_SHAPE = (2, 1 << 19)
KILL_CHUNK = (1, 1 << 19)
SMALL_SHAPE = (2, 1 << 13)
SMALL_CHUNK = (1, 1 << 13)


def content(turn: int, shape: tuple[int, ...]) -> Values:
    """What a turn writes: of one value, or noise of its own, so that lengths differ."""
    if turn % 2 == 0:
        return np.full(shape, turn, DTYPE)
    return np.random.default_rng(turn).integers(0, 1 << 31, shape).astype(DTYPE)


def killed_worker(library: str, large: str, small: str, done: Any) -> None:
    face = face_of(library)
    arrays = [(face.open(large), KILL_SHAPE), (face.open(small), SMALL_SHAPE)]
    while True:
        turn = done.value + 1
        for array, shape in arrays:
            face.write(array, ..., content(turn, shape))
        done.value = turn


def kills(bench: Bench) -> Outcome:
    """Each chunk is of the last turn that was done or of the one that was not; and work goes on."""
    context: Any = multiprocessing.get_context("spawn")
    done = context.Value("i", 0)
    face, outcome = bench.face, Outcome()
    places = {"large": (KILL_SHAPE, KILL_CHUNK), "small": (SMALL_SHAPE, SMALL_CHUNK)}
    for name, (shape, chunk) in places.items():
        face.create(bench.path(name), shape, chunk, gzip=name == "small")
        face.write(face.open(bench.path(name)), ..., content(0, shape))
    for _ in range(KILLS):
        began = done.value
        writer = context.Process(
            target=killed_worker,
            args=(bench.library, bench.path("large"), bench.path("small"), done),
        )
        writer.start()
        deadline = time.monotonic() + PATIENCE
        while done.value == began and time.monotonic() < deadline and writer.is_alive():
            time.sleep(0.001)
        if not writer.is_alive() or done.value == began:
            outcome.join([writer], patience=0.1)
            continue
        time.sleep(bench.rng.uniform(0, 0.03))
        writer.kill()
        writer.join()
        for name, (shape, _) in places.items():
            _check_killed(outcome, face, bench.path(name), shape, done.value)
    for name, (shape, _) in places.items():
        # what the dead left behind is in no way of what follows
        face.write(face.open(bench.path(name)), ..., np.full(shape, 7, DTYPE))
        outcome.check(face, bench.path(name), np.full(shape, 7, DTYPE))
    return outcome


def _check_killed(
    outcome: Outcome, face: Face, path: str, shape: tuple[int, ...], done: int
) -> None:
    candidates = [content(done, shape), content(done + 1, shape)]
    for row in range(shape[0]):
        outcome.total += shape[1]
        try:
            found = face.read(face.open(path), slice(row, row + 1))
        except Exception:  # noqa: BLE001 - a library's failure is a result to report
            traceback.print_exc()
            outcome.wrong += shape[1]
            continue
        differing = [int((found != each[row : row + 1]).sum()) for each in candidates]
        outcome.wrong += min(differing)


# ------------------------------------------------------------------------------------------ fork


def forked_reader(face: Face, path: str) -> None:
    found = face.read(face.open(path))
    os._exit(0 if (found == numbers()).all() else 3)


def forks(bench: Bench) -> Outcome:
    """Readers are forked while another thread reads, as loaders of training data do."""
    face, outcome = bench.face, Outcome()
    array = face.create(bench.path(), (LENGTH,), (CHUNK,), gzip=True)
    face.write(array, ..., numbers())
    ended = threading.Event()

    def work() -> None:
        while not ended.is_set():
            face.read(array)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    context: Any = multiprocessing.get_context("fork")
    readers = []
    for _ in range(2 * WORKERS):
        time.sleep(bench.rng.uniform(0, 0.02))
        reader = context.Process(target=forked_reader, args=(face, bench.path()))
        reader.start()
        readers.append(reader)
    outcome.join(readers, patience=8)
    ended.set()
    thread.join(PATIENCE)
    outcome.hangs += thread.is_alive()
    outcome.total = len(readers) * LENGTH
    outcome.wrong = LENGTH * sum(reader.exitcode != 0 for reader in readers)
    return outcome


# ------------------------------------------------------------------------------------ bad answers


class Ruining(http.server.SimpleHTTPRequestHandler):
    """Serves files and parts of files; the first answer with data of a chunk is bad in one way."""

    ruin = ""
    lock = threading.Lock()

    def log_message(self, format: str, *args: Any) -> None:
        del format, args

    def do_HEAD(self) -> None:
        self.answer()

    def do_GET(self) -> None:
        self.answer()

    def answer(self) -> None:
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            self.send_error(404)
            return
        value = path.read_bytes()
        size = len(value)
        found = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        start, stop = 0, size
        if found and found[1]:
            start, stop = int(found[1]), min(size, int(found[2] or size - 1) + 1)
        elif found:
            start = max(0, size - int(found[2]))
        ruin = self.taken() if "/c/" in self.path and self.command == "GET" else ""
        if ruin == "status":
            self.send_error(503)
            return
        body, length = ruined(ruin, value[start:stop])
        self.send_response(206 if found else 200)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(length))
        if found:
            self.send_header("Content-Range", f"bytes {start}-{stop - 1}/{size}")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def taken(self) -> str:
        with Ruining.lock:
            ruin, Ruining.ruin = Ruining.ruin, ""
        return ruin


def ruined(ruin: str, body: bytes) -> tuple[bytes, int]:
    """What is sent, and what is said of its length."""
    half = len(body) // 2
    if ruin == "flipped":
        return body[:half] + bytes([body[half] ^ 4]) + body[half + 1 :], len(body)
    if ruin == "cut":
        return body[:half], len(body)
    if ruin == "short":
        return body[:half], half
    if ruin == "empty":
        return b"", 0
    return body, len(body)


RUINS = ("status", "flipped", "short", "cut", "empty")


def transient(bench: Bench) -> Outcome:
    """One answer is bad, all others are good: what is returned is right, or is on a retry."""
    face, outcome = bench.face, Outcome()
    for name, inner in (("plain", None), ("shards", (LENGTH // 20,))):
        array = face.create(bench.path(name), (LENGTH,), (LENGTH // 2,), inner, gzip=True)
        face.write(array, ..., numbers())
    handler = functools.partial(Ruining, directory=bench.folder)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for name in ("plain", "shards"):
        for ruin in RUINS:
            array = face.open_url(f"http://127.0.0.1:{server.server_port}/{name}")
            Ruining.ruin = ruin
            _read_twice(outcome, face, array)
            if Ruining.ruin:
                raise RuntimeError("nothing was asked of the server")
    server.shutdown()
    return outcome


def _read_twice(outcome: Outcome, face: Face, array: Any) -> None:
    try:
        outcome.compare(face.read(array), numbers())
    except Exception:  # noqa: BLE001 - an error is an honest answer
        traceback.print_exc()
    try:
        outcome.compare(face.read(array), numbers())
    except Exception:  # noqa: BLE001 - but the second time all is well
        traceback.print_exc()
        outcome.total += LENGTH
        outcome.wrong += LENGTH
        outcome.errors += 1


WORKLOADS: dict[str, tuple[str, Callable[[Bench], Outcome]]] = {
    "threads": ("unaligned regions by threads", threads),
    "spawned": (
        "unaligned regions by spawned processes",
        functools.partial(processes, method="spawn"),
    ),
    "forked": (
        "unaligned regions by forked processes",
        functools.partial(processes, method="fork"),
    ),
    "shards": ("inner chunks of shared shards by processes", shards),
    "appends": ("appends by processes", appends),
    "resizes": ("processes that grow the array and write", growing),
    "torn": ("reads beside a writer", torn),
    "kills": ("kill -9 in mid-write", kills),
    "forks": ("readers forked while the library reads", forks),
    "answers": ("a bad answer, then a retry", transient),
}


def main(arguments: Sequence[str]) -> None:
    library, workload, seed, folder = arguments
    try:
        chance = random.Random(int(seed))  # noqa: S311 - chance, no secret
        bench = Bench(library, face_of(library), chance, Path(folder))
        outcome = WORKLOADS[workload][1](bench)
        answer = asdict(outcome)
    except NotImplementedError as error:
        answer = {"lacks": str(error)}
    except Exception:  # noqa: BLE001 - a library's failure is a result to report
        traceback.print_exc()
        answer = asdict(Outcome(errors=1))
    print(json.dumps(answer), flush=True)
    # a library's threads that hang, and children that do, are no part of what was measured
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
