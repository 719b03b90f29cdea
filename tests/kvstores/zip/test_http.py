"""Arrays in archives behind a web server: what is read, and with how many requests."""

from contextlib import ExitStack

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py.testing import FaultServer, WebValues


@pytest.fixture
def site():
    web = WebValues()
    with ExitStack() as running:
        server = FaultServer(web.handle, ())
        running.enter_context(server.running())
        yield web, server


def test_an_array_in_an_archive_on_a_server(site):
    web, server = site
    context = ts.Context()
    data = np.arange(6400, dtype=np.uint32).reshape(80, 80)
    codecs = {"codecs": ["bytes"]}
    spec = {"driver": "zarr3", "kvstore": "memory://a.zip|zip:in/", "metadata": codecs}
    layout = ts.ChunkLayout(chunk_shape=[20, 20])
    made = ts.open(
        spec, create=True, dtype="uint32", shape=data.shape, chunk_layout=layout, context=context
    ).result()
    made[...] = data
    web.values["a.zip"] = ts.KvStore.open("memory://", context=context).result()["a.zip"]

    found = ts.open(f"{server.url}/a.zip|zip:in/|zarr3:").result()
    np.testing.assert_array_equal(found[...].read().result(), data)

    # The directory, the metadata, and each of the chunks.
    assert len(server.requests) <= 3 + 16
    server.requests.clear()
    np.testing.assert_array_equal(found[:20, :20].read().result(), data[:20, :20])
    assert len(server.requests) == 1


def test_an_archive_on_a_server_is_read_only(site):
    web, server = site
    web.values["a.zip"] = b"PK\5\6" + bytes(18)
    store = ts.KvStore.open(f"{server.url}/a.zip|zip:").result()

    assert store.list().result() == []
    with pytest.raises(ts.UnsupportedError, match="read-only"):
        store["a"] = b"1"
