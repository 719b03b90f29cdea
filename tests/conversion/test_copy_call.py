"""Copies as plans; what runs them is in tests/plan."""

import pytest

import tensorstore_py as ts
from tensorstore_py._plan.call import call_of
from tensorstore_py._runtime.start import start
from tests.plan.trees import SMALL, check, tree


def call(context, **options):
    return call_of(
        ts.copy, ("memory://old/", "memory://new/"), {"context": context, **options}
    )  # fmt: skip


def run(body):
    return start(False, body).result()


@pytest.mark.parametrize("chunks", [None, 3])
def test_stage_by_stage(chunks):
    context = ts.Context(SMALL)
    tree("memory://old/", context)
    asked = call(context, chunks=chunks)

    (stage,) = run(asked.stages)
    run(lambda: asked.begin(False))
    for step in stage.steps:
        for block in step.blocks:
            run(lambda step=step, block=block: step.live.run(block))
    run(asked.end)

    check("memory://new/", context)
    assert [step.name for step in stage.steps] == ["mask", "raw/image"]


def test_what_is_there_is_skipped_and_no_step():
    context = ts.Context()
    tree("memory://old/", context)
    there = ts.Group.open("memory://new/", create=True, context=context).result()
    there.create_array("mask", dtype="int8", shape=[6]).result()

    (stage,) = run(call(context, if_exists="skip").stages)

    assert [step.name for step in stage.steps] == ["raw/image"]


def test_begun_again_it_makes_anew_what_is_its_own():
    context = ts.Context()
    tree("memory://old/", context)
    first = call(context)
    (stage,) = run(first.stages)
    run(lambda: first.begin(False))
    forms = {step.name: step.form for step in stage.steps}

    again = call(context)
    again.resume(forms)
    assert len(run(again.stages)[0].steps) == 2
    run(lambda: again.begin(True))

    not_again = call(context)
    not_again.resume(forms)
    with pytest.raises(ts.FailedPreconditionError, match="made at the destination by somebody"):
        run(lambda: not_again.begin(False))


def test_a_source_of_another_form_is_told():
    context = ts.Context()
    tree("memory://old/", context)
    asked = call(context)
    asked.resume({"mask": "another"})

    with pytest.raises(ts.FailedPreconditionError, match='"/mask" is not as it was'):
        run(asked.stages)


def test_what_was_deleted_since_is_told():
    context = ts.Context()
    tree("memory://old/", context)
    first = call(context)
    (stage,) = run(first.stages)
    asked = call(context)
    asked.resume({step.name: step.form for step in stage.steps})

    with pytest.raises(ts.FailedPreconditionError, match="was deleted at the destination"):
        run(asked.check_begun)


@pytest.mark.parametrize("driver", ["zarr3", "zarr"])
def test_consolidated_metadata_comes_last(driver):
    context = ts.Context()
    group = tree("memory://old/", context)
    group.consolidate().result()
    dest = {"driver": driver, "kvstore": "memory://new/"}

    plan = ts.plan(ts.copy, "memory://old/", dest, chunks=3, context=context).result()
    plan.run().result()

    found = ts.Group.open("memory://new/", context=context).result()
    assert sorted(found) == ["mask", "raw"]
    assert found.consolidated is not None
