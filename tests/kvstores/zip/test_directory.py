import pytest

import tensorstore_py as ts
from tensorstore_py.kvstores.zip.directory import Directory
from tensorstore_py.kvstores.zip.records import Entry, find_end, parse_central
from tensorstore_py.plugin import NO_VALUE


def entry(name, offset, packed=10, **changes):
    made = Entry(name.encode(), 0, 0, 0, 0, packed, packed, b"", (0, 0, 0), b"", offset)
    return made._replace(**changes)


def directory(*entries, start=1000):
    return Directory(entries, start, time=0.0)


def test_keys_are_values_and_the_last_of_a_name_counts():
    found = directory(entry("a", 0), entry("d/", 100), entry("a", 200, 3), entry("b", 300))

    assert sorted(found.keys) == ["a", "b"]
    assert found.keys["a"].size == 3
    assert found.generation_of("a") != NO_VALUE == found.generation_of("d/")


def test_an_entry_ends_where_the_next_one_begins():
    first, second = entry("a", 100), entry("b", 50)
    found = directory(first, second)

    assert (found.end_of(second), found.end_of(first)) == (100, 1000)


def test_entries_that_overlap_are_refused():
    found = directory(entry("a", 0, 200), entry("b", 100), entry("c", 990))

    for key in "ac":
        with pytest.raises(ts.DataLossError, match="reaches into"):
            found.end_of(found.keys[key])


def test_guesses_where_data_begins():
    tight, gap = entry("a", 0, 10), entry("b", 50, 10, flags=8, extra=b"1234")
    found = directory(tight, gap)

    assert found.guessed_start(tight) == 40
    assert found.guessed_start(gap) == 50 + 30 + 1 + 4
    found.data_starts[50] = 99
    assert found.guessed_start(gap) == 99


def test_waste_is_what_belongs_to_no_entry():
    found = directory(entry("a", 100), entry("b", 200), entry("c", 500))

    assert found.waste(found.entries) == 1000 - 3 * 41
    assert found.waste([found.keys["a"], found.keys["c"]]) == 1000 - 2 * 41


def test_its_tail_reads_back():
    made = directory(entry("a", 100), entry("b", 200))

    tail = made.tail()

    end = find_end(tail)
    assert (end.entries, end.offset, end.size) == (2, 1000, end.place)
    assert parse_central(tail[: end.place], 2, 0) == made.entries
    assert made.size_bytes > 1000


def test_what_stands_before_the_entries_is_no_waste():
    counted = directory(entry("a", 100))
    uncounted = Directory([entry("a", 100)], 1000, before=100, time=0.0)

    assert (counted.waste([]), uncounted.waste([])) == (1000, 900)
    assert counted.first(b"#!/bin/sh") == 100
    assert counted.first(b"PK\3\4, deleted") == 0
    assert uncounted.first(bytes(100) + b"PK\3\4") == 100
