import asyncio
import gzip
import json
import os
import threading
from collections import Counter
from dataclasses import replace
from itertools import count
from urllib.parse import parse_qs, urlsplit
from urllib.request import Request, urlopen

import pytest

import tensorstore_py as ts
from tensorstore_py.errors import (
    AbortedError,
    DataLossError,
    FailedPreconditionError,
    NotFoundError,
    OutOfRangeError,
    UnavailableError,
)
from tensorstore_py.kvstores.gcs import GcsStore
from tensorstore_py.kvstores.gcs.own_writes import ObjectThrottle
from tensorstore_py.kvstores.gcs.uploads import MARK, new_mark
from tensorstore_py.plugin.kvstore import (
    NO_VALUE,
    UNKNOWN,
    ByteRange,
    KeyRange,
    ReadModifyWrite,
    conditional_update,
)
from tensorstore_py.testing import CountedWaits, Fault, FaultServer, KvStoreSuite, Reply, drive
from tensorstore_py.testing.fault_server import RESET, applied_then, flipped, shortened, status

TESTBENCH = os.environ.get("TENSORSTORE_PY_TESTBENCH", "")


class TestSuite(KvStoreSuite):
    bad_keys = ("", ".", "..", "a\nb", "\x7f", "x" * 1025, ".well-known/acme-challenge/x", "\udcff")

    @pytest.fixture
    def store(self, store):
        return store


class TestSuiteInSessions(KvStoreSuite):
    """The same with every value in an upload session."""

    @pytest.fixture
    def store(self, store):
        store._large_bytes = 0
        return store


if TESTBENCH:

    class TestSuiteOnTestbench(KvStoreSuite):
        """The same on Google's own test service, where its URL is known."""

        @pytest.fixture
        def store(self, monkeypatch):
            monkeypatch.setenv("STORAGE_EMULATOR_HOST", TESTBENCH)
            bucket = f"bucket-{os.urandom(6).hex()}"
            asked = Request(
                f"{TESTBENCH}/storage/v1/b?project=p",
                json.dumps({"name": bucket}).encode(),
                {"Content-Type": "application/json"},
            )
            with urlopen(asked, timeout=30):
                return ts.KvStore.open(f"gs://{bucket}/").result().store


def queries(server, method="GET"):
    return [
        parse_qs(urlsplit(each.target).query) for each in server.requests if each.method == method
    ]


