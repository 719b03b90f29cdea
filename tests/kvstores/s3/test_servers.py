"""The S3 store on real servers, and beside clients of other makers.

Servers are shared, and so are buckets: each test has a prefix of its own.
"""

import json
import os
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import tensorstore as reference

import tensorstore_py as ts
from tensorstore_py.kvstores.s3 import S3Store
from tensorstore_py.plugin.http import HttpTiming
from tensorstore_py.plugin.kvstore import ByteRange, KvStore
from tensorstore_py.testing import KvStoreSuite, drive

COUNTING = Path(__file__).with_name("counting.py")
ROOT = Path(__file__).parents[3]


def spec_of(server, bucket, **members):
    keys = {
        "type": "static",
        "access_key_id": server.access_key,
        "secret_access_key": server.secret_key,
    }
    return {
        "driver": "s3",
        "bucket": bucket,
        "endpoint": server.endpoint,
        "aws_credentials": keys,
        **members,
    }


@pytest.fixture(scope="module")
def buckets():
    """By server, one bucket for all tests of its class; they have a prefix each."""
    return {}


class ServerSuite(KvStoreSuite):
    """The promises, on a real server.

    Attributes:
        fixture: which server.
        members: of the specs of its stores.
    """

    bad_keys = ("x" * 1025,)
    fixture: ClassVar[str] = ""
    members: ClassVar[dict[str, object]] = {}

    @pytest.fixture
    def server(self, request):
        return request.getfixturevalue(self.fixture)

    @pytest.fixture
    def bucket(self, server, buckets):
        if server.name not in buckets:
            buckets[server.name] = server.make_bucket()
        return buckets[server.name]

    @pytest.fixture
    def store(self, server, bucket) -> KvStore:
        return ts.KvStore.open(spec_of(server, bucket, **self.members)).result().store

    @pytest.fixture
    def prefix(self) -> str:
        return f"{uuid.uuid4().hex}/"

    def test_a_value_of_no_bytes(self, store, prefix):
        stamp = self.set(store, prefix + "a", b"")

        for wanted in (ByteRange(0, 0), ByteRange(0)):
            found = self.get(store, prefix + "a", wanted)
            assert (bytes(found.value), found.stamp.generation) == (b"", stamp.generation)
        for outside in (ByteRange(-1), ByteRange(1), ByteRange(0, 1)):
            with pytest.raises(ts.OutOfRangeError):
                self.get(store, prefix + "a", outside)

    def test_a_value_in_parts(self, store, prefix):
        value = os.urandom(2**20) * 11
        store._writes._large_bytes = 2**20
        store._writes._part_bytes = 5 * 2**20

        stamp = self.set(store, prefix + "a", value)

        found = self.get(store, prefix + "a")
        assert bytes(found.value) == value
        assert found.stamp.generation == stamp.generation
        assert stamp.generation.endswith(b'-3"')

    def test_copies_are_the_servers(self, store, prefix):
        self.filled(store, prefix, ["a b", "é"], b"1")

        def copied(key):
            return drive(store, lambda: store.copy_to(f"{prefix}{key}", store, f"{prefix}to/{key}"))

        assert [copied(key) for key in ("a b", "é", "nothing")] == [True, True, True]
        assert self.keys(store, f"{prefix}to/") == ("a b", "é")

    def test_a_bucket_that_is_not_there(self, server):
        store = ts.KvStore.open(spec_of(server, "not-there", **self.members)).result().store

        with pytest.raises(ts.NotFoundError, match="not-there"):
            self.get(store, "a")
        with pytest.raises(ts.NotFoundError, match="not-there"):
            self.set(store, "a", b"1")
        with pytest.raises(ts.NotFoundError, match="not-there"):
            self.keys(store, "")


class TestMoto(ServerSuite):
    fixture = "moto_s3"


class TestRgw(ServerSuite):
    """Ceph: conditions are found out, and that it wants ETags without their quotes."""

    fixture = "rgw_s3"

    def test_a_wrong_secret_is_reported_by_name_and_not_repeated(self, server, bucket):
        spec = spec_of(server, bucket)
        keys = {**spec["aws_credentials"], "secret_access_key": "do-not-print-me"}
        store = ts.KvStore.open({**spec, "aws_credentials": keys}).result()

        with pytest.raises(ts.PermissionDeniedError, match="SignatureDoesNotMatch") as caught:
            store.read("a").result()

        assert "do-not-print-me" not in str(caught.value)

    def test_a_clock_that_is_off_is_put_right(self, server, bucket, monkeypatch):
        store = ts.KvStore.open(spec_of(server, bucket)).result()
        assert isinstance(store.store, S3Store)
        client = store.store._bucket._client
        ahead = HttpTiming(lambda: time.time() + 7200)
        monkeypatch.setattr(client, "_timing", ahead)
        monkeypatch.setattr(client, "_clock", type(client._clock)(ahead))

        store["skewed"] = b"1"

        assert store["skewed"] == b"1"

    def test_writers_of_two_processes_lose_no_update(self, server):
        assert counted(server, spec_of(server, server.make_bucket()), 4, 5) == 20


