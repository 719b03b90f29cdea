"""What is shipped of the page is what its sources make."""

import os
import shutil
import subprocess

import pytest

from tests.house.sources import PACKAGE

FRONTEND = PACKAGE / "_viewer" / "frontend"
STATIC = PACKAGE / "_viewer" / "static"


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not to be had")
def test_the_files_of_the_page_are_built_of_its_sources(tmp_path):
    frontend = tmp_path / "frontend"
    shutil.copytree(FRONTEND, frontend, ignore=shutil.ignore_patterns("node_modules"))
    environment = os.environ | {"NO_COLOR": "1"}

    def npm(*arguments):
        return subprocess.run(
            ["npm", *arguments], cwd=frontend, env=environment, capture_output=True, text=True,
            check=False, timeout=240,
        )  # fmt: skip

    quiet = ("--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline")
    installed = npm("ci", *quiet, "--fetch-retries=0", "--fetch-timeout=30000")
    if installed.returncode:
        pytest.skip(f"npm's packages are not to be had: {installed.stderr[-300:]}")
    built = npm("run", "build")

    assert built.returncode == 0, built.stdout + built.stderr
    made = {path.name: path.read_bytes() for path in (tmp_path / "static").iterdir()}
    shipped = {path.name: path.read_bytes() for path in STATIC.iterdir()}
    assert sorted(made) == sorted(shipped)
    assert [name for name in made if made[name] != shipped[name]] == []


def test_the_page_is_small_and_says_whose_work_is_in_it():
    assert sum(path.stat().st_size for path in STATIC.iterdir()) < 200_000
    licences = (STATIC / "LICENSES.txt").read_text("utf-8")
    for name in ("preact", "d3-scale-chromatic", "d3-color", "d3-interpolate"):
        assert f"\n{name} " in licences
