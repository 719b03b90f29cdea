"""The benchmark's workloads on a small volume: each layout and workload gives the right answer."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import zarr

from benchmarks import bare, workloads
from benchmarks.layouts import LAYOUTS, Layout
from benchmarks.libraries import Library, load
from benchmarks.local import OURS, PEERS
from benchmarks.volume import Volume, disjoint_boxes, make_volume
from benchmarks.workloads import WORKLOADS, Bench, Workload, measured

EDGE = 64
# A quarter of the chunks' edges on an eighth of the volume's: as many chunks, but quick ones.
SMALL = [
    replace(
        layout,
        chunk=layout.chunk // 4,
        shard=layout.shard and layout.shard // 4,
        most=layout.most and layout.most // 8,
    )
    for layout in LAYOUTS
]
NO_VERSION_2 = "zarrista creates arrays of version 3 only"
NO_CACHE = "no cache of decoded chunks"
NO_SYNC = "leaves it to the system when files are stored"
# what a library does not have: (library, part of a layout's name, part of a workload's, reason)
LACKS = [
    ("tensorstore", "strings", "", "no arrays of strings"),
    ("zarrs", "v2 blosc 64³, order F", "", "fails on arrays of version 2 in order F"),
    ("zarrista", "v2", "create", NO_VERSION_2),
    ("zarrista", "v2", "in memory", NO_VERSION_2),
    ("zarrista", "v2", "in memory", "nothing to open"),
    ("zarrista", "v2", "full write", NO_VERSION_2),
    ("zarrista", "", "by URL", "not by URL"),
    ("zarrista", "", "by spec", "not by spec"),
    ("zarrista", "", "open by metadata", "not by metadata"),
    ("zarrista", "", "warm cache", NO_CACHE),
    ("zarrista", "", "synced", NO_SYNC),
]
for _zarr in ("zarr", "zarr_fused", "zarrs"):
    LACKS += [
        (_zarr, "", "by spec", "not by spec"),
        (_zarr, "", "by metadata", "not by metadata"),
        (_zarr, "", "warm cache", NO_CACHE),
        (_zarr, "", "synced", NO_SYNC),
    ]


def lacking(library: str, layout: Layout, workload: Workload) -> list[str]:
    """The reasons that are known why a library has no such row."""
    return [
        reason
        for name, of_layout, of_workload, reason in LACKS
        if name == library and of_layout in layout.name and of_workload in workload.name
    ]


@pytest.fixture(scope="module")
def volume() -> Volume:
    return make_volume(EDGE)


@pytest.fixture(scope="module")
def library() -> Library:
    return load(OURS, sync=False)


@pytest.fixture(params=[OURS, *PEERS])
def each_library(request: pytest.FixtureRequest) -> Iterator[tuple[str, Library]]:
    """Every library, of which those with zarr-python change its configuration."""
    try:
        made = load(request.param, sync=False)
    except NotImplementedError as error:
        pytest.skip(str(error))
    yield request.param, made
    made.close()
    zarr.config.reset()


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("READS_IN_TURN", "READS_TOGETHER", "WRITES_IN_TURN", "WRITES_TOGETHER"):
        monkeypatch.setattr(workloads, name, 8)
    monkeypatch.setattr(workloads, "OPENS", 6)
    monkeypatch.setattr(workloads, "MEMBERS", 6)


@pytest.mark.usefixtures("few")
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("layout", SMALL, ids=lambda layout: layout.name)
def test_each_library_is_right_or_says_what_it_lacks(
    layout: Layout,
    each_library: tuple[str, Library],
    library: Library,
    volume: Volume,
    tmp_path: Path,
) -> None:
    name, tested = each_library
    sample, shared = layout.sample(volume), tmp_path / "shared"
    library.write(library.create(layout, shared, sample.shape[0]), sample)
    bench = Bench(tested, layout, sample, shared, tmp_path / "scratch", tmp_path)

    for workload in WORKLOADS:
        if not measured(layout, workload):
            continue
        lacks = lacking(name, layout, workload)
        if lacks:
            with pytest.raises(NotImplementedError) as caught:
                workload.prepare(bench)
            assert any(reason in str(caught.value) for reason in lacks), workload.name
        else:
            trial = workload.prepare(bench)
            assert trial.check(trial.run()), workload.name


def test_arrays_that_are_made_are_never_the_same(
    library: Library, volume: Volume, tmp_path: Path
) -> None:
    bench = Bench(library, LAYOUTS[2], volume, tmp_path, tmp_path / "scratch")
    create = next(each for each in WORKLOADS if each.name == "create by keywords")

    made = [handle for _ in range(3) for handle in create.prepare(bench).run()]

    assert len({handle.shape for handle in made}) == len(made) == 3 * workloads.OPENS
    assert len({handle.dtype.name for handle in made}) > 4
    assert len({tuple(handle.chunk_layout.read_chunk.shape) for handle in made}) > 2


def test_what_a_disk_is_needed_for_is_left_out_without_one(
    library: Library, volume: Volume, tmp_path: Path
) -> None:
    bench = Bench(library, LAYOUTS[2], volume, tmp_path, tmp_path / "scratch")

    for workload in WORKLOADS:
        if "cached by the system" in workload.name or "synced" in workload.name:
            with pytest.raises(NotImplementedError, match="--disk"):
                workload.prepare(bench)


@pytest.mark.parametrize("layout", SMALL, ids=lambda layout: layout.name)
def test_the_bare_minimum_reads_what_was_written(
    layout: Layout, library: Library, volume: Volume, tmp_path: Path
) -> None:
    sample = layout.sample(volume)
    library.write(library.create(layout, tmp_path, sample.shape[0]), sample)

    count = 0
    for workload in WORKLOADS:
        if not measured(layout, workload):
            continue
        trial = bare.trial(workload.name, layout, tmp_path, sample)
        if trial is not None:
            count += 1
            assert trial.check(trial.run()), workload.name

    reads = [each for each in WORKLOADS if "read" in each.name and measured(layout, each)]
    assert count or layout.dtype == "string"
    assert count <= len(reads) + 1


def test_the_volume_is_seeded_and_neither_flat_nor_noise(volume: Volume) -> None:
    np.testing.assert_array_equal(volume, make_volume(EDGE))

    neighbours = np.abs(np.diff(volume.astype(np.int32), axis=2))

    assert volume.std() > 4 * neighbours.mean()
    assert neighbours.mean() > 10


def test_boxes_to_be_written_together_never_overlap() -> None:
    hits = np.zeros((EDGE,) * 3, dtype=np.uint8)
    for box in disjoint_boxes(EDGE, 300):
        hits[box] += 1

    assert hits.max() == 1
    assert hits.sum() == 300 * 8**3
