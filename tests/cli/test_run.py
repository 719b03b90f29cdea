import json
import signal
import socket
import subprocess
import sys

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py.cli.main import main
from tests.runtime.processes import FOREGROUND


@pytest.fixture
def source(tmp_path):
    layout = ts.ChunkLayout(chunk_shape=[10, 10])
    array = ts.open({"driver": "zarr3", "kvstore": tmp_path / "a.zarr"}, create=True,
                    dtype="int16", shape=[40, 30], chunk_layout=layout).result()  # fmt: skip
    array[...] = np.arange(1200, dtype=np.int16).reshape(40, 30)
    return tmp_path / "a.zarr"


@pytest.fixture
def job(source):
    path = source.parent / "job.json"
    step = {"operation": "copy", "source": "a.zarr", "dest": "b.zarr", "chunks": [5, 30]}
    content = {
        "tensorstore_py_job": 1,
        "description": "Try",
        "steps": [step],
        "context": {"memory_limit": {"limit_bytes": 4800}},
        "report": "report.json",
    }
    path.write_text(json.dumps(content))
    return path


@pytest.fixture
def plan(job, tmp_path, capsys):
    assert main(["plan", str(job), "-o", str(tmp_path / "plan.json")]) == 0
    capsys.readouterr()
    return tmp_path / "plan.json"


def check_copied(tmp_path):
    found = ts.open(tmp_path / "b.zarr").result().read().result()
    np.testing.assert_array_equal(found, np.arange(1200).reshape(40, 30))


def test_runs_a_job_and_reports(job, tmp_path, capsys):
    assert main(["run", str(job)]) == 0

    printed = capsys.readouterr()
    assert printed.out.startswith("copy: done, 2.3 KiB in ")
    assert printed.err == ""  # no terminal, so no progress
    check_copied(tmp_path)
    report = json.loads((tmp_path / "report.json").read_bytes())
    assert (report["state"], report["exit_code"], report["description"]) == ("done", 0, "Try")
    assert report["steps"][0]["result"]["chunks"] == 8


def test_tells_how_far_it_is_where_asked_for(job, tmp_path, capsys):
    arguments = ["--progress", "--engine", "threads", "--workers", "2"]
    assert main(["run", str(job), *arguments, "--report", str(tmp_path / "r.json")]) == 0
    told = capsys.readouterr().err
    assert told.startswith("copy: 100%, 2.3 KiB of 2.3 KiB, 8 of 8 chunks, ")
    assert "2 workers of " in told
    report = json.loads((tmp_path / "r.json").read_bytes())
    assert report["engine"] == {"kind": "threads", "workers": 2}
    assert not (tmp_path / "report.json").exists()


def test_goes_on_with_a_manifest(job, tmp_path, capsys):
    arguments = ["run", str(job), "--manifest", str(tmp_path / "m.json")]
    assert main(arguments) == 0
    assert main(arguments) == 0
    assert "copied 0 arrays" in capsys.readouterr().out
    assert main(["run", str(job)]) == 1
    assert "exists already at the destination" in capsys.readouterr().err


def test_runs_a_plan_in_parts(plan, tmp_path, capsys):
    assert main(["run", str(plan), "--part", "1/2"]) == 0
    assert "2.3 KiB in 4 tasks of it here" in capsys.readouterr().out
    check_copied(tmp_path)
    assert main(["run", str(plan), "--part", "0/2", "--report", str(tmp_path / "r.json")]) == 0
    assert "0 B in 0 tasks of it here" in capsys.readouterr().out
    report = json.loads((tmp_path / "r.json").read_bytes())
    assert (report["part"], report["steps"][0]["tasks_here"]) == ("0/2", 0)
    assert not (tmp_path / "report.json").exists()  # which tells of all of it


def test_runs_all_of_a_plan(plan, tmp_path):
    assert main(["run", str(plan)]) == 0
    check_copied(tmp_path)
    assert json.loads((tmp_path / "report.json").read_bytes())["state"] == "done"


def test_damage_ends_with_3(plan, source, tmp_path, capsys):
    (source / "c" / "0" / "1").write_bytes(b"x")
    assert main(["run", str(plan)]) == 3
    printed = capsys.readouterr()
    assert printed.out.startswith("copy: partly done, 1.8 KiB")
    assert "a.zarr/c/0/1" in printed.err
    report = json.loads((tmp_path / "report.json").read_bytes())
    assert (report["state"], report["exit_code"]) == ("partly done", 3)