class TestReading:
    def test_is_one_request(self, server, kv):
        server.put("a", b"0123456789")
        store = kv()

        assert store["a"] == b"0123456789"
        assert store.read("a", byte_range=slice(2, 5)).result().value == b"234"
        assert "a" in store
        assert store.read("b").result().state == "missing"

        assert len(server.requests) == 4

    def test_no_cache_may_answer(self, server, kv):
        store = kv()
        for _ in range(3):
            store.read("a").result()

        assert len({query["tensorstore"][0] for query in queries(server)}) == 3

    def test_a_condition_is_the_services(self, server, kv):
        number = server.put("a", b"1")
        store = kv()
        generation = store.read("a").result().stamp.generation

        store.read("a", if_not_equal=generation).result()

        assert generation == b"\0" + number.to_bytes(8, "little")
        assert queries(server)[1]["ifGenerationNotMatch"] == [str(number)]

    def test_neighbouring_parts_are_fetched_together(self, server, store):
        server.put("a", bytes(range(256)) * 100)
        ranges = [ByteRange(0, 10), ByteRange(100, 200), ByteRange(20000, 20010)]

        results = drive(store, lambda: store.read_ranges("a", ranges))

        assert [len(result.value) for result in results] == [10, 100, 10]
        assert len(server.requests) == 2

    def test_parts_are_of_one_generation(self, server, store):
        server.put("a", b"1" * 20000)

        async def overwrite(exchange):
            await exchange.answer(exchange.serve())
            server.put("a", b"2" * 20000)
            return True

        server.plan = [Fault("replaced", overwrite)]

        results = drive(
            store, lambda: store.read_ranges("a", [ByteRange(0, 5), ByteRange(19000, 19005)])
        )

        assert [bytes(result.value) for result in results] == [b"22222", b"22222"]

    def test_a_range_of_a_value_that_grew_meanwhile(self, server, store):
        server.put("a", b"0123")

        async def grow(exchange):
            await exchange.answer(exchange.serve())
            server.put("a", b"0123456")
            return True

        server.plan = [Fault("grown", grow)]

        result = drive(store, lambda: store.read("a", ByteRange(4)))

        assert bytes(result.value) == b"456"

    def test_a_range_outside_is_an_error_with_a_name(self, server, kv):
        server.put("a", b"0123")

        for wanted in (slice(2, 9), slice(9, 9), slice(-9, None)):
            with pytest.raises(OutOfRangeError, match=r'read "gs://bucket/a"'):
                kv().read("a", byte_range=wanted).result()

    def test_flipped_bits_never_come_through(self, server, kv):
        server.put("a", b"0123456789")
        server.plan = [flipped(5)]
        assert kv()["a"] == b"0123456789"

        server.plan = lambda _: flipped(5)
        with pytest.raises(DataLossError, match=r'read "gs://bucket/a".*crc32c'):
            kv().read("a").result()

    def test_what_was_stored_packed_is_read_unpacked(self, server, kv):
        packed = gzip.compress(b"0123456789")
        server.api.buckets.put("bucket", "a", packed, {"contentEncoding": "gzip"}, {})

        assert kv()["a"] == b"0123456789"
        assert kv().read("a", byte_range=slice(2, 5)).result().value == b"234"

    def test_a_server_without_generations_is_no_service(self, server, kv):
        server.plan = lambda _: status(200, body=b"value")

        with pytest.raises(FailedPreconditionError, match="x-goog-generation"):
            kv().read("a").result()
        with pytest.raises(DataLossError, match="gs://bucket/a"):
            kv().write("a", b"1").result()

    def test_a_server_that_says_nothing_sensible(self, server, kv):
        server.plan = lambda _: status(200, body=b"{}")

        with pytest.raises(DataLossError, match="generation"):
            kv().read("a", byte_range=slice(0, 0)).result()
        with pytest.raises(DataLossError, match="generation"):
            kv().write("a", b"1").result()


class TestWriting:
    def test_is_one_request_with_a_checksum(self, server, kv):
        kv()["a"] = b"123456789"

        assert len(server.requests) == 1
        assert b'"crc32c": "4waSgw=="' in server.requests[0].body
        assert server.objects() == {"a": b"123456789"}

    def test_what_is_damaged_on_its_way_is_sent_again(self, server, kv):
        async def damage(exchange):
            request = exchange.request
            body = request.body.replace(b"value", b"vxlue")
            await exchange.answer(server.api.handle(type(request)(
                request.method, request.target, request.headers, body
            )))  # fmt: skip
            return True

        server.plan = [Fault("damaged", damage)]

        kv()["a"] = b"value"

        assert server.objects() == {"a": b"value"}
        assert len(server.requests) == 2

    def test_only_conditional_writes_leave_a_mark(self, server, kv):
        store = kv()
        store["a"] = b"1"
        store.write("b", b"2", if_equal=NO_VALUE).result()

        described = {
            name: "metadata" in stored.resource
            for name, stored in server.api.buckets.bucket("bucket").objects.items()
        }
        assert described == {"a": False, "b": True}

    def test_generations_of_others_hold_nowhere(self, server, store):
        async def body():
            return [await store.write("a", value, if_equal=b"\0abc") for value in (b"1", None)]

        assert [stamp.generation for stamp in drive(store, body)] == [UNKNOWN, UNKNOWN]
        assert server.requests == []

    def test_a_bucket_that_is_not_there_is_named(self, server, kv):
        store = kv(bucket="nowhere")

        with pytest.raises(NotFoundError, match=r'write "gs://nowhere/a".*bucket'):
            store.write("a", b"1").result()
        with pytest.raises(NotFoundError, match=r'list "gs://nowhere/" at http.*does not exist'):
            store.list().result()
        with pytest.raises(NotFoundError, match=r'list "gs://nowhere/a/"'):
            (store / "a/").list().result()


