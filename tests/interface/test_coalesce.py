import asyncio
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorstore_py.errors import AbortedError
from tensorstore_py.plugin.kvstore import (
    WHOLE,
    ByteRange,
    ReadResult,
    TimestampedStorageGeneration,
    read_coalesced,
)

VALUE = bytes(range(200))


def bounded(most=200):
    bound = st.integers(0, most)
    return st.tuples(bound, bound).map(lambda pair: ByteRange(min(pair), max(pair)))


def any_range():
    return st.one_of(bounded(), st.just(WHOLE), st.integers(1, 200).map(lambda n: ByteRange(-n)))


def requests(ranges, **limits):
    """What is asked for, for the sake of these ranges; there is a value however far they reach."""
    asked: list[ByteRange] = []

    async def read(byte_range):
        asked.append(byte_range)
        return ReadResult("value", bytes((byte_range.stop or 0) - max(0, byte_range.start)))

    results = asyncio.run(read_coalesced(read, ranges, **limits))
    assert len(results) == len(ranges)
    return asked


@given(st.lists(any_range(), max_size=20), st.integers(0, 40), st.integers(1, 400))
def test_every_range_is_inside_one_request(ranges, gap, limit):
    asked = requests(ranges, gap=gap, limit=limit)

    bounds = [(each.start, each.stop) for each in asked if each.stop is not None]
    for each in ranges:
        if each.stop is None:
            assert asked.count(each) == ranges.count(each)
        else:
            assert any(start <= each.start and each.stop <= stop for start, stop in bounds)
    for start, stop in bounds:
        assert start in {each.start for each in ranges}
        assert stop in {each.stop for each in ranges}
        assert stop - start <= limit or ByteRange(start, stop) in ranges


@given(st.lists(bounded(), max_size=20), st.integers(0, 40))
def test_requests_are_further_apart_than_the_gap(ranges, gap):
    bounds = sorted((each.start, each.stop or 0) for each in requests(ranges, gap=gap))

    for before, after in itertools.pairwise(bounds):
        assert after[0] - before[1] > gap


def test_merges_across_the_gap_of_the_reference_and_no_more():
    near, far = ByteRange(10 + 4095, 5000), ByteRange(10 + 4096, 5000)

    assert len(requests([ByteRange(0, 10), near])) == 1
    assert len(requests([ByteRange(0, 10), far])) == 2


class Source:
    """One value that may be replaced while it is read."""

    def __init__(self, replaced=0):
        self.reads = []
        self.busy = self.most_busy = 0
        self.replaced = replaced

    async def read(self, byte_range):
        self.reads.append(byte_range)
        self.busy += 1
        self.most_busy = max(self.most_busy, self.busy)
        number = len(self.reads)
        await asyncio.sleep(0)
        self.busy -= 1
        start, stop = byte_range.resolve(len(VALUE))
        generation = b"old" if number <= self.replaced else b"new"
        value = VALUE if generation == b"new" else bytes(len(VALUE))
        return ReadResult("value", value[start:stop], TimestampedStorageGeneration(generation, 1.0))


@given(st.lists(any_range(), max_size=12), st.integers(0, 40))
def test_results_come_in_the_order_of_the_ranges(ranges, gap):
    source = Source()

    results = asyncio.run(read_coalesced(source.read, ranges, gap=gap))

    expected = [VALUE[slice(*byte_range.resolve(len(VALUE)))] for byte_range in ranges]
    assert [bytes(result.value) for result in results] == expected
    assert len(source.reads) == len(requests(ranges, gap=gap))


async def test_all_results_are_of_one_generation():
    source = Source(replaced=1)

    results = await read_coalesced(source.read, [ByteRange(0, 2), ByteRange(100, 102)], gap=0)

    assert [bytes(result.value) for result in results] == [VALUE[:2], VALUE[100:102]]
    assert {result.stamp.generation for result in results} == {b"new"}
    assert len(source.reads) == 4


async def test_gives_up_on_a_value_that_never_rests():
    numbers = iter(range(1000))

    async def read(_):
        return ReadResult("value", b"xx", TimestampedStorageGeneration(b"%d" % next(numbers)))

    with pytest.raises(AbortedError, match="2 parts"):
        await read_coalesced(read, [ByteRange(0, 2), ByteRange(9000, 9002)])


async def test_only_so_many_requests_are_under_way():
    source = Source()
    ranges = [ByteRange(n, n + 1) for n in range(0, 200, 2)]

    await read_coalesced(source.read, ranges, gap=0, width=5)

    assert source.most_busy == 5


async def test_a_missing_value_is_missing_everywhere():
    async def read(_):
        return ReadResult("missing", b"", TimestampedStorageGeneration(b"\2", 1.0))

    results = await read_coalesced(read, [ByteRange(0, 2), ByteRange(3, 5), WHOLE])

    assert [result.state for result in results] == ["missing"] * 3


async def test_parts_are_not_copied_out_of_what_was_fetched():
    fetched = []

    async def read(byte_range):
        fetched.append(VALUE[byte_range.start : byte_range.stop])
        return ReadResult("value", fetched[-1], TimestampedStorageGeneration(b"g"))

    results = await read_coalesced(read, [ByteRange(0, 4), ByteRange(6, 9)])

    assert [memoryview(result.value).obj is fetched[0] for result in results] == [True, True]
