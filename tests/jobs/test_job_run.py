"""How jobs are planned and run, and what is reported of them."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py._jobs.documents import Document
from tensorstore_py._jobs.job import Job
from tensorstore_py._jobs.job_plan import (
    is_plan,
    plan_json,
    plan_text,
    planned,
    planned_of_json,
    step_document,
)
from tensorstore_py._jobs.job_run import Part, run_job
from tensorstore_py._jobs.job_status import job_status
from tensorstore_py._jobs.report import Report, StepReport, as_json, time_text

STEP = {"operation": "copy", "source": "a.zarr", "dest": "b.zarr", "chunks": [5, 30]}


@pytest.fixture
def values():
    return np.arange(40 * 30, dtype=np.int16).reshape(40, 30)


@pytest.fixture
def source(tmp_path, values):
    """An array whose copies have four tasks, with the memory that `job` allows."""
    layout = ts.ChunkLayout(chunk_shape=[10, 10])
    array = ts.open(
        {"driver": "zarr3", "kvstore": tmp_path / "a.zarr"},
        create=True,
        dtype="int16",
        shape=[40, 30],
        chunk_layout=layout,
    ).result()
    array[...] = values
    return tmp_path / "a.zarr"


@pytest.fixture
def job(source):
    """A job in two steps: a to b, b to c."""

    def made(*steps, **members):
        json = {
            "tensorstore_py_job": 1,
            "steps": list(steps)
            or [
                {"operation": "copy", "source": "a.zarr", "dest": "b.zarr", "chunks": [5, 30]},
                {"operation": "rechunk", "source": "b.zarr", "dest": "c.zarr", "chunks": [40, 3]},
            ],
            "context": {"memory_limit": {"limit_bytes": 4800}},
            **members,
        }
        return Job.parse(json, source.parent)

    return made


class TestJobPlan:
    def test_the_first_step_is_planned_and_nothing_is_changed(self, job, tmp_path):
        found = planned(job(description="Why"))

        assert plan_text(found).splitlines() == [
            "Why",
            "1. copy: 4 tasks, 2.3 KiB in 8 chunks, at most 600 B of memory a task",
            "  copy /: 4 tasks, 2.3 KiB",
            "2. rechunk: planned when what is before it is done",
        ]
        assert plan_text(planned(job(STEP))).startswith("copy: 4 tasks")
        assert [each.name for each in tmp_path.iterdir()] == ["a.zarr"]

    def test_goes_through_json(self, job, tmp_path):
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

    def test_it_is_a_plan_like_others(self, job):
        document = plan_json(planned(job(STEP)))
        assert ts.Plan.from_json(document).tasks == 4
        plan = ts.plan(ts.copy, *job(STEP).steps[0].options.values()).result()
        assert planned_of_json(plan.to_json()).steps[0].operation == "copy"

    def test_what_is_wrong_is_reported_before_anything_is_done(self, job):
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
    def test_a_document_that_is_no_plan(self, job, change, path):
        document = {**plan_json(planned(job(STEP))), **change}
        with pytest.raises(ts.SpecError) as caught:
            planned_of_json(document)
        assert caught.value.path == path

    def test_each_step_has_a_document(self):
        places = [
            step_document(Document("s3://bucket/plan.json"), number).where for number in (0, 1)
        ]
        assert places == ["s3://bucket/plan.json", "s3://bucket/plan.json.steps/2.json"]

    def test_credentials_do_not_travel(self, job):
        spec = {"driver": "zarr3", "kvstore": {"driver": "http", "base_url": "http://127.0.0.1:9/",
                "headers": ["Authorization: Bearer swordfish"]}}  # fmt: skip
        steps = [STEP, {**STEP, "source": spec, "dest": "d.zarr"}]
        with pytest.raises(
            ts.SpecError, match="credentials, which never travel in a plan"
        ) as caught:
            plan_json(planned(job(*steps)))
        assert "swordfish" not in str(caught.value)


class Told:
    """A watcher that keeps what is reported to it."""

    def __init__(self):
        self.steps = []

    def begin(self, title):
        self.steps.append([title])

    def __call__(self, progress):
        self.steps[-1].append((progress.bytes_done, progress.bytes_total))

    def close(self):
        self.steps[-1].append("closed")


def states(report):
    return [each.state for each in report.steps]


@pytest.fixture
def stored(job, tmp_path):
    """The plan of a job, stored."""

    def made(*steps):
        document = Document(tmp_path / "plan.json")
        document.write(plan_json(planned(job(*steps))))
        return planned_of_json(document.read()), document

    return made


class TestJobRun:
    def test_runs_steps_one_after_the_other(self, job, tmp_path, values):
        told = Told()

        report = run_job(job(), None, told)

        assert (report.state, report.exit_code) == ("done", 0)
        assert [each.result.chunks for each in report.steps] == [8, 10]
        assert [each.bytes_done for each in report.steps] == [2400, 2400]
        for name, shape in (("b.zarr", (5, 30)), ("c.zarr", (40, 3))):
            array = ts.open(tmp_path / name).result()
            np.testing.assert_array_equal(array.read().result(), values)
            assert array.chunk_layout.read_chunk.shape == shape
        first, second = told.steps
        assert (first[0], second[0]) == ("copy (1 of 2)", "rechunk (2 of 2)")
        assert (first[1], first[-2], first[-1]) == ((0, 2400), (2400, 2400), "closed")

    def test_a_step_that_fails_ends_the_job(self, job, tmp_path):
        ts.open({"driver": "zarr3", "kvstore": tmp_path / "b.zarr"}, create=True, dtype="int8",
                shape=[1]).result()  # fmt: skip

        report = run_job(job(), None, Told())

        assert states(report) == ["failed", "not begun"]
        assert report.exit_code == 1
        assert "exists already at the destination" in str(report.steps[0].error)

    @pytest.mark.parametrize("with_manifest", [False, True])
    def test_damage_is_reported_when_all_else_is_done(self, job, source, tmp_path, with_manifest):
        (source / "c" / "0" / "1").write_bytes(b"x")
        manifest = Document(tmp_path / "m.json") if with_manifest else None

        report = run_job(job(), None, Told(), manifest)

        assert states(report) == ["partly done", "not begun"]
        assert report.exit_code == 3
        assert "a.zarr/c/0/1" in str(report.steps[0].error)
        copied = ts.open(tmp_path / "b.zarr").result().read().result()
        assert copied[10:].all()
        assert not copied[:10].any()

    def test_goes_on_with_a_manifest(self, job, source, tmp_path, values):
        manifest = Document(tmp_path / "m.json")
        good = (source / "c" / "0" / "1").read_bytes()
        (source / "c" / "0" / "1").write_bytes(b"x")
        assert run_job(job(), None, Told(), manifest).state == "partly done"
        (source / "c" / "0" / "1").write_bytes(good)
        stored = (tmp_path / "b.zarr" / "c" / "7" / "0").stat().st_mtime_ns

        again = run_job(job(), None, Told(), manifest)

        assert again.state == "done"
        assert again.steps[0].result.bytes == 600  # one task of four
        assert (tmp_path / "b.zarr" / "c" / "7" / "0").stat().st_mtime_ns == stored
        np.testing.assert_array_equal(ts.open(tmp_path / "c.zarr").result().read().result(), values)
        assert [each.result.bytes for each in run_job(job(), None, Told(), manifest).steps] == [
            0,
            0,
        ]

    def test_runs_on_an_engine(self, job, tmp_path, values):
        with ThreadPoolExecutor(2) as executor:
            assert run_job(job(), executor, Told(), Document(tmp_path / "m.json")).state == "done"
        np.testing.assert_array_equal(ts.open(tmp_path / "c.zarr").result().read().result(), values)

    def test_workers_do_all_of_a_plan_together(self, stored, tmp_path, values):
        job, document = stored()

        def work(number):
            return run_job(
                planned_of_json(document.read()), None, Told(), document, Part(number, 3)
            )

        with ThreadPoolExecutor(3) as several:
            reports = list(several.map(work, range(3)))

        assert [each.state for each in reports] == ["done"] * 3
        np.testing.assert_array_equal(ts.open(tmp_path / "c.zarr").result().read().result(), values)
        for number in (0, 1):
            assert sum(each.steps[number].bytes_here for each in reports) == 2400
        assert run_job(job, None, Told(), document, Part(0, 3)).steps[0].tasks_here == 0

    def test_one_worker_does_what_others_were_to_do(self, stored, tmp_path, values):
        job, document = stored()
        report = run_job(job, None, Told(), document, Part(2, 3))
        assert (report.state, report.steps[0].tasks_here) == ("done", 4)
        np.testing.assert_array_equal(ts.open(tmp_path / "c.zarr").result().read().result(), values)

    def test_a_worker_that_does_not_wait_leaves_others_what_they_are_at(self, stored, tmp_path):
        job, document = stored()
        run_job(job, None, Told(), document, Part(0, 2))
        (end,) = tmp_path.glob("plan.json.parts/*/end.json")
        (end.with_name("0003.done")).unlink()
        for name in ("end.json", "0003.json"):
            record = json.loads(end.with_name(name).read_bytes())
            record["state"], record["done"] = "claimed", ""
            record["owner"] |= {"id": "other", "machine": "other"}
            record["until"] = record["at"] + 1e6
            end.with_name(name).write_text(json.dumps(record))
        end.unlink()

        report = run_job(job, None, Told(), document, Part(1, 2, wait=False))

        assert states(report) == ["partly done", "not begun"]
        assert report.exit_code == 3
        assert report.steps[0].error == "other workers are at the rest"

    @pytest.mark.parametrize("part", [None, Part(1, 2)])
    def test_a_source_that_has_changed_since_it_was_planned(self, stored, source, tmp_path, part):
        job, document = stored()
        ts.open(source).result().resize(exclusive_max=[30, 30]).result()

        report = run_job(job, None, Told(), document, part)

        assert (report.state, report.exit_code) == ("failed", 1)
        assert '"/" is not as it was when this began' in str(report.steps[0].error)
        assert not (tmp_path / "b.zarr").exists()

    @pytest.mark.parametrize("text", ["3", "3/", "/4", "a/4", "-1/4", "3/4/5", "4/4", "0/0"])
    def test_what_is_no_part(self, text):
        with pytest.raises(ts.SpecError, match="part"):
            Part.parse(text)

    def test_parts_are_numbered_from_0_on(self):
        assert str(Part.parse("0/1")) == "0/1"
        with pytest.raises(ts.SpecError, match="from 0 on; the last one of 64 is 63/64"):
            Part.parse("64/64")


@pytest.fixture
def document(job, tmp_path):
    place = Document(tmp_path / "plan.json")
    place.write(plan_json(planned(job())))
    return place


def status(document):
    return job_status(planned_of_json(document.read()), document)


class TestJobStatus:
    def test_before_and_after(self, document):
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

    def test_damaged_regions_are_named(self, document, source):
        (source / "c" / "0" / "1").write_bytes(b"x")
        run_job(planned_of_json(document.read()), None, Told(), document)

        found = status(document)

        assert (found.state, found.failed) == ("partly done", 1)
        assert '("/"[0:10, 0:30])' in str(found)
        (failure,) = found.to_json()["steps"][0]["failures"]
        assert "a.zarr/c/0/1" in failure["message"]

    def test_tells_of_workers(self, document, tmp_path):
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


class Pair(NamedTuple):
    one: object
    other: object


class TestReport:
    @pytest.mark.parametrize(
        ("states", "state", "code"),
        [
            (["done", "done"], "done", 0),
            (["done", "failed", "not begun"], "failed", 1),
            (["partly done", "not begun"], "partly done", 3),
            (["done", "interrupted"], "interrupted", 130),
        ],
    )
    def test_the_first_step_that_is_not_done_decides(self, states, state, code):
        report = Report([StepReport("copy", each) for each in states])
        assert (report.state, report.exit_code) == (state, code)

    def test_is_reported_as_json_and_text(self):
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

    def test_a_worker_tells_what_it_did_itself(self):
        step = StepReport("copy", "done", 2.0, 4096, 8192, 3, tasks_here=2, bytes_here=1024)
        assert step.to_json()["bytes_per_second"] == 512
        assert str(Report([step])) == (
            "copy: done, 4.0 KiB in 2.0 s, 1.0 KiB in 2 tasks of it here"
        )

    def test_results_become_json(self):
        found = as_json(Pair({1: (np.int8(2), {3})}, [None, np.arange(2), object]))
        assert found == {"one": {"1": [2, [3]]}, "other": [None, [0, 1], str(object)]}

    def test_arrays_are_distinguished_by_their_place(self, tmp_path):
        spec = {"driver": "zarr3", "kvstore": tmp_path / "a.zarr"}
        array = ts.open(spec, create=True, dtype="int8", shape=[3]).result()
        report = Report([StepReport("map_blocks", "done", result=array)])
        assert str(report) == (
            f"map_blocks: done, 0 B in 0.0 s: int8 of shape [3] at file://{tmp_path}/a.zarr/"
        )
        found = json.loads(json.dumps(report.to_json()))["steps"][0]["result"]
        assert ts.open(found).result().shape == (3,)

    def test_what_is_no_number_of_json(self):
        values = np.array([np.nan, np.inf, -np.inf, 1])
        assert as_json(values) == ["NaN", "Infinity", "-Infinity", 1.0]

    def test_durations_for_people(self):
        assert [time_text(each) for each in (0, 59.6, 3700, 90061)] == [
            "0:00:00", "0:01:00", "1:01:40", "25:01:01",
        ]  # fmt: skip
