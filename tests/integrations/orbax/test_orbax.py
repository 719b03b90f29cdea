"""The real Orbax and JAX save and restore through this package, in all modes, beside the reference.

They import `tensorstore`: a module of that name stands for this package in the programs that save
and restore (`scenarios`), or the reference itself does. What each of the two saved, each restores.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(
    sys.version_info < (3, 12),
    reason="JAX needs Python 3.12: the gate runs this on the newest Python",
)

ROOT = Path(__file__).resolve().parents[3]
ALIAS = "import sys\n\nimport tensorstore_py\n\nsys.modules[__name__] = tensorstore_py\n"
MODULES = {"ours": "tensorstore_py", "theirs": "tensorstore"}
GROUPS = ["handlers", "checkpointers", "arrays", "merging", "v1", "jax_arrays"]


def start(library: str, directory: Path, *arguments: str) -> subprocess.Popen[str]:
    search = [str(ROOT)]
    if library == "ours":
        alias = directory / "alias"
        alias.mkdir(exist_ok=True)
        (alias / "tensorstore.py").write_text(ALIAS)
        search.insert(0, str(alias))
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(search),
        "OUTCOME": str(outcome_file(directory, library, arguments[0])),
    }
    command = [sys.executable, "-m", "tests.integrations.orbax.scenarios", *arguments]
    return subprocess.Popen(
        command,
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def outcome_file(directory: Path, library: str, action: str) -> Path:
    return directory / f"{library} {action}.json"


def run(directory: Path, action: str, group: str, names: dict[str, list[str]]) -> dict[str, Any]:
    """What both libraries did, each in a process of its own, side by side."""
    programs = {
        library: start(library, directory, action, group, *names[library]) for library in MODULES
    }
    try:
        for library, program in programs.items():
            said, _ = program.communicate(timeout=200)
            assert program.returncode == 0, f"{library} {action}:\n{said[-8000:]}"
    finally:
        for program in programs.values():
            program.kill()
    found = {}
    for library, module in MODULES.items():
        document = json.loads(outcome_file(directory, library, action).read_text())
        assert document["module"] == module
        found[library] = document["outcomes"]
    return found


@pytest.mark.parametrize("group", GROUPS)
def test_each_restores_what_each_saved(group: str, tmp_path: Path) -> None:
    saved = run(tmp_path, "save", group, {library: [library] for library in MODULES})
    restored = run(tmp_path, "restore", group, {library: list(MODULES) for library in MODULES})

    reference = restored["theirs"]["theirs"]
    assert saved["ours"]["ours"] == saved["theirs"]["theirs"]
    assert restored["ours"]["theirs"] == reference
    assert restored["ours"]["ours"] == reference
    assert restored["theirs"]["ours"] == reference
    # The reference is not right by being the reference.
    for name, ways in reference.items():
        if "as saved" in ways:
            assert ways["as saved"] == saved["theirs"]["theirs"][name]["saved"], name
