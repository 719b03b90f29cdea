"""Servers are started once, whoever asks, and leave nothing behind."""

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest

from tests.servers import kept
from tests.servers.installed import NotToBeHadError
from tests.servers.processes import StartError, answers, until

ROOT = Path(__file__).resolve().parents[2]


def port_of(told):
    return urlsplit(told["endpoint"]).port


@pytest.fixture
def where(tmp_path):
    yield tmp_path
    for path in tmp_path.glob("*/keeper.pid"):
        kept.stop(path.parent.name, tmp_path)


@pytest.fixture
def owner():
    """A process that waits to be killed."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with process:
        yield process
        process.kill()


def test_users_at_one_time_get_the_same_server_which_can_be_stopped(where):
    with ThreadPoolExecutor(3) as pool:
        told = list(pool.map(lambda _: kept.ask_for("gcs", where), range(3)))

    assert told[0] == told[1] == told[2]
    assert kept.running(where) == {"gcs": told[0]}
    assert kept.ask_for("gcs", where, again=True) == told[0]
    assert answers(port_of(told[0]))

    assert kept.stop("gcs", where)

    assert not answers(port_of(told[0]))
    assert kept.running(where) == {}
    assert not kept.stop("gcs", where)
    assert answers(port_of(kept.ask_for("gcs", where, again=True)))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_server_ends_with_its_owner(where, owner, number):
    told = kept.ask_for("gcs", where, owner.pid)

    owner.send_signal(number)

    until("the keeper ends", lambda: not (where / "gcs" / "keeper.pid").exists(), timeout_s=20)
    assert not answers(port_of(told))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
def test_a_server_ends_with_a_keeper_that_is_killed(where):
    told = kept.ask_for("gcs", where)

    assert kept.send("gcs", where, signal.SIGKILL)

    until("the server ends", lambda: not answers(port_of(told)), timeout_s=20)


def test_a_server_can_be_stopped_while_it_starts(where):
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(kept.ask_for, "gcs", where)
        until("it starts", (where / "gcs" / "keeper.pid").exists, timeout_s=20)
        assert kept.stop("gcs", where)

        with pytest.raises(StartError, match="stopped while it started"):
            asked.result(timeout=60)

    assert not list(where.glob("gcs/told.json"))


def test_a_server_that_cannot_start_says_why(where, monkeypatch):
    monkeypatch.setenv("TENSORSTORE_PY_SERVERS", str(where / "nothing"))

    for _ in range(2):
        with pytest.raises(NotToBeHadError, match="run scripts/servers install"):
            kept.ask_for("moto", where)

    assert kept.running(where) == {}


def test_the_command_line(where):
    def servers(*arguments):
        return subprocess.run(
            [sys.executable, "scripts/servers", *arguments, "--dir", where],
            cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip

    told = json.loads(servers("start", "gcs").stdout)["gcs"]
    bucket = f"{told['endpoint']}/storage/v1/b/bucket"
    with urlopen(bucket) as reply:
        assert json.load(reply)["name"] == "bucket"
    assert f"gcs: installed, runs at {told['endpoint']}" in servers("status").stdout

    servers("down", "gcs")
    until("it is down", lambda: not answers(port_of(told)), timeout_s=20)
    servers("up", "gcs")
    until("it is up", lambda: answers(port_of(told)), timeout_s=20)
    with urlopen(Request(bucket)) as reply:
        assert reply.status == 200

    assert servers("stop", "gcs").returncode == 0
    assert not answers(port_of(told))
    assert not (where / "gcs").exists()
    assert servers("up", "gcs").returncode == 1
    assert "no server is named" in servers("start", "nonesuch").stderr


def test_tests_of_one_run_share_a_server_and_the_run_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("CI", "")
    suite = tmp_path / "test_shared.py"
    suite.write_text(SUITE, "utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", "utf-8")
    found = tmp_path / "found"
    monkeypatch.setenv("FOUND", str(found))

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "xdist", "-n", "2",
         "-p", "tests.servers.fixtures", "-p", "no:cacheprovider",
         "-c", tmp_path / "pytest.ini", suite],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )  # fmt: skip

    assert "4 passed, 1 skipped" in done.stdout, done.stdout + done.stderr
    assert "server moto could not be had: not installed" in done.stdout
    (port,) = set(found.read_text("utf-8").split())
    assert not answers(int(port))
    assert list(tmp_path.glob("servers-*")) == []


SUITE = """\
import os

import pytest

from tests.servers.fixtures import server


@pytest.mark.parametrize("number", range(4))
def test_one(request, number):
    with open(os.environ["FOUND"], "a") as file:
        file.write(server(request, "gcs")["endpoint"].rpartition(":")[2] + "\\n")


def test_none(request, monkeypatch):
    monkeypatch.setenv("TENSORSTORE_PY_SERVERS", "/nonesuch")
    server(request, "moto")
"""
