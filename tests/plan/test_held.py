import pytest

from tensorstore_py._plan.held import Held, Ran
from tensorstore_py._plan.record import MOST_FAILURES, Failure, Record
from tensorstore_py._plan.task_numbers import TaskNumbers
from tensorstore_py._plan.work import Work
from tests.plan.cluster import machine


async def run(task):
    return task


WORK = Work(run, merge=set.union, to_json=sorted, from_json=set, size=lambda task: 10 * task)


@pytest.fixture
def held():
    record = Record(machine("a"), done=TaskNumbers([11, 12]), result=[11, 12])
    return Held(1, range(10, 16), record, b"1", {11, 12})


def test_gives_the_tasks_that_are_left(held):
    assert [held.take(2), held.take(3)] == [[10, 13], [14, 15]]
    assert held.running == 4
    assert not held.drained
    assert held.take(1) == []
    assert held.drained


def test_its_record_says_what_is_done(held):
    held.take(4)

    assert held.note(2, [Ran(10, 0.1, {10}), Ran(14, 0.1, {14})], WORK) == (2, 240)

    assert (str(held.record.done), held.record.result) == ("10-12,14", [10, 11, 12, 14])
    assert held.record.bytes == 240


def test_is_complete_when_all_that_were_taken_have_ended(held):
    held.take(4)
    held.take(1)
    held.note(3, [Ran(task, 0.1) for task in (10, 13, 14)], WORK)
    assert not held.complete
    held.note(1, [Ran(15, 0.1, failure=Failure(15, "r", "m"))], WORK)
    assert held.complete
    assert 15 not in held.record.done
    assert held.record.failures == [Failure(15, "r", "m")]


def test_what_is_lost_gives_no_more_tasks_and_is_never_complete(held):
    held.take(1)
    held.lost = True
    held.note(1, [Ran(10, 0.1)], WORK)

    assert held.take(1) == []
    assert not held.complete


def test_tasks_that_were_not_run_after_all_are_not_done(held):
    held.take(4)
    held.note(4, [Ran(10, 0.1), Ran(13, 0.1, error=OSError("full"))], WORK)

    assert str(held.record.done) == "10-12"


def test_of_many_failures_some_are_kept():
    held = Held(0, range(1000), Record(machine("a")), b"1", None)
    tasks = held.take(1000)
    held.note(1000, [Ran(task, 0.1, failure=Failure(task, "r", "m")) for task in tasks], WORK)

    assert held.record.failed == 1000
    assert [each.task for each in held.record.failures] == list(range(MOST_FAILURES))
