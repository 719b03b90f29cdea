import json

import pytest

from tensorstore_py._jobs.documents import Document
from tensorstore_py._jobs.job_plan import plan_json, planned, planned_of_json
from tensorstore_py._jobs.job_run import Part, run_job
from tensorstore_py._jobs.job_status import job_status
from tests.jobs.test_job_run import Told


@pytest.fixture
def document(job, tmp_path):
    place = Document(tmp_path / "plan.json")
    place.write(plan_json(planned(job())))
    return place


def status(document):
    return job_status(planned_of_json(document.read()), document)


def test_before_and_after(document):
    before = status(document)
    assert (before.state, before.failed) == ("planned", 0)
    assert str(before).splitlines() == [
        "copy: planned, 0%, 0 B of 2.3 KiB",
        "  tasks: 0 of 4 done",
        "  parts: 0 of 4 done, 0 claimed, 0 abandoned",
        "rechunk: planned when what is before it is done",
    ]

    run_job(planned_of_json(document.read()), None, Told(), document, Part(0, 1))

    after = status(document)
    assert after.state == "done"
    found = json.loads(json.dumps(after.to_json()))
    assert [(each["tasks_done"], each["bytes_done"]) for each in found["steps"]] == [
        (4, 2400), (5, 2400),
    ]  # fmt: skip


def test_damaged_regions_are_named(document, source):
    (source / "c" / "0" / "1").write_bytes(b"x")
    run_job(planned_of_json(document.read()), None, Told(), document)

    found = status(document)

    assert (found.state, found.failed) == ("partly done", 1)
    assert '("/"[0:10, 0:30])' in str(found)
    (failure,) = found.to_json()["steps"][0]["failures"]
    assert "a.zarr/c/0/1" in failure["message"]


def test_tells_of_workers(document, tmp_path):
    run_job(planned_of_json(document.read()), None, Told(), document)
    (end,) = tmp_path.glob("plan.json.parts/*/end.json")
    end.with_name("0003.done").unlink()
    record = json.loads(end.with_name("0003.json").read_bytes())
    record["state"], record["done"], record["bytes"] = "claimed", "", 0
    record["owner"] |= {"id": "other", "host": "node17", "machine": "other"}
    record["worker"] = {"tasks": 3, "bytes": 1800, "since": record["at"] - 2}
    record["until"] = record["at"] + 1e6
    end.with_name("0003.json").write_text(json.dumps(record))
    end.unlink()

    first = status(document).steps[0]

    assert (first.state, first.bytes_done, first.rate) == ("running", 1800, 900.0)
    assert first.seconds_left == pytest.approx(600 / 900)
    assert "  rate: 900 B/s, 0:00:01 left" in str(first)
    (line,) = [line for line in str(first).splitlines() if "node17" in line]
    assert line.endswith(": 3 tasks, 1.8 KiB, 900 B/s")
    assert first.to_json()["claimed"] == 1