class TestSwift(ServerSuite):
    """A server without conditional writes: one process may write at a time, as is declared.

    It answers some reads of a value that is being replaced with 404: docs/stores.md.
    """

    fixture = "swift_s3"
    members: ClassVar = {"use_conditional_write": False}
    gaps = True

    def test_it_gets_no_conditional_write_unless_that_is_declared(self, server, bucket, prefix):
        store = ts.KvStore.open(spec_of(server, bucket)).result()

        with pytest.raises(ts.UnsupportedError, match='"use_conditional_write": false'):
            store.write(f"{prefix}a", b"1", if_equal=b"\x02").result()

        assert (store / prefix).list().result() == []


def counted(server, spec, writers, times):
    """Count up by two processes; returns what was counted to."""
    store = ts.KvStore.open(spec).result()
    store["n"] = b"0"
    plain = {**spec, "aws_credentials": {"type": "environment"}}
    command = [sys.executable, str(COUNTING), json.dumps(plain), "n", str(writers // 2), str(times)]
    environment = {**os.environ, **server.environment, "PYTHONPATH": str(ROOT)}
    running = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) for _ in range(2)]
    assert [process.wait(timeout=240) for process in running] == [0, 0]
    for process in running:
        assert process.stdout is not None
        process.stdout.close()
    return int(store["n"])


def test_writers_of_two_processes_lose_no_update(moto_s3):
    spec = spec_of(moto_s3, moto_s3.make_bucket())

    assert counted(moto_s3, spec, 4, 10) == 40


@pytest.fixture
def s3fs_of():
    """A client of other makers."""
    import s3fs

    def s3fs_of(server):
        return s3fs.S3FileSystem(
            key=server.access_key,
            secret=server.secret_key,
            client_kwargs={"endpoint_url": server.endpoint, "region_name": server.region},
            skip_instance_cache=True,
        )

    return s3fs_of


KEYS = ["a/b c", "é/日本", "x+y&z=%25", "~!$'()*,;:@"]


def test_s3fs_reads_what_we_wrote_and_we_read_what_it_wrote(moto_s3, s3fs_of):
    bucket = moto_s3.make_bucket()
    store = ts.KvStore.open(spec_of(moto_s3, bucket)).result()
    other = s3fs_of(moto_s3)

    for key in KEYS:
        store[f"ours/{key}"] = key.encode()
        other.pipe_file(f"{bucket}/theirs/{key}", key.encode())

    for key in KEYS:
        assert other.cat_file(f"{bucket}/ours/{key}") == key.encode()
        assert store[f"theirs/{key}"] == key.encode()
    assert {path.partition("/")[2] for path in other.find(bucket)} == {
        key.decode() for key in store.list().result()
    }


def test_the_wheel_reads_what_we_wrote_and_we_read_what_it_wrote(moto_s3, monkeypatch):
    for name, value in moto_s3.environment.items():
        monkeypatch.setenv(name, value)
    bucket = moto_s3.make_bucket()
    spec = {"driver": "s3", "bucket": bucket, "endpoint": moto_s3.endpoint}
    ours, theirs = (library.KvStore.open(spec).result() for library in (ts, reference))

    for key in KEYS:
        stamp = ours.write(f"ours/{key}", key.encode()).result()
        found = theirs.read(f"ours/{key}").result()
        assert (found.value, found.stamp.generation) == (key.encode(), stamp.generation)
        stamp = theirs.write(f"theirs/{key}", key.encode()).result()
        found = ours.read(f"theirs/{key}").result()
        assert (found.value, found.stamp.generation) == (key.encode(), stamp.generation)
    assert sorted(ours.list().result()) == sorted(theirs.list().result())
    stale = theirs.read("ours/a/b c").result().stamp.generation
    assert ours.write("ours/a/b c", b"2", if_equal=stale).result().generation
    assert theirs.write("ours/a/b c", b"3", if_equal=stale).result().generation == b""


@pytest.mark.parametrize("driver", ["zarr", "zarr3"])
def test_arrays_of_one_are_arrays_of_the_other(moto_s3, monkeypatch, driver):
    for name, value in moto_s3.environment.items():
        monkeypatch.setenv(name, value)
    base = {"driver": "s3", "bucket": moto_s3.make_bucket(), "endpoint": moto_s3.endpoint}
    data = np.arange(300, dtype="uint16").reshape(15, 20)

    for writer, reader in ((ts, reference), (reference, ts)):
        spec = {"driver": driver, "kvstore": {**base, "path": f"{writer.__name__}/"}}
        layout = writer.ChunkLayout(chunk_shape=[4, 7])
        made = writer.open(
            spec, create=True, dtype="uint16", shape=[15, 20], chunk_layout=layout
        ).result()
        made[2:, 3:].write(data[2:, 3:]).result()
        made[:3].write(data[:3]).result()
        made[:, :4].write(data[:, :4]).result()

        np.testing.assert_array_equal(reader.open(spec).result().read().result(), data)
