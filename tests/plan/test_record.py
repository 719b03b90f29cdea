import json

import pytest

from tensorstore_py._plan.owner import Owner
from tensorstore_py._plan.record import Done, Failure, Record
from tensorstore_py._plan.task_numbers import TaskNumbers
from tensorstore_py.errors import DataLossError

RECORD = Record(
    Owner("id", "host", 7, "machine", "123"),
    "failed",
    3,
    1000.5,
    120.0,
    TaskNumbers([1, 2, 3, 7]),
    4096,
    {"min": 3.5},
    [Failure(4, "[0:8, 8:16]", "truncated")],
    1,
    Done(10, 8192, 900.0),
)


def test_is_json_and_back():
    assert Record.parse(RECORD.serialized(), "here") == RECORD
    assert json.loads(RECORD.serialized())["done"] == "1-3,7"
    assert RECORD.until == 1120.5


def test_failures_name_task_and_region():
    assert str(RECORD.failures[0]) == "task 4 ([0:8, 8:16]): truncated"


@pytest.mark.parametrize(
    "change",
    [{"state": "lost"}, {"owner": None}, {"owner": {}}, {"done": "3-1"}, {"until": None},
     {"failures": [1]}, {"worker": {"tasks": 1, "more": 2}}],
)  # fmt: skip
def test_says_what_is_no_record(change):
    text = json.dumps({**json.loads(RECORD.serialized()), **change})

    with pytest.raises(DataLossError, match="here: this is no record of a part"):
        Record.parse(text.encode(), "here")
    with pytest.raises(DataLossError, match="here"):
        Record.parse(b"{", "here")
