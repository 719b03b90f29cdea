"""What the tests of the S3 store share."""

import os
from contextlib import ExitStack

import pytest

import tensorstore_py as ts
from tensorstore_py.testing import FaultServer

#: Quick to try again, and to give up.
QUICK = {"max_retries": 3, "initial_delay": "1ms", "max_delay": "2ms"}
KEYS = {"type": "static", "access_key_id": "AKIA", "secret_access_key": "do-not-print-me"}


@pytest.fixture(autouse=True)
def _alone(monkeypatch, tmp_path):
    """No proxy, no credentials and no metadata service of this machine plays a part."""
    for name in os.environ:
        if name.lower().endswith("_proxy") or name.startswith("AWS_"):
            monkeypatch.delenv(name)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "nothing"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


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
def open_store():
    """Open a store that is quick to try again: `open_store(url)`."""

    def open_store(url, **members):
        credentials = members.pop("aws_credentials", KEYS)
        spec = {
            "driver": "s3",
            "bucket": "bucket",
            "endpoint": url,
            "s3_request_retries": QUICK,
            "aws_credentials": credentials,
            **members,
        }
        return ts.KvStore.open(spec).result()

    return open_store
