import json
from typing import NamedTuple

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py._jobs.report import Report, StepReport, as_json, time_text


@pytest.mark.parametrize(
    ("states", "state", "code"),
    [
        (["done", "done"], "done", 0),
        (["done", "failed", "not begun"], "failed", 1),
        (["partly done", "not begun"], "partly done", 3),
        (["done", "interrupted"], "interrupted", 130),
    ],
)
def test_the_first_step_that_is_not_done_decides(states, state, code):
    report = Report([StepReport("copy", each) for each in states])
    assert (report.state, report.exit_code) == (state, code)


def test_is_told_as_json_and_text():
    step = StepReport("copy", "done", 2.0, 4096, 8192, 3, result={"mean": np.float64(0.5)})
    report = Report([step], "Why", {"kind": "threads"}, "3/64", began=0.0, seconds=2.0)

    found = json.loads(json.dumps(report.to_json()))

    assert found.pop("host")
    assert found == {
        "tensorstore_py_report": 1,
        "description": "Why",
        "state": "done",
        "exit_code": 0,
        "began": "1970-01-01T00:00:00Z",
        "seconds": 2.0,
        "engine": {"kind": "threads"},
        "part": "3/64",
        "steps": [
            {
                "operation": "copy",
                "state": "done",
                "seconds": 2.0,
                "bytes_done": 4096,
                "bytes_total": 8192,
                "chunks_done": 3,
                "result": {"mean": 0.5},
                "bytes_per_second": 2048,
            }
        ],
    }
    assert str(report) == "copy: done, 4.0 KiB in 2.0 s: {'mean': 0.5}"


def test_a_worker_tells_what_it_did_itself():
    step = StepReport("copy", "done", 2.0, 4096, 8192, 3, tasks_here=2, bytes_here=1024)
    assert step.to_json()["bytes_per_second"] == 512
    assert str(Report([step])) == ("copy: done, 4.0 KiB in 2.0 s, 1.0 KiB in 2 tasks of it here")


class Pair(NamedTuple):
    one: object
    other: object


def test_results_become_json():
    found = as_json(Pair({1: (np.int8(2), {3})}, [None, np.arange(2), object]))
    assert found == {"one": {"1": [2, [3]]}, "other": [None, [0, 1], str(object)]}


def test_arrays_are_told_by_their_place(tmp_path):
    spec = {"driver": "zarr3", "kvstore": tmp_path / "a.zarr"}
    array = ts.open(spec, create=True, dtype="int8", shape=[3]).result()
    report = Report([StepReport("map_blocks", "done", result=array)])
    assert str(report) == (
        f"map_blocks: done, 0 B in 0.0 s: int8 of shape [3] at file://{tmp_path}/a.zarr/"
    )
    found = json.loads(json.dumps(report.to_json()))["steps"][0]["result"]
    assert ts.open(found).result().shape == (3,)


def test_what_is_no_number_of_json():
    values = np.array([np.nan, np.inf, -np.inf, 1])
    assert as_json(values) == ["NaN", "Infinity", "-Infinity", 1.0]


def test_durations_for_people():
    assert [time_text(each) for each in (0, 59.6, 3700, 90061)] == [
        "0:00:00", "0:01:00", "1:01:40", "25:01:01",
    ]  # fmt: skip
