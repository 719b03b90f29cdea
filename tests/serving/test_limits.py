"""What a server holds and does at a time, and what becomes of it when a client goes away."""

import socket
import threading
from typing import Any
from urllib.request import urlopen

import numpy as np
import zarr

import tensorstore_py as ts


def connected(server, key):
    """A connection on which a key was asked for."""
    client = socket.create_connection(("127.0.0.1", server.port))
    path = f"/{server.token}/{key}"
    client.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    return client


def test_work_for_a_client_that_has_gone_away_is_not_begun():
    begun, go_on = threading.Event(), threading.Event()
    read = []

    def function(domain, array, _):
        read.append(domain.inclusive_min[0])
        begun.set()
        assert go_on.wait(60)
        array[...] = 1

    layout = ts.ChunkLayout(chunk_shape=[1])
    array = ts.virtual_chunked(
        function, dtype="uint8", domain=ts.IndexDomain(shape=[1000]), chunk_layout=layout,
        context=ts.Context({"data_copy_concurrency": {"limit": 1}}),
    )  # fmt: skip
    # Room for one answer: the second one waits for the first, and is given up before it begins.
    with ts.serve(array, memory_limit=2).result() as server:
        first = connected(server, "zarr3/c/1")
        assert begun.wait(60)
        connected(server, "zarr3/c/2").close()
        for _ in range(3):  # when these are answered, it is known that the other has closed
            with urlopen(server.url, timeout=60) as answer:
                assert answer.read()
        go_on.set()
        assert first.recv(12) == b"HTTP/1.1 200"
        first.close()
        with urlopen(server.urls["zarr3"] + "c/3", timeout=60) as answer:
            assert answer.read()

    assert read == [1, 3]


def test_a_client_that_reads_nothing_does_not_keep_others_waiting():
    value = bytes(2**24)
    store = ts.KvStore.open("memory://").result()
    store["big"], store["small"] = value, b"small"
    with ts.serve(store).result() as server:
        lazy = [connected(server, "stored/big") for _ in range(8)]
        for each in lazy:
            assert each.recv(12) == b"HTTP/1.1 200"
        with urlopen(server.urls["stored"] + "small", timeout=60) as answer:
            assert answer.read() == b"small"
        with urlopen(server.urls["stored"] + "big", timeout=60) as answer:
            assert answer.read() == value
        for each in lazy:
            each.close()


def test_chunks_that_are_too_large_for_an_answer_are_cut(tmp_path):
    data = np.arange(3000 * 1001, dtype="uint32").reshape(3000, 1001)
    spec = {"driver": "n5", "kvstore": tmp_path}
    layout = ts.ChunkLayout(chunk_shape=[3000, 1001])
    array = ts.open(
        spec, create=True, dtype="uint32", shape=data.shape, chunk_layout=layout
    ).result()
    array.write(data).result()
    with ts.serve(tmp_path).result() as server:
        found: Any = zarr.open_array(server.urls["zarr3"], mode="r")
        assert np.prod(found.chunks) * 4 <= 2**22
        np.testing.assert_array_equal(found[:], data)


def test_an_array_of_a_bucket(moto_s3):
    data = np.arange(600, dtype="int32").reshape(20, 30)
    kvstore: Any = {
        "driver": "s3", "bucket": moto_s3.make_bucket(), "path": "image/",
        "endpoint": moto_s3.endpoint,
        "aws_credentials": {
            "type": "static",
            "access_key_id": moto_s3.access_key,
            "secret_access_key": moto_s3.secret_key,
        },
    }  # fmt: skip
    spec: Any = {"driver": "zarr3", "kvstore": kvstore}
    array = ts.open(spec, create=True, dtype="int32", shape=data.shape).result()
    array.write(data).result()
    with ts.serve(spec).result() as server:
        for name in ("zarr3", "zarr2"):
            found: Any = zarr.open_array(server.urls[name], mode="r")
            np.testing.assert_array_equal(found[:], data)
        with urlopen(server.urls["stored"] + "zarr.json", timeout=60) as answer:
            assert answer.read() == ts.KvStore.open(kvstore).result()["zarr.json"]
