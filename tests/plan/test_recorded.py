"""Plans that are stored: who joins them, and what is refused."""

import json

import pytest

import tensorstore_py as ts
from tensorstore_py._plan.call import call_of
from tensorstore_py._plan.document import document_place
from tensorstore_py._plan.recorded import join, store_plan
from tensorstore_py._runtime.start import start
from tests.plan.trees import SMALL, check, tree


def copied(tmp_path, **options):
    return call_of(
        ts.copy, (tmp_path / "old", tmp_path / "new"),
        {"chunks": 3, "context": ts.Context(SMALL), **options},
    )  # fmt: skip


def place(tmp_path):
    return document_place(tmp_path / "m.json", ts.Context())


def run(body):
    return start(False, body).result()


def joined(tmp_path, **options):
    told = []
    given = {"told": lambda number, tasks: told.append((number, tasks)), **options}
    outcomes, is_done = run(lambda: join(place(tmp_path), ts.Context(), **given))
    assert is_done
    return outcomes, told


def test_shares_together_are_the_whole(tmp_path):
    tree(tmp_path / "old")
    (stage,) = run(lambda: store_plan(copied(tmp_path), place(tmp_path)))

    outcome, told = joined(tmp_path, share=(1, 3))
    assert sum(tasks for _, tasks in told) == stage.count
    for share in ((0, 3), (2, 3)):
        (late,), _ = joined(tmp_path, share=share)
        assert late.steps == {}

    assert sum(done.tasks for done in outcome[0].steps.values()) == stage.count
    check(tmp_path / "new")


def test_storing_it_again_is_the_same(tmp_path):
    tree(tmp_path / "old")
    run(lambda: store_plan(copied(tmp_path), place(tmp_path)))
    before = (tmp_path / "m.json").read_bytes()

    run(lambda: store_plan(copied(tmp_path), place(tmp_path)))

    assert (tmp_path / "m.json").read_bytes() == before


def test_another_call_is_refused(tmp_path):
    tree(tmp_path / "old")
    run(lambda: store_plan(copied(tmp_path), place(tmp_path)))

    with pytest.raises(ts.FailedPreconditionError, match="is of other work: codec"):
        run(lambda: store_plan(copied(tmp_path, codec="zstd"), place(tmp_path)))


def test_another_limit_on_memory_is_told(tmp_path):
    tree(tmp_path / "old")
    run(lambda: store_plan(copied(tmp_path), place(tmp_path)))

    with pytest.raises(ts.FailedPreconditionError, match="cut into other blocks"):
        run(lambda: store_plan(copied(tmp_path, context=ts.Context()), place(tmp_path)))


def test_what_somebody_else_has_made_since_is_not_replaced(tmp_path):
    tree(tmp_path / "old")
    run(lambda: store_plan(copied(tmp_path), place(tmp_path)))
    theirs = ts.Group.open(tmp_path / "new", create=True).result()
    theirs.create_array("mask", dtype="int8", shape=[6]).result()[...] = 1

    with pytest.raises(ts.FailedPreconditionError, match='"/mask" was made at the destination'):
        joined(tmp_path)

    assert theirs["mask"].read().result().tolist() == [1] * 6


def test_a_plan_of_what_only_its_process_has(tmp_path):
    context = ts.Context(SMALL)
    tree("memory://old/", context)
    call = call_of(ts.copy, ("memory://old/", tmp_path / "new"), {"context": context})
    run(lambda: store_plan(call, place(tmp_path)))

    assert json.loads((tmp_path / "m.json").read_text())["arguments"] is None
    with pytest.raises(ts.UnsupportedError, match="only the process has that made it"):
        joined(tmp_path)


def test_no_plan_is_there(tmp_path):
    with pytest.raises(ts.NotFoundError, match=r"m\.json"):
        joined(tmp_path)
