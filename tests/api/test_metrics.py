"""What the library counts, seen from outside: names, numbers, forms, processes, threads."""

import json
import re
import subprocess
import sys
import threading
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py.plugin.kvstore import (
    NO_VALUE,
    WHOLE,
    KvStore,
    KvStoreSpec,
    ReadResult,
    TimestampedStorageGeneration,
    counter,
    histogram,
    kvstore,
)
from tensorstore_py.testing import FaultServer, WebValues
from tensorstore_py.testing.fault_server import Reply, status
from tests.runtime.processes import FORK, run_script

STORE = "/tensorstore/kvstore/"


def numbers(prefix="/tensorstore/"):
    """Each metric and its first value; of a histogram, how much was observed."""
    return {
        metric["name"]: metric["values"][0].get("value", metric["values"][0].get("count"))
        for metric in ts.experimental_collect_matching_metrics(prefix, include_zero_metrics=True)
        if metric["values"]
    }


@contextmanager
def more(prefix="/tensorstore/"):
    """What is counted within the block, if it is anything."""
    before = numbers(prefix)
    found: dict[str, Any] = {}
    yield found
    for name, value in numbers(prefix).items():
        if value - before.get(name, 0):
            found[name.removeprefix(prefix)] = value - before.get(name, 0)


class TestStores:
    def test_what_a_store_is_asked_for(self, tmp_path):
        store = ts.KvStore.open(tmp_path.as_uri() + "/").result()
        with more(f"{STORE}file/") as found:
            store.write("a", b"12345").result()
            store.write("a", b"123", if_equal=b"another").result()
            store.read("a").result()
            store.read("missing").result()
            store.list().result()
            store.write("a", None).result()
            store.delete_range(ts.KvStore.KeyRange("b", "c")).result()
        assert found == {
            "write": 3, "bytes_written": 5, "write_latency_ms": 1,
            "read": 2, "batch_read": 1, "bytes_read": 5, "read_latency_ms": 1,
            "list": 1, "delete_range": 1,
        }  # fmt: skip

    def test_parts_of_a_value(self, tmp_path):
        store = ts.KvStore.open(tmp_path.as_uri() + "/").result()
        store.write("a", b"0123456789").result()
        with more(f"{STORE}file/") as found:
            store.read("a", byte_range=slice(2, 5)).result()
        assert (found["read"], found["bytes_read"]) == (1, 3)

    def test_a_failed_operation_was_asked_for(self, tmp_path):
        (tmp_path / "file").write_bytes(b"")
        store = ts.KvStore.open(tmp_path.as_uri() + "/").result()
        with more(f"{STORE}file/") as found, pytest.raises(ts.TensorStoreError):
            store.write("file/below", b"1").result()
        assert found == {"write": 1}

    @pytest.mark.parametrize("driver", ["ocdbt", "zip"])
    def test_a_store_over_another_moves_no_bytes_itself(self, driver):
        base = {"driver": "memory", "path": "at/"} if driver == "ocdbt" else "memory://a.zip"
        store = ts.KvStore.open({"driver": driver, "base": base}).result()
        with more(STORE) as found:
            store.write("a", b"12345").result()
            store.read("a").result()
        assert (found[f"{driver}/write"], found[f"{driver}/read"]) == (1, 1)
        assert found["memory/bytes_written"] > 5
        assert f"{driver}/bytes_written" not in numbers(STORE)

    def test_a_transaction_writes_when_it_is_committed(self):
        store = ts.KvStore.open({"driver": "ocdbt", "base": "memory://committed/"}).result()
        before = numbers(f"{STORE}ocdbt/")[f"{STORE}ocdbt/write"]
        with more(f"{STORE}ocdbt/") as found, ts.Transaction() as transaction:
            staged = store.with_transaction(transaction)
            for key in "abc":
                staged[key] = b"1"
            assert numbers(f"{STORE}ocdbt/")[f"{STORE}ocdbt/write"] == before
        assert found["write"] == 3
        assert found["manifest_updates"] == 1
        assert found["indirect_data_write_size"] == 1

    def test_stores_of_plug_ins_and_their_own_metrics(self):
        opened = counter("/shed/opened", "doors opened")
        sizes = histogram("/shed/sizes", "sizes of doors", "bytes")

        class Shed(KvStore):
            inline = True

            async def read(self, key, byte_range=WHOLE, *, if_equal=None, if_not_equal=None):
                opened.note(1)
                sizes.note(700)
                return ReadResult.of(b"tools", b"1", byte_range)

        class Annex(Shed):
            async def read(self, key, *args, **options):
                if key == "no":
                    now = TimestampedStorageGeneration.now(NO_VALUE)
                    return ReadResult("missing", b"", now)
                return await super().read(key, *args, **options)

        @kvstore("shed-of-tests")
        class ShedSpec(KvStoreSpec):
            def open(self):
                return Annex()

        store = ts.KvStore.open({"driver": "shed-of-tests"}).result()
        with more(f"{STORE}shed-of-tests/") as found:
            assert store.read("any").result().value == b"tools"
            assert store.read("no").result().state == "missing"
        assert (found["read"], found["batch_read"], found["bytes_read"]) == (2, 1, 5)
        assert numbers("/shed/") == {"/shed/opened": 1, "/shed/sizes": 1}
        assert not store.store.writable
        assert not store.store.listable


