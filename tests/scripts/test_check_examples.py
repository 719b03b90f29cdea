import json
from pathlib import Path

import pytest

from scripts.check_examples import complaint, write


def test_a_sound_example_has_no_complaint(tmp_path: Path) -> None:
    example = tmp_path / "sound.py"
    example.write_text("open('here', 'w').close()\n")

    assert complaint(example) is None
    assert not (tmp_path / "here").exists()


@pytest.mark.parametrize(
    "text", ["import warnings\nwarnings.warn('careful')\n", "raise SystemExit('careful')\n"]
)
def test_a_warning_or_a_failure_is_a_complaint(tmp_path: Path, text: str) -> None:
    example = tmp_path / "unsound.py"
    example.write_text(text)

    assert "careful" in (complaint(example) or "")


def notebook(path: Path, *cells: tuple[str, str, str]) -> Path:
    """A notebook of cells: source, the text that it printed, and its tag."""
    made = [
        {
            "cell_type": "code",
            "id": f"cell{number}",
            "execution_count": 1,
            "metadata": {"tags": [tag] if tag else []},
            "source": source,
            "outputs": [{"output_type": "stream", "name": "stdout", "text": text}] if text else [],
        }
        for number, (source, text, tag) in enumerate(cells)
    ]
    path.write_text(json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    return path


def test_a_notebook_is_stored_with_what_it_gave(tmp_path: Path) -> None:
    path = notebook(
        tmp_path / "book.ipynb", ("print(3)", "", ""), ("print(4)", "a bar\rits end\n", "varies")
    )
    write(path)

    stored = json.loads(path.read_text())
    assert [cell["outputs"][0]["text"] for cell in stored["cells"]] == [["3\n"], ["its end\n"]]
    assert stored["metadata"] == {}
    assert complaint(path) is None


@pytest.mark.parametrize(
    ("source", "problem"), [("print(1)", "cell 2 gave another output"), ("1 / 0", "ZeroDivision")]
)
def test_a_notebook_that_gives_something_else_is_a_complaint(
    tmp_path: Path, source: str, problem: str
) -> None:
    path = notebook(tmp_path / "book.ipynb", ("5;", "", ""), (source, "2\n", ""))

    assert problem in (complaint(path) or "")
