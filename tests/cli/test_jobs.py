"""Jobs by the command line: planned, run, watched, trusted."""

import argparse
import io
import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py.cli.jobs import add_document, add_engine, engine, found_job
from tensorstore_py.cli.main import main
from tensorstore_py.cli.places import add_trust, array_or_group, document, trust
from tests.runtime.processes import FOREGROUND

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


class TestJobs:
    def test_finds_a_job_at_a_path_or_url(self, file, tmp_path):
        assert source(found(file)) == tmp_path / "a.zarr"
        elsewhere = (file.as_uri(), json.dumps({"driver": "file", "path": str(file)}))
        for where in elsewhere:
            with pytest.raises(
                ts.SpecError, match="relative to a directory, and the document is in"
            ):
                found(where)
        file.write_text(json.dumps(JOB).replace("a.zarr", "/a.zarr").replace("b.zarr", "/b.zarr"))
        for where in elsewhere:
            assert source(found(where)) == Path("/a.zarr")

    def test_finds_a_job_in_standard_input(self, tmp_path, monkeypatch):
        class Input:
            buffer = io.BytesIO(json.dumps(JOB).encode())

        monkeypatch.setattr("sys.stdin", Input)
        monkeypatch.chdir(tmp_path)
        one = found("-")
        assert (source(one), one.document) == (tmp_path / "a.zarr", None)

    def test_errors_name_the_file_and_the_member(self, file):
        file.write_text(json.dumps({**JOB, "step": 5}))
        with pytest.raises(ts.SpecError, match=r"^step: no such member .*job.json\)$"):
            found(file)

    def test_the_environment_where_asked_for(self, file, monkeypatch):
        monkeypatch.setenv("VOLUME", "7")
        file.write_text(json.dumps(JOB).replace("a.zarr", "${VOLUME}.zarr"))
        assert source(found(file, "--env")).name == "7.zarr"
        assert source(found(file)).name == "${VOLUME}.zarr"

    def test_a_job_that_is_not_trusted(self, file, tmp_path):
        with pytest.raises(ts.SpecError, match=r"steps\[0\].source: .* is in none of the stores"):
            found(file, "--untrusted", "--store", f"{tmp_path}/in/")
        assert len(found(file, "--untrusted", "--store", tmp_path).job.steps) == 1
        with pytest.raises(ts.SpecError, match="--env would tell a job"):
            found(file, "--untrusted", "--store", tmp_path, "--env")

    def test_a_plan_is_not_run_without_trust(self, tmp_path):
        file = tmp_path / "plan.json"
        file.write_text('{"tensorstore_py_plan": 1}')
        with pytest.raises(ts.SpecError, match="pass --untrusted with its job file"):
            found(file, "--untrusted", "--store", tmp_path)

    @pytest.mark.parametrize(
        ("arguments", "expected"),
        [
            ([], ("threads", 3, None)),
            (["--engine", "none"], (None, None, None)),
            (["--engine", "processes"], ("processes", None, None)),
            (["--workers", "5"], ("threads", 5, None)),
            (["--engine", "dask", "--address", "tcp://a:1"], ("dask", None, "tcp://a:1")),
        ],
    )
    def test_the_command_line_has_the_last_word_on_engines(self, file, arguments, expected):
        file.write_text(json.dumps({**JOB, "engine": {"kind": "threads", "workers": 3}}))
        assert engine(options(file, *arguments), found(file).job) == expected

    def test_engines_that_cannot_be(self, file):
        for arguments in (["--workers", "0"], ["--engine", "ray", "--workers", "2"]):
            with pytest.raises(ts.SpecError, match="workers"):
                engine(options(file, *arguments), found(file).job)


@pytest.fixture
def planned_job(tmp_path):
    ts.open({"driver": "zarr3", "kvstore": tmp_path / "a.zarr"}, create=True, dtype="int16",
            shape=[40, 30]).result()  # fmt: skip
    path = tmp_path / "job.json"
    step = {"operation": "copy", "source": "a.zarr", "dest": "b.zarr", "chunks": 10}
    path.write_text(json.dumps({"tensorstore_py_job": 1, "steps": [step]}))
    return path


