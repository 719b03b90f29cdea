import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py._jobs.documents import Document
from tensorstore_py._jobs.job_plan import plan_json, planned, planned_of_json
from tensorstore_py._jobs.job_run import Part, run_job


class Told:
    """A watcher that keeps what it is told."""

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


def test_runs_steps_one_after_the_other(job, tmp_path, values):
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


def test_a_step_that_fails_ends_the_job(job, tmp_path):
    ts.open({"driver": "zarr3", "kvstore": tmp_path / "b.zarr"}, create=True, dtype="int8",
            shape=[1]).result()  # fmt: skip

    report = run_job(job(), None, Told())

    assert states(report) == ["failed", "not begun"]
    assert report.exit_code == 1
    assert "exists already at the destination" in str(report.steps[0].error)


@pytest.mark.parametrize("with_manifest", [False, True])
def test_damage_is_told_when_all_else_is_done(job, source, tmp_path, with_manifest):
    (source / "c" / "0" / "1").write_bytes(b"x")
    manifest = Document(tmp_path / "m.json") if with_manifest else None

    report = run_job(job(), None, Told(), manifest)

    assert states(report) == ["partly done", "not begun"]
    assert report.exit_code == 3
    assert "a.zarr/c/0/1" in str(report.steps[0].error)
    copied = ts.open(tmp_path / "b.zarr").result().read().result()
    assert copied[10:].all()
    assert not copied[:10].any()


def test_goes_on_with_a_manifest(job, source, tmp_path, values):
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
    assert [each.result.bytes for each in run_job(job(), None, Told(), manifest).steps] == [0, 0]


def test_runs_on_an_engine(job, tmp_path, values):
    with ThreadPoolExecutor(2) as executor:
        assert run_job(job(), executor, Told(), Document(tmp_path / "m.json")).state == "done"
    np.testing.assert_array_equal(ts.open(tmp_path / "c.zarr").result().read().result(), values)


def test_workers_do_all_of_a_plan_together(stored, tmp_path, values):
    job, document = stored()

    def work(number):
        return run_job(planned_of_json(document.read()), None, Told(), document, Part(number, 3))

    with ThreadPoolExecutor(3) as several:
        reports = list(several.map(work, range(3)))

    assert [each.state for each in reports] == ["done"] * 3
    np.testing.assert_array_equal(ts.open(tmp_path / "c.zarr").result().read().result(), values)
    for number in (0, 1):
        assert sum(each.steps[number].bytes_here for each in reports) == 2400
    assert run_job(job, None, Told(), document, Part(0, 3)).steps[0].tasks_here == 0


def test_one_worker_does_what_others_were_to_do(stored, tmp_path, values):
    job, document = stored()
    report = run_job(job, None, Told(), document, Part(2, 3))
    assert (report.state, report.steps[0].tasks_here) == ("done", 4)
    np.testing.assert_array_equal(ts.open(tmp_path / "c.zarr").result().read().result(), values)


def test_a_worker_that_does_not_wait_leaves_others_what_they_are_at(stored, tmp_path):
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
def test_a_source_that_has_changed_since_it_was_planned(stored, source, tmp_path, part):
    job, document = stored()
    ts.open(source).result().resize(exclusive_max=[30, 30]).result()

    report = run_job(job, None, Told(), document, part)

    assert (report.state, report.exit_code) == ("failed", 1)
    assert '"/" is not as it was when this began' in str(report.steps[0].error)
    assert not (tmp_path / "b.zarr").exists()


@pytest.mark.parametrize("text", ["3", "3/", "/4", "a/4", "-1/4", "3/4/5", "4/4", "0/0"])
def test_what_is_no_part(text):
    with pytest.raises(ts.SpecError, match="part"):
        Part.parse(text)


def test_parts_are_numbered_from_0_on():
    assert str(Part.parse("0/1")) == "0/1"
    with pytest.raises(ts.SpecError, match="from 0 on; the last one of 64 is 63/64"):
        Part.parse("64/64")
