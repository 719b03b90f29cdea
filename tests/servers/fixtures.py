"""Fixtures that give a test a server: `moto_s3`, `rgw_s3`, `swift_s3`, `nginx_http`, `gcs_server`,
and `chromium`, a browser.

A server starts when the first test asks for it, once for all processes of a test run, and ends
with the run. Where it cannot be had, its tests are skipped with the reason, which the last lines
of the run repeat; on a build server (`CI` is set) they fail. What one test stores no other sees:
each has buckets of its own.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.servers import kept
from tests.servers.gcs_server import GcsServer
from tests.servers.installed import NotToBeHadError
from tests.servers.processes import StartError
from tests.servers.recipe import Told
from tests.servers.recipes import RECIPES
from tests.servers.s3_endpoint import S3Endpoint

_DIRECTORY = pytest.StashKey[Path]()
_OWNER = pytest.StashKey[int]()
_STATUS = pytest.StashKey[int]()
_WELL = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)


def pytest_configure(config: pytest.Config) -> None:
    handed = getattr(config, "workerinput", None)
    if handed is None:
        config.stash[_DIRECTORY] = Path(tempfile.mkdtemp(prefix="servers-"))
        config.stash[_OWNER] = os.getpid()
    else:
        config.stash[_DIRECTORY] = Path(handed["servers_directory"])
        config.stash[_OWNER] = handed["servers_owner"]


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node) -> None:
    node.workerinput["servers_directory"] = str(node.config.stash[_DIRECTORY])
    node.workerinput["servers_owner"] = node.config.stash[_OWNER]


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config
) -> None:
    where = config.stash[_DIRECTORY]
    for path in sorted(where.glob("*.missing")):
        line = f"server {path.stem} could not be had: {path.read_text('utf-8')}"
        terminalreporter.write_line(line, yellow=True)
    for path in sorted(where.glob("*/failed")):
        if not path.with_name("absent").exists():
            line = f"server {path.parent.name} does not start: {path.read_text('utf-8')}"
            terminalreporter.write_line(line, red=True)
    started = sorted(path.name for path in where.iterdir() if path.is_dir())
    if exitstatus not in _WELL and started:
        terminalreporter.write_line(f"logs of {', '.join(started)}: {where}")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    session.config.stash[_STATUS] = int(exitstatus)


def pytest_unconfigure(config: pytest.Config) -> None:
    where = config.stash.get(_DIRECTORY, None)
    if where is None or hasattr(config, "workerinput"):
        return
    started = [path.name for path in where.iterdir() if path.is_dir()]
    for name in started:
        kept.stop(name, where)
    if not started or config.stash.get(_STATUS, 0) in _WELL:
        shutil.rmtree(where, ignore_errors=True)


def server(request: pytest.FixtureRequest, name: str) -> Told:
    """What a client of a server needs, for fixtures of their own."""
    config = request.config
    where = config.stash[_DIRECTORY]
    why = RECIPES[name].absent()
    if why is None:
        try:
            return kept.ask_for(name, where, config.stash[_OWNER])
        except StartError:
            # why, and where its log is, is said once, when the run ends
            pytest.fail(f"server {name} does not start", pytrace=False)
        except NotToBeHadError as error:
            why = str(error)
    (where / f"{name}.missing").write_text(why, "utf-8")
    if os.environ.get("CI", "").lower() not in ("", "0", "false"):
        pytest.fail(f"{name}: {why}", pytrace=False)
    pytest.skip(f"{name}: {why}")


def _s3(request: pytest.FixtureRequest, name: str) -> S3Endpoint:
    return S3Endpoint(**server(request, name), name=name)


@pytest.fixture(scope="session")
def moto_s3(request: pytest.FixtureRequest) -> S3Endpoint:
    """moto: every condition, any key."""
    return _s3(request, "moto")


@pytest.fixture(scope="session")
def rgw_s3(request: pytest.FixtureRequest) -> S3Endpoint:
    """Ceph's gateway: signatures and clocks are checked, conditions hold for bare ETags only."""
    return _s3(request, "rgw")


@pytest.fixture(scope="session")
def swift_s3(request: pytest.FixtureRequest) -> S3Endpoint:
    """Swift: signatures and clocks are checked, conditional writes are refused with 501."""
    return _s3(request, "swift")


@dataclass(frozen=True)
class Folder:
    """A folder that nginx serves.

    Attributes:
        url: where, with a slash at the end.
        files: the folder itself.
        site: the server's URL; `f"{site}/no-ranges/{name}/"`, `no-etags`, `gzip`, `kept` (an hour),
            `moved` (302) and `refused` (403) show the same folder in other ways.
        name: of the folder.
    """

    url: str
    files: Path
    site: str
    name: str


@pytest.fixture
def nginx_http(request: pytest.FixtureRequest) -> Folder:
    """nginx over an empty folder of this test's own."""
    told = server(request, "nginx")
    name = uuid.uuid4().hex[:16]
    files = Path(told["files"], name)
    files.mkdir()
    return Folder(f"{told['endpoint']}/{name}/", files, told["endpoint"], name)


@pytest.fixture(scope="session")
def chromium(request: pytest.FixtureRequest) -> str:
    """The URL at which a Chromium without a window takes orders."""
    return server(request, "chromium")["endpoint"]


@pytest.fixture
def gcs_server() -> Iterator[GcsServer]:
    """A Google Cloud Storage of this test's own, with the bucket `bucket`."""
    with GcsServer() as running:
        running.make_bucket()
        yield running
