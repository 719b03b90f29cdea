"""What is measured. A workload prepares a trial; only the trial's `run` is timed.

Every trial can check itself, which is done once per library before its first timed round: a fast
wrong answer must not win.
"""

import functools
import itertools
import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.layouts import COPY_TARGET, SHARDS, Declared, Layout, fresh
from benchmarks.libraries import Library
from benchmarks.volume import Volume, disjoint_boxes, random_boxes

READS_IN_TURN, READS_TOGETHER = 300, 1000
WRITES_IN_TURN, WRITES_TOGETHER = 20, 300
OPENS = 20
COLD = "full read, nothing cached by the system"
MEMBERS = 100
# of arrays that are made and opened: none is met twice in a process, so that no array is known from
# another by its place, its shape or its metadata
NUMBERS = itertools.count()


@dataclass(frozen=True, slots=True)
class Trial:
    """One timed call, how to check its result, and by what to divide its time."""

    run: Callable[[], Any]
    check: Callable[[Any], bool]
    divisor: float = 1.0


@dataclass(frozen=True, slots=True)
class Bench:
    """Where a trial happens: the library, the layout, the data that all read, places to write."""

    library: Library
    layout: Layout
    volume: Volume
    shared: Path
    scratch: Path
    disk: Path | None = None

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
    boxes = random_boxes(bench.edge, READS_IN_TURN)
    return Trial(
        run=lambda: bench.library.read_each(handle, boxes),
        check=lambda results: _boxes_equal(results, [bench.volume[box] for box in boxes]),
    )


def reads_together(bench: Bench) -> Trial:
    handle = bench.library.open(bench.layout, bench.shared)
    boxes = random_boxes(bench.edge, READS_TOGETHER, seed=12)
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
    return _patched(bench, WRITES_IN_TURN, together=False)


def writes_together(bench: Bench) -> Trial:
    return _patched(bench, WRITES_TOGETHER, together=True)


def _right(arrays: Sequence[Declared], handles: Sequence[Any]) -> bool:
    return all(
        (tuple(handle.shape), handle.dtype.name) == (each.shape, each.dtype)
        for each, handle in zip(arrays, handles, strict=True)
    )


def _places(bench: Bench, arrays: Sequence[Declared], *, memory: bool) -> list[str]:
    """A URL for each array, in a scratch place that is empty, or in memory."""
    if memory:
        return [f"memory://{each.shape[0]}/" for each in arrays]
    shutil.rmtree(bench.scratch, ignore_errors=True)
    bench.scratch.mkdir(parents=True)
    return [f"file://{bench.scratch}/{each.shape[0]}/" for each in arrays]


def _called(arrays: Sequence[Declared], calls: Sequence[Callable[[], Any]]) -> Trial:
    return Trial(
        run=lambda: [call() for call in calls],
        check=functools.partial(_right, arrays),
        divisor=len(calls),
    )


def creates(bench: Bench, way: str, *, memory: bool) -> Trial:
    """Makes arrays of which no two are the same, said in one of the `WAYS`."""
    arrays = fresh(bench.layout, list(itertools.islice(NUMBERS, OPENS)))
    places = _places(bench, arrays, memory=memory)
    creator = bench.library.creator
    return _called(arrays, [creator(way, *each) for each in zip(arrays, places, strict=True)])


def opens(bench: Bench, way: str, *, memory: bool) -> Trial:
    """Opens arrays of which no two are the same."""
    arrays = fresh(bench.layout, list(itertools.islice(NUMBERS, OPENS)))
    places = _places(bench, arrays, memory=memory)
    pairs = list(zip(arrays, places, strict=True))
    calls = [bench.library.opener(way, *pair) for pair in pairs]
    for declared, place in pairs:
        if memory:
            create_somehow(bench.library, way, declared, place)
        else:
            store_document(declared, Path(place.removeprefix("file://")))
    return _called(arrays, calls)


def create_somehow(library: Library, way: str, declared: Declared, place: str) -> None:
    """Makes an array in the same way, or if there is none, in one that the library has."""
    for each in (way, "metadata", "keywords"):
        try:
            call = library.creator(each, declared, place)
        except NotImplementedError:
            continue
        call()
        return
    raise NotImplementedError("nothing to open: arrays in memory cannot be created")


def store_document(declared: Declared, path: Path) -> None:
    """Writes the metadata of an array, so that no library's own hand is on it."""
    path.mkdir(parents=True)
    name, document = declared.document()
    (path / name).write_text(json.dumps(document), "utf-8")


