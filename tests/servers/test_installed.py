"""What is installed is installed once, and what cannot be says why."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.servers import fixtures, installed
from tests.servers.installed import Environment, NotToBeHadError, Unpacked
from tests.servers.recipe import Recipe
from tests.servers.recipes import RECIPES


@pytest.fixture(autouse=True)
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("TENSORSTORE_PY_SERVERS", str(tmp_path))
    return tmp_path


@pytest.fixture
def commands(root, monkeypatch):
    """The commands of an installation, which do nothing but what the next one needs."""
    done = []

    def run(*command, cwd=None, **_):
        done.append(" ".join(map(str, command)).replace(f"{root}/", ""))
        if "--simulate" in command:
            return (
                "Reading package lists...\nInst libc6 [2.36]\nInst libserver [1.0]\n"
                "Inst server [2.0]\nConf server\n"
            )
        if "download" in command:
            (cwd / "server.deb").touch()
        if "dpkg-deb" in command:
            server = command[-1] / "usr" / "bin" / "server"
            server.parent.mkdir(parents=True)
            server.write_text("#!/bin/sh\n", "utf-8")
            server.chmod(0o6755)
        if "venv" in command:
            (command[-1] / "bin").mkdir(parents=True)
            (command[-1] / "bin" / "python").touch()
        return ""

    monkeypatch.setattr(installed, "run", run)
    monkeypatch.setattr(installed, "program_of_the_machine", lambda name: f"/usr/bin/{name}")
    return done


def test_packages_are_unpacked_once_with_all_that_they_need_whatever_the_machine_has(
    commands, root
):
    packages = Unpacked("it", ["server"])
    assert packages.absent() == "not installed: run scripts/servers install"

    packages.install()
    packages.install()

    nothing_installed = "-o Dir::State::status=debian/it/archives/status"
    assert commands == [
        f"apt-get {nothing_installed} install --simulate --no-install-recommends server",
        "apt-get download libserver server",
        "dpkg-deb -x debian/it/archives/server.deb " + str(packages.root).replace(f"{root}/", ""),
    ]
    assert packages.absent() is None
    assert packages.torn() is None
    assert not (packages.root / "archives").exists()
    assert (packages.root / "usr/bin/server").stat().st_mode & 0o7777 == 0o755
    assert Unpacked("it", ["server", "more"]).absent() is not None


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_text("", "utf-8")])
def test_what_is_not_complete_any_more_is_named_and_unpacked_again(commands, damage):
    packages = Unpacked("it", ["server"])
    packages.install()
    count = len(commands)

    damage(packages.root / "usr" / "bin" / "server")

    assert "usr/bin/server is missing or not what was unpacked" in (packages.torn() or "")
    packages.install()
    assert packages.torn() is None
    assert len(commands) == 2 * count


def test_a_program_whose_libraries_are_missing_is_named():
    packages = Unpacked("it", ["server"], [["server", "--version"]])
    server = packages.root / "usr" / "bin" / "server"
    server.parent.mkdir(parents=True)
    server.write_text("#!/bin/sh\necho libserver.so: cannot open >&2; exit 127\n", "utf-8")
    server.chmod(0o755)

    assert "libserver.so: cannot open: run scripts/servers install" in (packages.torn() or "")


def test_an_environment_is_made_once(commands, root):
    environment = Environment("it", ["moto<6"])

    environment.install()
    environment.install()

    assert len(commands) == 2
    assert commands[1].endswith("-m pip install --quiet moto<6")
    assert Environment("it", ["moto<7"]).absent() is not None
    (root / "it" / "bin" / "python").unlink()
    assert environment.absent() is not None


def test_elsewhere_than_on_debian(monkeypatch):
    monkeypatch.setattr(installed, "program_of_the_machine", lambda _: None)

    with pytest.raises(NotToBeHadError, match="only to be had on Debian"):
        Unpacked("it", ["server"]).install()


def test_a_command_that_fails_says_what_it_said():
    with pytest.raises(NotToBeHadError, match="no such package"):
        installed.run("sh", "-c", "echo no such package >&2; exit 1")


@pytest.mark.parametrize(
    ("ci", "outcome"), [("", pytest.skip.Exception), ("true", pytest.fail.Exception)]
)
def test_a_missing_server_fails_only_on_a_build_server(root, monkeypatch, ci, outcome):
    monkeypatch.setenv("CI", ci)
    stash = {fixtures._DIRECTORY: root, fixtures._OWNER: 0}
    request: Any = SimpleNamespace(config=SimpleNamespace(stash=stash))

    with pytest.raises(outcome, match="rgw: not installed"):
        fixtures.server(request, "rgw")

    assert (root / "rgw.missing").read_text("utf-8").startswith("not installed")


class Stubborn(Recipe):
    """A server that is installed and does not start."""

    name = "gcs"
    front = "front"

    def absent(self):
        return None

    def install(self):
        pass

    def start(self, processes):
        raise AssertionError


@pytest.mark.parametrize(
    ("torn", "outcome", "words"),
    [
        (False, pytest.fail.Exception, "^server gcs does not start$"),
        (True, pytest.skip.Exception, "^gcs: its disk is full$"),
    ],
)
def test_a_server_that_does_not_start_is_reported_in_one_line(
    root, monkeypatch, torn, outcome, words
):
    monkeypatch.setenv("CI", "")
    monkeypatch.setitem(RECIPES, "gcs", Stubborn())
    (root / "gcs").mkdir()
    (root / "gcs" / "failed").write_text("its disk is full", "utf-8")
    if torn:
        (root / "gcs" / "absent").touch()
    stash = {fixtures._DIRECTORY: root, fixtures._OWNER: 0}
    request: Any = SimpleNamespace(config=SimpleNamespace(stash=stash))

    for _ in range(3):
        with pytest.raises(outcome, match=words):
            fixtures.server(request, "gcs")
