import asyncio
from threading import Event

import pytest

import tensorstore_py as ts
from tensorstore_py._api.keys import PAGE
from tensorstore_py.plugin import ListEntry
from tensorstore_py.testing import LoopStore, StoreAround


class Endless(StoreAround):
    """Lists more keys than anybody wants, and counts those that it was asked for."""

    def __init__(self, base):
        super().__init__(base)
        self.listed = 0
        self.ended = Event()

    async def list(self, key_range=None):
        self.listed = 0
        try:
            while True:
                self.listed += 1
                yield ListEntry(f"p/{self.listed:08}")
        finally:
            self.ended.set()


@pytest.fixture(params=["inline", "loop"])
def store(request):
    face = ts.KvStore.open("memory://").result()
    if request.param == "loop":
        return ts.KvStore.of(face.model, LoopStore(face.store))
    return face


def endless(store):
    listed = Endless(store.store)
    return ts.KvStore.of(store.model, listed), listed


async def collected(keys):
    return [key async for key in keys]


def test_the_keys_of_a_listing(store):
    for key in ("a/x", "a/y", "b"):
        store[key] = b""

    for keys, expected in (
        (store.keys(), [b"a/x", b"a/y", b"b"]),
        ((store / "a/").keys(), [b"x", b"y"]),
        (store.keys(ts.KvStore.KeyRange("b")), [b"b"]),
        (store.keys(strip_prefix_length=2), [b"x", b"y", b""]),
    ):
        assert list(keys) == expected
        assert list(keys) == expected
        assert asyncio.run(collected(keys)) == expected
    assert dict(store) == {b"a/x": b"", b"a/y": b"", b"b": b""}


def test_a_page_is_held_and_no_more(store):
    store, listed = endless(store)

    for number, key in enumerate(store.keys(), start=1):
        assert key == b"p/%08d" % number
        assert listed.listed - number < PAGE
        if number > 2 * PAGE:
            break


def test_a_loop_that_is_left_ends_the_listing(store):
    store, listed = endless(store)

    async def some():
        keys = aiter(store.keys())
        first = await anext(keys)
        await keys.aclose()
        return first

    assert asyncio.run(some()) == b"p/00000001"
    assert listed.ended.wait(60)
    listed.ended.clear()
    keys = iter(store.keys())
    assert next(keys) == b"p/00000001"
    keys.close()
    assert listed.ended.wait(60)


def test_errors_come_in_the_loop():
    store = ts.KvStore.open("http://127.0.0.1:9/").result()

    with pytest.raises(TypeError, match="must be a KvStore"):
        store.keys("a")  # type: ignore[arg-type]
    with pytest.raises(ts.UnsupportedError, match="cannot list"):
        list(store.keys())


def test_of_a_transaction_its_keys(store):
    with ts.Transaction() as transaction:
        inside = store.with_transaction(transaction)
        inside["a"] = b""
        assert list(inside.keys()) == [b"a"]
        assert list(store.keys()) == []
