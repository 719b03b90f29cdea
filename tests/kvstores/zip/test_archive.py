import io
import os
import struct
import zipfile

import pytest

import tensorstore_py as ts
from tensorstore_py.kvstores.memory import MemoryStore, SharedMap
from tensorstore_py.kvstores.zip.archive import Directory
from tensorstore_py.kvstores.zip.records import TAIL_SIZE, Entry, find_end, parse_central
from tensorstore_py.kvstores.zip.store import SharedArchive, ZipStore
from tensorstore_py.plugin.kvstore import NO_VALUE, WHOLE, ByteRange
from tensorstore_py.testing import CountingStore, FaultyStore, drive

RANDOM = os.urandom(9000)
ENTRIES = {f"k{number}": b"%d" % number + RANDOM * (number % 3) for number in range(20)}


def zipped(entries=None, method=zipfile.ZIP_DEFLATED, prefix=b"", comment=b""):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.comment = comment
        for name, value in (ENTRIES if entries is None else entries).items():
            archive.writestr(name, value)
    return prefix + file.getvalue()


def opened(data):
    base = CountingStore(MemoryStore(SharedMap()))
    drive(base, lambda: base.write("a.zip", data))
    return base, ZipStore(SharedArchive(base, "a.zip"))


def found(store, key, byte_range=WHOLE):
    return drive(store, lambda: store.read(key, byte_range))


def read(store, key, byte_range=WHOLE):
    return bytes(found(store, key, byte_range).value)


def write(store, key, value):
    return drive(store, lambda: store.write(key, value))


def keys(store):
    async def collect():
        return [entry.key async for entry in store.list()]

    return drive(store, collect)


@pytest.mark.parametrize("method", [0, 8, 12, 14])
@pytest.mark.parametrize("prefix", [b"", b"#!/bin/python\n" * 30, b"x" * 200_000], ids=len)
@pytest.mark.parametrize("comment", [b"", b"c" * 65535], ids=len)
def test_reads_whatever_stands_around(method, prefix, comment):
    _, store = opened(zipped(None, method, prefix, comment))

    assert {key: read(store, key) for key in ("k0", "k8", "k19")} == {
        key: ENTRIES[key] for key in ("k0", "k8", "k19")
    }
    assert read(store, "k7", ByteRange(5, 300)) == ENTRIES["k7"][5:300]
    assert sorted(keys(store)) == sorted(ENTRIES)


@pytest.mark.parametrize("prefix", [b"", b"x" * 200_000], ids=len)
def test_writes_whatever_stands_before(prefix):
    base, store = opened(zipped(None, 0, prefix, b"kept"))

    write(store, "new", b"n" * 500)
    for number in range(15):
        write(store, f"k{number}", None)

    data = bytes(drive(base, lambda: base.read("a.zip")).value)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.comment == b"kept"
        assert archive.testzip() is None
        assert sorted(archive.namelist()) == ["k15", "k16", "k17", "k18", "k19", "new"]
    assert data.startswith(prefix)
    assert len(data) < len(prefix) + 60_000


def test_reads_what_was_streamed_with_sizes_behind_the_data():
    class Stream(io.RawIOBase):
        def __init__(self):
            self.data = b""

        def writable(self):
            return True

        def write(self, data):
            self.data += bytes(data)
            return len(data)

    stream = Stream()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("a", b"A" * 100)
        archive.writestr(zipfile.ZipInfo("b"), b"B" * 100, zipfile.ZIP_DEFLATED)
    assert stream.data[6] & 8

    _, store = opened(stream.data)

    assert (read(store, "a"), read(store, "b")) == (b"A" * 100, b"B" * 100)
    assert read(store, "a", ByteRange(10, 20)) == b"A" * 10


def test_reads_wide_records():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive, archive.open("a", "w", force_zip64=True) as entry:
        entry.write(b"A" * 100)

    _, store = opened(file.getvalue())

    assert read(store, "a") == b"A" * 100
    assert read(store, "a", ByteRange(98)) == b"AA"


def test_more_entries_than_two_bytes_can_count():
    base, store = opened(zipped({"first": b"1"}))
    values = {f"{number:x}": b"" for number in range(65_600)}

    drive(store, lambda: store.write_batch(values, {}))

    data = bytes(drive(base, lambda: base.read("a.zip")).value)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert len(archive.namelist()) == 65_601
    _, again = opened(data)
    assert read(again, "first") == b"1"


def test_later_entries_replace_earlier_ones_of_a_name():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a", b"1")
        archive.writestr("d/", b"")
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("a", b"22")
    _, store = opened(file.getvalue())

    assert (keys(store), read(store, "a")) == (["a"], b"22")


