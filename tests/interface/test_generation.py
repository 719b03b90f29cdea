"""Generations: values, next to the reference, and the conditions made of them."""

import copy
import math
import time

import pytest
import tensorstore as wheel

from tensorstore_py._interface.generation import (
    NO_VALUE,
    UNKNOWN,
    TimestampedStorageGeneration,
    content_generation,
    holds,
)

THEIRS = wheel.KvStore.TimestampedStorageGeneration


@pytest.mark.parametrize("arguments", [(), (b"abc",), ("abc",), (b"abc", 1.5), ("é", 2.0)])
def test_is_that_of_the_reference(arguments):
    mine, theirs = TimestampedStorageGeneration(*arguments), THEIRS(*arguments)
    assert (mine.generation, mine.time) == (theirs.generation, theirs.time)


def test_is_printed_alike():
    assert repr(TimestampedStorageGeneration(b"a\0", 1.5)) == repr(THEIRS(b"a\0", 1.5))


def test_is_a_value_that_can_change():
    stamp = TimestampedStorageGeneration(b"a", 1.0)
    for made in (stamp.copy(), copy.copy(stamp), copy.deepcopy(stamp)):
        assert made == stamp
        made.generation = b"b"
        assert made != stamp
    assert stamp != TimestampedStorageGeneration(b"a", 2.0)
    assert stamp != "a"
    with pytest.raises(TypeError):
        hash(stamp)


def test_now_is_now():
    before = time.time()
    stamp = TimestampedStorageGeneration.now(b"a")
    assert before <= stamp.time <= time.time()
    assert TimestampedStorageGeneration().time == -math.inf


@pytest.mark.parametrize("generation", [NO_VALUE, b"a"])
def test_no_condition_always_holds(generation):
    assert holds(None, generation)
    assert holds(UNKNOWN, generation)


def test_a_condition_holds_for_its_own_generation_only():
    generations = [NO_VALUE, b"a", b"b"]
    for one in generations:
        assert [holds(one, other) for other in generations] == [
            one == other for other in generations
        ]


def test_content_makes_a_generation():
    values = [b"", b"a", b"b", b"a\0"]
    made = [content_generation(value) for value in values]
    assert len({*made, UNKNOWN, NO_VALUE}) == len(values) + 2
    assert content_generation(bytearray(b"a")) == content_generation(memoryview(b"a")) == made[1]
    assert content_generation(None) == NO_VALUE
