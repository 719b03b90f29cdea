import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).absolute().parents[2]
KINDS = (
    "metadata", "chunks", "archives", "answers", "listings", "kills", "faults", "signals", "mixed",
    "plans", "databases",
)  # fmt: skip


def soak(*arguments):
    return subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "soak"), *map(str, arguments)],
        capture_output=True, text=True, timeout=280, check=False, cwd=ROOT,
    )  # fmt: skip


def counts(text):
    return {line.split()[0]: line.split()[1] for line in text.splitlines()[1:] if line}


def test_a_trial_of_each_kind_finds_nothing_and_a_second_run_goes_on(tmp_path):
    done = soak("--trials", 1, "--state", tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr
    assert counts(done.stdout) == dict.fromkeys(KINDS, "1")

    again = soak("--trials", 1, "--only", "mixed,chunks", "--state", tmp_path)

    assert again.returncode == 0, again.stdout + again.stderr
    assert counts(again.stdout) == dict.fromkeys(KINDS, "1") | {"mixed": "2", "chunks": "2"}
    state = json.loads((tmp_path / "state.json").read_text())
    assert (state["next"]["mixed"], state["next"]["kills"]) == (1_000_002, 1_000_001)


def test_a_trial_is_replayed(tmp_path):
    done = soak("--replay", "mixed:1000000", "--state", tmp_path)

    assert done.stdout == "mixed:1000000: nothing is wrong\n", done.stderr


@pytest.fixture
def broken(tmp_path, monkeypatch):
    """A package whose writes are lost at the end of arrays of more than one row."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(
        "import tensorstore_py as ts\n"
        "own = ts.TensorStore.read\n"
        "def read(self, *arguments, **more):\n"
        "    result = own(self, *arguments, **more).result()\n"
        "    if getattr(result, 'ndim', 0) == 2:\n"
        "        result = result + 1\n"
        "    return ts.Future(result)\n"
        "ts.TensorStore.read = read\n"
    )
    monkeypatch.setenv("PYTHONPATH", f"{site}:{ROOT}")
    return tmp_path / "state"


def test_what_is_wrong_is_found_reported_and_found_again_by_its_number(broken):
    done = soak("--trials", 1, "--only", "mixed", "--state", broken)

    assert done.returncode == 1
    assert f"scripts/soak --state {broken} --replay mixed:1000000" in done.stdout
    assert soak("--show", "--state", broken).stdout == done.stdout
    replayed = soak("--replay", "mixed:1000000", "--state", broken)
    assert replayed.returncode == 1
    assert "AssertionError" in replayed.stderr


def test_a_kind_that_there_is_not_is_refused(tmp_path):
    done = soak("--only", "magic", "--state", tmp_path)

    assert done.returncode == 2
    assert "no kind 'magic'; there are metadata, chunks" in done.stderr
