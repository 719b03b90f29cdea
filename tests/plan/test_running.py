"""Calls on every kind of engine, with a manifest and without."""

import json
import os
from concurrent.futures import ThreadPoolExecutor

import distributed
import pytest

import tensorstore_py as ts
from tests.plan.trees import IMAGE, SMALL, check, processes, tree


@pytest.fixture(scope="module")
def pool():
    with processes(2) as found:
        yield found


@pytest.fixture(scope="module")
def threads():
    with ThreadPoolExecutor(2) as found:
        yield found


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as found,
    ):
        yield found


@pytest.mark.parametrize("manifest", [False, True])
@pytest.mark.parametrize("engine", ["pool", "threads", "client", None])
def test_a_tree_is_copied_by_any_engine(tmp_path, request, engine, manifest):
    executor = None if engine is None else request.getfixturevalue(engine)
    tree(tmp_path / "old")
    kept = tmp_path / "copy.json" if manifest else None

    def copied():
        return ts.rechunk(
            tmp_path / "old", tmp_path / "new", chunks=3, executor=executor, manifest=kept,
            if_exists="skip", context=ts.Context(SMALL),
        ).result()  # fmt: skip

    done = copied()

    assert (done.arrays, done.bytes, done.chunks) == (2, IMAGE.nbytes + 6, 22)
    check(tmp_path / "new")
    again = copied()
    assert (again.arrays, again.bytes, again.skipped) == (0, 0, 2)


def test_progress_of_an_engine(tmp_path, threads):
    tree(tmp_path / "old")
    seen: list[ts.Progress] = []

    ts.copy(tmp_path / "old", tmp_path / "new", executor=threads, progress=seen.append).result()

    assert seen[0].bytes_done == 0
    assert seen[-1].bytes_done == seen[-1].bytes_total == IMAGE.nbytes + 6


def test_threads_see_this_process_memory(threads):
    context = ts.Context()
    tree("memory://old/", context)

    ts.copy("memory://old/", "memory://new/", executor=threads, context=context).result()

    check("memory://new/", context)


@pytest.mark.parametrize("manifest", [False, True])
def test_memory_that_workers_do_not_see_is_refused_before_anything_is_made(
    tmp_path, pool, manifest
):
    context = ts.Context()
    tree("memory://old/", context)
    kept = tmp_path / "copy.json" if manifest else None

    with pytest.raises(ts.UnsupportedError, match="in the memory of this process"):
        ts.copy(
            "memory://old/", tmp_path / "new", executor=pool, manifest=kept, context=context
        ).result()

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("manifest", [False, True])
@pytest.mark.parametrize("here", [False, True])
def test_damaged_chunks_are_named_and_all_else_is_done(tmp_path, threads, here, manifest):
    tree(tmp_path / "old")
    damaged = tmp_path / "old/raw/image/c/1/2"
    damaged.write_bytes(b"no chunk")
    kept = tmp_path / "copy.json" if manifest else None
    context = ts.Context(SMALL)

    with pytest.raises(ts.DataLossError, match=r'"/raw/image"\[4:8, 10:14\]'):
        ts.copy(
            tmp_path / "old", tmp_path / "new", codec="zstd", manifest=kept, context=context,
            executor=None if here else threads,
        ).result()  # fmt: skip

    there = ts.Group.open(tmp_path / "new").result()
    found = there["raw/image"].read().result()
    assert (found[4:8, 10:14] == 0).all()
    found[4:8, 10:14] = IMAGE[4:8, 10:14]
    assert (found == IMAGE).all()


def test_a_run_goes_on_after_what_was_damaged_is_mended(tmp_path):
    tree(tmp_path / "old")
    damaged = tmp_path / "old/raw/image/c/1/2"
    whole = damaged.read_bytes()
    damaged.write_bytes(b"no chunk")

    def copied():
        return ts.copy(
            tmp_path / "old", tmp_path / "new", codec="zstd", manifest=tmp_path / "copy.json",
            context=ts.Context(SMALL),
        ).result()  # fmt: skip

    with pytest.raises(ts.DataLossError):
        copied()
    damaged.write_bytes(whole)
    done = copied()

    assert done.chunks == 1
    check(tmp_path / "new")


def test_the_stored_plan_has_no_secrets_and_is_readable(tmp_path):
    tree(tmp_path / "old")

    ts.copy(tmp_path / "old", tmp_path / "new", manifest=tmp_path / "copy.json").result()

    stored = json.loads((tmp_path / "copy.json").read_text())
    assert stored["tensorstore_py_plan"] == 1
    assert stored["operation"] == "copy"
    assert [step["name"] for stage in stored["stages"] for step in stage] == ["mask", "raw/image"]


def test_a_worker_that_is_gone_is_reported(tmp_path):
    tree(tmp_path / "old")
    with processes(1) as executor:
        executor.submit(os._exit, 3)
        with pytest.raises(ts.AbortedError, match="call again with a new executor"):
            ts.copy(tmp_path / "old", tmp_path / "new", executor=executor).result()


async def test_awaited(tmp_path, threads):
    tree(tmp_path / "old")

    done = await ts.copy(tmp_path / "old", tmp_path / "new", executor=threads)

    assert done.arrays == 2
