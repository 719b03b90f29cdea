"""What the tests of the Google Cloud Storage store share."""

import os

import pytest

import tensorstore_py as ts
from tensorstore_py.kvstores.gcs import GcsStore
from tensorstore_py.kvstores.gcs.own_writes import ObjectThrottle

#: Quick to try again, and to give up.
QUICK = {"max_retries": 4, "initial_delay": "1ms", "max_delay": "2ms"}


@pytest.fixture(autouse=True)
def _alone(monkeypatch, tmp_path):
    """Whatever proxies and credentials this machine has, these tests do not use them."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy") or name.startswith(("GOOGLE_", "CLOUDSDK_", "GCE_")):
            monkeypatch.delenv(name)
    monkeypatch.delenv("STORAGE_EMULATOR_HOST", raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path / "nothing"))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    # Objects that were written too fast in one test are not waited for in the next.
    monkeypatch.setattr(ObjectThrottle, "_busy", {})
    monkeypatch.setattr(ObjectThrottle, "GAP_S", 0.002)


@pytest.fixture
def server(gcs_server, monkeypatch):
    """A service with the bucket `bucket`, which stores are opened at."""
    monkeypatch.setenv("TENSORSTORE_GCS_HTTP_URL", gcs_server.url)
    return gcs_server


@pytest.fixture
def kv(server):  # noqa: ARG001 - it must be up
    """Open a store that is quick to try again: `kv(gcs_user_project={...})`."""

    def kv(**members):
        spec = {"driver": "gcs", "bucket": "bucket", "gcs_request_retries": QUICK, **members}
        return ts.KvStore.open(spec).result()

    return kv


@pytest.fixture
def store(kv) -> GcsStore:
    """The promise's side of it."""
    store = kv().store
    assert isinstance(store, GcsStore)
    return store
