"""What the repository says of itself elsewhere agrees with pyproject.toml: workflows, forms, hooks,
fragments of the changelog, extras.
"""

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from scripts import check_extras, check_release, core_tests
from tests.house.sources import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = [
    path
    for path in sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
    if path.name != "config.yml"
]
PINNED = re.compile(r"^[\w.-]+/[\w./-]+@[0-9a-f]{40}$")
FRAGMENT = re.compile(r"^(\d+|\+[a-z0-9-]+)\.([a-z]+)\.md$")


@cache
def project() -> Any:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def parsed(path: Path) -> Any:
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    # YAML 1.1 takes the word `on` for a truth value
    return {"on" if key is True else key: value for key, value in document.items()}


def versions() -> list[str]:
    """The Pythons that the package says it runs on, oldest first."""
    found = [
        line.rpartition(" ")[2]
        for line in project()["project"]["classifiers"]
        if re.search(r":: 3\.\d+$", line)
    ]
    return sorted(found, key=lambda version: int(version.partition(".")[2]))


def steps(workflow: Any) -> list[Any]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def test_the_core_runs_on_every_python_and_system_that_is_named() -> None:
    core = parsed(ROOT / ".github/workflows/ci.yml")["jobs"]["core"]
    matrix = core["strategy"]["matrix"]
    usual = [version for version in matrix["python"] if not version.endswith("t")]

    assert usual == versions()
    assert [version for version in matrix["python"] if version not in usual] == [f"{usual[-1]}t"]
    assert "endsWith(matrix.python, 't')" in core["continue-on-error"]
    assert {name.partition("-")[0] for name in matrix["os"]} == {"ubuntu", "macos", "windows"}


def test_the_oldest_python_is_the_same_everywhere() -> None:
    oldest = versions()[0]

    assert project()["project"]["requires-python"] == f">={oldest}"
    assert project()["tool"]["mypy"]["python_version"] == oldest
    assert project()["tool"]["ruff"]["target-version"] == "py" + oldest.replace(".", "")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_name_no_python_that_the_package_does_not(path: Path) -> None:
    workflow = parsed(path)
    named = [
        version
        for job in workflow["jobs"].values()
        for version in job.get("strategy", {}).get("matrix", {}).get("python", [])
    ]
    named += [step["with"]["python-version"] for step in steps(workflow) if is_setup(step)]

    assert named
    assert {version.removesuffix("t") for version in named if not version.startswith("$")} <= set(
        versions()
    )


def is_setup(step: Any) -> bool:
    return str(step.get("uses", "")).startswith("actions/setup-python@")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_pin_actions_and_may_only_read(path: Path) -> None:
    workflow = parsed(path)
    used = [step["uses"] for step in steps(workflow) if "uses" in step]

    assert used
    assert [name for name in used if not PINNED.match(name)] == []
    # the version that a commit is stands behind it, for people
    for line in path.read_text(encoding="utf-8").split("\n"):
        assert "uses:" not in line or re.search(r"# v\d+\.\d+\.\d+$", line), line
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        assert job["timeout-minutes"] <= 120, name


