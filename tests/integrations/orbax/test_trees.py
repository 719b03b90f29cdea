"""`ts.orbax` reads the containers that the real Orbax restores, and Orbax those that it saves."""

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.integrations.orbax.test_orbax import ROOT, pytestmark

__all__ = ["pytestmark"]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.integrations.orbax.trees"],
        cwd=tmp_path_factory.mktemp("trees"),
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-8000:]
    read: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return read


@pytest.mark.parametrize("name", ["plain", "rich", "v1", "several"])
def test_containers_are_those_that_orbax_restores_without_a_target(
    name: str, found: dict[str, Any]
) -> None:
    restored, read = found[name]

    assert read == restored


def test_orbax_restores_tuples_that_were_saved_here_if_it_keeps_them(found: dict[str, Any]) -> None:
    rich, plain, v1, read = found["ours"]

    assert rich == read == found["saved"] == found["rich"][0]
    assert plain == v1 == found["plain"][0]


def test_json_is_read_where_each_version_stores_it(found: dict[str, Any]) -> None:
    assert found["JSON"] == {"JSON": {"a": ["list", 1]}}
    assert found["JSON files"] == ["data.json"]
    assert found["its JSON"] == {"position": [1, "é", None]}
    assert found["with JSON"] == found["v1"][0]