class TestPlan:
    def test_says_what_is_going_to_be_done(self, planned_job, tmp_path, capsys):
        assert main(["plan", str(planned_job)]) == 0
        assert capsys.readouterr().out == (
            "copy: 1 task, 2.3 KiB in 12 chunks, at most 2.3 KiB of memory a task\n"
            "  copy /: 1 task, 2.3 KiB\n"
        )
        assert sorted(each.name for each in tmp_path.iterdir()) == ["a.zarr", "job.json"]

    def test_writes_it_for_workers(self, planned_job, tmp_path, capsys):
        place = tmp_path / "plan.json"
        assert (
            main(
                [
                    "plan",
                    str(planned_job),
                    "-o",
                    str(place),
                    "--engine",
                    "threads",
                    "--workers",
                    "2",
                ]
            )
            == 0
        )
        assert capsys.readouterr().out.startswith("copy: 1 task")
        stored = json.loads(place.read_bytes())
        assert stored["job"]["engine"] == {"kind": "threads", "workers": 2}
        assert ts.Plan.from_json(stored).tasks == 1

        assert main(["plan", str(planned_job), "-o", place.as_uri()]) == 0
        assert main(["plan", str(place)]) == 0
        capsys.readouterr()
        assert main(["plan", str(planned_job), "-o", "-"]) == 0
        assert ts.Plan.from_json(json.loads(capsys.readouterr().out)).tasks == 1

    def test_says_what_is_wrong(self, planned_job, tmp_path, capsys):
        text = planned_job.read_text()
        for wrong, problem in (
            (
                text.replace('"copy"', '"cpy"'),
                "steps[0].operation: there is no operation 'cpy' (did",
            ),
            (text.replace("chunks", "chunsk"), "steps[0].chunsk: no such member (did you mean"),
            (text.replace("a.zarr", "z.zarr"), "nothing to copy: no array or group is at"),
            ("{", "not valid JSON: Expecting property name enclosed in double quotes at line 1"),
        ):
            planned_job.write_text(wrong)
            assert main(["plan", str(planned_job), "-o", str(tmp_path / "plan.json")]) == 1
            assert capsys.readouterr().err.startswith(problem)
        assert not (tmp_path / "plan.json").exists()

    def test_where_it_cannot_be_written(self, planned_job, tmp_path, capsys):
        for place, problem in (
            (f"{tmp_path.as_uri()}/", "is a directory; name one document in it"),
            ("memory://plan.json", "memory is gone when the command ends"),
        ):
            with pytest.raises(SystemExit) as caught:
                main(["plan", str(planned_job), "-o", place])
            assert caught.value.code == 2
            assert problem in capsys.readouterr().err
        trusted = [
            "--untrusted",
            "--store",
            f"{tmp_path}/a.zarr/",
            "--store",
            f"{tmp_path}/b.zarr/",
        ]
        assert main(["plan", str(planned_job), "-o", str(tmp_path / "plan.json"), *trusted]) == 1
        assert "in none of the stores" in capsys.readouterr().err


@pytest.fixture
def stored_source(tmp_path):
    layout = ts.ChunkLayout(chunk_shape=[10, 10])
    array = ts.open({"driver": "zarr3", "kvstore": tmp_path / "a.zarr"}, create=True,
                    dtype="int16", shape=[40, 30], chunk_layout=layout).result()  # fmt: skip
    array[...] = np.arange(1200, dtype=np.int16).reshape(40, 30)
    return tmp_path / "a.zarr"


@pytest.fixture
def job(stored_source):
    path = stored_source.parent / "job.json"
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


