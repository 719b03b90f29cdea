import asyncio

import pytest

from tensorstore_py.kvstores.gcs.rivals import Rivals


@pytest.fixture(autouse=True)
def _nothing_yet(monkeypatch):
    monkeypatch.setattr(Rivals, "_replaced", {})


def test_knows_what_any_store_of_the_bucket_replaced():
    Rivals("b").replaced("a", 5)

    assert Rivals("b").is_late("a", 5)
    assert not Rivals("b").is_late("a", 6)
    assert not Rivals("b").is_late("b", 5)
    assert not Rivals("c").is_late("a", 5)


def test_nobody_is_too_late_to_create():
    rivals = Rivals("b")
    rivals.replaced("a", 0)

    assert not rivals.is_late("a", 0)


def test_what_a_later_read_finds_was_not_replaced(monkeypatch):
    monkeypatch.setattr("time.time", lambda: 100.0)
    rivals = Rivals("b")
    rivals.replaced("a", 5)

    rivals.seen("a", 5, asked=99.0)
    assert rivals.is_late("a", 5)
    rivals.seen("a", 5, asked=101.0)
    assert not rivals.is_late("a", 5)


def test_forgets_the_oldest():
    rivals = Rivals("b")
    for number in range(1, Rivals.MOST + 3):
        rivals.replaced("a", number)

    assert not rivals.is_late("a", 2)
    assert rivals.is_late("a", 3)
    assert len(Rivals._replaced) == Rivals.MOST


async def test_one_at_a_time_with_a_key():
    inside = {"a": 0, "b": 0}
    seen = []

    async def enter(key):
        async with Rivals("b").turn(key):
            inside[key] += 1
            seen.append(dict(inside))
            await asyncio.sleep(0)
            inside[key] -= 1

    await asyncio.gather(*(enter(key) for key in "aabb"))

    assert max(found["a"] for found in seen) == max(found["b"] for found in seen) == 1
    assert {"a": 1, "b": 1} in seen
