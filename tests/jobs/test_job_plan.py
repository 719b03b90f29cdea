import json

import pytest

import tensorstore_py as ts
from tensorstore_py._jobs.documents import Document
from tensorstore_py._jobs.job_plan import (
    is_plan,
    plan_json,
    plan_text,
    planned,
    planned_of_json,
    step_document,
)

STEP = {"operation": "copy", "source": "a.zarr", "dest": "b.zarr", "chunks": [5, 30]}


def test_the_first_step_is_planned_and_nothing_is_changed(job, tmp_path):
    found = planned(job(description="Why"))

    assert plan_text(found).splitlines() == [
        "Why",
        "1. copy: 4 tasks, 2.3 KiB in 8 chunks, at most 600 B of memory a task",
        "  copy /: 4 tasks, 2.3 KiB",
        "2. rechunk: planned when what is before it is done",
    ]
    assert plan_text(planned(job(STEP))).startswith("copy: 4 tasks")
    assert [each.name for each in tmp_path.iterdir()] == ["a.zarr"]


def test_goes_through_json(job, tmp_path):
    found = planned(job(description="Why", engine={"kind": "threads"}, report="r.json",
                        progress=True))  # fmt: skip
    text = json.dumps(plan_json(found))

    document = json.loads(text)
    assert is_plan(document)
    again = planned_of_json(document)
    assert plan_text(again) == plan_text(found)
    assert (again.engine.kind, again.progress) == ("threads", True)
    assert again.report is not None
    assert str(again.report.where) == str(tmp_path / "r.json")
    assert again.steps[1].call(None).request()["chunks"] == [40, 3]
    assert json.dumps(plan_json(again)) == text


def test_it_is_a_plan_like_others(job):
    document = plan_json(planned(job(STEP)))
    assert ts.Plan.from_json(document).tasks == 4
    plan = ts.plan(ts.copy, *job(STEP).steps[0].options.values()).result()
    assert planned_of_json(plan.to_json()).steps[0].operation == "copy"


def test_what_is_wrong_is_told_before_anything_is_done(job):
    with pytest.raises(ts.NotFoundError, match="nothing to copy"):
        planned(job({**STEP, "source": "nowhere.zarr"}))


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"stages": [5]}, ("stages",)),
        ({"operation": "cpy"}, ("operation",)),
        ({"job": 5}, ("job",)),
        ({"job": {"then": 5}}, ("job", "then")),
        ({"job": {"then": [5]}}, ("job", "then", 0)),
        ({"job": {"engin": {}}}, ("engin",)),
        ({"tensorstore_py_plan": 2}, ()),
    ],
)
def test_a_document_that_is_no_plan(job, change, path):
    document = {**plan_json(planned(job(STEP))), **change}
    with pytest.raises(ts.SpecError) as caught:
        planned_of_json(document)
    assert caught.value.path == path


def test_each_step_has_a_document():
    places = [step_document(Document("s3://bucket/plan.json"), number).where for number in (0, 1)]
    assert places == ["s3://bucket/plan.json", "s3://bucket/plan.json.steps/2.json"]


def test_credentials_do_not_travel(job):
    spec = {"driver": "zarr3", "kvstore": {"driver": "http", "base_url": "http://127.0.0.1:9/",
            "headers": ["Authorization: Bearer swordfish"]}}  # fmt: skip
    steps = [STEP, {**STEP, "source": spec, "dest": "d.zarr"}]
    with pytest.raises(ts.SpecError, match="credentials, which never travel in a plan") as caught:
        plan_json(planned(job(*steps)))
    assert "swordfish" not in str(caught.value)
