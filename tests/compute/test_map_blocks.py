"""What users of `ts.map_blocks` see."""

import asyncio
import inspect
import json
import multiprocessing
import pathlib
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from math import nan
from typing import Any

import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster

import tensorstore_py as ts
from tests.compute import functions
from tests.compute.mapping import CHUNK, VALUES, mapped, small, stored


def largest_within_2(block):
    """The largest of each element and those at most two positions away."""
    wide = np.pad(block, 2, constant_values=-1)
    return np.lib.stride_tricks.sliding_window_view(wide, (5, 5)).max(axis=(2, 3))


class TestHalo:
    @pytest.mark.parametrize("boundary", ["reflect", "nearest", "periodic", 5])
    @pytest.mark.parametrize("halo", [(1, 1), (1, 0), (7, 2), (11, 9)])
    def test_as_dask_does_it(self, boundary, halo):
        def weighted(block):
            rolled = [
                (3 * down + right + 1) * np.roll(block, (down, right), (0, 1))
                for down in (-halo[0], 0, halo[0])
                for right in (-halo[1], halo[1])
            ]
            return np.sum(rolled, axis=0)

        depth = dict(enumerate(halo))
        whole = da.from_array(VALUES, chunks=VALUES.shape)
        wide = np.asarray(da.overlap.overlap(whole, depth, dict.fromkeys(depth, boundary)))
        inner = tuple(slice(width, width + extent)
                      for width, extent in zip(halo, VALUES.shape, strict=True))  # fmt: skip

        found = mapped(weighted, stored(VALUES, CHUNK), halo=halo, boundary=boundary)

        np.testing.assert_array_equal(found, weighted(wide)[inner])

    def test_each_end_may_be_another(self):
        boundary = {0: "periodic", 1: nan}
        values = VALUES.astype("float64")
        want = da.map_overlap(
            functions.plus_sides, da.from_array(values, chunks=CHUNK), depth=1, boundary=boundary
        )
        found = mapped(functions.plus_sides, stored(values, CHUNK), halo=1, boundary=boundary)
        np.testing.assert_array_equal(found, want)

    def test_nothing_beyond_the_ends(self):
        sizes = []

        def largest(block):
            sizes.append(block.shape)
            return largest_within_2(block)

        found = mapped(largest, stored(VALUES, CHUNK), halo=2, dtype="int32")

        np.testing.assert_array_equal(found, largest_within_2(VALUES))
        assert sorted(set(sizes)) == [(5, 5), (5, 7), (6, 5), (6, 7), (8, 5), (8, 7)]

    def test_a_function_may_cut_the_halo_off_itself(self):
        def inner(block):
            return block[1:-1, 2:-2]

        found = mapped(inner, stored(VALUES, CHUNK), halo=(1, 2), boundary=0)
        np.testing.assert_array_equal(found, VALUES)

    def test_what_is_before_and_after_may_differ(self):
        source = stored(VALUES, CHUNK)
        found = mapped(lambda block: block[:-3], source, halo={0: (3, 0)}, boundary="nearest")
        rows = np.maximum(np.arange(len(VALUES)) - 3, 0)
        np.testing.assert_array_equal(found, VALUES[rows])


