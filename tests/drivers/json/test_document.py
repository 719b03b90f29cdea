import asyncio
import copy
import math

import pytest

import tensorstore_py as ts
from tensorstore_py.drivers.json.document import StoredDocument, find, parse_pointer, replaced
from tensorstore_py.errors import (
    DataLossError,
    FailedPreconditionError,
    NotFoundError,
    OutOfRangeError,
    SpecError,
)
from tensorstore_py.kvstores.memory import MemoryStore, SharedMap
from tensorstore_py.plugin.driver import Unset
from tensorstore_py.plugin.kvstore import ChunkCache
from tensorstore_py.testing import CountingStore, LoopStore

DOCUMENT = {"a": {"b": [1, 2, {"c": 3}], "x/y": 4, "m~n": 5, "": 6}, "e": None, "1": 7}


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("", DOCUMENT),
        ("/a/b", [1, 2, {"c": 3}]),
        ("/a/b/0", 1),
        ("/a/b/2/c", 3),
        ("/a/x~1y", 4),
        ("/a/m~0n", 5),
        ("/a/", 6),
        ("/e", None),
        ("/1", 7),
    ],
)
def test_values_are_found(pointer, value):
    assert find(DOCUMENT, parse_pointer(pointer)) == value


@pytest.mark.parametrize(
    ("pointer", "error", "words"),
    [
        ("/z", NotFoundError, '"/z"'),
        ("/a/z/y", NotFoundError, '"/a/z"'),
        ("/a/x~1", NotFoundError, '"/a/x~1"'),
        ("/a/b/3", OutOfRangeError, "array of 3"),
        ("/a/b/1" + "0" * 5000, OutOfRangeError, "array of 3"),
        ("/a/b/-", FailedPreconditionError, "behind the last"),
        ("/a/b/-1", FailedPreconditionError, "no position"),
        ("/a/b/01", FailedPreconditionError, "no position"),
        ("/a/b/", FailedPreconditionError, "no position"),
        ("/a/b/²", FailedPreconditionError, "no position"),
        ("/a/b/0/z", FailedPreconditionError, '"/a/b/0" is 1 and has no "z"'),
        ("/e/x", FailedPreconditionError, '"/e" is null'),
    ],
)
def test_what_is_not_there(pointer, error, words):
    with pytest.raises(error, match=words):
        find(DOCUMENT, parse_pointer(pointer))


def test_a_document_without_members():
    with pytest.raises(FailedPreconditionError, match="the document is 5"):
        find(5, ["a"])
    with pytest.raises(FailedPreconditionError, match="the document is 5"):
        replaced(5, ["a"], 1)


@pytest.mark.parametrize("pointer", ["a", "a/b", " /a", "/~", "/a~2", "/~~0", "/a~"])
def test_malformed_pointers(pointer):
    with pytest.raises(SpecError):
        parse_pointer(pointer)


@pytest.mark.parametrize(
    ("document", "pointer", "expected"),
    [
        ({"a": 1}, "", "new"),
        ({"a": 1}, "/a", {"a": "new"}),
        ({"a": 1}, "/b", {"a": 1, "b": "new"}),
        ({"a": {"b": 1}}, "/a/c/d", {"a": {"b": 1, "c": {"d": "new"}}}),
        ({"a": [1, 2]}, "/a/0", {"a": ["new", 2]}),
        ({"a": [1, 2]}, "/a/-", {"a": [1, 2, "new"]}),
        ([], "/-/x", [{"x": "new"}]),
        ([{"x": 1}], "/0/x", [{"x": "new"}]),
        (Unset.UNSET, "", "new"),
        (Unset.UNSET, "/a/0", {"a": {"0": "new"}}),
        (Unset.UNSET, "/-", {"-": "new"}),
    ],
    ids=str,
)
def test_values_are_replaced(document, pointer, expected):
    assert replaced(copy.deepcopy(document), parse_pointer(pointer), "new") == expected


@pytest.mark.parametrize(
    ("document", "pointer", "error"),
    [
        ([1], "/1", OutOfRangeError),
        ([1], "/x", FailedPreconditionError),
        ({"a": 1}, "/a/b", FailedPreconditionError),
        (None, "/a", FailedPreconditionError),
        ("text", "/0", FailedPreconditionError),
    ],
    ids=str,
)
def test_what_cannot_be_replaced(document, pointer, error):
    with pytest.raises(error):
        replaced(document, parse_pointer(pointer), "new")


WHERE = ts.KvStore.open("memory://d.json").result()._model


@pytest.fixture
def store():
    return CountingStore(MemoryStore(SharedMap()))


def over(store, cache=None, recheck=True):
    return StoredDocument(WHERE, store, ChunkCache(0) if cache is None else cache, recheck)


def run(coroutine):
    return asyncio.run(coroutine)


def put(store, value):
    run(store.base.write("d.json", value))


def setter(*parts_and_value):
    *parts, value = parts_and_value
    return lambda document: replaced(document, parts, value)


