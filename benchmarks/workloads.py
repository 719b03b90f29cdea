"""What is measured. A workload prepares a trial; only the trial's `run` is timed.

Every trial can check itself, which is done once per library before its first timed round: a fast
wrong answer must not win.
"""

import functools
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.layouts import COPY_TARGET, Layout
from benchmarks.libraries import Library
from benchmarks.volume import Volume, disjoint_boxes, random_boxes

OPENS = 50


@dataclass(frozen=True, slots=True)
class Trial:
    """One timed call, how to check its result, and by what to divide its time."""

    run: Callable[[], Any]
    check: Callable[[Any], bool]
    divisor: float = 1.0


@dataclass(frozen=True, slots=True)
class Bench:
    """Where a trial happens: the library, the layout, the data that all read, a place to write."""

    library: Library
    layout: Layout
    volume: Volume
    shared: Path
    scratch: Path

    @property
    def edge(self) -> int:
        """The volume's edge in voxels."""
        return int(self.volume.shape[0])

    def fresh(self, layout: Layout | None = None) -> Any:
        """Creates an empty array in the scratch place."""
        shutil.rmtree(self.scratch, ignore_errors=True)
        return self.library.create(layout or self.layout, self.scratch, self.edge)

    def copied(self) -> Any:
        """Opens a private copy of the shared data, to be written into."""
        shutil.rmtree(self.scratch, ignore_errors=True)
        shutil.copytree(self.shared, self.scratch)
        return self.library.open(self.layout, self.scratch)


def full_read(bench: Bench) -> Trial:
    handle = bench.library.open(bench.layout, bench.shared)
    return Trial(
        run=lambda: bench.library.read(handle),
        check=lambda result: np.array_equal(result, bench.volume),
    )


def full_write(bench: Bench) -> Trial:
    handle = bench.fresh()
    return Trial(
        run=lambda: bench.library.write(handle, bench.volume),
        check=lambda _: np.array_equal(bench.library.read(handle), bench.volume),
    )


def plane(bench: Bench) -> Trial:
    handle = bench.library.open(bench.layout, bench.shared)
    index = bench.edge // 2 + 1
    return Trial(
        run=lambda: bench.library.read_plane(handle, index),
        check=lambda result: np.array_equal(result, bench.volume[index]),
    )


def _boxes_equal(results: list[Volume], expected: list[Volume]) -> bool:
    return all(np.array_equal(*pair) for pair in zip(results, expected, strict=True))


def reads_in_turn(bench: Bench) -> Trial:
    handle = bench.library.open(bench.layout, bench.shared)
    boxes = random_boxes(bench.edge, 300)
    return Trial(
        run=lambda: bench.library.read_each(handle, boxes),
        check=lambda results: _boxes_equal(results, [bench.volume[box] for box in boxes]),
    )


def reads_together(bench: Bench) -> Trial:
    handle = bench.library.open(bench.layout, bench.shared)
    boxes = random_boxes(bench.edge, 1000, seed=12)
    return Trial(
        run=lambda: bench.library.read_together(handle, boxes),
        check=lambda results: _boxes_equal(results, [bench.volume[box] for box in boxes]),
    )


def _patched(bench: Bench, count: int, *, together: bool) -> Trial:
    """Writes `count` small cubes into stored chunks; what lies around them must survive."""
    limit = bench.library.writes_together if together else None
    boxes = disjoint_boxes(bench.edge, count)
    done = boxes[:limit]
    handle = bench.copied()
    negative = ~bench.volume
    write = bench.library.write_together if together else bench.library.write_each

    def check(_: object) -> bool:
        expected = bench.volume.copy()
        for box in done:
            expected[box] = negative[box]
        return np.array_equal(bench.library.read(handle), expected)

    return Trial(
        run=lambda: write(handle, done, negative), check=check, divisor=len(done) / len(boxes)
    )


def writes_in_turn(bench: Bench) -> Trial:
    return _patched(bench, 20, together=False)


def writes_together(bench: Bench) -> Trial:
    return _patched(bench, 300, together=True)


def _shapes_right(bench: Bench, handles: Sequence[Any]) -> bool:
    return all(tuple(handle.shape) == bench.volume.shape for handle in handles)


def opens(bench: Bench) -> Trial:
    def run() -> Any:
        return [bench.library.open(bench.layout, bench.shared) for _ in range(OPENS)]

    return Trial(run=run, check=functools.partial(_shapes_right, bench), divisor=OPENS)


def creates(bench: Bench) -> Trial:
    shutil.rmtree(bench.scratch, ignore_errors=True)
    bench.scratch.mkdir(parents=True)
    places = [bench.scratch / f"{number}" for number in range(OPENS)]

    def run() -> Any:
        return [bench.library.create(bench.layout, place, bench.edge) for place in places]

    return Trial(run=run, check=functools.partial(_shapes_right, bench), divisor=OPENS)


def warm_cache(bench: Bench) -> Trial:
    handle = bench.library.open(bench.layout, bench.shared, cached=True)
    bench.library.read(handle)
    return Trial(
        run=lambda: bench.library.read(handle),
        check=lambda result: np.array_equal(result, bench.volume),
    )


def memory_read(bench: Bench) -> Trial:
    handle = bench.library.in_memory(bench.layout, bench.volume)
    return Trial(
        run=lambda: bench.library.read(handle),
        check=lambda result: np.array_equal(result, bench.volume),
    )


def copy_to_shards(bench: Bench) -> Trial:
    source = bench.library.open(bench.layout, bench.shared)
    target = bench.fresh(COPY_TARGET)
    return Trial(
        run=lambda: bench.library.copy(source, target),
        check=lambda _: np.array_equal(bench.library.read(target), bench.volume),
    )


@dataclass(frozen=True, slots=True)
class Workload:
    """A named workload and the layouts that it is measured on; None for all."""

    name: str
    prepare: Callable[[Bench], Trial]
    only: frozenset[str] | None = None


WORKLOADS = (
    Workload("full read", full_read),
    Workload("one-plane slice", plane),
    Workload("300 random 8³ reads in turn", reads_in_turn),
    Workload("1000 random 8³ reads together", reads_together),
    Workload("re-read from a warm cache", warm_cache, frozenset({"v3 zstd 64³"})),
    Workload("full read, memory store", memory_read, frozenset({"v3 zstd 64³"})),
    Workload("full write", full_write),
    Workload("20 partial-chunk writes in turn", writes_in_turn),
    Workload("300 partial-chunk writes together", writes_together),
    Workload("copy to v3 shards", copy_to_shards, frozenset({"v2 blosc 64³"})),
    Workload("open", opens),
    Workload("create", creates),
)
BY_NAME = {workload.name: workload for workload in WORKLOADS}
