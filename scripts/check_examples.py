"""Runs every file of examples/ as its reader would: alone, in an empty directory, to its end.

A notebook must give the outputs that are stored in it. Those of cells with the tag `varies` are
not compared: they tell times.

Usage: check_examples.py [--write]

With --write, notebooks are executed and stored with what they gave.
"""

import json
import os
import subprocess
import sys
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from os.path import commonprefix
from pathlib import Path
from typing import Any, TypeAlias

ROOT = Path(__file__).resolve().parent.parent
LIMIT_S = 120.0
#: Of a library without types.
Notebook: TypeAlias = Any


def complaint(example: Path) -> str | None:
    """Runs one example, its warnings as errors; returns what went wrong, or None."""
    if example.suffix == ".ipynb":
        return notebook_complaint(example)
    with tempfile.TemporaryDirectory(prefix="example-") as directory:
        try:
            done = subprocess.run(
                [sys.executable, "-W", "error", str(example)],
                cwd=directory,
                env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"did not end within {LIMIT_S:.0f} s"
    if done.returncode == 0:
        return None
    return f"ended with code {done.returncode}\n{done.stdout}"


def notebook_complaint(example: Path) -> str | None:
    """Executes a notebook; returns what went wrong, or the first cell that gave something else."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the libraries that execute it
        nbformat: Any = import_module("nbformat")  # only for notebooks, and without types
        errors: Any = import_module("nbclient.exceptions")
        stored = nbformat.read(example, as_version=4)
        try:
            executed = execute(stored)
        except errors.CellExecutionError as error:
            return str(error)
    for number, (before, after) in enumerate(zip(stored.cells, executed.cells, strict=True), 1):
        if before.cell_type != "code" or "varies" in before.metadata.get("tags", ()):
            continue
        if before.outputs != after.outputs:
            return (
                f"cell {number} gave another output than is stored; look at it, and run "
                f"check_examples.py --write\n{difference(before.outputs, after.outputs)}"
            )
    return None


def difference(stored: object, found: object) -> str:
    """Where two outputs part: a few words of each."""
    texts = [json.dumps(each, sort_keys=True) for each in (stored, found)]
    alike = len(commonprefix(texts))  # noqa: RUF071 - character by character
    return "\n".join(f"...{text[max(0, alike - 60) : alike + 100]}..." for text in texts)


def execute(notebook: Notebook) -> Notebook:
    """A copy with the outputs of now, without anything of this machine or moment."""
    nbformat: Any = import_module("nbformat")
    executed = nbformat.reads(nbformat.writes(notebook), as_version=4)
    with tempfile.TemporaryDirectory(prefix="example-") as directory:
        client = import_module("nbclient").NotebookClient(
            executed,
            timeout=int(LIMIT_S),
            kernel_name="python3",
            record_timing=False,
            extra_arguments=["--log-level=ERROR"],
            resources={"metadata": {"path": directory}},
        )
        client.execute()
    executed.metadata = notebook.metadata
    for number, cell in enumerate(cell for cell in executed.cells if cell.cell_type == "code"):
        cell.execution_count = number + 1
        for output in cell.outputs:
            if "execution_count" in output:
                output.execution_count = number + 1
    return executed


def write(example: Path) -> None:
    """Stores a notebook with its outputs; those of cells that vary stay if there are any."""
    nbformat: Any = import_module("nbformat")
    stored = nbformat.read(example, as_version=4)
    executed = execute(stored)
    for before, after in zip(stored.cells, executed.cells, strict=True):
        if "varies" in before.metadata.get("tags", ()) and before.outputs:
            after.outputs = before.outputs
        for output in after.get("outputs", ()):
            if "text" in output:  # what a bar was at the end
                output.text = output.text.rpartition("\r")[2]
    nbformat.write(executed, example)


def main(arguments: list[str]) -> int:
    """Runs them all, prints a line each, and returns the exit code."""
    folder = ROOT / "examples"
    examples = sorted([*folder.glob("*.py"), *folder.glob("*.ipynb")])
    if arguments == ["--write"]:
        for example in examples:
            if example.suffix == ".ipynb":
                write(example)
        return 0
    failures = 0
    with ThreadPoolExecutor(os.cpu_count()) as several:
        for example, problem in zip(examples, several.map(complaint, examples), strict=True):
            failures += problem is not None
            print(f"{example.relative_to(ROOT)}: {problem or 'ok'}", flush=True)
    if not examples:
        print("examples/ holds no example")
        return 1
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
