import asyncio

import pytest

from tensorstore_py.kvstores.gcs.own_writes import ObjectThrottle, OwnConditionalWrites
from tensorstore_py.plugin.http import (
    HttpRequest,
    HttpResponse,
    HttpTiming,
    RateLimits,
)

TOO_MANY = HttpResponse(429, {})


class Clock:
    def __init__(self):
        self.now = 1000.0
        self.slept = []

    async def sleep(self, seconds):
        self.slept.append(seconds)
        await asyncio.sleep(0)

    @property
    def timing(self):
        return HttpTiming(lambda: self.now, self.sleep)


@pytest.fixture
def clock(monkeypatch):
    monkeypatch.setattr(ObjectThrottle, "GAP_S", 1.0)
    return Clock()


def put(key):
    return HttpRequest("POST", "http://h/upload", {}, b"x", key=key)


async def test_writes_of_a_busy_object_go_out_one_a_second(clock):
    pacer = ObjectThrottle("b", timing=clock.timing)
    pacer.refused(put("a"), TOO_MANY)

    await asyncio.gather(*(pacer.turn(put("a")) for _ in range(3)))

    assert clock.slept == [1.0, 2.0, 3.0]


async def test_reads_and_other_objects_go_on(clock):
    pacer, other = (
        ObjectThrottle("b", timing=clock.timing),
        ObjectThrottle("c", timing=clock.timing),
    )
    pacer.refused(put("a"), TOO_MANY)

    await pacer.turn(HttpRequest("GET", "http://h/a", {}, key="a"))
    await pacer.turn(put("b"))
    await other.turn(put("a"))

    assert clock.slept == []


async def test_all_stores_of_a_bucket_know_of_it(clock):
    ObjectThrottle("b", timing=clock.timing).refused(put("a"), TOO_MANY)

    await ObjectThrottle("b", timing=clock.timing).turn(put("a"))

    assert clock.slept == [1.0]


async def test_only_complaints_about_writes_count(clock):
    pacer = ObjectThrottle("b", timing=clock.timing)
    pacer.refused(put("a"), HttpResponse(503, {}))
    pacer.refused(HttpRequest("GET", "http://h/a", {}, key="a"), TOO_MANY)

    await pacer.turn(put("a"))

    assert clock.slept == []


async def test_an_object_without_recent_refusals_is_forgotten(clock):
    pacer = ObjectThrottle("b", timing=clock.timing)
    pacer.refused(put("a"), TOO_MANY)
    clock.now += 62

    await pacer.turn(put("a"))
    await pacer.turn(put("a"))

    assert clock.slept == []
    assert ObjectThrottle._busy == {}


async def test_what_is_known_does_not_grow_for_ever(clock):
    pacer = ObjectThrottle("b", timing=clock.timing)

    for number in range(5000):
        clock.now += 1
        pacer.refused(put(f"k{number}"), TOO_MANY)

    assert len(ObjectThrottle._busy) <= 1001


async def test_the_rates_of_the_user_hold_too(clock):
    waits = []

    async def sleep(seconds):
        waits.append(seconds)

    rates = RateLimits(None, 4, now=lambda: 0.0, sleep=sleep)
    pacer = ObjectThrottle("b", rates, clock.timing)

    await pacer.turn(put("a"))
    await pacer.turn(HttpRequest("GET", "http://h/a", {}, key="a"))

    assert waits == [0.25]


@pytest.fixture(autouse=True)
def _nothing_yet(monkeypatch):
    monkeypatch.setattr(OwnConditionalWrites, "_replaced", {})


def test_knows_what_any_store_of_the_bucket_replaced():
    OwnConditionalWrites("b").replaced("a", 5)

    assert OwnConditionalWrites("b").is_late("a", 5)
    assert not OwnConditionalWrites("b").is_late("a", 6)
    assert not OwnConditionalWrites("b").is_late("b", 5)
    assert not OwnConditionalWrites("c").is_late("a", 5)


def test_no_writer_is_too_late_to_create():
    rivals = OwnConditionalWrites("b")
    rivals.replaced("a", 0)

    assert not rivals.is_late("a", 0)


def test_what_a_later_read_finds_was_not_replaced(monkeypatch):
    monkeypatch.setattr("time.time", lambda: 100.0)
    rivals = OwnConditionalWrites("b")
    rivals.replaced("a", 5)

    rivals.seen("a", 5, asked=99.0)
    assert rivals.is_late("a", 5)
    rivals.seen("a", 5, asked=101.0)
    assert not rivals.is_late("a", 5)


def test_forgets_the_oldest():
    rivals = OwnConditionalWrites("b")
    for number in range(1, OwnConditionalWrites.MOST + 3):
        rivals.replaced("a", number)

    assert not rivals.is_late("a", 2)
    assert rivals.is_late("a", 3)
    assert len(OwnConditionalWrites._replaced) == OwnConditionalWrites.MOST


async def test_one_at_a_time_with_a_key():
    inside = {"a": 0, "b": 0}
    seen = []

    async def enter(key):
        async with OwnConditionalWrites("b").turn(key):
            inside[key] += 1
            seen.append(dict(inside))
            await asyncio.sleep(0)
            inside[key] -= 1

    await asyncio.gather(*(enter(key) for key in "aabb"))

    assert max(found["a"] for found in seen) == max(found["b"] for found in seen) == 1
    assert {"a": 1, "b": 1} in seen
