from contextlib import suppress
from struct import pack_into, unpack_from
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tensorstore as wheel
from hypothesis import event, given
from hypothesis import strategies as st
from numcodecs import blosc as theirs

from tensorstore_py.codecs.blosc import Blosc, BloscSpec
from tensorstore_py.codecs.blosc.snappy import is_snappy, uncompress
from tensorstore_py.errors import DataLossError, SpecError, UnsupportedError
from tensorstore_py.plugin.codec import EncodedPart
from tensorstore_py.plugin.driver import OPAQUE, bind_chain, parse_codec_json, resolve_chain
from tensorstore_py.testing.codecs import chunk_type
from tests.codecs.bound import bound as bound_codec

DATA = np.arange(4000, dtype="<u4").tobytes()
NOISE = np.random.default_rng(0).integers(0, 256, 400_000).astype("u1")


def blosc(**members: object) -> Blosc:
    asked = {"cname": "lz4", "clevel": 5, "shuffle": 1, "typesize": 4, "blocksize": 0}
    return Blosc(**(asked | members))  # type: ignore[arg-type]


@pytest.mark.parametrize("cname", ["blosclz", "lz4", "lz4hc", "zlib", "zstd"])
@pytest.mark.parametrize("shuffle", [0, 1, 2])
def test_numcodecs_reads_and_writes_the_same(cname: str, shuffle: int) -> None:
    codec = blosc(cname=cname, shuffle=shuffle)

    data = theirs.compress(DATA, cname.encode(), 5, shuffle, 0, 4)

    assert codec.encode(DATA) == data
    assert codec.decode(data, len(DATA)) == DATA


def test_the_library_takes_no_threads_of_its_own() -> None:
    blosc()

    assert theirs.use_threads is False


def resolved(configuration: dict, dtype: object) -> dict:
    spec = parse_codec_json("zarr3", {"name": "blosc", "configuration": configuration})
    return resolve_chain([spec], chunk_type((4,), dtype))[1].to_json()


@pytest.mark.parametrize(
    ("asked", "dtype", "shuffle", "typesize"),
    [
        ({}, "uint16", "shuffle", 2),
        ({}, "uint8", "bitshuffle", 1),
        ({}, np.bool_, "bitshuffle", 1),
        ({}, ml_dtypes.int4, "bitshuffle", 1),
        ({}, "complex128", "shuffle", 16),
        ({}, "V300", "noshuffle", None),
        ({"typesize": 1}, "uint16", "bitshuffle", 1),
        ({"typesize": 4}, "V300", "shuffle", 4),
        ({"shuffle": "noshuffle"}, "uint16", "noshuffle", None),
        ({"shuffle": "noshuffle", "typesize": 7}, "uint16", "noshuffle", 7),
    ],
)
def test_shuffle_and_typesize_follow_the_elements(
    asked: dict, dtype: object, shuffle: str, typesize: int | None
) -> None:
    expected = {"blocksize": 0, "clevel": 5, "cname": "lz4", "shuffle": shuffle}
    if typesize is not None:
        expected["typesize"] = typesize

    assert resolved(asked, dtype) == expected


def test_behind_another_compressor_there_are_no_elements_to_shuffle() -> None:
    spec = parse_codec_json("zarr3", "blosc")
    chain = [parse_codec_json("zarr3", "crc32c"), spec]

    stated = resolve_chain(chain, chunk_type((4,), "uint16"))[2].to_json()

    assert stated["shuffle"] == "noshuffle"
    assert "typesize" not in stated


def test_a_shuffle_needs_the_size_of_an_element() -> None:
    shuffled = {"name": "blosc", "configuration": {"shuffle": "shuffle"}}
    chain = [parse_codec_json("zarr3", "crc32c"), parse_codec_json("zarr3", shuffled)]

    with pytest.raises(SpecError, match=r"^codecs\[1\]\.configuration\.typesize: .*state"):
        bind_chain(chain, chunk_type((4,), "uint16"))


@pytest.mark.parametrize(("dtype", "flag"), [("uint8", 2), ("uint16", 1)])
def test_version_2_shuffles_by_the_element_size(dtype: str, flag: int) -> None:
    chunk = chunk_type((4000,), dtype)
    data = bytes(chunk.size_bytes)

    encoded = bound_codec("zarr", "blosc", chunk).encode(data)

    assert encoded == theirs.compress(data, b"lz4", 5, flag, 0, chunk.dtype.itemsize)


