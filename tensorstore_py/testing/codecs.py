"""What every codec must keep, as a test class to inherit.

A codec's test class names the metadata forms to try and, where it cannot take everything, the
chunks; the suite brings the promises. Values are compared by their bits, so that NaN, -0.0 and
types without an equality of their own are covered.
"""

from __future__ import annotations

import json
from queue import SimpleQueue
from typing import TYPE_CHECKING, ClassVar

import ml_dtypes
import numpy as np
import pytest

from tensorstore_py._interface.codec import Array, ChunkType
from tensorstore_py._interface.codec_list import (
    bind_chain,
    codec_to_json,
    parse_codec_json,
    resolve_chain,
)
from tensorstore_py._runtime.executors import operations
from tensorstore_py.errors import DataLossError, TensorStoreError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorstore_py._interface.codec_chain import CodecChain

__all__ = ["CodecSuite", "assert_same_bits", "chunk_type", "sample"]

SHAPES = ((), (1,), (7,), (1, 5, 1), (4, 6), (2, 3, 4))
DTYPES: tuple[np.dtype[np.generic], ...] = tuple(
    np.dtype(dtype)
    for dtype in (
        np.bool_,
        np.uint8,
        np.int16,
        np.uint32,
        np.float64,
        np.complex64,
        np.complex128,
        ml_dtypes.bfloat16,
        ml_dtypes.int4,
        ml_dtypes.float8_e4m3fn,
    )
)
_THREADED_CALLS = 24


def chunk_type(shape: tuple[int, ...], dtype: object, fill_value: object = 0) -> ChunkType:
    """A chunk of a shape and type.

    Example:
        >>> chunk_type((2, 3), "uint16").size_bytes
        12
    """
    known: np.dtype[np.generic] = np.dtype(dtype)  # type: ignore[call-overload]
    return ChunkType(shape, known, np.array(fill_value).astype(known))


