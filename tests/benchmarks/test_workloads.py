"""The benchmark's workloads on a small volume: each layout and workload gives the right answer."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import bare
from benchmarks.layouts import LAYOUTS, Layout
from benchmarks.libraries import Library, load
from benchmarks.volume import Volume, disjoint_boxes, make_volume
from benchmarks.workloads import WORKLOADS, Bench, Workload

EDGE = 64
# A quarter of the chunks' edges on an eighth of the volume's: as many chunks, but quick ones.
SMALL = [
    replace(layout, chunk=layout.chunk // 4, shard=layout.shard and layout.shard // 4)
    for layout in LAYOUTS
]


@pytest.fixture(scope="module")
def volume() -> Volume:
    return make_volume(EDGE)


@pytest.fixture(scope="module")
def library() -> Library:
    return load("tensorstore_py", sync=False)


PAIRS = [
    pytest.param(layout, workload, id=f"{layout.name}-{workload.name}")
    for layout in SMALL
    for workload in WORKLOADS
    if workload.only is None or layout.name in workload.only
]


@pytest.mark.parametrize(("layout", "workload"), PAIRS)
def test_the_result_is_right(
    layout: Layout, workload: Workload, library: Library, volume: Volume, tmp_path: Path
) -> None:
    shared = tmp_path / "shared"
    library.write(library.create(layout, shared, EDGE), volume)
    trial = workload.prepare(Bench(library, layout, volume, shared, tmp_path / "scratch"))

    result = trial.run()

    assert trial.check(result)


@pytest.mark.parametrize("layout", SMALL, ids=lambda layout: layout.name)
def test_the_bare_minimum_reads_what_was_written(
    layout: Layout, library: Library, volume: Volume, tmp_path: Path
) -> None:
    library.write(library.create(layout, tmp_path, EDGE), volume)

    measured = 0
    for workload in WORKLOADS:
        trial = bare.trial(workload.name, layout, tmp_path, volume)
        if trial is not None:
            measured += 1
            assert trial.check(trial.run()), workload.name

    assert measured == 6


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
