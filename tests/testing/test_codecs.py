"""The suite must catch codecs that break their promises: it is run on broken ones."""

from zlib import crc32

import numpy as np
import pytest

from tensorstore_py.codecs.checksums import Checksum
from tensorstore_py.plugin.codec import (
    BytesToBytes,
    ChunkType,
    CodecChain,
)
from tensorstore_py.plugin.driver import bind_chain
from tensorstore_py.testing.codecs import (
    CodecSuite,
    assert_same_bits,
    chunk_type,
    layouts,
    sample,
)


class Crc32(Checksum):
    """A codec that keeps its promises."""

    def __init__(self):
        super().__init__("crc32", lambda data: crc32(data.data), "end")


class Forgetful(Crc32):
    """Decodes everything to zeros."""

    def decode(self, data, size=None):
        return memoryview(bytes(len(super().decode(data, size))))


class Careless(Crc32):
    """Checks nothing."""

    def decode(self, data, size=None):
        return memoryview(data)[: size or -4]


class Meddling(Crc32):
    """Changes what it was given."""

    def decode(self, data, size=None):
        decoded = super().decode(data, size)
        if isinstance(data, bytearray):
            data[0] ^= 1
        return decoded


class Remembering(Crc32):
    """Every call depends on the one before."""

    calls = 0

    def encode(self, data):
        self.calls += 1
        return super().encode(data)[: -1 if self.calls > 1 else None]


class Boasting(Crc32):
    """Promises a size that it does not keep."""

    def encoded_size(self, size):
        return size


class Crashing(Crc32):
    """Raises what it should not."""

    def decode(self, data, size=None):
        if len(data) < 8:
            raise KeyError(0)
        return super().decode(data, size)


def suite(codec: type[BytesToBytes]) -> CodecSuite:
    class Broken(CodecSuite):
        configurations = ("crc32c",)
        detects_corruption = True

        def chain(self, configuration: object, chunk: ChunkType) -> CodecChain:
            intact = bind_chain([], chunk)
            return CodecChain(chunk, (), intact.to_bytes, (codec(),))

    return Broken()


BROKEN = [
    (Forgetful, "test_what_was_encoded_is_decoded"),
    (Forgetful, "test_decoding_into_memory_of_any_layout_equals_decoding"),
    (Forgetful, "test_decoding_to_scratch_equals_decoding"),
    (Forgetful, "test_any_buffer_is_decoded"),
    (Forgetful, "test_many_threads_may_share_one_bound_codec"),
    (Careless, "test_missing_and_extra_bytes_are_data_loss"),
    (Careless, "test_changed_bytes_are_data_loss_or_other_values"),
    (Careless, "test_a_chunk_of_another_size_is_data_loss"),
    (Meddling, "test_arguments_are_left_alone"),
    (Remembering, "test_nothing_is_remembered_between_calls"),
    (Remembering, "test_memory_order_of_the_input_does_not_matter"),
    (Boasting, "test_a_promised_size_is_kept"),
    (Crashing, "test_missing_and_extra_bytes_are_data_loss"),
]


@pytest.mark.parametrize(("codec", "test"), BROKEN)
def test_a_broken_codec_is_caught(codec: type[BytesToBytes], test: str) -> None:
    with pytest.raises((AssertionError, ValueError, KeyError)):
        getattr(suite(codec), test)("crc32c")


@pytest.mark.parametrize("test", sorted({test for _, test in BROKEN}))
def test_an_intact_codec_is_not(test: str) -> None:
    getattr(suite(Crc32), test)("crc32c")


def test_layouts_differ_in_memory_and_agree_in_values() -> None:
    array = sample(chunk_type((3, 4), "uint16"))

    made = list(layouts(array))

    assert len({layout.strides for layout in made}) == len(made)
    for layout in made:
        assert_same_bits(array, layout)
        assert not np.shares_memory(layout, array)


def test_bits_are_compared_not_values() -> None:
    with pytest.raises(AssertionError):
        assert_same_bits(np.array([0.0]), np.array([-0.0]))
    with pytest.raises(AssertionError):
        assert_same_bits(np.zeros((2, 1)), np.zeros((1, 2)))
    assert_same_bits(np.array([np.nan]), np.array([np.nan]))
    assert_same_bits(np.array([1], "<u2"), np.array([1], ">u2"))
