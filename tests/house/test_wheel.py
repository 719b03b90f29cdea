"""What is published: a wheel of the package and nothing else, an sdist of all that a clone has."""

import re
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from tests.house.sources import PACKAGE, ROOT


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the sdist of this tree, built without a network."""
    folder = tmp_path_factory.mktemp("built")
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(folder)],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


def in_tree(folder: str) -> set[str]:
    """The files below a folder of the tree, as a clone has them."""
    return {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and not {"__pycache__", "node_modules"}.intersection(path.parts)
    }


def test_the_wheel_holds_the_package_and_nothing_else(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        about = {name for name in names if ".dist-info/" in name}
        metadata = Parser().parsestr(
            archive.read(next(name for name in about if name.endswith("/METADATA"))).decode()
        )
        entries = archive.read(next(name for name in about if name.endswith("/entry_points.txt")))

    assert wheel.name.endswith("-py3-none-any.whl")
    sources = "tensorstore_py/_viewer/frontend/"  # what the page in `static` is built of
    shipped = {name for name in in_tree("tensorstore_py") if not name.startswith(sources)}
    assert names - about == shipped
    assert "tensorstore_py/_viewer/static/viewer.js" in names
    assert PACKAGE.joinpath("py.typed").relative_to(ROOT).as_posix() in names
    assert {name.partition("/")[2] for name in about} == {
        "METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE",
    }  # fmt: skip
    # newer ones are refused by indexes and installers of the last years
    assert metadata["Metadata-Version"] == "2.4"
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"
    assert "tspy = tensorstore_py.cli.main:main" in entries.decode()
    assert "tensorstore = tensorstore_py.integrations.xarray:" in entries.decode()


def test_the_sdist_holds_what_the_gate_needs_and_nothing_that_tools_leave(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}

    for folder in ("tensorstore_py", "tests", "docs", "scripts", "changelog.d", ".github", ".ci"):
        assert in_tree(folder) <= names, folder
    for name in ("LICENSE", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"):
        assert name in names
    assert ".pre-commit-config.yaml" in names
    left = re.compile(r"__pycache__|\.py[co]$|\.(mypy|ruff|pytest)_cache|\.venv|^\.git/")
    assert [name for name in names if left.search(name)] == []