@pytest.mark.parametrize("part", [[], ["--part", "0/2"]])
def test_a_source_that_has_changed_ends_with_1(plan, source, tmp_path, capsys, part):
    ts.open(source).result().resize(exclusive_max=[30, 30]).result()
    assert main(["run", str(plan), *part]) == 1
    assert '"/" is not as it was' in capsys.readouterr().err
    assert not (tmp_path / "b.zarr").exists()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["job.json", "--part", "0/2"], "make one with `tspy plan"),
        (["plan.json", "--no-wait"], "--no-wait needs --part"),
        (["plan.json", "--manifest", "m.json"], "leave --manifest out"),
    ],
)
def test_what_does_not_go_together_ends_with_2(plan, monkeypatch, capsys, arguments, problem):
    monkeypatch.chdir(plan.parent)
    assert main(["run", *arguments]) == 2
    assert problem in capsys.readouterr().err


@pytest.mark.parametrize(
    ("part", "problem"), [("2/2", "numbered from 0 on"), ("x", "such as 3/64")]
)
def test_a_part_that_there_is_not(plan, capsys, part, problem):
    with pytest.raises(SystemExit) as caught:
        main(["run", str(plan), "--part", part])
    assert caught.value.code == 2
    assert problem in capsys.readouterr().err


def test_what_is_no_plan_ends_with_1(plan, tmp_path, capsys):
    for text, problem in (
        ("{", "not valid JSON"),
        ("[]", "expected a job file or a plan"),
        ("{}", "expected a job file"),
        ('{"tensorstore_py_plan": 1}', "expected a plan"),
    ):
        plan.write_text(text)
        assert main(["run", str(plan), "--part", "0/2"]) == 1
        assert problem in capsys.readouterr().err
    assert main(["run", str(tmp_path / "nowhere.json")]) == 1
    assert "nowhere.json does not exist" in capsys.readouterr().err


def test_an_engine_that_is_not_installed_ends_with_1(job, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["run", str(job), "--engine", "ray"]) == 1
    assert "Ray is not installed" in capsys.readouterr().err
    assert not (tmp_path / "b.zarr").exists()


def test_only_where_it_is_trusted(job, tmp_path, capsys):
    trusted = ["--untrusted", "--store", f"{tmp_path}/a.zarr/", "--store", f"{tmp_path}/b.zarr/"]
    assert main(["run", str(job), *trusted]) == 1
    assert "report: " in capsys.readouterr().err
    job.write_text(job.read_text().replace("report.json", "b.zarr/report.json"))
    manifest = ["--manifest", str(tmp_path / "m.json")]
    assert main(["run", str(job), *trusted, *manifest]) == 1
    assert "in none of the stores" in capsys.readouterr().err
    assert main(["run", str(job), *trusted]) == 0
    check_copied(tmp_path)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_with_130_and_a_report(tmp_path, number):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        step = {"operation": "copy", "dest": "b.zarr",
                "source": f"http://127.0.0.1:{silent.getsockname()[1]}/a.zarr/"}  # fmt: skip
        job = {"tensorstore_py_job": 1, "steps": [step], "report": "report.json"}
        (tmp_path / "job.json").write_text(json.dumps(job))
        program = (
            f"{FOREGROUND}import runpy; runpy.run_module('tensorstore_py', run_name='__main__')"
        )
        command = [sys.executable, "-c", program, "run", str(tmp_path / "job.json")]
        with (
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running,
            silent.accept()[0] as asked,
        ):
            try:
                asked.recv(1)  # it has asked, and waits for an answer
                running.send_signal(number)
                out, err = running.communicate(timeout=60)
            finally:
                running.kill()

    assert running.returncode == 130, err
    assert out.startswith(b"copy: interrupted")
    assert b"Traceback" not in err
    assert json.loads((tmp_path / "report.json").read_bytes())["state"] == "interrupted"


def test_help_says_what_exit_codes_mean(capsys):
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    told = capsys.readouterr().out
    for line in ("0    done", "1    failed", "3    partly done", "130  interrupted"):
        assert line in told