class TestEngine:
    SPEC: ClassVar = {
        "driver": "zarr3",
        "kvstore": "memory://",
        "metadata": {"shape": [8, 8], "data_type": "uint8", "chunk_grid": {
            "name": "regular", "configuration": {"chunk_shape": [4, 4]},
        }},
        "create": True,
    }  # fmt: skip

    def test_chunks(self):
        array = ts.open(self.SPEC).result()
        with more() as found:
            array[...].write(np.ones((8, 8), np.uint8)).result()
            array[1:3, 1:3].write(np.zeros((2, 2), np.uint8)).result()
        assert found["cache/chunk_cache/writes"] == 5
        assert found["codec/encoded_chunks"] == 5
        assert found["codec/encoded_bytes"] == 5 * 16
        with more() as found:
            array.read().result()
            array[0:6, 0].read().result()
        assert found["cache/chunk_cache/reads"] == 6
        assert found["codec/decoded_chunks"] == 6

    def test_of_blosc_chunks_just_the_blocks_that_are_wanted(self):
        blosc = {"name": "blosc", "configuration": {"cname": "zstd", "blocksize": 4096}}
        codecs = {"driver": "zarr3", "codecs": ["bytes", blosc]}
        values = np.arange(2 * 64**3, dtype=np.uint8).reshape(128, 64, 64) // 3
        array = ts.open(
            {"driver": "zarr3", "kvstore": "memory://"}, create=True, dtype="uint8",
            shape=values.shape, chunk_layout=ts.ChunkLayout(chunk_shape=[64] * 3), codec=codecs,
        ).result()  # fmt: skip
        array.write(values).result()

        for index, rows in (
            (5, 1),
            (np.s_[62:66, 3:9], 4),
            (np.s_[30:40:3, ::-1], 10),
            (np.s_[89:69:-1], 20),
            (np.s_[[3, 9, 4]], 64),  # an index array says nothing of where it ends
            (np.s_[:, 5], 128),
        ):
            with more("/tensorstore/codec/") as found:
                wanted = array[index].read().result()
            np.testing.assert_array_equal(wanted, values[index])
            assert found["decoded_bytes"] == rows * 64 * 64

        with more("/tensorstore/codec/") as found:
            reads = [array[row, row : row + 9].read() for row in range(0, 24, 2)]
            parts = [read.result() for read in reads]
        np.testing.assert_array_equal(
            parts, [values[row, row : row + 9] for row in range(0, 24, 2)]
        )
        assert found["decoded_bytes"] < 64**3

    def test_a_cache_pool(self):
        context = ts.Context({"cache_pool": {"total_bytes_limit": 600}})  # two chunks
        array = ts.open(self.SPEC, context=context, recheck_cached_data=False).result()
        with more("/tensorstore/cache/") as found:
            array.write(np.ones((8, 8), np.uint8)).result()
        assert found == {"chunk_cache/writes": 4, "evict_count": 2}
        with more("/tensorstore/cache/") as found:
            array[4:].read().result()
            array[:4].read().result()
            array[:4].read().result()
        assert found["hit_count"] + found["miss_count"] == 6
        assert found["miss_count"] == found["kvs_cache_read"] == found["evict_count"] >= 2

    def test_of_a_pool_what_became_of_what_it_had(self, tmp_path):
        def categories():
            (found,) = ts.experimental_collect_matching_metrics(
                "/tensorstore/cache/kvs_cache_read", include_zero_metrics=True
            )
            return {each["category"]: each["value"] for each in found["values"]}

        spec = self.SPEC | {"kvstore": tmp_path.as_uri() + "/"}
        context = ts.Context({"cache_pool": {"total_bytes_limit": 10000}})
        ts.open(spec).result().write(np.ones((8, 8), np.uint8)).result()
        array = ts.open(spec, context=context, open=True, create=False).result()
        before = categories()
        array.read().result()
        array.read().result()
        after = categories()
        assert {name: after[name] - before[name] for name in after} == {
            "changed": 4, "error": 0, "unchanged": 4,
        }  # fmt: skip


