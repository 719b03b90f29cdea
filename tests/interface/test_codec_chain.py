import numpy as np
import pytest

from tensorstore_py._interface.bind_chain import bind_chain
from tensorstore_py._interface.codec import BytesToBytes
from tensorstore_py._interface.codec_chain import CodecChain
from tensorstore_py._interface.codec_json import parse_codec_list
from tensorstore_py._runtime.scratch import scratch
from tensorstore_py.errors import DataLossError
from tensorstore_py.testing.codecs import assert_same_bits, chunk_type, layouts, sample

CHUNK = chunk_type((4, 6), "uint16")
TURN = {"name": "transpose", "configuration": {"order": [1, 0]}}
BIG = {"name": "bytes", "configuration": {"endian": "big"}}


class Recorder(BytesToBytes):
    """Stores bytes as they are, and remembers where it was told to decode to."""

    def __init__(self) -> None:
        self.outs: list[memoryview] = []

    def encode(self, data):
        return bytes(data)

    def decode(self, data, size=None):
        return bytes(data)

    def decode_into(self, data, out: memoryview) -> None:
        self.outs.append(out)
        super().decode_into(data, out)


def recorded(codecs: list) -> tuple[CodecChain, Recorder]:
    chain = bind_chain(parse_codec_list("zarr3", codecs), CHUNK)
    recorder = Recorder()
    return CodecChain(chain.chunk, chain.to_array, chain.to_bytes, (recorder,)), recorder


def lands_in(memory: memoryview, out: np.ndarray) -> bool:
    return np.shares_memory(np.frombuffer(memory, np.uint8), out)


@pytest.mark.parametrize(
    ("codecs", "order", "direct"),
    [
        ([], "C", True),
        ([], "F", False),
        ([TURN], "F", True),
        ([TURN], "C", False),
        ([BIG], "C", False),
    ],
)
def test_a_destination_of_the_stored_layout_is_decompressed_into(
    codecs: list, order, direct: bool
) -> None:
    chain, recorder = recorded(codecs)
    array = sample(CHUNK)
    out = np.zeros((4, 6), "uint16", order=order)

    chain.decode_into(chain.encode(array), out)

    assert_same_bits(array, out)
    assert [lands_in(memory, out) for memory in recorder.outs] == [direct]


def test_other_destinations_get_a_copy_from_scratch_memory() -> None:
    chain, recorder = recorded([])
    array = sample(CHUNK)

    for out in layouts(np.zeros((4, 6), "uint16")):
        chain.decode_into(chain.encode(array), out)
        assert_same_bits(array, out)

    mine = scratch(CHUNK.size_bytes)
    shared = [np.shares_memory(np.frombuffer(memory, "u1"), mine) for memory in recorder.outs]
    assert shared == [False, True, True, True]


@pytest.mark.parametrize(
    ("codecs", "in_place"),
    [
        (["bytes"], False),
        (["bytes", "zstd"], True),
        (["bytes", "blosc"], True),
        (["bytes", "zstd", "crc32c", "gzip"], True),
        ([BIG, "zstd"], False),
        ([TURN, "bytes", "zstd"], False),
    ],
)
def test_what_decodes_in_place_fills_any_memory_of_its_size(codecs: list, in_place: bool) -> None:
    chain = bind_chain(parse_codec_list("zarr3", codecs), CHUNK)
    array = sample(CHUNK)
    data = chain.encode(array)

    assert chain.decodes_in_place() == in_place
    if in_place:
        around = bytearray(b"x" * (CHUNK.size_bytes + 4))
        chain.decode_to(data, memoryview(around)[2:-2])
        assert_same_bits(array, np.frombuffer(around[2:-2], "uint16").reshape(4, 6))
        assert bytes(around[:2] + around[-2:]) == b"xxxx"


@pytest.mark.parametrize("codecs", [["zstd"], ["gzip"], ["blosc"], ["crc32c"], ["zstd", "gzip"]])
def test_in_place_nothing_goes_through_scratch_memory(codecs: list) -> None:
    chain = bind_chain(parse_codec_list("zarr3", codecs), CHUNK)
    array = sample(CHUNK)
    stored = chain.encode(array)
    # A caller may have put the stored bytes there.
    data = scratch(memoryview(stored).nbytes)
    data[:] = memoryview(stored).cast("B")
    memory = bytearray(CHUNK.size_bytes)

    chain.decode_to(data, memoryview(memory))

    assert_same_bits(array, np.frombuffer(memory, "uint16").reshape(4, 6))
    assert bytes(data) == bytes(stored)


@pytest.mark.parametrize("dtype", ["bool", "int4", "object"])
def test_elements_that_are_checked_or_packed_are_not_decoded_in_place(dtype: str) -> None:
    if dtype == "object":
        codecs = ["vlen-utf8", "zstd"]
    elif dtype == "int4":
        codecs = ["packbits", "zstd"]
    else:
        codecs = ["bytes", "zstd"]
    chain = bind_chain(parse_codec_list("zarr3", codecs), chunk_type((4, 6), dtype))

    assert not chain.decodes_in_place()


