from pathlib import Path

import pytest

from scripts import peer_suite
from scripts.peer_suite import main

TESTS = {
    "sound_test.py": (
        "import subprocess, sys\n"
        "import tensorstore as ts\n"
        "def test_alias():\n    assert ts.loads('1') == 1\n"
        "def test_alias_in_a_subprocess():\n"
        "    code = 'import tensorstore as ts; ts.dumps'\n"
        "    subprocess.run([sys.executable, '-c', code], check=True)\n"
    ),
    "failing_test.py": "def test_one():\n    pass\ndef test_two():\n    assert False, 'because'\n",
    "crashing_test.py": (
        "import os\ndef test_one():\n    os._exit(3)\n\ndef test_two():\n    pass\n"
    ),
    "program_test.py": "import atexit, os\natexit.register(os._exit, 0)\n",
    "no_test_of_theirs.py": "raise SystemExit\n",
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    suite = tmp_path / "python" / "tensorstore" / "tests"
    suite.mkdir(parents=True)
    for name, text in TESTS.items():
        (suite / name).write_text(text)
    return tmp_path


def test_counts_per_file_and_overall(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = main([str(checkout), "--package", "json", "--verbose"])

    words = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert status == 1
    assert words[0] == ["crashing_test.py", "0", "/", "2"]
    assert "status 3" in " ".join(words[1])
    assert words[2] == ["failing_test.py", "1", "/", "2"]
    assert words[3][0] == "test_two:"
    assert words[4:6] == [["program_test.py", "1", "/", "1"], ["sound_test.py", "2", "/", "2"]]
    assert words[6] == ["all", "4", "/", "7"]
    assert words[7] == ["2", "failed,", "2", "not", "as", "expected"]


def test_failures_on_purpose_are_named_and_must_go_on(
    checkout: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        peer_suite, "EXPECTED", {("failing_test.py", "test_two"): "that false is true"}
    )
    options = [str(checkout), "--package", "json", "--verbose", "--only", "failing"]
    assert main(options) == 0
    assert "test_two: as expected, it demands that false is true" in capsys.readouterr().out

    monkeypatch.setitem(peer_suite.EXPECTED, ("failing_test.py", "test_one"), "what it got")
    assert main(options) == 1
    assert "test_one: passes now; take it out" in capsys.readouterr().out


def test_files_can_be_chosen(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(checkout), "--only", "other"]) == 2
    assert main([str(checkout), "--package", "json", "--only", "failing"]) == 1
    assert "sound" not in capsys.readouterr().out


def test_a_folder_without_tests_is_refused(tmp_path: Path) -> None:
    assert main([str(tmp_path)]) == 2
