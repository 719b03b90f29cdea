import asyncio

import pytest

from tensorstore_py.kvstores.gcs.pacing import GcsPacer
from tensorstore_py.plugin import HttpRequest, HttpResponse, HttpTiming, Rate, Rates

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
    monkeypatch.setattr(GcsPacer, "GAP_S", 1.0)
    return Clock()


def put(key):
    return HttpRequest("POST", "http://h/upload", {}, b"x", key=key)


async def test_writes_of_a_busy_object_go_out_one_a_second(clock):
    pacer = GcsPacer("b", timing=clock.timing)
    pacer.refused(put("a"), TOO_MANY)

    await asyncio.gather(*(pacer.turn(put("a")) for _ in range(3)))

    assert clock.slept == [1.0, 2.0, 3.0]


async def test_reads_and_other_objects_go_on(clock):
    pacer, other = GcsPacer("b", timing=clock.timing), GcsPacer("c", timing=clock.timing)
    pacer.refused(put("a"), TOO_MANY)

    await pacer.turn(HttpRequest("GET", "http://h/a", {}, key="a"))
    await pacer.turn(put("b"))
    await other.turn(put("a"))

    assert clock.slept == []


async def test_all_stores_of_a_bucket_know_of_it(clock):
    GcsPacer("b", timing=clock.timing).refused(put("a"), TOO_MANY)

    await GcsPacer("b", timing=clock.timing).turn(put("a"))

    assert clock.slept == [1.0]


async def test_only_complaints_about_writes_count(clock):
    pacer = GcsPacer("b", timing=clock.timing)
    pacer.refused(put("a"), HttpResponse(503, {}))
    pacer.refused(HttpRequest("GET", "http://h/a", {}, key="a"), TOO_MANY)

    await pacer.turn(put("a"))

    assert clock.slept == []


async def test_who_was_left_alone_is_forgotten(clock):
    pacer = GcsPacer("b", timing=clock.timing)
    pacer.refused(put("a"), TOO_MANY)
    clock.now += 62

    await pacer.turn(put("a"))
    await pacer.turn(put("a"))

    assert clock.slept == []
    assert GcsPacer._busy == {}


async def test_what_is_known_does_not_grow_for_ever(clock):
    pacer = GcsPacer("b", timing=clock.timing)

    for number in range(5000):
        clock.now += 1
        pacer.refused(put(f"k{number}"), TOO_MANY)

    assert len(GcsPacer._busy) <= 1001


async def test_the_rates_of_the_user_hold_too(clock):
    waits = []

    async def sleep(seconds):
        waits.append(seconds)

    rates = Rates(None, Rate(4, now=lambda: 0.0, sleep=sleep))
    pacer = GcsPacer("b", rates, clock.timing)

    await pacer.turn(put("a"))
    await pacer.turn(HttpRequest("GET", "http://h/a", {}, key="a"))

    assert waits == [0.25]