def test_scratch_arrays_live_in_this_thread_s_memory() -> None:
    chain, _ = recorded([])
    array = sample(CHUNK)

    decoded = chain.decode_scratch(chain.encode(array))

    assert_same_bits(array, decoded)
    assert np.shares_memory(decoded, np.frombuffer(scratch(CHUNK.size_bytes), np.uint8))
    assert not np.shares_memory(decoded, chain.decode(chain.encode(array)))


def test_without_compressors_decoding_is_a_view() -> None:
    chain = bind_chain(parse_codec_list("zarr3", [TURN]), CHUNK)
    data = bytes(chain.encode(sample(CHUNK)))

    assert np.shares_memory(chain.decode(data), np.frombuffer(data, np.uint8))


def test_all_compressors_run_in_reverse() -> None:
    chain = bind_chain(parse_codec_list("zarr3", [TURN, "zstd", "crc32c", "gzip"]), CHUNK)
    array = sample(CHUNK)
    data = chain.encode(array)
    out = np.zeros_like(array)

    chain.decode_into(data, out)

    assert_same_bits(array, out)
    assert_same_bits(array, chain.decode(data))
    assert_same_bits(array, chain.decode_scratch(data))


@pytest.mark.parametrize("codecs", [[], ["gzip"], ["crc32c"], ["zstd", "gzip"]])
def test_a_chunk_of_the_wrong_size_is_data_loss(codecs: list) -> None:
    chain = bind_chain(parse_codec_list("zarr3", codecs), CHUNK)
    small = bind_chain(parse_codec_list("zarr3", codecs), chunk_type((3, 6), "uint16"))
    data = bytes(small.encode(sample(small.chunk)))

    for decode in (
        chain.decode,
        chain.decode_scratch,
        lambda data: chain.decode_into(data, np.zeros((4, 6), "uint16")),
    ):
        with pytest.raises(DataLossError):
            decode(data)


@pytest.mark.parametrize("codecs", [["gzip"], ["crc32c"], ["blosc"], ["zstd", "gzip"]])
@pytest.mark.parametrize("rows", [3, 5])
def test_in_place_too(codecs: list, rows: int) -> None:
    chain = bind_chain(parse_codec_list("zarr3", codecs), CHUNK)
    other = bind_chain(parse_codec_list("zarr3", codecs), chunk_type((rows, 6), "uint16"))

    with pytest.raises(DataLossError):
        chain.decode_to(other.encode(sample(other.chunk)), memoryview(bytearray(48)))


def test_every_compressor_is_told_how_much_it_may_unpack() -> None:
    chain = bind_chain(parse_codec_list("zarr3", ["crc32c", "gzip", "zstd"]), CHUNK)
    size = CHUNK.size_bytes
    bomb = chain.compressors[1].encode(bytes(1 << 20))

    assert chain.sizes == (size, size + 4, None)
    for decode in (chain.decode, chain.decode_scratch):
        with pytest.raises(DataLossError, match=f"more than {size + 4} bytes"):
            decode(chain.compressors[2].encode(bomb))


def test_what_has_no_fixed_size_has_a_limit_all_the_same() -> None:
    chain = bind_chain(parse_codec_list("zarr3", ["bytes", "gzip", "crc32c", "zstd"]), CHUNK)

    assert chain.sizes == (48, None, None)
    assert chain.limits == (48, 2 * 48 + 65536, 2 * (2 * 48 + 65536) + 65536)
    assert chain.most_bytes() == 2 * (2 * (2 * 48 + 65536) + 65536) + 65536
    assert bind_chain(parse_codec_list("zarr3", ["bytes", "crc32c"]), CHUNK).most_bytes() == 52


def test_shards_are_limited_by_what_is_in_them() -> None:
    shards = {"name": "sharding_indexed", "configuration": {"chunk_shape": [2, 3]}}
    chain = bind_chain(parse_codec_list("zarr3", [shards, "gzip"]), CHUNK)

    assert chain.sizes == (None,)
    assert chain.limits == (4 * 16 + 4 + 2 * 4 * 12 + 65536,)


def test_a_limit_is_told_to_whom_no_size_can_be_told() -> None:
    told: list[object] = []

    class Told(Recorder):
        def decode(self, data, size=None):
            told.append(size)
            return bytes(data)

        def decode_within(self, data, most):
            told.append((most,))
            return bytes(data)

    chain = bind_chain((), CHUNK)
    chain = CodecChain(chain.chunk, chain.to_array, chain.to_bytes, (Told(), Told(), Told()))
    array = sample(CHUNK)

    assert_same_bits(array, chain.decode(chain.encode(array)))
    assert told == [(2 * (2 * 48 + 65536) + 65536,), (2 * 48 + 65536,), 48]


@pytest.mark.parametrize(
    ("shape", "codecs", "light"),
    [
        ((256, 250), ["bytes"], True),
        ((256, 250), [TURN, BIG, "crc32c"], True),
        ((256, 257), ["bytes"], False),
        ((4, 6), ["bytes", "zstd"], False),
        ((4, 6), ["bytes", "crc32c", "gzip"], False),
    ],
)
def test_what_is_little_more_than_copied_is_light(shape, codecs, light):
    chunk = chunk_type(shape, "uint16")

    assert bind_chain(parse_codec_list("zarr3", codecs), chunk).is_light is light