class TestRun:
    def test_runs_a_job_and_reports(self, job, tmp_path, capsys):
        assert main(["run", str(job)]) == 0

        printed = capsys.readouterr()
        assert printed.out.startswith("copy: done, 2.3 KiB in ")
        assert printed.err == ""  # no terminal, so no progress
        check_copied(tmp_path)
        report = json.loads((tmp_path / "report.json").read_bytes())
        assert (report["state"], report["exit_code"], report["description"]) == ("done", 0, "Try")
        assert report["steps"][0]["result"]["chunks"] == 8

    def test_tells_how_far_it_is_where_asked_for(self, job, tmp_path, capsys):
        arguments = ["--progress", "--engine", "threads", "--workers", "2"]
        assert main(["run", str(job), *arguments, "--report", str(tmp_path / "r.json")]) == 0
        told = capsys.readouterr().err
        assert told.startswith("copy: 100%, 2.3 KiB of 2.3 KiB, 8 of 8 chunks, ")
        assert "2 workers of " in told
        report = json.loads((tmp_path / "r.json").read_bytes())
        assert report["engine"] == {"kind": "threads", "workers": 2}
        assert not (tmp_path / "report.json").exists()

    def test_goes_on_with_a_manifest(self, job, tmp_path, capsys):
        arguments = ["run", str(job), "--manifest", str(tmp_path / "m.json")]
        assert main(arguments) == 0
        assert main(arguments) == 0
        assert "copied 0 arrays" in capsys.readouterr().out
        assert main(["run", str(job)]) == 1
        assert "exists already at the destination" in capsys.readouterr().err

    def test_runs_a_plan_in_parts(self, plan, tmp_path, capsys):
        assert main(["run", str(plan), "--part", "1/2"]) == 0
        assert "2.3 KiB in 4 tasks of it here" in capsys.readouterr().out
        check_copied(tmp_path)
        assert main(["run", str(plan), "--part", "0/2", "--report", str(tmp_path / "r.json")]) == 0
        assert "0 B in 0 tasks of it here" in capsys.readouterr().out
        report = json.loads((tmp_path / "r.json").read_bytes())
        assert (report["part"], report["steps"][0]["tasks_here"]) == ("0/2", 0)
        assert not (tmp_path / "report.json").exists()  # which tells of all of it

    def test_runs_all_of_a_plan(self, plan, tmp_path):
        assert main(["run", str(plan)]) == 0
        check_copied(tmp_path)
        assert json.loads((tmp_path / "report.json").read_bytes())["state"] == "done"

    def test_damage_ends_with_3(self, plan, stored_source, tmp_path, capsys):
        (stored_source / "c" / "0" / "1").write_bytes(b"x")
        assert main(["run", str(plan)]) == 3
        printed = capsys.readouterr()
        assert printed.out.startswith("copy: partly done, 1.8 KiB")
        assert "a.zarr/c/0/1" in printed.err
        report = json.loads((tmp_path / "report.json").read_bytes())
        assert (report["state"], report["exit_code"]) == ("partly done", 3)

    @pytest.mark.parametrize("part", [[], ["--part", "0/2"]])
    def test_a_source_that_has_changed_ends_with_1(
        self, plan, stored_source, tmp_path, capsys, part
    ):
        ts.open(stored_source).result().resize(exclusive_max=[30, 30]).result()
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
    def test_what_does_not_go_together_ends_with_2(
        self, plan, monkeypatch, capsys, arguments, problem
    ):
        monkeypatch.chdir(plan.parent)
        assert main(["run", *arguments]) == 2
        assert problem in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("part", "problem"), [("2/2", "numbered from 0 on"), ("x", "such as 3/64")]
    )
    def test_a_part_that_there_is_not(self, plan, capsys, part, problem):
        with pytest.raises(SystemExit) as caught:
            main(["run", str(plan), "--part", part])
        assert caught.value.code == 2
        assert problem in capsys.readouterr().err

    def test_what_is_no_plan_ends_with_1(self, plan, tmp_path, capsys):
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

    def test_an_engine_that_is_not_installed_ends_with_1(self, job, tmp_path, monkeypatch, capsys):
        monkeypatch.setitem(sys.modules, "ray", None)
        assert main(["run", str(job), "--engine", "ray"]) == 1
        assert "Ray is not installed" in capsys.readouterr().err
        assert not (tmp_path / "b.zarr").exists()

    def test_only_where_it_is_trusted(self, job, tmp_path, capsys):
        trusted = [
            "--untrusted",
            "--store",
            f"{tmp_path}/a.zarr/",
            "--store",
            f"{tmp_path}/b.zarr/",
        ]
        assert main(["run", str(job), *trusted]) == 1
        assert "report: " in capsys.readouterr().err
        job.write_text(job.read_text().replace("report.json", "b.zarr/report.json"))
        manifest = ["--manifest", str(tmp_path / "m.json")]
        assert main(["run", str(job), *trusted, *manifest]) == 1
        assert "in none of the stores" in capsys.readouterr().err
        assert main(["run", str(job), *trusted]) == 0
        check_copied(tmp_path)

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_an_interrupt_ends_with_130_and_a_report(self, tmp_path, number):
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
                subprocess.Popen(
                    command, stdout=subprocess.PIPE, stderr=subprocess.PIPE
                ) as running,
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

    def test_help_says_what_exit_codes_mean(self, capsys):
        with pytest.raises(SystemExit):
            main(["run", "--help"])
        told = capsys.readouterr().out
        for line in ("0    done", "1    failed", "3    partly done", "130  interrupted"):
            assert line in told