class _Append(ReadModifyWrite):
    """Adds a byte; counts how often."""

    def __init__(self):
        self.made = 0

    async def apply(self, stored):
        self.made += 1
        return bytes(stored or b"") + b"x"


LOST = [RESET, status(503), status(500)]


class TestLostAnswers:
    @pytest.mark.parametrize("fault", LOST, ids=repr)
    def test_a_create_that_succeeded_is_a_success(self, server, kv, fault):
        server.plan = [applied_then(fault)]
        store = kv()

        stamp = store.write("a", b"1", if_equal=NO_VALUE).result()

        found = store.read("a").result()
        assert (found.value, found.stamp.generation) == (b"1", stamp.generation)

    @pytest.mark.parametrize("fault", LOST, ids=repr)
    def test_a_replacement_that_succeeded_is_a_success(self, server, kv, fault):
        store = kv()
        before = store.write("a", b"1").result().generation
        server.plan = [applied_then(fault)]

        stamp = store.write("a", b"2", if_equal=before).result()

        assert store.read("a").result().stamp.generation == stamp.generation != before

    def test_an_equal_value_of_somebody_else_is_not_ours(self, server, kv):
        async def overtake(exchange):
            # As another process would: conditional, with a mark of its own.
            described = {"metadata": {MARK: new_mark(0)}}
            server.api.buckets.put("bucket", "a", b"same", described, {})
            return await RESET.act(exchange)

        store = kv()
        server.plan = [Fault("overtaken, then reset", overtake)]

        stamp = store.write("a", b"same", if_equal=NO_VALUE).result()

        assert stamp.generation == UNKNOWN

    @pytest.mark.parametrize("fault", LOST, ids=repr)
    def test_what_was_there_long_before_is_not_ours(self, server, kv, fault):
        server.put("a", b"old")
        objects = server.api.buckets.bucket("bucket").objects
        objects["a"] = replace(objects["a"], created=objects["a"].created - 60)
        server.plan = [fault]

        stamp = kv().write("a", b"1", if_equal=NO_VALUE).result()

        assert stamp.generation == UNKNOWN
        assert server.objects() == {"a": b"old"}

    def test_what_cannot_be_known_is_not_guessed(self, server, kv):
        async def overwrite(exchange):
            exchange.serve()
            server.put("a", b"later")
            return await RESET.act(exchange)

        server.plan = [Fault("applied, replaced, reset", overwrite)]

        with pytest.raises(AbortedError, match=r'whether "gs://bucket/a" was written'):
            kv().write("a", b"1", if_equal=NO_VALUE).result()

    def test_an_array_is_written_all_the_same(self, server, kv):
        async def overwrite(exchange):
            reply = exchange.serve()
            if reply.status == 200:
                server.put("c/0", b"\7\7\7\7")
            return await RESET.act(exchange)

        array = ts.open(
            {"driver": "zarr3", "kvstore": kv().spec(unbind_context=True).to_json()},
            create=True, dtype="uint8", shape=[4],
            codec=ts.CodecSpec({"driver": "zarr3", "codecs": ["bytes"]}),
        ).result()  # fmt: skip
        uploads = iter(range(10))
        server.plan = lambda request: (
            Fault("applied, replaced, reset", overwrite)
            if request.method == "POST" and next(uploads) < 2
            else None
        )

        array[1:3] = 5

        assert server.objects()["c/0"] == b"\7\5\5\7"

    @pytest.mark.parametrize("look", ["value", "part", "nothing", "unchanged"])
    def test_a_server_that_counts_generations_anew_is_written_to(self, server, kv, look):
        store = kv()
        first = store.write("a", b"1").result().generation
        objects = server.api.buckets.bucket("bucket").objects
        at_first = objects["a"]
        store.write("a", b"2", if_equal=first).result()
        objects["a"] = at_first  # as an emulator is after a restart
        arguments = {
            "value": {},
            "part": {"byte_range": slice(0, 1)},
            "nothing": {"byte_range": slice(0, 0)},
            "unchanged": {"if_not_equal": first},
        }[look]

        store.read("a", **arguments).result()
        stamp = store.write("a", b"3", if_equal=first).result()

        assert stamp.generation != UNKNOWN
        assert server.objects() == {"a": b"3"}

    def test_an_update_where_generations_are_counted_anew_takes_few_requests(self, server, kv):
        store = kv()
        first = store.write("a", b"1").result().generation
        objects = server.api.buckets.bucket("bucket").objects
        at_first = objects["a"]
        store.write("a", b"2", if_equal=first).result()
        objects["a"] = at_first
        server.requests.clear()

        with CountedWaits():
            drive(store.store, lambda: conditional_update(store.store, "a", _Append()))

        assert len(server.requests) <= 4

    def test_in_the_end_the_outcome_is_reported_as_unknown(self, server, kv):
        async def overwrite(exchange):
            reply = exchange.serve()
            if reply.status != 200:
                await exchange.answer(reply)
                return True
            server.put("a", b"later")
            return await RESET.act(exchange)

        server.plan = lambda each: Fault("lost", overwrite) if each.method == "POST" else None
        change = _Append()

        with pytest.raises(AbortedError, match="gs://bucket/a"):
            drive(kv().store, lambda: conditional_update(kv().store, "a", change))

        assert change.made == 9

    def test_a_cancelled_writer_lets_the_next_one_in(self, server, kv):
        arrived = threading.Event()

        async def forever(_):
            arrived.set()
            await asyncio.Event().wait()
            return False

        server.plan = [Fault("hang", forever)]
        store = kv()
        hanging = store.write("a", b"1", if_equal=NO_VALUE)
        assert arrived.wait(60)
        following = store.write("a", b"2", if_equal=NO_VALUE)

        hanging.cancel()

        assert following.result(timeout=60).generation != UNKNOWN

    @pytest.mark.parametrize("size", [10**5, 3 * 10**6])
    def test_values_of_any_size(self, server, kv, size):
        kv()["a"] = bytes(size)

        assert server.objects() == {"a": bytes(size)}

    @pytest.mark.parametrize("fault", LOST, ids=repr)
    def test_a_delete_that_succeeded_is_a_success(self, server, kv, fault):
        store = kv()
        before = store.write("a", b"1").result().generation
        server.plan = [applied_then(fault)]

        assert store.write("a", None, if_equal=before).result().generation == NO_VALUE
        assert server.objects() == {}

    @pytest.mark.parametrize("fault", LOST, ids=repr)
    def test_an_array_that_was_created_is_open(self, server, fault):
        server.plan = [None, applied_then(fault)]
        spec = {
            "driver": "zarr3",
            "kvstore": {
                "driver": "gcs",
                "bucket": "bucket",
                "gcs_request_retries": {"initial_delay": "1ms"},
            },
        }

        array = ts.open(spec, create=True, dtype="uint8", shape=[4]).result()

        assert array.shape == (4,)

    @pytest.mark.parametrize("fault", LOST, ids=repr)
    def test_writers_lose_and_double_nothing_when_answers_are_lost(self, server, kv, fault):
        stores = [kv().store for _ in range(4)]
        drive(stores[0], lambda: stores[0].write("n", b""))
        number = iter(range(10**6))
        server.plan = lambda request: (
            applied_then(fault) if request.method == "POST" and next(number) % 5 == 3 else None
        )

        async def add(name):
            store = stores[name % 4]
            while True:
                found = await store.read("n")
                names = bytes(found.value) + b" %d" % name
                stamp = await store.write("n", names, if_equal=found.stamp.generation)
                if stamp.generation != UNKNOWN:
                    return

        async def body():
            await asyncio.gather(*(add(name) for name in range(40)))
            return bytes((await stores[0].read("n")).value)

        names = drive(stores[0], body).split()
        assert sorted(map(int, names)) == list(range(40))


