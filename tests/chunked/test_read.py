import asyncio
from functools import partial

import numpy as np
import pytest

from tensorstore_py._interface import codec_chain
from tensorstore_py._runtime.start import start
from tensorstore_py._runtime.workers import submissions, width
from tensorstore_py.errors import AbortedError, DataLossError, NotFoundError
from tensorstore_py.testing import CountedWaits
from tests.chunked.arrays import Opened, WatchedStore, codecs_named, sharding

VALUES = np.arange(12 * 10, dtype="uint16").reshape(12, 10) + 1


def written(codecs="zstd", **options):
    opened = Opened((12, 10), (4, 5), "uint16", codecs, **options)
    opened.write(VALUES)
    opened.store.counts.clear()
    opened.store.bytes_read = 0
    return opened


def sharded(**options):
    return written(sharding([2, 5], codecs_named("zstd", 2)), **options)


class TestCounting:
    def test_one_store_read_a_chunk(self):
        opened = written()
        opened.read()
        assert opened.store.counts == {"read": 6}

    def test_only_the_chunks_wanted(self):
        opened = written()
        opened.read(opened.identity[5:7, 3:5])
        assert opened.store.counts == {"read": 1}
        opened.read(opened.identity.oindex[[0, 11], [1, 2]])
        assert opened.store.counts == {"read": 3}
        opened.read(opened.identity.vindex[[0, 11, 1], [1, 2, 2]])
        assert opened.store.counts == {"read": 5}

    def test_nothing_for_nothing(self):
        opened = written()
        assert opened.read(opened.identity[3:3]).shape == (0, 10)
        assert not opened.store.counts

    def test_a_whole_chunk_never_passes_through_scratch(self, monkeypatch):
        used: list[int] = []
        monkeypatch.setattr(codec_chain, "scratch", used.append)
        opened = Opened((4, 5), (4, 5), "uint16", "gzip")
        opened.write(VALUES[:4, :5])
        np.testing.assert_array_equal(opened.read(), VALUES[:4, :5])
        assert not used

    @pytest.mark.parametrize(("codecs", "handed_over"), [("raw", 0), ("big", 0), ("zstd", 6)])
    def test_a_thread_is_woken_for_what_takes_longer_than_that(self, codecs, handed_over):
        opened = Opened((12, 10), (4, 5), "uint16", codecs, store=WatchedStore(inline=False))
        opened.write(VALUES)
        before = submissions()
        np.testing.assert_array_equal(opened.read(), VALUES)
        assert submissions() - before == handed_over

    def test_the_loop_does_not_wait_for_a_place(self):
        opened = Opened((12, 10), (4, 5), "uint16", "raw", store=WatchedStore(inline=False))
        opened.write(VALUES)
        copying = opened.array.limits.copying
        for _ in range(copying.limit):
            copying.enter()
        reading = opened.start_read()
        start(False, partial(asyncio.sleep, 0)).result(timeout=60)  # it still turns
        assert not reading.done()
        for _ in range(copying.limit):
            copying.leave()
        np.testing.assert_array_equal(reading.result(), VALUES)
        assert copying.free == copying.limit

    def test_few_submissions_however_many_chunks(self):
        opened = Opened((1000,), (1,), "uint8", store_fill=True)
        opened.write(np.ones(1000))
        before = submissions()
        opened.read()
        # The operation itself, and its helpers.
        assert submissions() - before <= width()

    @pytest.mark.parametrize("codecs", ["raw", "big", "zstd"])
    def test_nobody_is_woken_for_chunks_that_take_no_longer_than_that(self, codecs, monkeypatch):
        monkeypatch.setattr("tensorstore_py._runtime.fan_out.worth_sharing", lambda _piece_s: False)
        store = WatchedStore()
        store.width = 4
        opened = Opened((64, 64, 256), (16, 16, 16), "uint16", codecs, store=store)
        values = np.arange(2**20, dtype="u2").reshape(64, 64, 256)
        opened.write(values)
        before = submissions()
        np.testing.assert_array_equal(opened.read(), values)
        assert submissions() == before


