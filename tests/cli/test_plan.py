import json

import pytest

import tensorstore_py as ts
from tensorstore_py.cli.main import main


@pytest.fixture
def job(tmp_path):
    ts.open({"driver": "zarr3", "kvstore": tmp_path / "a.zarr"}, create=True, dtype="int16",
            shape=[40, 30]).result()  # fmt: skip
    path = tmp_path / "job.json"
    step = {"operation": "copy", "source": "a.zarr", "dest": "b.zarr", "chunks": 10}
    path.write_text(json.dumps({"tensorstore_py_job": 1, "steps": [step]}))
    return path


def test_says_what_is_going_to_be_done(job, tmp_path, capsys):
    assert main(["plan", str(job)]) == 0
    assert capsys.readouterr().out == (
        "copy: 1 task, 2.3 KiB in 12 chunks, at most 2.3 KiB of memory a task\n"
        "  copy /: 1 task, 2.3 KiB\n"
    )
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.zarr", "job.json"]


def test_writes_it_for_workers(job, tmp_path, capsys):
    place = tmp_path / "plan.json"
    assert main(["plan", str(job), "-o", str(place), "--engine", "threads", "--workers", "2"]) == 0
    assert capsys.readouterr().out.startswith("copy: 1 task")
    stored = json.loads(place.read_bytes())
    assert stored["job"]["engine"] == {"kind": "threads", "workers": 2}
    assert ts.Plan.from_json(stored).tasks == 1

    assert main(["plan", str(job), "-o", place.as_uri()]) == 0
    assert main(["plan", str(place)]) == 0
    capsys.readouterr()
    assert main(["plan", str(job), "-o", "-"]) == 0
    assert ts.Plan.from_json(json.loads(capsys.readouterr().out)).tasks == 1


def test_says_what_is_wrong(job, tmp_path, capsys):
    text = job.read_text()
    for wrong, problem in (
        (text.replace('"copy"', '"cpy"'), "steps[0].operation: there is no operation 'cpy' (did"),
        (text.replace("chunks", "chunsk"), "steps[0].chunsk: no such member (did you mean"),
        (text.replace("a.zarr", "z.zarr"), "nothing to copy: no array or group is at"),
        ("{", "not valid JSON: Expecting property name enclosed in double quotes at line 1"),
    ):
        job.write_text(wrong)
        assert main(["plan", str(job), "-o", str(tmp_path / "plan.json")]) == 1
        assert capsys.readouterr().err.startswith(problem)
    assert not (tmp_path / "plan.json").exists()


def test_where_it_cannot_be_written(job, tmp_path, capsys):
    for place, problem in (
        (f"{tmp_path.as_uri()}/", "is a directory; name one document in it"),
        ("memory://plan.json", "memory is gone when the command ends"),
    ):
        with pytest.raises(SystemExit) as caught:
            main(["plan", str(job), "-o", place])
        assert caught.value.code == 2
        assert problem in capsys.readouterr().err
    trusted = ["--untrusted", "--store", f"{tmp_path}/a.zarr/", "--store", f"{tmp_path}/b.zarr/"]
    assert main(["plan", str(job), "-o", str(tmp_path / "plan.json"), *trusted]) == 1
    assert "in none of the stores" in capsys.readouterr().err
