import argparse
import io
import json
from pathlib import Path

import pytest

import tensorstore_py as ts
from tensorstore_py._jobs.engine import JobEngine
from tensorstore_py._jobs.job import Job
from tensorstore_py.cli.jobs import add_document, add_engine, engine, found_job

JOB = {
    "tensorstore_py_job": 1,
    "steps": [{"operation": "copy", "source": "a.zarr", "dest": "b.zarr"}],
}


def options(*arguments):
    parser = argparse.ArgumentParser()
    add_document(parser, "a job file")
    add_engine(parser)
    return parser.parse_args([str(each) for each in arguments])


def found(*arguments):
    return found_job(options(*arguments))


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "job.json"
    path.write_text(json.dumps(JOB))
    return path


def source(found):
    return found.job.steps[0].options["source"]


def test_finds_a_job_at_a_path_or_url(file, tmp_path):
    assert source(found(file)) == tmp_path / "a.zarr"
    elsewhere = (file.as_uri(), json.dumps({"driver": "file", "path": str(file)}))
    for where in elsewhere:
        with pytest.raises(ts.SpecError, match="relative to a directory, and the document is in"):
            found(where)
    file.write_text(json.dumps(JOB).replace("a.zarr", "/a.zarr").replace("b.zarr", "/b.zarr"))
    for where in elsewhere:
        assert source(found(where)) == Path("/a.zarr")


def test_finds_a_job_in_standard_input(tmp_path, monkeypatch):
    class Input:
        buffer = io.BytesIO(json.dumps(JOB).encode())

    monkeypatch.setattr("sys.stdin", Input)
    monkeypatch.chdir(tmp_path)
    one = found("-")
    assert (source(one), one.document) == (tmp_path / "a.zarr", None)


def test_errors_name_the_file_and_the_member(file):
    file.write_text(json.dumps({**JOB, "step": 5}))
    with pytest.raises(ts.SpecError, match=r"^step: no such member .*job.json\)$"):
        found(file)


def test_the_environment_where_asked_for(file, monkeypatch):
    monkeypatch.setenv("VOLUME", "7")
    file.write_text(json.dumps(JOB).replace("a.zarr", "${VOLUME}.zarr"))
    assert source(found(file, "--env")).name == "7.zarr"
    assert source(found(file)).name == "${VOLUME}.zarr"


def test_a_job_that_is_not_trusted(file, tmp_path):
    with pytest.raises(ts.SpecError, match=r"steps\[0\].source: .* is in none of the stores"):
        found(file, "--untrusted", "--store", f"{tmp_path}/in/")
    assert len(found(file, "--untrusted", "--store", tmp_path).job.steps) == 1
    with pytest.raises(ts.SpecError, match="--env would tell a job"):
        found(file, "--untrusted", "--store", tmp_path, "--env")


def test_a_plan_is_not_run_without_trust(tmp_path):
    file = tmp_path / "plan.json"
    file.write_text('{"tensorstore_py_plan": 1}')
    with pytest.raises(ts.SpecError, match="pass --untrusted with its job file"):
        found(file, "--untrusted", "--store", tmp_path)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], JobEngine("threads", 3)),
        (["--engine", "none"], JobEngine()),
        (["--engine", "processes"], JobEngine("processes")),
        (["--workers", "5"], JobEngine("threads", 5)),
        (["--engine", "dask", "--address", "tcp://a:1"], JobEngine("dask", None, "tcp://a:1")),
    ],
)
def test_the_command_line_has_the_last_word_on_engines(arguments, expected):
    job = Job((), JobEngine("threads", 3))
    assert engine(options("x", *arguments), job) == expected


def test_engines_that_cannot_be():
    for arguments in (["--workers", "0"], ["--engine", "ray", "--workers", "2"]):
        with pytest.raises(ts.SpecError, match="workers"):
            engine(options("x", *arguments), Job(()))
