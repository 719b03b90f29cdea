"""What the tests of the HTTP store share."""

import os
from contextlib import ExitStack

import pytest

import tensorstore_py as ts
from tensorstore_py.kvstores.http import HttpStore
from tensorstore_py.testing import FaultServer, WebValues

#: Quick to try again, and to give up.
QUICK = {"max_retries": 3, "initial_delay": "1ms", "max_delay": "2ms"}


@pytest.fixture(autouse=True)
def _direct(monkeypatch):
    """Whatever proxies this machine has, they do not lead to the servers of these tests."""
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)


@pytest.fixture
def serve():
    """Start a server: `server = serve(handler, plan)`."""
    with ExitStack() as running:

        def serve(handler, plan=()):
            server = FaultServer(handler, plan)
            running.enter_context(server.running())
            return server

        yield serve


@pytest.fixture
def web():
    return WebValues({"a": b"0123456789"})


@pytest.fixture
def server(serve, web):
    return serve(web.handle)


@pytest.fixture
def open_store():
    """Open a store that is quick to try again: `open_store(url)`."""

    def open_store(url, **members):
        spec = {"driver": "http", "base_url": url, "http_request_retries": QUICK, **members}
        return ts.KvStore.open(spec).result()

    return open_store


@pytest.fixture
def plain_store(server, open_store) -> HttpStore:
    """The promise's side of a store on `server`."""
    store = open_store(server.url).store
    assert isinstance(store, HttpStore)
    return store