class TestMissing:
    @pytest.mark.parametrize("inline", [True, False])
    def test_reads_as_the_fill_value(self, inline):
        opened = Opened((5, 5), (2, 2), fill=9, store=WatchedStore(inline=inline))
        assert (opened.read() == 9).all()

    def test_a_chunk_is_an_error_on_request_and_named(self):
        opened = Opened((5, 5), (2, 2), fill_missing=False)
        opened.write(1, opened.identity[:2, :2])
        assert (opened.read(opened.identity[:2, :2]) == 1).all()
        with pytest.raises(NotFoundError, match=r'"a/c/0/1".*fill_missing_data_reads'):
            opened.read(opened.identity[:2])

    def test_an_inner_chunk_is_an_error_on_request_and_named(self):
        opened = Opened((4, 4), (4, 4), "uint8", sharding([2, 2], ["bytes"]), fill_missing=False)
        opened.write(1, opened.identity[:2, :2])
        assert (opened.read(opened.identity[:2, :2]) == 1).all()
        with pytest.raises(NotFoundError, match=r"inner chunk \(1, 1\) of shard .*a/c/0/0"):
            opened.read(opened.identity[2:, 2:])

    def test_inner_chunks_read_as_the_fill_value(self):
        opened = Opened((4, 4), (4, 4), "uint8", sharding([2, 2], ["bytes"]), fill=3)
        opened.write(1, opened.identity[:2, :2])
        expected = np.full((4, 4), 3)
        expected[:2, :2] = 1
        np.testing.assert_array_equal(opened.read(), expected)


class TestCorrupt:
    @pytest.mark.parametrize("codecs", ["raw", "big", "gzip", "blosc", "zstd"])
    @pytest.mark.parametrize("part", [slice(0, 2), slice(2, 4)])
    @pytest.mark.parametrize("damage", ["truncated", "empty", "longer", "garbage"])
    def test_a_chunk_is_named_and_never_returned(self, codecs, part, damage):
        opened = written(codecs)
        good = opened.store.entries["a/c/1/0"]
        if codecs in {"raw", "big"} and damage == "garbage":
            damage = "longer"  # any bytes of the right number are a chunk
        bad = {
            "truncated": good[:-1],
            "empty": b"",
            "longer": good + b"\0",
            "garbage": bytes(byte ^ 0x5A for byte in good),
        }[damage]
        if codecs == "blosc" and damage == "longer":
            bad = good[:8] + (0).to_bytes(4, "little") + good[12:]
        opened.store.poke("a/c/1/0", bad)
        whole = part == slice(0, 2)
        view = opened.identity if whole else opened.identity[4:6, 1:3]
        with pytest.raises(DataLossError, match='"a/c/1/0"'):
            opened.read(view)

    @pytest.mark.parametrize("location", ["start", "end"])
    def test_every_damaged_byte_of_a_shard_is_found(self, location):
        codecs = sharding([2, 5], ["bytes", "crc32c"], location)
        opened = written(codecs)
        good = opened.store.entries["a/c/1/0"]
        for place in range(0, len(good), 3):
            bad = bytearray(good)
            bad[place] ^= 1
            opened.store.poke("a/c/1/0", bytes(bad))
            with pytest.raises(DataLossError, match=r"a/c/1/0"):
                opened.read()
        opened.store.poke("a/c/1/0", good)
        np.testing.assert_array_equal(opened.read(), VALUES)

    @pytest.mark.parametrize("location", ["start", "end"])
    def test_a_shard_cut_short_anywhere_is_found(self, location):
        opened = written(sharding([2, 5], ["bytes", "crc32c"], location))
        good = opened.store.entries["a/c/1/0"]
        for size in range(0, len(good), 5):
            opened.store.poke("a/c/1/0", good[:size])
            with pytest.raises(DataLossError, match=r"a/c/1/0"):
                opened.read()

    def test_an_index_that_points_outside(self):
        index = ["bytes"]
        codecs = sharding([2, 5], ["bytes"])
        codecs[0]["configuration"]["index_codecs"] = index
        opened = written(codecs)
        for entry in ([10**6, 20], [0, 10**6], [2**64 - 2, 5], [2**64 - 1, 20], [5, 2**64 - 1]):
            good = opened.store.entries["a/c/1/0"]
            bad = np.frombuffer(good[-32:], "<u8").copy()
            bad[:2] = entry
            opened.store.poke("a/c/1/0", good[:-32] + bad.tobytes())
            with pytest.raises(DataLossError, match=r"a/c/1/0"):
                opened.read()
            opened.store.poke("a/c/1/0", good)

    def test_a_stored_boolean_that_is_none(self):
        opened = Opened((4,), (4,), "bool")
        opened.store.poke("a/c/0", b"\0\1\2\1")
        with pytest.raises(DataLossError, match='"a/c/0"'):
            opened.read()