@pytest.fixture
def direct(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("direct")
class TestHttp:
    def test_requests_and_retries(self):
        server = FaultServer(WebValues({"a": b"0123456789"}).handle, [status(503)])
        retries = {"max_retries": 2, "initial_delay": "1ms", "max_delay": "1ms"}
        with server.running():
            spec = {"driver": "http", "base_url": server.url, "http_request_retries": retries}
            store = ts.KvStore.open(spec).result()
            with more() as found:
                store.read("a").result()
        assert found["kvstore/http/read"] == found["kvstore/http/retries"] == 1
        assert found["kvstore/http/bytes_read"] == 10
        assert found["http/request_started"] == found["http/request_completed"] == 2
        assert numbers()["/tensorstore/http/active"] == 0
        (codes,) = ts.experimental_collect_matching_metrics("/tensorstore/http/response_codes")
        assert {"503", "200"} <= {each["code"] for each in codes["values"]}

    def test_metrics_are_pushed(self):
        def handle(request):
            pushed.append(request)
            return Reply(202)

        pushed: list[Any] = []
        server = FaultServer(handle)
        with server.running():
            future = ts.experimental_push_metrics_to_prometheus(
                server.url + "/", "a job", "one", "/tensorstore/http/"
            )
            assert future.result() == 202
        (request,) = pushed
        assert request.method == "PUT"
        assert request.target == "/metrics/job@base64/YSBqb2I=/instance/one"
        assert b"\ntensorstore_http_request_started " in request.body

    def test_what_cannot_be_pushed(self):
        for gateway, job in (("", "job"), ("ftp://x/", "job"), ("http://x/", "")):
            with pytest.raises(ts.SpecError):
                ts.experimental_push_metrics_to_prometheus(gateway, job)
        future = ts.experimental_push_metrics_to_prometheus("http://127.0.0.1:1/", "job")
        with pytest.raises(ts.UnavailableError, match="cannot push metrics"):
            future.result()


class TestForms:
    def test_names_with_a_prefix_in_order_and_without_zeros(self):
        ts.KvStore.open("memory://").result().write("a", b"1").result()
        found = ts.experimental_collect_matching_metrics("/tensorstore/kvstore/mem")
        names = [metric["name"] for metric in found]
        assert names == sorted(names)
        assert f"{STORE}memory/write" in names
        assert all(name.startswith("/tensorstore/kvstore/mem") for name in names)
        every = ts.experimental_collect_matching_metrics("", include_zero_metrics=True)
        assert len(every) > len(ts.experimental_collect_matching_metrics())
        assert json.loads(json.dumps(every)) == every
        assert ts.experimental_collect_matching_metrics("/nowhere/") == []

    def test_a_histogram(self):
        sizes = histogram("/form/sizes", "sizes")
        for size in (0, 3, 3.5, 1000):
            sizes.note(size)
        (found,) = ts.experimental_collect_matching_metrics("/form/sizes")
        (value,) = found["values"]
        assert value.pop("sum_of_squared_deviation") == pytest.approx(np.var([0, 3, 3.5, 1000]) * 4)
        assert value.pop("mean") == pytest.approx(251.625)
        assert value == {
            "count": 4, "0": 0, "1": 1, "2": 0, "4": 2, "8": 0, "16": 0, "32": 0, "64": 0,
            "128": 0, "256": 0, "512": 0, "1024": 1,
        }  # fmt: skip

    def test_the_text_format_of_prometheus(self):
        sizes = histogram("/text/sizes", 'a "help" \\ of\ntwo lines', "bytes")
        for size in (1, 3, 2**70):
            sizes.note(size)
        lines = ts.experimental_collect_prometheus_format_metrics("/text/")
        assert lines[:3] == [
            '# HELP text_sizes a "help" \\\\ of\\ntwo lines',
            "# UNIT text_sizes bytes",
            "# TYPE text_sizes histogram",
        ]
        assert lines[3:8] == [
            'text_sizes_bucket{le="0"} 0', 'text_sizes_bucket{le="1"} 0',
            'text_sizes_bucket{le="2"} 1', 'text_sizes_bucket{le="4"} 2',
            'text_sizes_bucket{le="+Inf"} 3',
        ]  # fmt: skip
        assert lines[-1] == "text_sizes_count 3"

    def test_all_of_it_is_valid(self):
        ts.KvStore.open("memory://").result().write("a", b"1").result()
        check_exposition(ts.experimental_collect_prometheus_format_metrics())


SAMPLE = re.compile(
    r'([a-zA-Z_:][\w:]*)((?:\{[a-z_]+="[^"\\\n]*"(?:,[a-z_]+="[^"\\\n]*")*\})?) (\S+)'
)


def check_exposition(lines):
    """The rules of the text format: each family once, typed before its samples, buckets add up."""
    types: dict[str, str] = {}
    seen = set()
    buckets: dict[str, list[tuple[float, float]]] = {}
    current = ""
    for line in lines:
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            assert name not in types, name
            assert kind in ("counter", "gauge", "histogram")
            types[name], current = kind, name
            continue
        if line.startswith(("# HELP ", "# UNIT ")):
            continue
        found = SAMPLE.fullmatch(line)
        assert found is not None, line
        name, labels, value = found.groups()
        float(value)
        assert (name, labels) not in seen, line
        seen.add((name, labels))
        family = re.sub("_(bucket|sum|count)$", "", name) if types[current] == "histogram" else name
        assert family == current, line
        if name.endswith("_bucket"):
            limit = float(labels.rpartition('le="')[2].rstrip('"}'))
            buckets.setdefault(family, []).append((limit, float(value)))
    assert types
    for each in buckets.values():
        assert each == sorted(each)
        assert [count for _, count in each] == sorted(count for _, count in each)
        assert each[-1][0] == float("inf")


class TestThreadsAndProcesses:
    def test_no_note_of_any_thread_is_lost(self):
        noted = counter("/threads/noted", "notes")

        def work():
            for _ in range(5000):
                noted.note(1)
                if not _ % 1000:
                    numbers("/threads/")

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert numbers("/threads/") == {"/threads/noted": 20000}

    def test_a_child_begins_at_zero(self):
        printed = run_script(
            FORK
            + """
import tensorstore_py as ts

def written():
    found = ts.experimental_collect_matching_metrics("/tensorstore/kvstore/memory/write", True)
    return found[0]["values"][0]["value"]

store = ts.KvStore.open("memory://").result()
for key in "abc":
    store[key] = b"1"
def child():
    before = written()
    store["d"] = b"1"
    print(before, written())
in_child(child)
print(written())
"""
        )
        assert printed.split() == ["0", "1", "3"]


PROGRAM = """
import json, sys, importlib, numpy as np
ts = importlib.import_module(sys.argv[1])
place = sys.argv[2]
store = ts.KvStore.open(f"file://{place}/values/").result()
for key in "abc":
    store.write(key, b"0123456789").result()
store.write("a", b"x", if_equal=b"no such").result()
store.read("a").result(); store.read("missing").result(); store.list().result()
store.write("a", None).result(); store.delete_range(ts.KvStore.KeyRange()).result()
spec = {"driver": "zarr", "kvstore": f"file://{place}/array/", "metadata": {
    "shape": [4, 4], "chunks": [2, 2], "dtype": "<i4", "compressor": None}}
array = ts.open(spec, create=True).result()
array.write(np.arange(16, dtype="<i4").reshape(4, 4)).result()
context = ts.Context({"cache_pool": {"total_bytes_limit": 100000}})
array = ts.open(spec, open=True, context=context, recheck_cached_metadata="open").result()
for _ in range(3):
    array.read().result()
database = ts.KvStore.open({"driver": "ocdbt", "base": f"file://{place}/database/"}).result()
database.write("a", b"1" * 10).result(); database.write("b", b"2" * 3000).result()
database.read("a").result(); database.list().result()
names = [f"/tensorstore/kvstore/file/{name}" for name in (
    "write", "bytes_written", "list", "delete_range")] + [
    f"/tensorstore/kvstore/ocdbt/{name}" for name in (
    "read", "write", "list", "indirect_data_write_size")] + [
    f"/tensorstore/cache/{name}" for name in (
    "chunk_cache/reads", "chunk_cache/writes", "hit_count")]
every = ts.experimental_collect_matching_metrics("", True)
found = {each["name"]: each["values"] for each in every}
print(json.dumps({name: found[name] for name in names}))
"""


@pytest.mark.skipif(find_spec("tensorstore") is None, reason="needs the reference")
def test_the_reference_counts_the_same(tmp_path):
    found = {}
    for package in "tensorstore", "tensorstore_py":
        (tmp_path / package).mkdir()
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, package, tmp_path / package],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        found[package] = json.loads(done.stdout)
    ours, theirs = found["tensorstore_py"], found["tensorstore"]
    # What they store of a database differs by how many versions there are, since these have times.
    sizes = [
        each.pop("/tensorstore/kvstore/file/bytes_written")[0]["value"] for each in (ours, theirs)
    ]
    assert sizes[0] == pytest.approx(sizes[1], abs=200)
    assert ours == theirs