def test_opaque_bytes_can_be_compressed() -> None:
    bound = BloscSpec().bind(OPAQUE)

    assert bound.decode(bound.encode(DATA)) == DATA


FIELDS = {"version": (0, "B"), "typesize": (3, "B"), "nbytes": (4, "<I"), "blocksize": (8, "<I")}


@pytest.mark.parametrize(
    ("field", "lie"),
    [
        ("version", 0),
        ("version", 3),
        ("typesize", 0),
        ("nbytes", 2**31),
        ("nbytes", 2**32 - 1),
        ("nbytes", len(DATA) + 1),
        ("nbytes", 1),
        ("blocksize", 0),
        ("blocksize", 1),
        ("blocksize", 2**32 - 1),
    ],
)
def test_a_header_that_lies_never_reaches_the_library(field: str, lie: int) -> None:
    data = bytearray(blosc().encode(DATA))
    offset, form = FIELDS[field]
    pack_into(form, data, offset, lie)

    with pytest.raises(DataLossError):
        blosc().decode(bytes(data), len(DATA))
    with pytest.raises(DataLossError):
        blosc().decode_into(bytes(data), memoryview(bytearray(len(DATA))))


def test_a_stored_size_that_is_not_the_length_is_data_loss() -> None:
    data = blosc().encode(DATA)

    with pytest.raises(DataLossError, match=f"states {len(data)} bytes, but there are"):
        blosc().decode(data + b"\0")
    with pytest.raises(DataLossError, match=f"states {len(data)} bytes, but there are"):
        blosc().decode(data[:-1])


@pytest.mark.parametrize("cname", ["blosclz", "lz4", "zlib", "zstd"])
def test_damaged_blocks_never_crash_codec(cname: str) -> None:
    random = np.random.default_rng(0)
    codec = blosc(cname=cname, blocksize=4096)
    intact = np.frombuffer(codec.encode(DATA), np.uint8)
    out = memoryview(bytearray(len(DATA)))

    for _ in range(500):
        damaged = intact.copy()
        positions = random.integers(12, len(damaged), random.integers(1, 4))
        damaged[positions] = random.integers(0, 256, len(positions))
        with suppress(DataLossError):
            codec.decode_into(damaged.tobytes(), out)


@given(
    cname=st.sampled_from(["blosclz", "lz4", "lz4hc", "zlib", "zstd"]),
    clevel=st.integers(0, 9),
    shuffle=st.integers(0, 2),
    typesize=st.sampled_from([1, 2, 3, 8, 17]),
    blocksize=st.sampled_from([0, 16, 1000, 4096, 30_000]),
    size=st.integers(1, 400_000),
    compressible=st.booleans(),
    draw=st.data(),
)
def test_a_part_decodes_to_what_the_whole_has_there(
    cname: str,
    clevel: int,
    shuffle: int,
    typesize: int,
    blocksize: int,
    size: int,
    compressible: bool,
    draw: st.DataObject,
) -> None:
    values = (np.arange(size) % 97).astype("u1") if compressible else NOISE[:size]
    codec = blosc(
        cname=cname, clevel=clevel, shuffle=shuffle, typesize=typesize, blocksize=blocksize
    )
    data = codec.encode(values.tobytes())
    low = draw.draw(st.integers(0, size - 1))
    high = draw.draw(st.integers(low + 1, size))

    part = codec.part(data, size, low, high)

    event(f"in parts: {part is not None}")
    if part is not None:
        assert part.low <= low < high <= part.high
        assert part.high - part.low < size
        assert (
            codec.decode(part.data, part.high - part.low) == values[part.low : part.high].tobytes()
        )


def test_a_part_is_no_more_than_the_blocks_that_hold_it() -> None:
    data = in_blocks(DATA)  # 3 blocks of 4,096 bytes and one of 3,712

    assert [(part.low, part.high) for part in parts(data, (0, 1), (4095, 4097), (8192, 8193))] == [
        (0, 4096),
        (0, 8192),
        (8192, 12288),
    ]
    (end,) = parts(data, (len(DATA) - 1, len(DATA)))
    assert (end.low, end.high) == (8192, len(DATA))
    assert blosc().part(data, len(DATA), 0, 8193) is None
    assert blosc().part(blosc().encode(DATA), len(DATA), 0, 1) is None