class TestShards:
    def test_one_inner_chunk_costs_the_index_and_its_bytes(self):
        opened = Opened((64, 64), (64, 64), "uint8", sharding([8, 8], ["bytes"]))
        opened.write(np.arange(64 * 64).reshape(64, 64) % 251 + 1)
        opened.store.counts.clear()
        opened.store.bytes_read = 0
        opened.read(opened.identity[8:16, 16:24])
        assert opened.store.counts == {"read": 2}
        assert opened.store.bytes_read == 64 + 64 * 16 + 4

    def test_neighbouring_inner_chunks_come_in_one_request(self):
        opened = sharded()
        opened.read()
        assert opened.store.counts == {"read": 2 * 6}

    def test_distant_ones_are_fetched_apart(self):
        opened = Opened((1 << 15,), (1 << 15,), "uint8", sharding([1024], ["bytes"]))
        opened.write(np.ones(1 << 15))
        opened.store.counts.clear()
        opened.store.bytes_read = 0
        opened.read(opened.identity.oindex[[0, (1 << 15) - 1]])
        assert opened.store.counts == {"read": 3}
        assert opened.store.bytes_read == 2048 + 32 * 16 + 4

    def test_batches_are_bounded(self):
        opened = Opened((5 << 20,), (5 << 20,), "uint8", sharding([1 << 20], ["bytes"]))
        opened.write(np.ones(5 << 20))
        opened.store.counts.clear()
        opened.read()
        assert opened.store.counts["read"] == 1 + 3

    def test_a_shard_replaced_while_it_is_read_gives_the_new_one_only(self):
        opened = sharded()
        other = sharded()
        other.write(VALUES + 1000)
        replacements = iter(range(3))

        def interfere(_operation, key):
            if (
                key == "a/c/0/0"
                and opened.store.counts["read"] % 2 == 0
                and next(replacements, None) is not None
            ):
                opened.store.poke(key, other.store.entries[key])

        opened.store.before = interfere
        found = opened.read(opened.identity[:4, :5])
        np.testing.assert_array_equal(found, VALUES[:4, :5] + 1000)
        assert opened.store.counts["read"] == 2 * 4

    def test_a_shard_deleted_while_it_is_read_reads_as_missing(self):
        opened = sharded(fill=9)

        def interfere(_operation, key):
            if opened.store.counts["read"] == 2:
                opened.store.poke(key, None)

        opened.store.before = interfere
        assert (opened.read(opened.identity[:4, :5]) == 9).all()

    def test_a_shard_that_never_holds_still_is_given_up(self):
        opened = sharded()

        def interfere(operation, key):
            if operation == "read":
                opened.store.poke(key, opened.store.entries[key])

        opened.store.before = interfere
        with CountedWaits() as waits, pytest.raises(AbortedError, match=r'"a/c/0/0"') as lost:
            opened.read(opened.identity[:4, :5])
        assert len(waits.seconds) == lost.value.attempts - 1 == 999
