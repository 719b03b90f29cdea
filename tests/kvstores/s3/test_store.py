import math
import tracemalloc

import pytest

import tensorstore_py as ts
from tensorstore_py.plugin.kvstore import ByteRange, KvStore
from tensorstore_py.testing import KvStoreSuite, Reply
from tests.internals import RateLimiter
from tests.kvstores.s3.fake_s3 import FakeS3
from tests.runtime.processes import start


class TestStore(KvStoreSuite):
    bad_keys = ("x" * 1025, "\udcff", "é" * 513)

    @pytest.fixture
    def store(self, serve, open_store) -> KvStore:
        return open_store(serve(FakeS3(page=3).handle).url).store


class TestStoreOfOneWriter(KvStoreSuite):
    """A server without conditional writes; within one process the store keeps order itself."""

    @pytest.fixture
    def store(self, serve, open_store) -> KvStore:
        server = serve(FakeS3(conditions="refused", batches=False).handle)
        return open_store(server.url, use_conditional_write=False).store


@pytest.fixture
def fake():
    return FakeS3()


@pytest.fixture
def server(serve, fake):
    return serve(fake.handle)


@pytest.fixture
def store(server, open_store):
    return open_store(server.url, use_conditional_write=True)


def test_the_generation_is_the_references(fake, store):
    stored = fake.put("a", b"1")

    assert store.read("a").result().stamp.generation == b"\x00" + stored.etag.encode()


def test_a_value_of_no_bytes(fake, store):
    stored = fake.put("a", b"")
    generation = b"\x00" + stored.etag.encode()

    for wanted in (slice(0, 0), slice(0, None)):
        found = store.read("a", byte_range=wanted).result()
        assert (found.state, found.value, found.stamp.generation) == ("value", b"", generation)
    for outside in (slice(-1, None), slice(1, None), slice(0, 1)):
        with pytest.raises(ts.OutOfRangeError):
            store.read("a", byte_range=outside).result()


def test_a_read_is_one_request_and_so_is_a_write(store, server):
    store["a"] = b"12345"
    store.read("a").result()
    store.read("a", byte_range=slice(1, 3)).result()
    store.write("a", None).result()

    assert [request.method for request in server.requests] == ["PUT", "GET", "GET", "DELETE"]
    assert server.requests[2].headers["range"] == "bytes=1-2"


def test_ranges_that_lie_close_are_one_request(fake, store, server):
    fake.put("a", bytes(range(256)) * 100)
    ranges = [ByteRange(0, 10), ByteRange(4000, 4010), ByteRange(20000, 20001)]

    found = store.store.read_ranges("a", ranges)
    results = ts_result(found)

    assert [len(result.value) for result in results] == [10, 10, 1]
    assert len(server.requests) == 2


def ts_result(body):
    return start(False, lambda: body).result(timeout=60)


def test_a_listing_begins_with_the_range_and_ends_with_it(fake, open_store, serve):
    fake.page = 10
    for number in range(100):
        fake.put(f"c/{number:02}", b"1")
    server = serve(fake.handle)
    store = open_store(server.url)

    found = store.list(ts.KvStore.KeyRange("c/40", "c/45")).result()

    assert sorted(found) == [b"c/40", b"c/41", b"c/42", b"c/43", b"c/44"]
    assert len(server.requests) == 1
    assert len(store.list(ts.KvStore.KeyRange("c/")).result()) == 100


def test_a_listing_holds_one_page_at_a_time(serve, open_store):
    """A bucket without end: what a page takes is all that many pages take."""
    items = "".join(f"<Contents><Key>{{0}}/{n:03}</Key></Contents>" for n in range(1000))

    def handle(request):
        number = int(request.target.partition("continuation-token=")[2].partition("&")[0] or 0)
        body = (
            f"<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>{number + 1}"
            f"</NextContinuationToken>{items.format(number)}</ListBucketResult>"
        )
        return Reply(200, body.encode())

    store = open_store(serve(handle).url).store

    async def count(keys):
        seen, peaks = 0, []
        async for _ in store.list():
            seen += 1
            if seen % 1000 == 999:
                peaks.append(tracemalloc.get_traced_memory()[0])
            if seen == keys:
                break
        return peaks

    tracemalloc.start()
    try:
        peaks = ts_result(count(10_000))
    finally:
        tracemalloc.stop()

    assert len(peaks) == 10
    assert max(peaks[3:]) < 1.5 * max(peaks[:3])


def test_nothing_is_asked_about_an_empty_range(store, server):
    assert store.list(ts.KvStore.KeyRange("b", "a")).result() == []
    assert server.requests == []


def test_no_value_has_a_generation_of_another_store(fake, store, server):
    fake.put("a", b"1")

    assert store.write("a", b"2", if_equal=b"\x00elsewhere").result().generation == b""
    assert server.requests == []
    assert math.isfinite(store.write("a", b"2", if_equal=b"x").result().time)


def test_the_rates_of_the_resource_are_kept(server, open_store, monkeypatch):
    waits = []

    async def turn(self):
        waits.append(self.per_second)

    monkeypatch.setattr(RateLimiter, "acquire", turn)
    store = open_store(server.url, experimental_s3_rate_limiter={"read_rate": 5, "write_rate": 7})

    store["a"] = b"1"
    store.read("a").result()
    store.list().result()

    assert waits == [7, 5, 5]


def test_secrets_are_in_no_message(serve, open_store):
    store = open_store(serve(FakeS3("another").handle).url)

    with pytest.raises(ts.NotFoundError) as caught:
        store.read("a").result()

    for text in (str(caught.value), repr(store), str(store.spec(unbind_context=True).to_json())):
        assert "do-not-print-me" not in text


def test_copies_are_the_servers(fake, store, server):
    fake.put("from/a b", b"1")
    fake.put("from/c", b"2")

    (store / "from/").experimental_copy_range_to(store / "to/").result()

    assert {key: one.body for key, one in fake.values.items() if key.startswith("to/")} == {
        "to/a b": b"1", "to/c": b"2"
    }  # fmt: skip
    assert sorted(request.method for request in server.requests) == ["GET", "PUT", "PUT"]
    assert {request.body for request in server.requests} == {b""}


def test_what_the_server_does_not_copy_is_read_and_written(fake, store, server):
    from tensorstore_py.testing.fault_server import status

    fake.put("from/a", b"1")
    refused = status(403)
    server.plan = lambda one: refused if "x-amz-copy-source" in one.headers else None

    (store / "from/").experimental_copy_range_to(store / "to/").result()

    assert fake.values["to/a"].body == b"1"


def test_copies_between_services_go_through_here(fake, store, serve, open_store):
    fake.put("from/a", b"1")
    other = FakeS3()
    there = open_store(serve(other.handle).url)
    memory = ts.KvStore.open("memory://").result()

    (store / "from/").experimental_copy_range_to(there / "to/").result()
    (store / "from/").experimental_copy_range_to(memory).result()

    assert other.values["to/a"].body == b"1"
    assert memory["a"] == b"1"


def test_what_went_away_before_it_was_copied_is_no_error(fake, store, server):
    fake.put("from/a", b"1")

    def plan(request):
        if request.method == "PUT":
            fake.values.clear()

    server.plan = plan
    (store / "from/").experimental_copy_range_to(store / "to/").result()

    assert fake.values == {}
