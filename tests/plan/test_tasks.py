"""Tasks in one process; on engines they are in test_running."""

import pytest

import tensorstore_py as ts
from tensorstore_py._plan.operation import register
from tensorstore_py._plan.steps import Stage
from tensorstore_py._plan.tasks import Damaged, Done, Outcome, Tasks
from tensorstore_py._runtime.admission import Bytes
from tensorstore_py._runtime.start import start
from tests.plan.test_steps import step


class Noting:
    """An operation that notes what it does.

    Args:
        blocks: to work on.
        error: raised in the block that begins at 2.
        memory: the budget.
    """

    item_bytes = 4
    told_bytes = 2

    def __init__(self, blocks, error=None, memory=None, inline=False):
        self.blocks, self.error, self.memory, self.inline = blocks, error, memory, inline
        self.ran = []

    async def run(self, block):
        self.ran.append(block.bounds[0][0])
        if self.error is not None and block.bounds[0][0] == 2:
            raise self.error
        return block.size


class Adding:
    def merge(self, one, other):
        return one + other

    def to_json(self, result):
        return result

    def from_json(self, json):
        return json


def staged(**options):
    steps = tuple(step(name, parts) for name, parts in (("a", 3), ("b", 2)))
    for each in steps:
        each.live = Noting(each.blocks, **options)
    return Stage(steps)


def run(stage, start_=0, stop=None):
    seen: list[Done] = []
    tasks = Tasks(stage, ts.Context())
    body = lambda: tasks.run_all(start_, stage.count if stop is None else stop, seen.append)  # noqa: E731
    return start(False, body).result(), seen


@pytest.fixture(autouse=True)
def merging():
    from tensorstore_py._plan import operation

    before = operation._openers["copy"]
    register("copy", before[0], Adding())
    yield
    register("copy", *before)


@pytest.mark.parametrize("inline", [False, True])
def test_all_are_done_and_counted(inline):
    stage = staged(inline=inline)

    outcome, seen = run(stage)

    assert outcome.steps == {0: Done(3, 12, 3, 6), 1: Done(2, 8, 2, 4)}
    assert sorted(stage.steps[0].live.ran) == [0, 2, 4]
    assert sum(each.bytes for each in seen) == 20


def test_only_some():
    stage = staged()

    outcome, _ = run(stage, 2, 4)

    assert {number: each.tasks for number, each in outcome.steps.items()} == {0: 1, 1: 1}


def test_damage_is_noted_and_the_others_go_on():
    stage = staged(error=ts.DataLossError("bad chunk"))

    outcome, _ = run(stage)

    assert [each.tasks for each in outcome.steps.values()] == [2, 1]
    assert sorted(each.region for each in outcome.damaged) == ['"/a"[2:4]', '"/b"[2:4]']
    with pytest.raises(ts.DataLossError, match=r"2 region\(s\) could not be done(.|\n)*bad chunk"):
        outcome.check()


@pytest.mark.parametrize("error", [ts.ResourceExhaustedError("disk full"), OSError("disk full")])
def test_any_other_error_names_task_and_region(error):
    stage = staged(error=error)

    with pytest.raises(type(error)) as caught:
        run(stage, 0, 3)

    told = str(caught.value) + "".join(getattr(caught.value, "__notes__", []))
    assert "task 1" in told
    assert '"/a"[2:4]' in told
    assert "disk full" in told


def test_memory_is_taken_and_given_back():
    memory = Bytes(16)
    stage = staged(memory=memory)

    outcome, _ = run(stage)

    assert outcome.steps[0].tasks == 3
    assert start(False, lambda: memory.blocks.take(False, memory.blocks.limit)).result() is None


def test_outcomes_merge_in_any_order():
    stage = staged()
    parts = [run(stage, number, number + 1)[0] for number in range(stage.count)]
    whole = Outcome({}, [])

    for each in reversed(parts):
        whole.merge(each, stage)

    assert whole.steps == run(stage)[0].steps
    assert whole.without_results().steps[0] == Done(3, 12, 3, None)


def test_many_damaged_regions_are_counted():
    outcome = Outcome({}, [Damaged("a", f"a[{number}]", "bad") for number in range(30)])

    with pytest.raises(ts.DataLossError, match="and 10 more"):
        outcome.check()