class TestListing:
    def test_goes_page_by_page(self, server, store, monkeypatch):
        for number in range(2500):
            server.put(f"k/{number:04}", b"")
        seen: list[str] = []
        pages: Counter[int] = Counter()

        async def body():
            async for entry in store.list(KeyRange.prefix("k/")):
                pages[len(server.requests)] += 1
                seen.append(entry.key)

        drive(store, body)

        assert seen == [f"k/{number:04}" for number in range(2500)]
        assert pages == {1: 1000, 2: 1000, 3: 500}

    def test_asks_the_service_for_the_range(self, server, store):
        for key in ("a", "b/1", "b/2", "c"):
            server.put(key, b"")

        async def body():
            return [entry.key async for entry in store.list(KeyRange(b"b/2", b"c"))]

        assert drive(store, body) == ["b/2"]
        assert queries(server)[0]["startOffset"] == ["b/2"]
        assert queries(server)[0]["endOffset"] == ["c"]

    def test_a_service_that_goes_in_circles_is_left(self, kv, monkeypatch):
        page = b'{"items": [], "nextPageToken": "again"}'
        with FaultServer(lambda _: Reply(200, page)).running() as url:
            monkeypatch.setenv("TENSORSTORE_GCS_HTTP_URL", url)
            with pytest.raises(DataLossError, match="without an end"):
                kv().list().result()

    def test_an_empty_range_is_not_asked_for(self, server, store):
        drive(store, lambda: store.delete_range(KeyRange(b"b", b"a")))

        assert server.requests == []