def in_blocks(data: bytes) -> bytes:
    """Stored in blocks of 4,096 bytes; not all compressors inside do as they are told."""
    return blosc(cname="zstd", blocksize=4096).encode(data)


def parts(data: bytes, *ranges: tuple[int, int]) -> list[EncodedPart]:
    found = [blosc().part(data, len(DATA), *each) for each in ranges]
    return [part for part in found if part is not None]


def test_blocks_may_be_stored_in_any_order() -> None:
    data = in_blocks(DATA)
    head = 16 + 4 * 4
    one, two = unpack_from("<2I", data, 16)
    three = unpack_from("<I", data, 24)[0]
    swapped = bytearray(data)
    swapped[head : head + three - two] = data[two:three]
    swapped[head + three - two : three] = data[one:two]
    pack_into("<2I", swapped, 16, head + three - two, head)

    (part,) = parts(bytes(swapped), (0, 4096))

    assert blosc().decode(bytes(swapped), len(DATA)) == DATA
    assert blosc().decode(part.data, 4096) == DATA[:4096]


def test_parts_of_damaged_data_never_crash() -> None:
    random = np.random.default_rng(1)
    codec = blosc()
    intact = np.frombuffer(in_blocks(DATA), np.uint8)
    refused = 0
    for _ in range(2000):
        damaged = intact.copy()
        positions = random.integers(0, 80, random.integers(1, 4))
        damaged[positions] = random.integers(0, 256, len(positions))
        low = int(random.integers(0, len(DATA)))
        try:
            part = codec.part(damaged.tobytes(), len(DATA), low, low + 1)
            if part is not None:
                codec.decode_into(part.data, memoryview(bytearray(part.high - part.low)))
        except DataLossError:
            refused += 1
    assert refused


@pytest.mark.parametrize("offset", [0, 31, 2**31, 2**32 - 1])
def test_an_offset_outside_of_the_blocks_is_data_loss(offset: int) -> None:
    data = bytearray(in_blocks(DATA))
    pack_into("<I", data, 20, offset)

    with pytest.raises(DataLossError, match="an offset of a block is outside"):
        blosc().part(bytes(data), len(DATA), 0, 1)


def test_a_part_of_data_of_another_size_is_data_loss() -> None:
    data = in_blocks(DATA)

    with pytest.raises(DataLossError, match=f"decoded to {len(DATA)} bytes, expected 15999"):
        blosc().part(data, len(DATA) - 1, 0, 1)


def test_a_compressor_that_the_library_lacks_is_named() -> None:
    codec = BloscSpec(cname="snappy").bind(chunk_type((4,), "uint8"))
    with pytest.raises(UnsupportedError, match=r"is not built into.*can only be read"):
        codec.encode(b"abcd")


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("cname", "lz5"),
        ("clevel", 10),
        ("shuffle", 1),
        ("typesize", 0),
        ("typesize", 256),
        ("blocksize", -1),
        ("level", 3),
    ],
)
def test_members_outside_the_range_are_refused(member: str, value: object) -> None:
    with pytest.raises(SpecError, match=rf"^configuration\.{member}: "):
        parse_codec_json("zarr3", {"name": "blosc", "configuration": {member: value}})


@pytest.mark.parametrize(("member", "value"), [("shuffle", -2), ("shuffle", 3), ("typesize", 1)])
def test_version_2_has_members_of_its_own(member: str, value: object) -> None:
    with pytest.raises(SpecError, match=rf"^{member}: "):
        parse_codec_json("zarr", {"id": "blosc", member: value})


@pytest.mark.parametrize(
    ("name", "members"),
    [
        ("cname", {"clevel": 5, "shuffle": 1}),
        ("clevel", {"cname": "lz4", "shuffle": 1}),
        ("shuffle", {"cname": "lz4", "clevel": 5}),
        ("shuffle", {"cname": "lz4", "clevel": 5, "shuffle": -1}),
        ("cname", {"cname": "lz5", "clevel": 5, "shuffle": 1}),
        ("typesize", {"cname": "lz4", "clevel": 5, "shuffle": 1, "typesize": 2}),
    ],
)
def test_n5_states_what_it_needs(name: str, members: dict) -> None:
    with pytest.raises(SpecError, match=f"^{name}: "):
        parse_codec_json("n5", {"type": "blosc", **members})