def test_encrypted_entries_are_refused_by_name():
    data = bytearray(zipped({"secret": b"1", "open": b"2"}))
    data[data.index(b"PK\1\2") + 8] |= 1
    _, store = opened(bytes(data))

    assert read(store, "open") == b"2"
    with pytest.raises(ts.UnsupportedError, match=r'"secret" in the zip archive .* encrypted'):
        read(store, "secret")


def test_unknown_methods_are_refused_by_name():
    data = bytearray(zipped({"odd": b"1"}))
    struct.pack_into("<H", data, data.index(b"PK\1\2") + 10, 98)
    _, store = opened(bytes(data))

    with pytest.raises(ts.UnsupportedError, match=r'"odd" .* method 98 \(ppmd\)'):
        read(store, "odd")


@pytest.mark.parametrize("kept", [0, 10, 400, TAIL_SIZE + 9, -30, -1])
def test_truncated_archives_are_data_loss(kept):
    data = zipped({**ENTRIES, "last": RANDOM * 10})
    _, store = opened(data[:kept])

    for attempt in (lambda: read(store, "k1"), lambda: keys(store)):
        with pytest.raises(ts.DataLossError, match=r'zip archive "a\.zip"'):
            attempt()


def test_archives_without_their_beginning_are_data_loss():
    data = zipped()
    for cut in (1, 100, 5000, 100_000):
        _, store = opened(data[cut:])

        with pytest.raises(ts.DataLossError, match=r'"a\.zip"'):
            read(store, "k0")


def test_every_flipped_byte_is_an_error_or_does_not_matter():
    data = zipped({"a": b"some text " * 20, "b": b"other text " * 20})
    values = {"a": b"some text " * 20, "b": b"other text " * 20, "c": b""}
    for place in range(len(data)):
        _, store = opened(data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1 :])
        for key in "ab":
            try:
                result = found(store, key)
            except (ts.DataLossError, ts.UnsupportedError):
                continue
            assert result.state == "missing" or bytes(result.value) == values[key], place


def test_overlapping_entries_are_refused():
    data = bytearray(zipped({"a": RANDOM, "b": RANDOM}, 0))
    central = data.index(b"PK\1\2")
    struct.pack_into("<2I", data, central + 20, 15_000, 15_000)
    _, store = opened(bytes(data))

    with pytest.raises(ts.DataLossError, match=r'"a" .* reaches into the next entry'):
        read(store, "a")


def test_an_archive_that_is_replaced_while_it_is_looked_up():
    class Replaced(CountingStore):
        async def read(self, key, byte_range=WHOLE, **conditions):
            result = await super().read(key, byte_range, **conditions)
            if self.reads[key] == 1:
                await self.write(key, zipped({"x" * 200 + str(n): b"" for n in range(500)}))
            return result

    base = Replaced(MemoryStore(SharedMap()))
    drive(base, lambda: base.write("a.zip", zipped({"y" * 200 + str(n): b"" for n in range(600)})))

    assert keys(ZipStore(SharedArchive(base, "a.zip")))[0].startswith("x")


def test_an_archive_that_got_shorter_is_replaced_and_not_damaged():
    base, store = opened(zipped({"x": bytes(5000), "y": b"y" * 5000}, zipfile.ZIP_STORED))
    part = ByteRange(4000, 4100)
    assert read(store, "y", part) == b"y" * 100

    drive(base, lambda: base.write("a.zip", zipped({"y": b"z" * 5000}, zipfile.ZIP_STORED)))
    late = drive(store, lambda: store.read_as_of("y", part, float("-inf")))

    assert bytes(late.value) == b"z" * 100


def test_errors_of_the_store_pass_and_leave_nothing_behind():
    base = FaultyStore(MemoryStore(SharedMap()))
    drive(base, lambda: base.write("a.zip", zipped()))
    store = ZipStore(SharedArchive(base, "a.zip"))
    for _ in range(2):
        base.fail("read", ts.UnavailableError("gone for a while"))
        with pytest.raises(ts.UnavailableError):
            read(store, "k1")

    assert read(store, "k1") == ENTRIES["k1"]


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
    assert (end.entries, end.offset, end.size) == (2, 1000, end.position)
    assert parse_central(tail[: end.position], 2, 0) == made.entries
    assert made.size_bytes > 1000


def test_what_stands_before_the_entries_is_no_waste():
    counted = directory(entry("a", 100))
    uncounted = Directory([entry("a", 100)], 1000, before=100, time=0.0)

    assert (counted.waste([]), uncounted.waste([])) == (1000, 900)
    assert counted.first(b"#!/bin/sh") == 100
    assert counted.first(b"PK\3\4, deleted") == 0
    assert uncounted.first(bytes(100) + b"PK\3\4") == 100
