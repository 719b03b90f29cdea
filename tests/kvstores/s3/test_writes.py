import pytest

import tensorstore_py as ts
from tensorstore_py.kvstores.s3 import writes
from tensorstore_py.testing.fault_server import CLOSE, RESET, Fault, applied_then, status
from tests.kvstores.s3.fake_s3 import FakeS3


@pytest.fixture(autouse=True)
def _nothing_known(monkeypatch):
    monkeypatch.setattr(writes, "_known", {})


@pytest.fixture
def start(serve, open_store):
    """A bucket whose server treats conditions in some way, and a store on it."""

    def start(kind, **members):
        fake = FakeS3(conditions=kind)
        server = serve(fake.handle)
        return fake, server, open_store(server.url, **members)

    return start


def methods(server):
    return [request.method for request in server.requests]


@pytest.mark.parametrize("kind", ["heeded", "unquoted"])
def test_what_a_server_heeds_is_tried_out_once_and_leaves_nothing(start, kind):
    fake, server, store = start(kind)

    first = store.write("a", b"1", if_equal=b"\x02").result()
    second = store.write("a", b"2", if_equal=first.generation).result()
    third = store.write("a", b"3", if_equal=second.generation).result()
    stale = store.write("a", b"4", if_equal=second.generation).result()

    assert stale.generation == b""
    assert store["a"] == b"3"
    assert third.generation == store.read("a").result().stamp.generation
    assert set(fake.values) == {"a"}
    tries = [one for one in server.requests if "condition-test" in one.target]
    assert len(tries) == 1


def test_a_server_that_wants_no_quotes_is_found_out_once(start):
    _, server, store = start("unquoted", use_conditional_write=True)
    generation = store.write("a", b"1").result().generation
    for number in (b"2", b"3"):
        generation = store.write("a", number, if_equal=generation).result().generation
        assert generation

    assert methods(server) == ["PUT", "PUT", "GET", "PUT", "PUT"]


def test_a_server_that_is_known_to_want_quotes_is_believed_a_refusal(start):
    _, server, store = start("heeded", use_conditional_write=True)
    generation = store.write("a", b"1").result().generation
    store.write("a", b"2", if_equal=generation).result()

    assert store.write("a", b"3", if_equal=generation).result().generation == b""
    assert methods(server) == ["PUT", "PUT", "PUT"]


def test_a_stale_generation_is_refused_whatever_the_quotes(start):
    for kind in ("heeded", "unquoted"):
        _, _, store = start(kind)
        old = store.write("a", b"1").result().generation
        store.write("a", b"2").result()
        assert store.write("a", b"3", if_equal=old).result().generation == b""
        assert store["a"] == b"2"


@pytest.mark.parametrize("kind", ["ignored", "refused"])
def test_a_server_without_conditions_gets_no_conditional_write(start, kind):
    fake, _, store = start(kind)
    fake.put("a", b"0")

    for _ in range(2):
        with pytest.raises(ts.UnsupportedError, match='"use_conditional_write": false'):
            store.write("a", b"1", if_equal=b"\x02").result()

    assert {key: one.body for key, one in fake.values.items()} == {"a": b"0"}


@pytest.mark.parametrize("kind", ["ignored", "refused"])
def test_where_one_writer_is_declared_the_store_looks_first(start, kind):
    fake, server, store = start(kind, use_conditional_write=False)

    stamp = store.write("a", b"1", if_equal=b"\x02").result()
    assert store.write("a", b"2", if_equal=b"\x02").result().generation == b""
    assert store.write("a", b"3", if_equal=stamp.generation).result().generation

    assert fake.values["a"].body == b"3"
    assert methods(server) == ["GET", "PUT", "GET", "GET", "PUT"]
    assert all("if-match" not in one.headers for one in server.requests)


def test_a_server_that_may_not_be_tried_out_says_so_about_the_write(start):
    _, server, store = start("heeded")
    server.plan = lambda request: status(403) if request.method == "PUT" else None

    with pytest.raises(ts.PermissionDeniedError, match="test conditional writes"):
        store.write("a", b"1", if_equal=b"\x02").result()