def test_scripts_that_workflows_run_are_there() -> None:
    named = {
        name
        for path in WORKFLOWS
        for step in steps(parsed(path))
        for name in re.findall(r"(?:scripts|\.ci)/\w+(?:\.py)?", step.get("run", ""))
    }

    assert ".ci/run" in named
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_only_what_publishes_gets_an_identity_and_only_by_a_tag() -> None:
    release = parsed(ROOT / ".github/workflows/release.yml")
    writing = {
        name: {what for what, how in job.get("permissions", {}).items() if how == "write"}
        for path in WORKFLOWS
        for name, job in parsed(path)["jobs"].items()
    }

    # the index takes what has an identity; the branch of the site is written after that
    assert {name: what for name, what in writing.items() if what} == {
        "publish": {"attestations", "id-token"},
        "site": {"contents"},
    }
    assert release["jobs"]["site"]["needs"] == "publish"
    assert set(release["on"]) == {"push"}
    assert set(release["on"]["push"]) == {"tags"}
    assert release["jobs"]["publish"]["needs"] == "smoke"
    assert release["jobs"]["smoke"]["needs"] == "build"
    assert "secrets." not in (ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_issue_forms_ask_something(path: Path) -> None:
    form = parsed(path)
    fields = [field for field in form["body"] if field["type"] != "markdown"]

    assert form["name"]
    assert form["description"]
    assert {field["type"] for field in fields} <= {"textarea", "input"}
    assert len({field["id"] for field in fields}) == len(fields)
    assert all(field["attributes"]["label"] for field in fields)
    assert any(field.get("validations", {}).get("required") for field in fields)


def test_hooks_use_the_tools_of_the_gate() -> None:
    hooks = parsed(ROOT / ".pre-commit-config.yaml")["repos"]

    assert [repo["repo"] for repo in hooks] == ["local"]
    for hook in hooks[0]["hooks"]:
        assert hook["entry"].startswith(".venv/bin/")
    # what hooks find by a first line, the gate finds by name
    programs = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "scripts").iterdir()
        if path.is_file() and not path.suffix and b"python" in path.read_bytes().partition(b"\n")[0]
    }
    assert set(project()["tool"]["ruff"]["extend-include"]) == programs
    offered = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert offered[0]["entry"].split()[0] in project()["project"]["scripts"]


def test_fragments_are_named_and_say_something() -> None:
    kinds = {kind["directory"] for kind in project()["tool"]["towncrier"]["type"]}
    wrong = [
        path.name
        for path in sorted((ROOT / "changelog.d").iterdir())
        if path.name != "README.md"
        and not (
            (match := FRAGMENT.match(path.name))
            and match[2] in kinds
            and path.read_text(encoding="utf-8").strip()
        )
    ]
    explained = (ROOT / "changelog.d" / "README.md").read_text(encoding="utf-8")

    assert wrong == [], f"named <issue>.<kind>.md, with a kind of {sorted(kinds)}"
    assert {kind for kind in kinds if f"| `{kind}` |" in explained} == kinds


def test_the_changelog_has_the_place_where_versions_go_once() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")

    assert text.count(project()["tool"]["towncrier"]["start_string"]) == 1


def test_each_extra_has_a_program_and_a_reason() -> None:
    explained = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")

    assert set(check_extras.PROGRAMS) == {"core", *check_extras.extras()}
    assert [name for name in check_extras.extras() if f"| `{name}` |" not in explained] == []


def test_the_core_has_tests_that_need_nothing_else() -> None:
    files, _ = core_tests.chosen()

    assert all((ROOT / "tests" / room).is_dir() for room in core_tests.ROOMS)
    assert len(files) >= core_tests.FEWEST_FILES


def test_a_tag_is_held_to_version_changelog_and_fragments(tmp_path: Path) -> None:
    (tmp_path / "tensorstore_py").mkdir()
    (tmp_path / "tensorstore_py" / "__init__.py").write_text('__version__ = "1.2.0"\n', "utf-8")
    (tmp_path / "changelog.d").mkdir()
    (tmp_path / "changelog.d" / "README.md").write_text("about", "utf-8")
    changelog = tmp_path / "CHANGELOG.md"
    changelog.write_text("# Changelog\n\n## 1.2.0 (unreleased)\n", "utf-8")

    assert len(check_release.problems("v1.2", tmp_path)) == 2
    changelog.write_text("# Changelog\n\n## 1.2.0 (2030-01-31)\n", "utf-8")
    assert check_release.problems("v1.2.0", tmp_path) == []
    (tmp_path / "changelog.d" / "7.fixed.md").write_text("It works.", "utf-8")
    assert "7.fixed.md" in check_release.problems("v1.2.0", tmp_path)[0]
