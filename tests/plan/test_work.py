from tensorstore_py._plan.record import Failure
from tensorstore_py._plan.work import Work, failed_tasks
from tensorstore_py.errors import DataLossError


async def run(task):
    return task


def test_results_are_merged_where_there_are_any():
    work = Work(run, merge=lambda one, other: one + other)

    assert work.merged(None, None) is None
    assert work.merged(3, None) == work.merged(None, 3) == 3
    assert work.merged(3, 4) == 7


def test_what_failed_is_named_up_to_ten():
    failures = [Failure(task, f"rows {task}", "truncated") for task in range(100)]

    few = failed_tasks(failures[:2], 2, 1000, '"copy.json"')
    many = failed_tasks(failures, 345, 1000, '"copy.json"')

    assert type(few) is DataLossError
    assert str(few).startswith("2 of 1000 tasks could not be done")
    assert ": task 0 (rows 0): truncated; task 1 (rows 1): truncated; restore" in str(few)
    assert "task 9 (rows 9): truncated; and 335 more; restore" in str(many)
    assert len(str(many)) < 1000