@pytest.fixture
def status_plan(tmp_path, capsys):
    array = ts.open({"driver": "zarr3", "kvstore": tmp_path / "a.zarr"}, create=True,
                    dtype="int16", shape=[40, 30]).result()  # fmt: skip
    array[...] = 3
    step = {"operation": "copy", "source": "a.zarr", "dest": "b.zarr", "chunks": 10}
    (tmp_path / "job.json").write_text(json.dumps({"tensorstore_py_job": 1, "steps": [step]}))
    assert main(["plan", str(tmp_path / "job.json"), "-o", str(tmp_path / "plan.json")]) == 0
    capsys.readouterr()
    return tmp_path / "plan.json"


class TestStatus:
    def test_tells_how_far_a_plan_is(self, status_plan, capsys):
        assert main(["status", str(status_plan)]) == 3
        assert capsys.readouterr().out.startswith("copy: planned, 0%, 0 B of 2.3 KiB\n")
        assert main(["run", str(status_plan), "--part", "0/1"]) == 0
        capsys.readouterr()

        assert main(["status", str(status_plan)]) == 0
        assert capsys.readouterr().out == (
            "copy: done, 100%, 2.3 KiB of 2.3 KiB\n"
            "  tasks: 1 of 1 done\n"
            "  parts: 1 of 1 done, 0 claimed, 0 abandoned\n"
        )
        assert main(["status", status_plan.as_uri(), "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert (found["state"], found["steps"][0]["tasks_done"]) == ("done", 1)

    def test_damage_is_not_done(self, status_plan, capsys):
        (chunk,) = (status_plan.parent / "a.zarr" / "c").rglob("0/0")
        chunk.write_bytes(b"x")
        assert main(["run", str(status_plan)]) == 3
        capsys.readouterr()
        assert main(["status", str(status_plan)]) == 3
        assert "damaged: 1 tasks could not be done" in capsys.readouterr().out

    def test_the_manifest_of_a_job_tells_as_much(self, status_plan, capsys):
        manifest = status_plan.with_name("m.json")
        assert (
            main(["run", str(status_plan.with_name("job.json")), "--manifest", str(manifest)]) == 0
        )
        capsys.readouterr()
        assert main(["status", str(manifest)]) == 0
        assert "copy: done, 100%" in capsys.readouterr().out

    def test_what_is_no_plan_ends_with_1(self, status_plan, capsys):
        assert main(["status", str(status_plan.with_name("job.json"))]) == 1
        assert "is no plan; `tspy plan" in capsys.readouterr().err
        assert main(["status", str(status_plan.with_name("nowhere.json"))]) == 1
        assert "does not exist" in capsys.readouterr().err


def parsed(*arguments):
    parser = argparse.ArgumentParser()
    add_trust(parser)
    return parser.parse_args(arguments)


@pytest.fixture
def places(tmp_path):
    for name in ("in", "secret"):
        array = ts.open(
            f"file://{tmp_path}/{name}/a/|zarr3:", create=True, dtype="int8", shape=[4]
        ).result()
        array[...] = 3
    (tmp_path / "out").mkdir()
    return tmp_path


class TestTrusted:
    def test_nothing_is_restricted_unless_it_is_said(self):
        assert trust(parsed()) is None
        assert array_or_group("memory://", None) == "memory://"
        assert document("memory://a", None) == "memory://a"

    @pytest.mark.parametrize("option", ["--store", "--plugin"])
    def test_what_would_restrict_nothing_is_refused(self, option):
        with pytest.raises(ts.SpecError, match=f"{option} restricts nothing without --untrusted"):
            trust(parsed(option, "memory://"))

    def test_says_what_is_trusted(self, tmp_path):
        found = trust(
            parsed("--untrusted", "--store", '{"driver": "memory", "path": "a/"}',
                   "--plugin", "lab", "--store", str(tmp_path)),
            write=True,
        )  # fmt: skip

        assert repr(found) == (
            f"Trust(stores=['memory://a/', 'file://{tmp_path}/'], plugins=['lab'], write=True)"
        )

    @pytest.mark.parametrize("command", ["copy", "rechunk"])
    def test_copies_only_between_named_stores(self, command, places, capsys):
        trusted = ["--untrusted", "--store", str(places / "in"), "--store", f"file://{places}/out/",
                   "--chunks", "2"]  # fmt: skip
        out = places / "out"

        for source, dest, manifest, named in (
            (places / "secret" / "a", out / "a", out / "m.json", "secret"),
            (f"file://{places}/secret/a/", out / "a", out / "m.json", "secret"),
            (json.dumps({"driver": "zarr3", "kvstore": f"file://{places}/secret/a/"}), out / "a",
             out / "m.json", "secret"),
            (places / "in" / "a", places / "elsewhere", out / "m.json", "elsewhere"),
            (places / "in" / "a", out / "a", places / "elsewhere.json", "elsewhere"),
        ):  # fmt: skip
            code = main([command, str(source), str(dest), "--manifest", str(manifest), *trusted])
            assert code == 1
            assert named in capsys.readouterr().err
        assert sorted(each.name for each in places.iterdir()) == ["in", "out", "secret"]
        assert list(out.iterdir()) == []

        code = main([command, str(places / "in" / "a"), f"file://{places}/out/a/", *trusted,
                     "--manifest", str(out / "m.json")])  # fmt: skip
        assert code == 0
        np.testing.assert_array_equal(ts.open(out / "a").result(), [3] * 4)
        assert (out / "m.json").exists()

    def test_migrates_only_in_named_stores(self, places, capsys):
        ts.Group.open(places / "in" / "old", create=True, zarr_format=2).result()
        trusted = ["--untrusted", "--store", str(places / "in")]

        assert main(["migrate", str(places / "secret"), *trusted]) == 1
        assert (
            main(["migrate", str(places / "in" / "old"), "--dest", str(places / "x"), *trusted])
            == 1
        )
        assert not (places / "x").exists()
        assert main(["migrate", str(places / "in" / "old"), *trusted]) == 0
        assert "secret" in capsys.readouterr().err
        assert ts.Group.open(places / "in" / "old").result().zarr_format == 3

    def test_validates_as_far_as_it_is_trusted(self, tmp_path, capsys):
        files = {
            "array.json": {"driver": "zarr3", "kvstore": "memory://a/", "create": True},
            "store.json": {"driver": "file", "path": "/etc/"},
            "context.json": {"aws_credentials": {"type": "profile"}},
        }
        for name, spec in files.items():
            (tmp_path / name).write_text(json.dumps(spec))
        names = [str(tmp_path / name) for name in files]

        assert main(["validate", *names]) == 0
        assert main(["validate", *names, "--untrusted", "--store", "memory://"]) == 1
        lines = capsys.readouterr().out.splitlines()
        assert [line.removeprefix(f"{tmp_path}/")[:37] for line in lines] == [
            "array.json:create: a spec that is not",
            "store.json: file:///etc/ is in none o",
            "context.json:aws_credentials.type: a ",
        ]
        assert main(["validate", names[0], "--untrusted", "--store", "memory://", "--write"]) == 0

    def test_validate_says_what_does_not_go_together(self, capsys):
        assert main(["validate", "a.json", "--untrusted", "--env"]) == 2
        assert main(["validate", "a.json", "--store", "memory://"]) == 2
        assert "without --untrusted" in capsys.readouterr().err