def lists_group(bench: Bench) -> Trial:
    """Opens a group and asks for its members with what they are."""
    shutil.rmtree(bench.scratch, ignore_errors=True)
    arrays = fresh(bench.layout, list(itertools.islice(NUMBERS, MEMBERS)))
    for each in arrays:
        store_document(each, bench.scratch / f"array{each.shape[0]}")
    group = {"zarr_format": 3, "node_type": "group", "attributes": {}}
    (bench.scratch / "zarr.json").write_text(json.dumps(group), "utf-8")
    expected = {f"array{each.shape[0]}": (each.shape, each.dtype) for each in arrays}
    return Trial(
        run=lambda: bench.library.list_group(bench.scratch),
        check=lambda result: result == expected,
    )


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


def _disk(disk: Path | None) -> Path:
    if disk is None:
        raise NotImplementedError("there is no disk to be measured: see --disk")
    return disk


def cold_read(bench: Bench) -> Trial:
    """A full read of files that the system has not in memory."""
    place = cold_copy(bench.shared, bench.disk)
    handle = bench.library.open(bench.layout, place)
    # what was read to open it stays
    return Trial(
        run=lambda: bench.library.read(handle),
        check=lambda result: np.array_equal(result, bench.volume),
    )


def cold_copy(shared: Path, disk: Path | None) -> Path:
    """A copy on a disk, which all libraries share and of which the system has nothing in memory."""
    place = _disk(disk) / f"cold {shared.name}"
    if not place.exists():
        shutil.copytree(shared, place)
    for path in place.rglob("*"):
        if path.is_file():
            forget(path)
    return place


def forget(path: Path) -> None:
    """Has the system drop what it holds of a file in memory, which is only dropped when stored."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def synced_write(bench: Bench) -> Trial:
    """A full write that returns when the disk has it."""
    place = _disk(bench.disk) / f"synced {os.getpid()}"
    shutil.rmtree(place, ignore_errors=True)
    handle = bench.library.create(bench.layout, place, bench.edge, synced=True)
    return Trial(
        run=lambda: bench.library.write(handle, bench.volume),
        check=lambda _: np.array_equal(bench.library.read(handle), bench.volume),
    )


@dataclass(frozen=True, slots=True)
class Workload:
    """A named workload and the layouts that it is measured on; None for all."""

    name: str
    prepare: Callable[[Bench], Trial]
    only: frozenset[str] | None = None


# What is said, and how: JSON with a schema, or no more than a place; the same as keywords; all the
# metadata as they are stored; a URL that names the format, with keywords.
WAYS = ("spec", "keywords", "metadata", "URL")
BLOSC_V2, ZSTD_V3, BLOSC_SHARDS = "v2 blosc 64³", "v3 zstd 64³", COPY_TARGET.name
DECLARED = frozenset({BLOSC_V2, ZSTD_V3})


def _declaring() -> Iterator[Workload]:
    """Create and open, in every way, of files and of keys in memory."""
    for verb, prepare in (("create", creates), ("open", opens)):
        for memory, where in ((False, ""), (True, ", in memory")):
            for way in WAYS:
                call = functools.partial(prepare, way=way, memory=memory)
                yield Workload(f"{verb} by {way}{where}", call, DECLARED)


WORKLOADS = (
    Workload("full read", full_read),
    Workload("one-plane slice", plane),
    Workload("300 random 8³ reads in turn", reads_in_turn),
    Workload("1000 random 8³ reads together", reads_together),
    Workload("re-read from a warm cache", warm_cache, frozenset({ZSTD_V3})),
    Workload("full read, memory store", memory_read, frozenset({ZSTD_V3})),
    Workload(COLD, cold_read, frozenset({ZSTD_V3, SHARDS})),
    Workload("full write", full_write),
    Workload("full write, synced", synced_write, frozenset({ZSTD_V3, SHARDS})),
    Workload("20 partial-chunk writes in turn", writes_in_turn),
    Workload("300 partial-chunk writes together", writes_together),
    Workload("copy to v3 shards", copy_to_shards, frozenset({BLOSC_V2})),
    *_declaring(),
    Workload("list a group of 100 arrays", lists_group, frozenset({ZSTD_V3})),
)
BY_NAME = {workload.name: workload for workload in WORKLOADS}


def measured(layout: Layout, workload: Workload) -> bool:
    """Whether there is a row for a workload on a layout."""
    return (workload.only is None or layout.name in workload.only) and (
        layout.only is None or workload.name in layout.only
    )
