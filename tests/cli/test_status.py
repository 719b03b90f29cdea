import json

import pytest

import tensorstore_py as ts
from tensorstore_py.cli.main import main


@pytest.fixture
def plan(tmp_path, capsys):
    array = ts.open({"driver": "zarr3", "kvstore": tmp_path / "a.zarr"}, create=True,
                    dtype="int16", shape=[40, 30]).result()  # fmt: skip
    array[...] = 3
    step = {"operation": "copy", "source": "a.zarr", "dest": "b.zarr", "chunks": 10}
    (tmp_path / "job.json").write_text(json.dumps({"tensorstore_py_job": 1, "steps": [step]}))
    assert main(["plan", str(tmp_path / "job.json"), "-o", str(tmp_path / "plan.json")]) == 0
    capsys.readouterr()
    return tmp_path / "plan.json"


def test_tells_how_far_a_plan_is(plan, capsys):
    assert main(["status", str(plan)]) == 3
    assert capsys.readouterr().out.startswith("copy: planned, 0%, 0 B of 2.3 KiB\n")
    assert main(["run", str(plan), "--part", "0/1"]) == 0
    capsys.readouterr()

    assert main(["status", str(plan)]) == 0
    assert capsys.readouterr().out == (
        "copy: done, 100%, 2.3 KiB of 2.3 KiB\n"
        "  tasks: 1 of 1 done\n"
        "  parts: 1 of 1 done, 0 claimed, 0 abandoned\n"
    )
    assert main(["status", plan.as_uri(), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["state"], found["steps"][0]["tasks_done"]) == ("done", 1)


def test_damage_is_not_done(plan, capsys):
    (chunk,) = (plan.parent / "a.zarr" / "c").rglob("0/0")
    chunk.write_bytes(b"x")
    assert main(["run", str(plan)]) == 3
    capsys.readouterr()
    assert main(["status", str(plan)]) == 3
    assert "damaged: 1 tasks could not be done" in capsys.readouterr().out


def test_the_manifest_of_a_job_tells_as_much(plan, capsys):
    manifest = plan.with_name("m.json")
    assert main(["run", str(plan.with_name("job.json")), "--manifest", str(manifest)]) == 0
    capsys.readouterr()
    assert main(["status", str(manifest)]) == 0
    assert "copy: done, 100%" in capsys.readouterr().out


def test_what_is_no_plan_ends_with_1(plan, capsys):
    assert main(["status", str(plan.with_name("job.json"))]) == 1
    assert "is no plan; `tspy plan" in capsys.readouterr().err
    assert main(["status", str(plan.with_name("nowhere.json"))]) == 1
    assert "does not exist" in capsys.readouterr().err
