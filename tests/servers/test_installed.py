"""What is installed is installed once, and what cannot be says why."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.servers import fixtures, installed
from tests.servers.installed import Environment, NotToBeHadError, Unpacked


@pytest.fixture(autouse=True)
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("TENSORSTORE_PY_SERVERS", str(tmp_path))
    return tmp_path


@pytest.fixture
def commands(root, monkeypatch):
    """The commands of an installation, which do nothing but what the next one needs."""
    done = []

    def run(*command, cwd=None):
        done.append(" ".join(map(str, command)).replace(f"{root}/", ""))
        if "--simulate" in command:
            return (
                "Reading package lists...\nInst libserver [1.0]\nInst server [2.0]\nConf server\n"
            )
        if "download" in command:
            (cwd / "server.deb").touch()
        if "venv" in command:
            command[-1].mkdir()
        return ""

    monkeypatch.setattr(installed, "run", run)
    monkeypatch.setattr(installed, "program_of_the_machine", lambda name: f"/usr/bin/{name}")
    return done


def test_packages_are_unpacked_once_with_what_they_need(commands, root):
    packages = Unpacked("it", ["server"])
    assert packages.absent() == "not installed: run scripts/servers install"

    packages.install()
    packages.install()

    assert commands == [
        "apt-get install --simulate --no-install-recommends server",
        "apt-get download libserver server",
        f"dpkg-deb -x it/archives/server.deb {packages.root}".replace(f"{root}/", ""),
    ]
    assert packages.absent() is None
    assert not (root / "it" / "archives").exists()
    assert Unpacked("it", ["server", "more"]).absent() is not None


def test_an_environment_is_made_once(commands):
    environment = Environment("it", ["moto<6"])

    environment.install()
    environment.install()

    assert len(commands) == 2
    assert commands[1].endswith("-m pip install --quiet moto<6")
    assert Environment("it", ["moto<7"]).absent() is not None


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