@pytest.fixture
def fake():
    return FakeS3()


@pytest.fixture
def server(serve, fake):
    return serve(fake.handle)


@pytest.fixture
def store(server, open_store):
    return open_store(server.url, use_conditional_write=True)


LOST = [applied_then(RESET), applied_then(CLOSE), applied_then(status(500))]


@pytest.mark.parametrize("fault", LOST, ids=str)
def test_a_write_whose_answer_got_lost_is_known_for_its_own(fake, store, server, fault):
    server.plan = [fault]
    created = store.write("a", b"1", if_equal=b"\x02").result()
    assert created.generation == store.read("a").result().stamp.generation

    server.plan = [fault]
    replaced = store.write("a", b"2", if_equal=created.generation).result()
    assert replaced.generation == store.read("a").result().stamp.generation
    assert fake.values["a"].body == b"2"


@pytest.mark.parametrize("fault", LOST, ids=str)
def test_the_write_of_another_is_not_taken_for_ones_own(fake, store, server, fault):
    """Even if it wrote the same: of two that counted to one, only one may learn that it did."""
    server.plan = [applied_then_written(fake, fault, "none/of somebody else")]

    assert store.write("a", b"1", if_equal=b"\x02").result().generation == b""


@pytest.mark.parametrize("mark", ["", "4711/of somebody else"])
def test_an_outcome_that_stays_unknown_is_reported(fake, store, server, mark):
    server.plan = [applied_then_written(fake, RESET, mark)]
    with pytest.raises(ts.AbortedError, match=r'cannot tell whether ".*/bucket/a" was written'):
        store.write("a", b"1", if_equal=b"\x02").result()

    # A server that says that it failed is believed, unless the write is there.
    fake.values.clear()
    server.plan = [applied_then_written(fake, status(500), mark)]
    assert store.write("a", b"1", if_equal=b"\x02").result().generation == b""


def test_an_array_that_cannot_know_makes_its_update_again(fake, server, open_store):
    spec = {
        "driver": "zarr3",
        "kvstore": open_store(server.url, use_conditional_write=True, path="a/")
        .spec(retain_context=True)
        .to_json(),
    }
    spec["kvstore"]["aws_credentials"] = {"type": "anonymous"}
    made = ts.open(spec, create=True, dtype="uint8", shape=[4], chunk_layout=ts.ChunkLayout(
        chunk_shape=[4])).result()  # fmt: skip
    lost = [applied_then_written(fake, RESET, "", "a/c/0", b"\x05\x06\x07\x08")]
    server.plan = lambda one: lost.pop() if lost and one.method == "PUT" else None

    made[:2].write([1, 2]).result()

    assert lost == []
    assert made.read().result().tolist() == [1, 2, 7, 8]


def applied_then_written(fake, fault, mark, key="a", value=b"1"):
    """The write is carried out and replaced by another one before the answer gets lost."""

    async def act(exchange):
        exchange.serve()
        fake.put(key, value, **{"x-amz-meta-tensorstore-write": mark})
        return await fault.act(exchange)

    return Fault("written by another", act)


@pytest.mark.parametrize("fault", LOST, ids=str)
def test_a_delete_whose_answer_got_lost_is_known_for_its_own(fake, store, server, fault):
    generation = b"\x00" + fake.put("a", b"1").etag.encode()
    server.plan = [None, fault]

    assert store.write("a", None, if_equal=generation).result().generation == b"\x02"
    assert fake.values == {}


def test_a_delete_that_the_server_makes_under_no_condition_looks_first(fake, store):
    generation = b"\x00" + fake.put("a", b"1").etag.encode()
    fake.conditions = "refused"

    assert store.write("a", None, if_equal=b'\x00"other"').result().generation == b""
    assert store.write("a", None, if_equal=generation).result().generation == b"\x02"
    assert fake.values == {}
