"""What the tests of the network room share: servers that go wrong, and a way to run on the loop."""

import asyncio
import os
import ssl
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tensorstore_py.plugin.http import HttpClient, HttpTiming, RetriesModel
from tensorstore_py.plugin.kvstore import Semaphore
from tensorstore_py.testing import FaultServer
from tests.internals import close_pool
from tests.runtime.processes import start

CERTIFICATE = Path(__file__).with_name("certificate.pem")


@pytest.fixture
def run():
    """Run a coroutine function on the library's loop."""

    def run(body: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        return start(False, body).result(timeout=30)

    return run


@pytest.fixture(autouse=True)
def _direct(monkeypatch):
    """Whatever proxies this machine has, they do not lead to the servers of these tests."""
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)


@pytest.fixture
def serve():
    """Start a fault server: `server = serve(handler, plan)`."""
    with ExitStack() as running:

        def serve(handler, plan=(), *, tls=False):
            context = None
            if tls:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(CERTIFICATE)
            server = FaultServer(handler, plan, tls=context)
            running.enter_context(server.running())
            return server

        yield serve


@pytest.fixture
def fresh_pool(run):
    """No connection or trust of an earlier test is used, nor left to a later one."""
    run(close_pool)
    yield
    run(close_pool)


class Pauses:
    """A clock that stands still but for the pauses, which pass at once."""

    def __init__(self, now: float = 1_000_000.0) -> None:
        self.now = now
        self.taken: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.taken.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)

    @property
    def timing(self) -> HttpTiming:
        return HttpTiming(lambda: self.now, self.sleep)


@pytest.fixture
def pauses():
    return Pauses()


@pytest.fixture
def client(pauses):
    """Make a client whose pauses pass at once."""

    def client(*, max_retries=4, limit=32, **options):
        options.setdefault("timing", pauses.timing)
        options.setdefault("slots", Semaphore(limit))
        options.setdefault("describe", lambda key: f'"there/{key}"')
        retries = RetriesModel(max_retries=max_retries)
        return HttpClient(retries=retries, **options)

    return client
