"""What a plan says, and that it is made by arithmetic; how it runs is in test_running."""

import json
import pickle
import subprocess
import sys
import tracemalloc

import pytest

import tensorstore_py as ts
from tests.plan.trees import IMAGE, SMALL, check, tree


def rechunking(tmp_path, **options):
    tree(tmp_path / "old")
    return ts.plan(
        ts.rechunk, tmp_path / "old", tmp_path / "new", chunks=3, context=ts.Context(SMALL),
        **options,
    ).result()  # fmt: skip


def test_what_is_to_be_done(tmp_path):
    plan = rechunking(tmp_path)

    assert plan.operation == "rechunk"
    assert [step.name for step in plan.steps] == ["mask", "raw/image"]
    assert plan.bytes == IMAGE.nbytes + 6
    assert plan.chunks == 22
    assert plan.tasks == sum(step.blocks.count for step in plan.steps) > 2
    assert plan.task_memory <= 64
    assert str(plan).startswith(f"rechunk: {plan.tasks} tasks, 342 B in 22 chunks")
    assert repr(plan) == f"Plan(rechunk, tasks={plan.tasks}, bytes=342)"


def test_planning_changes_nothing(tmp_path):
    before = sorted(tmp_path.rglob("*"))
    rechunking(tmp_path)

    assert not (tmp_path / "new").exists()
    assert before == []


@pytest.mark.parametrize("way", ["here", "pickle", "json"])
def test_a_plan_runs_wherever_it_comes_to(tmp_path, way):
    plan = rechunking(tmp_path)
    if way == "pickle":
        plan = pickle.loads(pickle.dumps(plan))
    elif way == "json":
        plan = ts.Plan.from_json(json.loads(json.dumps(plan.to_json())))

    done = plan.run().result()

    assert done.arrays == 2
    check(tmp_path / "new")


def test_a_plan_runs_in_another_process(tmp_path):
    (tmp_path / "plan.json").write_text(json.dumps(rechunking(tmp_path).to_json()))
    program = (
        "import json, sys, tensorstore_py as ts\n"
        "plan = ts.Plan.from_json(json.load(open(sys.argv[1])))\n"
        "print(plan.run().result().arrays)\n"
    )

    ran = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "plan.json")],
        capture_output=True, text=True, check=True, timeout=240,
    )  # fmt: skip

    assert ran.stdout == "2\n"
    check(tmp_path / "new")


@pytest.mark.parametrize("manifest", [False, True])
def test_what_has_changed_since_is_refused(tmp_path, manifest):
    plan = pickle.loads(pickle.dumps(rechunking(tmp_path)))
    image = ts.Group.open(tmp_path / "old").result()["raw/image"]
    image.resize(exclusive_max=[12, 20]).result()

    kept = tmp_path / "copy.json" if manifest else None
    if manifest:
        assert plan.run(manifest=kept).result().arrays == 2  # planned anew, with what is there
    else:
        with pytest.raises(ts.FailedPreconditionError, match="changed since the plan was made"):
            plan.run().result()


def test_fourteen_million_chunks_are_planned_in_little_memory(tmp_path):
    shape = [14_000, 1_000]
    layout = ts.ChunkLayout(chunk_shape=[1, 1])
    source = ts.open(
        {"driver": "zarr3", "kvstore": f"file://{tmp_path}/a/"}, create=True, dtype="uint8",
        shape=shape, chunk_layout=layout, context=ts.Context({"memory_limit": {"limit_bytes": 4}}),
    ).result()  # fmt: skip
    tight = ts.Context({"memory_limit": {"limit_bytes": 4}})
    tracemalloc.start()
    try:
        plan = ts.plan(ts.copy, source, f"file://{tmp_path}/b/|zarr3:", codec="zstd",
                       context=tight).result()  # fmt: skip
        text = json.dumps(plan.to_json())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert plan.tasks == 14_000_000
    assert plan.stages[0].task(13_999_999)[1].bounds == ((13_999, 14_000), (999, 1000))
    assert len(text) < 10_000
    assert peak < 2**23


def test_functions_that_have_no_plan():
    with pytest.raises(ts.SpecError, match=r"ts\.copy"):
        ts.plan(ts.open, "memory://")


@pytest.mark.parametrize("wrong", [3, {}, {"tensorstore_py_plan": 2}])
def test_what_is_no_plan_is_refused(wrong):
    with pytest.raises(ts.SpecError, match="expected a plan"):
        ts.Plan.from_json(wrong)
