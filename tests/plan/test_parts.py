import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorstore_py._plan.parts import BEGIN, END, Parts


@given(st.integers(0, 30_000), st.none() | st.integers(1, 50))
def test_each_task_is_in_one_part(tasks, size):
    parts = Parts(tasks, size)

    assert [task for part in range(parts.count) for task in parts[part]] == list(range(tasks))
    assert list(parts[BEGIN]) == list(parts[END]) == []


@given(st.integers(0, 10**9))
def test_there_are_thousands_at_most_and_enough_for_a_thousand_workers(tasks):
    parts = Parts(tasks)

    assert parts.count <= 4096
    assert parts.count >= min(tasks, 513)
    assert parts.size <= 4 or parts.count > 2048


@given(st.integers(0, 5000), st.integers(1, 100))
def test_shares_are_equal_and_everything(tasks, of):
    parts = Parts(tasks)

    shares = [parts.share(number, of) for number in range(of)]

    assert [part for share in shares for part in share] == list(range(parts.count))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


@pytest.mark.parametrize("tasks", [1, 9999, 10_000, 10**8])
def test_names_are_in_order(tasks):
    parts = Parts(tasks, 1 if tasks < 10**6 else None)

    names = [parts.name(part) for part in (0, parts.count // 2, parts.count - 1)]

    assert names == sorted(names)
    assert {len(name) for name in names} == {len(names[0])}
    assert names[-1] < parts.name(BEGIN) < parts.name(END)