def test_a_range_is_deleted_with_so_many_requests_at_a_time(server, kv):
    for number in range(40):
        server.put(f"k/{number}", b"")
    inside, most = 0, 0

    async def count(exchange):
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0.001)
        inside -= 1
        await exchange.answer(exchange.serve())
        return True

    server.plan = lambda request: Fault("counted", count) if request.method == "DELETE" else None

    kv(gcs_request_concurrency={"limit": 5}).delete_range(ts.KvStore.KeyRange("k/", "k0")).result()

    assert server.objects() == {}
    assert most == 5


def test_what_others_called_oddly_is_deleted_too(server, kv):
    server.api.buckets.put("bucket", "k/\t", b"", {}, {})

    kv().delete_range(ts.KvStore.KeyRange()).result()

    assert server.objects() == {}


class TestCopying:
    def test_moves_no_bytes_through_here(self, server, kv):
        server.make_bucket("other")
        for number in range(5):
            server.put(f"from/{number}", b"x" * 1000)

        (kv() / "from/").experimental_copy_range_to(kv(bucket="other") / "to/").result()

        assert server.objects("other") == {f"to/{number}": b"x" * 1000 for number in range(5)}
        assert all(len(each.body) == 0 for each in server.requests)
        assert [each.method for each in server.requests] == ["GET", *["POST"] * 5]

    def test_goes_on_until_it_is_done(self, store, server, monkeypatch):
        answers = [
            b'{"done": false, "rewriteToken": "t&1"}',
            b'{"done": false, "rewriteToken": "t&2"}',
            b'{"done": true}',
        ]
        server.plan = [status(200, body=answer) for answer in answers]

        assert drive(store, lambda: store.copy_to("a", store, "b"))
        assert [query.get("rewriteToken") for query in queries(server, "POST")] == [
            None, ["t&1"], ["t&2"]
        ]  # fmt: skip

    @pytest.mark.parametrize("code", [404, 405, 501])
    def test_where_the_service_cannot_we_do(self, server, kv, code):
        server.put("a", b"1")
        server.plan = lambda each: status(code) if "rewriteTo" in each.target else None

        kv().experimental_copy_range_to(kv() / "to/").result()

        assert server.objects() == {"a": b"1", "to/a": b"1"}

    def test_other_stores_are_no_concern_of_the_service(self, server, kv):
        server.put("a", b"1")
        target = ts.KvStore.open("memory://").result()

        kv().experimental_copy_range_to(target).result()

        assert target["a"] == b"1"