RANDOM = np.random.default_rng(0)


def _values(kind: str, count: int) -> Any:
    if kind == "random":
        return RANDOM.integers(0, 200, count)
    return np.arange(count) % 97 if kind == "ramp" else np.full(count, 7)


def _encoded(values: Any, shuffle: int, blocksize: int) -> bytes:
    """The chunk that the reference stores."""
    compressor = {"id": "blosc", "cname": "snappy", "shuffle": shuffle, "blocksize": blocksize}
    metadata = {"compressor": compressor, "chunks": [len(values)]}
    spec = {"driver": "zarr", "kvstore": "memory://", "metadata": metadata}
    store = wheel.open(spec, create=True, dtype=values.dtype, shape=values.shape).result()
    store[:] = values
    assert store.kvstore is not None
    found: bytes = store.kvstore["0"]
    return found


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float64"])
@pytest.mark.parametrize("shuffle", [0, 1, 2])
@pytest.mark.parametrize("kind", ["random", "ramp", "constant"])
def test_what_the_reference_wrote_is_read(dtype: str, shuffle: int, kind: str) -> None:
    codec = BloscSpec(cname="snappy").bind(chunk_type((4,), dtype))
    compressed = 0
    for count in (1, 7, 100, 3000, 40_000):
        for blocksize in (0, 512, 4096):
            values = _values(kind, count).astype(dtype)
            data = _encoded(values, shuffle, blocksize)
            compressed += is_snappy(data)
            assert codec.decode(data, values.nbytes) == values.tobytes()
            out = memoryview(bytearray(values.nbytes))
            codec.decode_into(data, out)
            assert out == values.tobytes()
    # the library stores what it cannot make shorter, and elements of one byte always
    assert compressed or dtype == "uint8" or kind == "random"


def test_damaged_blocks_never_crash_snappy() -> None:
    codec = BloscSpec(cname="snappy").bind(chunk_type((4,), "uint16"))
    values = _values("ramp", 3000).astype("uint16")
    intact = np.frombuffer(_encoded(values, 1, 4096), np.uint8)
    refused = 0
    for _ in range(300):
        damaged = intact.copy()
        positions = RANDOM.integers(16, len(damaged), RANDOM.integers(1, 4))
        damaged[positions] = RANDOM.integers(0, 256, len(positions))
        refused += 1
        with suppress(DataLossError):
            assert len(codec.decode(damaged.tobytes(), values.nbytes)) == values.nbytes
            refused -= 1
    assert refused


def test_copies_that_overlap_themselves() -> None:
    pattern = bytes([60, 0b1000, 1, 2, 3, (57 - 1) << 2 | 2, 3, 0])
    assert uncompress(pattern, 60) == b"\1\2\3" * 20
    far = bytes([8, 0b1100, 1, 2, 3, 4, (4 - 1) << 2 | 3, 4, 0, 0, 0])
    assert uncompress(far, 8) == b"\1\2\3\4" * 2


def test_long_literals() -> None:
    data = bytes(range(256)) * 2
    assert uncompress(bytes([0x80, 4, 61 << 2, 0xFF, 1]) + data, 512) == data


@pytest.mark.parametrize(
    ("stream", "problem"),
    [
        (b"", "no length"),
        (b"\xff" * 6, "no length"),
        (b"\5\0a", "5 bytes are stated"),
        (b"\4\0a", "1 bytes, not 4"),
        (b"\4\x14abc", "within a literal"),
        (b"\4\xf0", "within a literal"),
        (b"\4\1\0", "before its beginning"),
        (b"\4\0a\x01\2", "before its beginning"),
        (b"\4\0a\xfe\1\0", "more than 4 bytes"),
        (b"\4\0a\1", "before its beginning"),
    ],
)
def test_streams_that_are_not_whole(stream: bytes, problem: str) -> None:
    with pytest.raises(DataLossError, match=problem):
        uncompress(stream, 4)