def sample(chunk: ChunkType, seed: int = 0) -> Array:
    """A C-ordered array for a chunk: small values that every type can hold, partly in runs.

    Example:
        >>> sample(chunk_type((2, 2), "uint8")).shape
        (2, 2)
    """
    random = np.random.default_rng(seed)
    count = int(np.prod(chunk.shape, dtype=np.int64))
    values = random.integers(0, 2 if chunk.dtype == np.bool_ else 6, count)
    values[: count // 3] = 1
    return values.astype(chunk.dtype).reshape(chunk.shape)


def assert_same_bits(expected: Array, actual: Array) -> None:
    """Both have one shape and type, and the same bits in memory order of the former."""
    assert actual.shape == expected.shape
    # Stored byte order may shine through a decoded view; its values are what counts.
    native = actual.astype(expected.dtype)
    assert np.ascontiguousarray(native).tobytes() == np.ascontiguousarray(expected).tobytes()


class CodecSuite:
    """The promises of a codec; inherit it in a class whose name starts with `Test`.

    Attributes:
        configurations: JSON forms of the codec to try; every test runs once with each.
        family: the metadata format that they are written in.
        shapes: chunk shapes to try.
        dtypes: element types to try.
        detects_corruption: every single changed byte is noticed.
        detects_truncation: every missing or extra byte at the end is noticed.

    Example:
        >>> class TestChecksum(CodecSuite):
        ...     configurations = ({"name": "crc32c"},)
        ...     detects_corruption = True
    """

    configurations: ClassVar[tuple[object, ...]]
    family: ClassVar[str] = "zarr3"
    shapes: ClassVar[tuple[tuple[int, ...], ...]] = SHAPES
    dtypes: ClassVar[tuple[np.dtype[np.generic], ...]] = DTYPES
    detects_corruption: ClassVar[bool] = False
    detects_truncation: ClassVar[bool] = True

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run each test once with each configuration."""
        if "configuration" in metafunc.fixturenames:
            assert metafunc.cls is not None
            configurations = metafunc.cls.configurations
            metafunc.parametrize("configuration", configurations, ids=json.dumps)

    def chunks(self) -> Iterator[ChunkType]:
        """Every chunk to try."""
        for shape in self.shapes:
            for dtype in self.dtypes:
                yield chunk_type(shape, dtype)

    def chain(self, configuration: object, chunk: ChunkType) -> CodecChain:
        """The codec alone, with `bytes` in front if it takes bytes."""
        return bind_chain([parse_codec_json(self.family, configuration)], chunk)

    def one_chain(self, configuration: object) -> CodecChain:
        """The codec bound to a chunk of medium size."""
        return self.chain(configuration, chunk_type(self.shapes[-1], self.dtypes[-1]))

    def test_what_was_encoded_is_decoded(self, configuration: object) -> None:
        """Every shape and type comes back bit by bit."""
        for chunk in self.chunks():
            chain = self.chain(configuration, chunk)
            array = sample(chunk)

            assert_same_bits(array, chain.decode(bytes(chain.encode(array))))

    def test_memory_order_of_the_input_does_not_matter(self, configuration: object) -> None:
        """The stored bytes depend on values and shape only."""
        for chunk in self.chunks():
            chain = self.chain(configuration, chunk)
            array = sample(chunk)
            expected = bytes(chain.encode(array))

            for layout in layouts(array):
                assert bytes(chain.encode(layout)) == expected

    def test_decoding_into_memory_of_any_layout_equals_decoding(
        self, configuration: object
    ) -> None:
        """Contiguous, Fortran-ordered, strided and reversed destinations are all filled."""
        for chunk in self.chunks():
            chain = self.chain(configuration, chunk)
            array = sample(chunk)
            data = bytes(chain.encode(array))

            for out in layouts(np.zeros_like(array)):
                chain.decode_into(data, out)
                assert_same_bits(array, out)

    def test_decoding_to_scratch_equals_decoding(self, configuration: object) -> None:
        """This thread's scratch memory holds what `decode` returns."""
        for chunk in self.chunks():
            chain = self.chain(configuration, chunk)
            array = sample(chunk)

            assert_same_bits(array, chain.decode_scratch(bytes(chain.encode(array))))

    def test_a_part_is_what_the_whole_has_there(self, configuration: object) -> None:
        """Parts that can be decoded by themselves hold what `decode` returns."""
        for chunk in self.chunks():
            chain = self.chain(configuration, chunk)
            for codec in chain.compressors:
                content = sample(chunk).tobytes()
                data, size = codec.encode(content), len(content)
                for low in range(0, size, max(1, size // 9)):
                    part = codec.part(data, size, low, low + 1)
                    if part is None:
                        continue
                    assert codec.has_parts
                    assert part.low <= low < part.high
                    decoded = bytes(codec.decode(part.data, part.high - part.low))
                    assert decoded == content[part.low : part.high]

    def test_any_buffer_is_decoded(self, configuration: object) -> None:
        """Bytes, bytearrays and views into something larger are all taken."""
        chain = self.one_chain(configuration)
        array = sample(chain.chunk)
        data = bytes(chain.encode(array))
        padded = b"##" + data + b"##"

        for buffer in (data, bytearray(data), memoryview(padded)[2:-2]):
            assert_same_bits(array, chain.decode(buffer))
            out = np.zeros_like(array)
            chain.decode_into(buffer, out)
            assert_same_bits(array, out)

    def test_arguments_are_left_alone(self, configuration: object) -> None:
        """Neither the array nor the stored bytes are changed."""
        chain = self.one_chain(configuration)
        array = sample(chain.chunk)
        data = bytearray(chain.encode(array))
        before = bytes(data)

        chain.decode_into(data, np.empty_like(array))
        decoded = chain.decode(data)

        assert_same_bits(sample(chain.chunk), array)
        assert bytes(data) == before
        assert_same_bits(array, decoded)

    def test_nothing_is_remembered_between_calls(self, configuration: object) -> None:
        """The same input gives the same output, whatever came between."""
        chain = self.one_chain(configuration)
        first, second = sample(chain.chunk, 1), sample(chain.chunk, 2)
        encoded = bytes(chain.encode(first))

        other = bytes(chain.encode(second))
        assert_same_bits(second, chain.decode(other))

        assert bytes(chain.encode(first)) == encoded
        assert_same_bits(first, chain.decode(encoded))

    def test_many_threads_may_share_one_bound_codec(self, configuration: object) -> None:
        """Calls on several threads at a time do not disturb each other."""
        chain = self.one_chain(configuration)
        results: SimpleQueue[Exception | None] = SimpleQueue()

        def work(seed: int) -> None:
            try:
                array = sample(chain.chunk, seed)
                out = np.zeros_like(array)
                chain.decode_into(bytes(chain.encode(array)), out)
                assert_same_bits(array, out)
            except Exception as error:  # noqa: BLE001  # carried to the thread that waits
                results.put(error)
            else:
                results.put(None)

        for seed in range(_THREADED_CALLS):
            operations.submit(lambda seed=seed: work(seed))  # type: ignore[misc]

        assert [results.get(timeout=60) for _ in range(_THREADED_CALLS)] == (
            [None] * _THREADED_CALLS
        )

    def test_a_promised_size_is_kept(self, configuration: object) -> None:
        """Where `encoded_size` gives a number, all chunks have it."""
        for chunk in self.chunks():
            chain = self.chain(configuration, chunk)
            promised = chain.encoded_size()
            if promised is None:
                continue

            assert len(chain.encode(sample(chunk))) == promised
            assert len(chain.encode(np.zeros(chunk.shape, chunk.dtype))) == promised

    def test_missing_and_extra_bytes_are_data_loss(self, configuration: object) -> None:
        """Truncated data and data with a tail are refused."""
        chain = self.one_chain(configuration)
        array = sample(chain.chunk)
        data = bytes(chain.encode(array))
        lengths = {0, 1, 5, len(data) // 2, len(data) - 5, len(data) - 1}

        for damaged in (*(data[: max(0, length)] for length in sorted(lengths)), data + b"\0"):
            assert self._outcome(chain, damaged) is DataLossError or not self.detects_truncation

    def test_a_chunk_of_another_size_is_data_loss(self, configuration: object) -> None:
        """What decodes to more than the chunk is refused."""
        chain = self.one_chain(configuration)
        shape = (2 * chain.chunk.shape[0], *chain.chunk.shape[1:])
        other = chunk_type(shape, chain.chunk.dtype)
        larger = bytes(self.chain(configuration, other).encode(sample(other)))

        assert self._outcome(chain, larger) is DataLossError

    def test_changed_bytes_are_data_loss_or_other_values(self, configuration: object) -> None:
        """Damage never crashes and never raises anything but `DataLossError`."""
        chain = self.one_chain(configuration)
        data = bytes(chain.encode(sample(chain.chunk)))

        for position in range(len(data)):
            for mask in (0x01, 0x80, 0xFF):
                damaged = bytearray(data)
                damaged[position] ^= mask
                outcome = self._outcome(chain, bytes(damaged))
                assert outcome is DataLossError or not self.detects_corruption

    def test_json_survives_parsing(self, configuration: object) -> None:
        """What is printed parses to the same spec."""
        spec = parse_codec_json(self.family, configuration)
        written = codec_to_json(self.family, spec)

        assert parse_codec_json(self.family, written) == spec
        assert json.loads(json.dumps(written)) == written

    def test_resolving_states_everything(self, configuration: object) -> None:
        """A resolved spec resolves to itself and stores the same bytes."""
        spec = parse_codec_json(self.family, configuration)
        for chunk in self.chunks():
            resolved = resolve_chain([spec], chunk)
            array = sample(chunk)
            data = bytes(self.chain(configuration, chunk).encode(array))

            assert resolve_chain(resolved, chunk) == resolved
            assert bytes(bind_chain(resolved, chunk).encode(array)) == data

    def _outcome(self, chain: CodecChain, data: bytes) -> type[TensorStoreError] | None:
        """The error of decoding, which must be the same whichever way; None if there is none."""
        outcomes: list[type[TensorStoreError] | None] = []
        out: Array = np.zeros(chain.chunk.shape, chain.chunk.dtype)
        for decode in (
            lambda: chain.decode(data),
            lambda: chain.decode_into(data, out),
            lambda: chain.decode_scratch(data),
        ):
            try:
                decode()
            except DataLossError:
                outcomes.append(DataLossError)
            else:
                outcomes.append(None)
        assert len(set(outcomes)) == 1, outcomes
        return outcomes[0]


def layouts(array: Array) -> Iterator[Array]:
    """The same values in several memory layouts, each in memory of its own.

    Example:
        >>> [layout.strides for layout in layouts(np.zeros((2, 3), "uint8"))]
        [(3, 1), (1, 2), (12, 2), (-3, -1)]
    """
    yield array.copy()
    if not array.ndim:
        return
    yield np.asfortranarray(array)
    spread: Array = np.zeros(tuple(2 * extent for extent in array.shape), array.dtype)
    every_other = spread[(slice(None, None, 2),) * array.ndim]
    every_other[...] = array
    yield every_other
    backwards = array[(slice(None, None, -1),) * array.ndim].copy()
    yield backwards[(slice(None, None, -1),) * array.ndim]