class TestWhoPays:
    def test_every_request_says_it(self, server, kv):
        server.make_bucket("paid", requester_pays=True)
        store = kv(bucket="paid", gcs_user_project={"project_id": "my-project"})

        store["a"] = b"1"
        assert store["a"] == b"1"
        assert "a" in store
        store.experimental_copy_range_to(store / "to/").result()
        store.delete_range(ts.KvStore.KeyRange()).result()

        assert server.objects("paid") == {}
        assert {query["userProject"][0] for query in queries(server)} == {"my-project"}

    def test_no_project_pays_by_default(self, server, kv):
        server.make_bucket("paid", requester_pays=True)

        with pytest.raises(FailedPreconditionError, match="requester pays"):
            kv(bucket="paid").read("a").result()


class TestLimits:
    def test_writes_of_a_busy_object_are_paced(self, server, kv, monkeypatch):
        monkeypatch.setattr(ObjectThrottle, "GAP_S", 0.02)
        server.api.buckets.pace_s = 0.015
        store = kv(gcs_request_retries={"max_retries": 32, "initial_delay": "1ms"})

        for future in [store.write("a", b"%d" % number) for number in range(8)]:
            future.result()

        # A refused write waits for a turn; without turns it would take hundreds of requests.
        assert len(server.requests) < 30

    def test_rates_hold(self, server, kv, monkeypatch):
        clock, slept = [0.0], []
        waited = asyncio.sleep

        async def sleep(seconds):
            slept.append(seconds)
            clock[0] += seconds
            await waited(0)

        monkeypatch.setattr("time.monotonic", lambda: clock[0])
        monkeypatch.setattr(asyncio, "sleep", sleep)
        limits = ts.Context({"experimental_gcs_rate_limiter": {"read_rate": 4, "write_rate": 2}})
        store = ts.KvStore.open(
            {"driver": "gcs", "bucket": "bucket",
             "experimental_gcs_rate_limiter": "experimental_gcs_rate_limiter"},
            context=limits,
        ).result()  # fmt: skip

        for _ in range(4):
            store.write("a", b"1").result()
        for _ in range(12):
            store.read("a").result()
        store.list().result()

        assert len(server.requests) == 17
        # Four writes at two a second; while they waited, eight reads have become free.
        assert slept == pytest.approx([0.5] * 4 + [0.25] * 5)

    def test_a_cancelled_caller_gives_the_slot_back(self, server, kv):
        arrived = threading.Semaphore(0)

        async def forever(_):
            arrived.release()
            await asyncio.Event().wait()
            return False

        server.put("a", b"1")
        server.plan = [Fault("hang", forever), Fault("hang", forever)]
        store = kv(gcs_request_concurrency={"limit": 2})
        hanging = [store.read("a"), store.read("a")]
        for _ in hanging:
            assert arrived.acquire(timeout=60)
        last = store.read("a")

        for future in hanging:
            future.cancel()

        assert last.result(timeout=60).value == b"1"


def test_arrays_lie_in_a_bucket(server):
    spec = {
        "driver": "zarr3",
        "kvstore": "gs://bucket/array/",
        "metadata": {"shape": [40, 40], "data_type": "uint16"},
        "schema": {
            "chunk_layout": {"read_chunk": {"shape": [5, 5]}, "write_chunk": {"shape": [20, 20]}}
        },
    }
    array = ts.open(spec, create=True).result()

    array[3:17, 8:31] = 7
    again = ts.open("gs://bucket/array/|zarr3:").result()

    assert int(again.read().result().sum()) == 7 * 14 * 23
    assert set(server.objects()) == {"array/zarr.json", "array/c/0/0", "array/c/0/1"}


