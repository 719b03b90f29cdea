import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorstore_py._plan.task_numbers import TaskNumbers
from tensorstore_py.errors import SpecError


@given(st.lists(st.integers(0, 40)))
def test_is_a_set_of_numbers(numbers):
    found = TaskNumbers(numbers)

    assert [number for number in range(42) if number in found] == sorted(set(numbers))
    assert len(found) == len(set(numbers))
    assert str(TaskNumbers.parse(str(found))) == str(found)


def test_neighbours_are_one_run():
    assert str(TaskNumbers([4, 0, 2, 1, 3, 9])) == "0-4,9"
    assert str(TaskNumbers()) == ""


@pytest.mark.parametrize("text", ["1-", "a", "3-1", "1,1", "5,1", "0-3,2", None, "1,,2", "1\n"])
def test_refuses_other_text(text):
    with pytest.raises(SpecError):
        TaskNumbers.parse(text)