class TestDimensions:
    def test_several_inputs_of_other_chunks_and_ranks(self):
        image = np.arange(2 * 5 * 6).reshape(2, 5, 6)
        gain, dark = np.arange(2).reshape(2, 1, 1) + 1, np.arange(30).reshape(5, 6)
        found = mapped(
            lambda raw, factor, less: factor * raw - less,
            stored(image, (1, 2, 4)), stored(gain, (1, 1, 1)), stored(dark, (3, 5)),
        )  # fmt: skip
        np.testing.assert_array_equal(found, gain * image - dark)

    def test_by_label(self):
        image = np.arange(2 * 5 * 6).reshape(2, 5, 6)
        gain, dark = np.arange(2) + 1, np.arange(30).reshape(6, 5)
        target = stored(np.zeros((6, 5, 2), int), (2, 3, 1), ["x", "y", "t"])
        result = ts.map_blocks(
            lambda raw, factor, less: factor * raw - less,
            stored(image, (1, 2, 4), ["t", "y", "x"]),
            stored(gain, (2,), ["t"]),
            stored(dark, (3, 5), ["x", "y"]),
            target=target,
        ).result()
        assert result is target
        want = gain.reshape(2, 1, 1) * image - dark.T
        np.testing.assert_array_equal(target, want.transpose(2, 1, 0))

    def test_dropped_ones_are_whole_in_each_block(self):
        values = np.arange(2 * 5 * 6, dtype="int16").reshape(2, 5, 6)
        source = stored(values, (1, 2, 4), ["t", "y", "x"])
        found = mapped(lambda block: block.max(axis=1), source, drop="y")
        np.testing.assert_array_equal(found, values.max(axis=1))
        total = mapped(np.sum, source, drop=["t", "y", "x"])
        assert total == values.sum()

    def test_new_ones_are_made_at_once(self):
        def powers(block):
            return np.stack([block, block**2, block**3], axis=-1)

        source = stored(VALUES, CHUNK, ["y", "x"])
        result = ts.map_blocks(
            powers, source, target="memory://|zarr3:", new={"p": 3}, chunks={"p": 1}
        ).result()
        assert result.domain.labels == ("y", "x", "p")
        np.testing.assert_array_equal(result, powers(VALUES))
        first = mapped(lambda block: powers(block).transpose(2, 0, 1), source, new={0: 3})
        np.testing.assert_array_equal(first, powers(VALUES).transpose(2, 0, 1))

    def test_a_target_that_is_there_tells_both(self):
        source = stored(VALUES, CHUNK, ["y", "x"])
        target = stored(np.zeros((2, 11)), (1, 4), ["part", "y"])
        ts.map_blocks(
            lambda block: np.stack([block.min(1), block.max(1)], -1), source, target=target
        ).result()
        np.testing.assert_array_equal(target, [VALUES.min(1), VALUES.max(1)])

    def test_functions_get_the_part_that_they_make(self):
        def where(_, domain):
            assert domain.labels == ("y", "x")
            return np.broadcast_to(100 * domain.origin[0] + domain.origin[1], domain.shape)

        source = stored(VALUES, CHUNK, ["y", "x"])
        found = mapped(where, source, halo=1, dtype="int64")
        rows, columns = np.indices(VALUES.shape)
        np.testing.assert_array_equal(found, rows // 4 * 400 + columns // 3 * 3)

    def test_views_are_parts(self):
        source, target = stored(VALUES, CHUNK), stored(np.zeros((20, 20), "int32"), (6, 6))
        ts.map_blocks(
            functions.double, source[9:1:-2, 2:8], target=target[5:9, 7:19:2], halo=1
        ).result()
        want = np.zeros((20, 20), "int32")
        want[5:9, 7:19:2] = 2 * VALUES[9:1:-2, 2:8]
        np.testing.assert_array_equal(target, want)

    def test_arrays_of_numpy_and_nothing_at_all(self):
        np.testing.assert_array_equal(mapped(np.add, VALUES, stored(VALUES, CHUNK)), 2 * VALUES)
        assert mapped(functions.double, np.zeros((0, 3))).shape == (0, 3)

    def test_what_is_in_memory_is_not_changed_by_functions_that_work_in_place(self):
        def clear(block):
            block[...] = 0
            return block

        values = np.ones((3, 4))
        np.testing.assert_array_equal(mapped(clear, values), np.zeros((3, 4)))
        assert values.all()


class TestAsynchronous:
    def test_in_a_script(self):
        np.testing.assert_array_equal(mapped(functions.plus_one, VALUES), VALUES + 1)

    async def test_in_the_users_loop(self):
        mine, loops = asyncio.get_running_loop(), []

        async def where(block):
            loops.append(asyncio.get_running_loop())
            return block

        for loop in (None, mine):
            await ts.map_blocks(where, VALUES, target="memory://|zarr3:", loop=loop)
        assert mine not in loops[: len(loops) // 2]
        assert set(loops[len(loops) // 2 :]) == {mine}

    def test_functions_may_use_arrays_themselves(self):
        table = ts.array(np.arange(2000) * 3)
        found = mapped(lambda block: table.oindex[block.ravel()].read().result().reshape(
            block.shape), stored(VALUES, CHUNK))  # fmt: skip
        np.testing.assert_array_equal(found, 3 * VALUES)


@pytest.fixture(scope="module")
def processes() -> Iterator[ProcessPoolExecutor]:
    """Two processes that know nothing of this one."""
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        yield pool


@pytest.fixture(scope="module")
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


@pytest.fixture(scope="module")
def cluster() -> Iterator[Client]:
    there = LocalCluster(n_workers=1, threads_per_worker=2, processes=True, dashboard_address=":0")
    with there, Client(there) as client:
        yield client


@pytest.mark.parametrize("where", ["threads", "processes", "cluster"])
class TestExecutors:
    @pytest.fixture
    def executor(self, where, request):
        return request.getfixturevalue(where)

    @pytest.fixture
    def source(self, tmp_path):
        return stored(VALUES, CHUNK, ["y", "x"], where=f"file://{tmp_path}/a.zarr|zarr3:")

    @pytest.mark.parametrize(
        "function",
        [functions.plus_one, lambda block: block + 1, "tests.compute.functions:plus_one"],
        ids=["async", "lambda", "name"],
    )
    def test_any_function(self, executor, source, tmp_path, function):
        found = mapped(function, source, target=tmp_path / "b.zarr", executor=executor)
        np.testing.assert_array_equal(found, VALUES + 1)

    def test_halos_and_dimensions(self, executor, source, tmp_path):
        found = mapped(
            lambda block, row: (np.roll(block, 1, 0) + row).max(axis=1),
            source, np.arange(9), target=tmp_path / "b.zarr", executor=executor,
            drop="x", halo={"y": 1}, boundary="periodic",
        )  # fmt: skip
        np.testing.assert_array_equal(found, (np.roll(VALUES, 1, 0) + np.arange(9)).max(axis=1))

    def test_what_a_function_raises_comes_out_with_the_block(self, executor, source, tmp_path):
        target = tmp_path / "b.zarr"
        with pytest.raises(ValueError, match="no luck") as caught:
            mapped(functions.refuse, source, target=target, dtype="int8", executor=executor)
        (note,) = caught.value.__notes__
        assert "functions:refuse for block [" in note
        assert note.startswith("in task ")


def test_a_document_runs_in_another_process(tmp_path):
    stored(VALUES, CHUNK, where=f"file://{tmp_path}/a.zarr|zarr3:")
    plan = ts.plan(
        ts.map_blocks, functions.scaled, tmp_path / "a.zarr", target=tmp_path / "b.zarr",
        kwargs={"factor": 3}, halo=1, boundary=7, dtype="float64", context=small(),
    )  # fmt: skip
    assert not (tmp_path / "b.zarr").exists()
    (tmp_path / "plan.json").write_text(json.dumps(plan.result().to_json()))
    code = (
        "import json, pathlib, tensorstore_py as ts\n"
        f"plan = ts.Plan.from_json(json.loads(pathlib.Path({str(tmp_path)!r}, 'plan.json')"
        ".read_text()))\n"
        "print(plan.tasks, plan.run().result().dtype.name)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60,
        cwd=pathlib.Path(__file__).parents[2],
    )  # fmt: skip
    assert done.stdout.split() == ["9", "float64"]
    found = ts.open(tmp_path / "b.zarr").result()
    np.testing.assert_array_equal(found, 3.0 * VALUES)


class TestErrors:
    def test_what_is_done_stays_done_and_may_be_done_again(self):
        target = stored(np.zeros_like(VALUES), CHUNK)
        calls = []

        def sometimes(block, domain):
            calls.append(domain.origin)
            if len(calls) == 5:
                raise ZeroDivisionError
            return 2 * block

        for _ in range(2):
            try:
                ts.map_blocks(sometimes, stored(VALUES, CHUNK), target=target).result()
            except ZeroDivisionError:
                assert 0 < np.count_nonzero(target) < np.count_nonzero(VALUES)
        np.testing.assert_array_equal(target, 2 * VALUES)

    def test_damaged_chunks_are_named_and_all_else_is_done(self, tmp_path):
        source = stored(VALUES, CHUNK, where=f"file://{tmp_path}/a|zarr3:")
        (tmp_path / "a" / "c" / "1" / "1").write_bytes(b"short")
        target = stored(np.zeros_like(VALUES), CHUNK)
        with pytest.raises(ts.DataLossError, match=r'1 region.*\n.*"/"\[4:8, 3:6\]'):
            ts.map_blocks(functions.double, source, target=target).result()
        want = 2 * VALUES
        want[4:8, 3:6] = 0
        np.testing.assert_array_equal(target, want)

    @pytest.mark.parametrize(
        ("options", "path"),
        [
            ({"if_exists": "skip"}, "if_exists"),
            ({"halo": -1}, "halo"),
            ({"boundary": "wrap"}, "boundary"),
            ({"dtype": "int99"}, "No TensorStore data type"),
        ],
    )
    def test_what_is_refused_at_once(self, options, path):
        with pytest.raises(ts.SpecError, match=path):
            ts.map_blocks(functions.double, VALUES, target="memory://|zarr3:", **options)

    def test_nothing_to_read(self):
        with pytest.raises(ts.SpecError, match="sources: give at least one"):
            ts.map_blocks(functions.double, target="memory://|zarr3:")

    def test_arguments_of_a_document_are_checked(self):
        wrong: Any = {"hallo": 1}
        with pytest.raises(ts.SpecError, match=r'hallo: .*did you mean "halo"'):
            ts.plan(ts.map_blocks, functions.double, VALUES, target="memory://|zarr3:", **wrong)

    def test_what_no_document_can_hold(self, tmp_path):
        stored(VALUES, CHUNK, where=f"file://{tmp_path}/a.zarr|zarr3:")
        for function, kwargs, what in (
            (lambda block: block, {}, "put it into a module"),
            (functions.scaled, {"factor": 1j}, "kwargs cannot be part of a document"),
        ):
            plan = ts.plan(
                ts.map_blocks, function, tmp_path / "a.zarr", target=tmp_path / "b.zarr",
                kwargs=kwargs,
            ).result()  # fmt: skip
            with pytest.raises(ts.UnsupportedError, match=what):
                plan.to_json()


def test_a_plan_takes_the_same_arguments():
    planned = set(inspect.signature(ts.map_blocks).parameters) - {"function", "sources", "target"}
    arguments: Any = dict.fromkeys(planned) | {"if_exists": "raise", "boundary": 0}
    plan = ts.plan(
        ts.map_blocks, functions.double, VALUES, target="memory://|zarr3:", **arguments
    ).result()
    assert (plan.operation, plan.tasks, plan.bytes) == ("map_blocks", 1, VALUES.nbytes)