def test_a_store_is_described_by_its_bucket(store):
    assert isinstance(store, GcsStore)
    assert store.describe_key("a b/é") == '"gs://bucket/a%20b/%C3%A9"'


class TestWholeAnswers:
    """Text that ends early although its length says that it does not, and what never ends."""

    @staticmethod
    def cut(by, times, marker=""):
        left = iter(range(times))
        return lambda each: (
            shortened(by) if marker in each.target and next(left, None) is not None else None
        )

    @pytest.mark.parametrize("by", [1, 20])
    def test_a_listing_that_is_cut_is_asked_for_again(self, server, kv, by):
        server.put("a", b"1")
        server.put("b", b"1")
        server.plan = self.cut(by, 2)

        assert kv().list().result() == [b"a", b"b"]

    def test_and_is_an_error_in_the_end(self, server, kv):
        server.put("a", b"1")
        server.plan = self.cut(1, 100)

        with pytest.raises(DataLossError, match=r"cannot list .*no whole JSON.*attempt 3"):
            kv().list().result()

    @pytest.mark.parametrize("if_equal", [None, NO_VALUE])
    def test_a_write_whose_answer_is_cut_is_one(self, server, kv, if_equal):
        server.plan = self.cut(3, 1, "/upload/")

        stamp = kv().write("a", b"1", if_equal=if_equal).result()

        assert kv().read("a").result().stamp.generation == stamp.generation != UNKNOWN

    def test_an_error_that_is_cut_is_asked_for_again(self, server, kv):
        body = b'{"error": {"message": "no'
        server.plan = [status(403, {"Content-Type": "application/json"}, body)]
        server.put("a", b"1")

        assert kv()["a"] == b"1"

    @pytest.mark.parametrize(
        ("page", "most"),
        [
            (lambda number: {"items": [{"name": f"{number}"}], "nextPageToken": "same"}, 2),
            (lambda number: {"items": [{"name": "a"}], "nextPageToken": f"{number}"}, 2),
            (lambda number: {"nextPageToken": f"{number}"}, 101),
        ],
        ids=["same token", "same page", "empty"],
    )
    def test_a_listing_that_leads_on_and_on_ends(self, monkeypatch, kv, page, most):
        numbers = count()
        endless = FaultServer(lambda _: Reply(200, json.dumps(page(next(numbers))).encode()))
        with endless.running() as url:
            monkeypatch.setenv("TENSORSTORE_GCS_HTTP_URL", url)
            with pytest.raises(DataLossError, match=r"cannot list .*without an end"):
                kv().list().result()

        assert len(endless.requests) <= most

    def test_a_copy_that_gets_nowhere_ends(self, monkeypatch, kv):
        said = {"done": False, "rewriteToken": "t", "totalBytesRewritten": "5"}
        stuck = FaultServer(lambda _: Reply(200, json.dumps(said).encode()))
        with stuck.running() as url:
            monkeypatch.setenv("TENSORSTORE_GCS_HTTP_URL", url)
            store = kv().store
            with CountedWaits(), pytest.raises(UnavailableError, match="no further than 5") as end:
                drive(store, lambda: store.copy_to("a", store, "b"))

        assert end.value.attempts == len(stuck.requests) - 1 == 32

    @pytest.mark.parametrize("code", [204, 304, 412])
    def test_what_was_not_asked_for_is_no_answer(self, server, kv, code):
        server.plan = lambda _: status(code, body=b"")

        for action in (kv().read, lambda key: kv().write(key, b"1")):
            with pytest.raises((DataLossError, FailedPreconditionError), match=f"answered {code}"):
                action("a").result()