def test_a_document_is_begun_changed_and_read(store):
    document = over(store)
    with pytest.raises(NotFoundError, match=r'no document at "d\.json"'):
        run(document.read())
    run(document.update(setter("b", 1)))
    run(document.update(setter("a", [1.5, "ä"])))
    assert run(document.read()) == {"a": [1.5, "ä"], "b": 1}
    assert run(store.base.read("d.json")).value == '{"a":[1.5,"ä"],"b":1}'.encode()


def test_what_a_reader_gets_is_its_own(store):
    document = over(store, recheck=False)
    run(document.replace({"a": []}))
    run(document.read())["a"].append(1)
    assert run(document.read()) == {"a": []}


def test_requests_are_counted(store):
    document = over(store, recheck="open")
    run(document.replace([1, 2, 3]))  # whatever there was
    assert (store.reads["d.json"], store.writes["d.json"]) == (0, 1)
    run(document.read())
    assert store.reads["d.json"] == 0  # known since it was written
    run(document.update(setter("0", 5)))
    assert (store.reads["d.json"], store.writes["d.json"]) == (1, 2)
    assert store.bytes_read["d.json"] == 0  # still what was known


def test_a_document_that_is_still_current_costs_no_body(store):
    put(store, b"[1]")
    document = over(store, recheck=True)
    for _ in range(3):
        assert run(document.read()) == [1]
    assert (store.reads["d.json"], store.bytes_read["d.json"]) == (3, 3)


@pytest.mark.parametrize(
    ("recheck", "found"), [(True, 2), (False, 1), ("open", 1), (0.0, 1), (math.inf, 2)]
)
def test_staleness(store, recheck, found):
    put(store, b"1")
    document = over(store, recheck=recheck)
    assert run(document.read()) == 1
    put(store, b"2")
    assert run(document.read()) == found


@pytest.mark.parametrize("size", [0, 10_000])
def test_arrays_of_one_pool_share_the_document(store, size):
    put(store, b"1")
    cache = ChunkCache(size)
    first, second = over(store, cache, "open"), over(store, cache, "open")
    assert run(first.read()) == run(second.read()) == 1
    assert store.reads["d.json"] == 1
    put(store, b"2")
    assert run(over(store, cache, "open").read()) == 2
    assert run(first.read()) == 2


def test_a_pool_keeps_documents_beyond_their_readers(store):
    put(store, b"1")
    cache = ChunkCache(10_000)
    run(over(store, cache, False).read())
    run(over(store, cache, False).read())
    assert store.reads["d.json"] == 1
    assert cache.held_bytes > 0
    run(over(store, cache, False).replace(2))
    assert run(over(store, cache, False).read()) == 2


def test_a_change_that_lost_the_race_is_made_again(store):
    document = over(store)
    put(store, b'{"a":1}')
    seen = []

    def change(found):
        seen.append(dict(found))
        if len(seen) == 1:
            interloper = store.base.write("d.json", b'{"a":1,"b":2}')
            with pytest.raises(StopIteration):
                interloper.send(None)
        return {**found, "c": 3}

    run(document.update(change))
    assert seen == [{"a": 1}, {"a": 1, "b": 2}]
    assert run(document.read()) == {"a": 1, "b": 2, "c": 3}


def test_two_beginnings_of_a_document_lose_nothing(store):
    first, second = over(store), over(store)

    def change(found):
        assert found is Unset.UNSET or found == {"b": 2}
        if found is Unset.UNSET:
            with pytest.raises(StopIteration):
                second.update(setter("b", 2)).send(None)
        return replaced(found, ["a"], 1)

    run(first.update(change))
    assert run(first.read()) == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    "data", [b"", b" \n", b"{", b'{"a":1} x', b'{"a":1,"a":2}', b"[NaN]", b"\xff", b"[1,]"]
)
def test_a_corrupt_document_is_named(store, data):
    put(store, data)
    document = over(store)
    for attempt in (document.read(), document.update(setter("a", 1))):
        with pytest.raises(DataLossError, match=r'"d\.json"'):
            run(attempt)
    assert run(store.base.read("d.json")).value == data
    run(document.replace({"a": 1}))
    assert run(document.read()) == {"a": 1}


@pytest.mark.parametrize("value", [math.nan, [math.inf], {"a": "\ud800"}])
def test_what_has_no_json_form_is_not_stored(store, value):
    document = over(store)
    with pytest.raises(SpecError, match="no JSON form"):
        run(document.replace(value))
    with pytest.raises(SpecError, match="no JSON form"):
        run(document.update(setter("a", value)))
    assert run(store.read("d.json")).state == "missing"


def test_numbers_beyond_64_bits_pass_a_change_unharmed(store):
    put(store, b'{"a":123456789012345678901234567890}')
    document = over(store)
    run(document.update(setter("b", 1)))
    assert run(document.read())["a"] == 123456789012345678901234567890


async def test_over_a_store_that_waits(store):
    waiting = LoopStore(store)
    documents = [over(waiting), over(waiting)]
    changes = [documents[place % 2].update(setter(str(place), place)) for place in range(10)]
    await asyncio.gather(*changes)
    assert await documents[0].read() == {str(place): place for place in range(10)}
