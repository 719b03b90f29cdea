"""Clients that know nothing of us, at the same service: what one writes, the others read."""

import gc
import io
import os
import warnings

import numpy as np
import pytest
import tensorstore as reference
from google.api_core.exceptions import PreconditionFailed

import tensorstore_py as ts
from tensorstore_py.plugin.kvstore import NO_VALUE, UNKNOWN
from tests.servers.google_client import google_client

VALUE = bytes(range(256)) * 40
KEYS = ["a", "a/b c", "ü/日本", "q?d#e", "%2F", "a+b&c=d", "../x", "end/"]

# Google's client drops the connections of failed requests without closing them.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")


@pytest.fixture(scope="module", autouse=True)
def _dropped_connections():
    """They are collected here, so that no other test is blamed for them."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture
def official(server):
    """Google's own client: a bucket."""
    with google_client(server.url) as client:
        yield client.bucket("bucket")


@pytest.fixture
def wheel(server, monkeypatch):  # noqa: ARG001 - it must be up
    """TensorStore's own store."""
    monkeypatch.setenv("GOOGLE_AUTH_TOKEN_FOR_TESTING", "any")
    return reference.KvStore.open("gs://bucket/").result()


class TestGoogle:
    @pytest.mark.parametrize("key", KEYS)
    def test_reads_what_we_wrote(self, kv, official, key):
        generation = kv().write(key, VALUE).result().generation

        blob = official.get_blob(key)

        assert blob.download_as_bytes(checksum="crc32c") == VALUE
        assert blob.content_type == "application/octet-stream"
        assert blob.generation == int.from_bytes(generation[1:], "little")

    def test_reads_what_we_sent_in_a_session(self, kv, official):
        store = kv()
        store.store._large_bytes = 1000
        store["a"] = VALUE

        assert official.get_blob("a").download_as_bytes(checksum="crc32c") == VALUE

    @pytest.mark.parametrize("key", KEYS)
    def test_writes_what_we_read(self, kv, official, key):
        blob = official.blob(key)
        blob.upload_from_string(VALUE)

        found = kv().read(key).result()

        assert found.value == VALUE
        assert int.from_bytes(found.stamp.generation[1:], "little") == blob.generation
        assert kv().list().result() == [key.encode()]

    def test_writes_in_pieces_what_we_read(self, kv, official):
        value = os.urandom(3 * 2**18 + 17)
        official.blob("a", chunk_size=2**18).upload_from_file(io.BytesIO(value), size=len(value))

        assert kv()["a"] == value
        assert kv().read("a", byte_range=slice(-17, None)).result().value == value[-17:]

    def test_heeds_our_generations_and_we_its(self, kv, official):
        store = kv()
        ours = store.write("a", b"1", if_equal=NO_VALUE).result().generation
        blob = official.blob("a")
        blob.upload_from_string(b"2", if_generation_match=int.from_bytes(ours[1:], "little"))

        assert store.write("a", b"3", if_equal=ours).result().generation == UNKNOWN
        theirs = store.read("a").result().stamp.generation
        store.write("a", b"4", if_equal=theirs).result()
        with pytest.raises(PreconditionFailed):
            blob.upload_from_string(b"5", if_generation_match=blob.generation)
        assert store["a"] == b"4"

    def test_copies_of_ours_are_objects_like_others(self, kv, official):
        official.blob("a").upload_from_string(VALUE, content_type="image/png")

        kv().experimental_copy_range_to(kv() / "to/").result()

        copied = official.get_blob("to/a")
        assert (copied.download_as_bytes(), copied.content_type) == (VALUE, "image/png")


class TestWheel:
    @pytest.mark.parametrize("key", KEYS)
    def test_reads_what_we_wrote(self, kv, wheel, key):
        stamp = kv().write(key, VALUE).result()

        found = wheel.read(key).result()

        assert (found.value, found.stamp.generation) == (VALUE, stamp.generation)

    @pytest.mark.parametrize("key", KEYS)
    def test_writes_what_we_read(self, kv, wheel, key):
        stamp = wheel.write(key, VALUE).result()

        found = kv().read(key).result()

        assert (found.value, found.stamp.generation) == (VALUE, stamp.generation)

    def test_answers_as_we_do(self, kv, wheel):
        ours = kv()
        for number in range(3):
            ours[f"k/{number}"] = b"0123456789"
        present = ours.read("k/0").result().stamp.generation

        def outcomes(module, store):
            whole = module.KvStore.KeyRange
            results = [
                store.read("k/0", byte_range=slice(2, 5)).result(),
                store.read("k/0", byte_range=slice(-3, None)).result(),
                store.read("k/0", byte_range=slice(4, 4)).result(),
                store.read("nothing").result(),
                store.read("k/0", if_not_equal=present).result(),
                store.read("k/0", if_not_equal=NO_VALUE).result(),
            ]
            return [
                *((each.state, each.value, each.stamp.generation) for each in results),
                sorted(store.list().result()),
                sorted(store.list(whole("k/1", "k/2")).result()),
                sorted((store / "k/").list(strip_prefix_length=0).result()),
                store.write("k/0", b"x", if_equal=NO_VALUE).result().generation,
                store.write("none", None).result().generation,
                store.write("none", None, if_equal=NO_VALUE).result().generation,
                store.write("none", None, if_equal=present).result().generation,
                "k/0" in store,
                "none" in store,
            ]

        assert outcomes(ts, ours) == outcomes(reference, wheel)

    def test_errors_are_errors_for_both(self, kv, wheel):
        kv()["a"] = b"0123"

        for store in (kv(), wheel):
            for call in (
                lambda store=store: store.read("a", byte_range=slice(2, 9)).result(),
                lambda store=store: store.read("a\n").result(),
                lambda store=store: store.write("", b"").result(),
            ):
                with pytest.raises(ValueError):
                    call()

    @pytest.mark.parametrize("driver", ["zarr", "zarr3"])
    def test_shares_arrays_with_us(self, server, wheel, driver):
        spec = {"driver": driver, "kvstore": "gs://bucket/array/"}
        data = np.arange(60 * 50, dtype="uint16").reshape(60, 50)
        ours = ts.open(spec, create=True, dtype="uint16", shape=[60, 50]).result()
        ours[:30] = data[:30]

        theirs = reference.open(spec).result()
        theirs[30:] = data[30:]
        theirs[7, 5:9] = 1

        data[7, 5:9] = 1
        assert np.array_equal(ts.open(spec).result().read().result(), data)
        assert np.array_equal(theirs.read().result(), data)
        assert "array/zarr.json" in server.objects() or "array/.zarray" in server.objects()
