import ml_dtypes
import numpy as np
import pytest

from tensorstore_py.codecs.sharding_indexed import ShardingIndexed, ShardingIndexedSpec
from tensorstore_py.errors import DataLossError, MismatchError, SpecError
from tensorstore_py.plugin.codec import ChunkType, crc32c
from tensorstore_py.plugin.driver import (
    bind_chain,
    codec_to_json,
    parse_codec_json,
    parse_codec_list,
    resolve_chain,
)
from tensorstore_py.plugin.kvstore import ByteRange
from tensorstore_py.testing.codecs import CodecSuite, assert_same_bits, chunk_type, sample

#: Offset and size of an inner chunk that is not stored, by the specification.
MISSING = 2**64 - 1


def json(**members: object) -> dict:
    return {"name": "sharding_indexed", "configuration": members}


class TestShardingIndexed(CodecSuite):
    configurations = (
        "sharding_indexed",
        json(chunk_shape=[2, 3]),
        json(chunk_shape=[1, 6], codecs=["blosc"], index_location="start"),
        json(
            chunk_shape=[2, 2],
            codecs=[{"name": "transpose", "configuration": {"order": [1, 0]}}, "zstd", "crc32c"],
            index_codecs=[{"name": "bytes", "configuration": {"endian": "big"}}, "crc32c"],
        ),
        json(chunk_shape=[4, 3], codecs=[json(chunk_shape=[2, 3], codecs=["gzip"])]),
    )
    shapes = ((4, 6),)
    # Extra bytes are a hole between inner chunks as far as an index at the start can tell.
    detects_truncation = False


def shard(shape: tuple[int, ...] = (4, 6), dtype: object = "uint16", **members) -> ShardingIndexed:
    fill_value = members.pop("fill_value", 0)
    members.setdefault("chunk_shape", [2, 3])
    spec = parse_codec_json("zarr3", json(**members))
    assert isinstance(spec, ShardingIndexedSpec)
    return spec.bind(chunk_type(shape, dtype, fill_value))


class TestShardingOfRankZero(CodecSuite):
    configurations = (json(chunk_shape=[]), json(codecs=["zstd"], index_location="start"))
    shapes = ((),)
    detects_truncation = False

    def test_a_chunk_of_another_size_is_data_loss(self, configuration: object) -> None:
        chain = self.one_chain(configuration)
        data = bytes(chain.encode(np.ones((), chain.chunk.dtype)))

        assert self._outcome(chain, data[:-7]) is DataLossError


@pytest.mark.parametrize("location", ["start", "end"])
@pytest.mark.parametrize("length", [0, 1, 60, 67])
def test_a_shard_shorter_than_its_index_is_data_loss(location: str, length: int) -> None:
    with pytest.raises(DataLossError, match="fewer than its index"):
        shard(index_location=location).decode(bytes(length))


def test_inner_chunks_stand_in_c_order_before_the_index() -> None:
    array = np.arange(1, 25, dtype="<u2").reshape(4, 6)

    data = shard().encode(array)

    inner = [array[i : i + 2, j : j + 3].tobytes() for i in (0, 2) for j in (0, 3)]
    index = np.array([[0, 12], [12, 12], [24, 12], [36, 12]], "<u8").tobytes()
    checksum = crc32c(index).to_bytes(4, "little")
    assert data == b"".join(inner) + index + checksum


def test_an_index_at_the_start_counts_itself() -> None:
    array = np.arange(1, 25, dtype="<u2").reshape(4, 6)
    codec = shard(index_location="start", index_codecs=["bytes"])

    data = codec.encode(array)

    assert codec.index_range() == ByteRange(0, 64)
    assert codec.decode_index(data[:64])[:, 0].tolist() == [64, 76, 88, 100]
    assert data[64:70] == array[0, :3].tobytes()


def test_an_index_at_the_end_is_a_suffix() -> None:
    codec = shard()

    assert codec.index_size == 4 * 16 + 4
    assert codec.index_range() == ByteRange(-68)
    assert codec.grid_shape == (2, 2)
    assert codec.inner.chunk.shape == (2, 3)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "float64", "complex128", "V3"])
def test_inner_chunks_of_fill_value_are_left_out(dtype: str) -> None:
    codec = shard(dtype=dtype, index_codecs=["bytes"])
    array = np.zeros((4, 6), dtype)
    array.view(np.uint8)[0, 0] = array.view(np.uint8)[3, -1] = 1

    data = codec.encode(array)

    index = codec.decode_index(data[-64:])
    stored = index[:, 0] != MISSING
    assert stored.tolist() == [True, False, False, True]
    assert (index[~stored] == MISSING).all()
    assert_same_bits(array, codec.decode(data))


@pytest.mark.parametrize(
    ("dtype", "fill_value", "other"),
    [
        ("float32", 0.0, -0.0),
        ("float64", np.nan, -np.nan),
        ("complex128", 0, complex(0, -0.0)),
        (ml_dtypes.bfloat16, 0.0, -0.0),
        ("int8", -1, 1),
    ],
)
def test_the_fill_value_is_compared_by_its_bits(
    dtype: object, fill_value: object, other: object
) -> None:
    codec = shard(dtype=dtype, fill_value=fill_value)
    array = np.full((4, 6), np.array(fill_value).astype(codec.inner.chunk.dtype))

    assert len(codec.encode(array)) == codec.index_size
    array[3, 5] = other
    data = codec.encode(array)

    assert len(data) > codec.index_size
    assert_same_bits(array, codec.decode(data))


def test_missing_inner_chunks_decode_to_the_fill_value() -> None:
    codec = shard(fill_value=7)

    parts = codec.assemble({2: bytes(12)})

    assert parts is not None
    decoded = codec.decode(b"".join(parts))
    assert (decoded[2:, :3] == 0).all()
    assert (decoded[:2] == 7).all()
    assert (decoded[2:, 3:] == 7).all()


@pytest.mark.parametrize("location", ["start", "end"])
def test_a_shard_is_assembled_from_encoded_inner_chunks(location: str) -> None:
    codec = shard(codecs=["zstd"], index_location=location)
    array = sample(codec.inner.chunk, 3)
    encoded = codec.inner.encode(array)

    parts = codec.assemble({3: memoryview(encoded), 1: encoded})

    assert parts is not None
    decoded = codec.decode(b"".join(parts))
    assert_same_bits(array, decoded[:2, 3:])
    assert_same_bits(array, decoded[2:, 3:])
    assert not decoded[:, :3].any()


def test_nothing_to_store_assembles_to_nothing() -> None:
    assert shard().assemble({}) is None


def with_entry(number: int, offset: int, size: int) -> bytes:
    codec = shard(index_codecs=["bytes"])
    data = bytearray(codec.encode(np.ones((4, 6), "uint16")))
    index = np.frombuffer(data, "<u8", offset=48).reshape(4, 2)
    index[number] = offset, size
    return bytes(data)


@pytest.mark.parametrize(
    ("offset", "size"),
    [
        (40, 80),
        (112, 1),
        (113, 0),
        (MISSING, 0),
        (0, MISSING),
        (MISSING - 4, 12),
        (12, MISSING - 4),
    ],
)
def test_index_entries_outside_the_shard_are_data_loss(offset: int, size: int) -> None:
    with pytest.raises(DataLossError, match=rf"entry 2 \(offset {offset}, size {size}\)"):
        shard(index_codecs=["bytes"]).decode(with_entry(2, offset, size))


def test_inner_chunks_of_the_wrong_size_are_data_loss() -> None:
    with pytest.raises(DataLossError, match="11 bytes, expected 12"):
        shard(index_codecs=["bytes"]).decode(with_entry(2, 0, 11))


def test_inner_chunks_are_found_wherever_the_index_says() -> None:
    decoded = shard(index_codecs=["bytes"]).decode(with_entry(2, 1, 12))

    assert (decoded[2:, :3] == 256).all()


def test_a_corrupt_index_is_named() -> None:
    data = bytearray(shard().encode(np.ones((4, 6), "uint16")))
    data[-1] ^= 1

    with pytest.raises(DataLossError, match="index is corrupt: CRC-32C mismatch"):
        shard().decode(bytes(data))
    with pytest.raises(DataLossError, match="index needs 68 bytes"):
        shard().decode_index(bytes(67))


def test_decoding_goes_straight_to_a_strided_destination() -> None:
    codec = shard(codecs=["zstd"])
    array = sample(chunk_type((4, 6), "uint16"))
    big = np.zeros((8, 12), "uint16")

    codec.decode_into(codec.encode(array), big[2:6, 3:9])

    assert_same_bits(array, big[2:6, 3:9])
    assert big.sum() == array.sum()


def test_metadata_states_everything_but_the_usual_index_location() -> None:
    chunk = chunk_type((4, 6), "uint16")
    spec = resolve_chain([parse_codec_json("zarr3", "sharding_indexed")], chunk)[0]
    little = {"configuration": {"endian": "little"}, "name": "bytes"}
    expected = {
        "chunk_shape": [4, 6],
        "codecs": [little],
        "index_codecs": [little, {"name": "crc32c"}],
    }

    assert codec_to_json("zarr3", spec) == {"configuration": expected, "name": "sharding_indexed"}
    assert codec_to_json("zarr3", spec, include_defaults=True) == {
        "configuration": {**expected, "index_location": "end"},
        "name": "sharding_indexed",
    }


def test_what_was_not_asked_is_not_stated() -> None:
    spec = parse_codec_json("zarr3", json(chunk_shape=[2, 3], codecs=["gzip"]))

    assert codec_to_json("zarr3", spec) == json(chunk_shape=[2, 3], codecs=[{"name": "gzip"}])


@pytest.mark.parametrize(
    ("members", "where"),
    [
        ({"chunk_shape": [2, 0]}, "chunk_shape[1]"),
        ({"chunk_shape": "2"}, "chunk_shape"),
        ({"codecs": "gzip"}, "codecs"),
        ({"codecs": ["bytes", "gzipp"]}, "codecs[1].name"),
        ({"codecs": [{"name": "gzip", "configuration": {"level": 99}}]}, "codecs[0].configuration"),
        ({"index_codecs": [{}]}, "index_codecs[0].name"),
        ({"index_location": "middle"}, "index_location"),
    ],
)
def test_what_cannot_be_parsed_is_named(members: dict, where: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_codec_json("zarr3", json(**members))

    assert str(caught.value).startswith(f"configuration.{where}")


@pytest.mark.parametrize(
    ("members", "where"),
    [
        ({"chunk_shape": [3, 3]}, "chunk_shape[0]: 3 does not divide"),
        ({"chunk_shape": [2]}, "chunk_shape: [2] has 1 dimensions"),
        ({"index_codecs": ["bytes", "gzip"]}, "index_codecs: an index must"),
        ({"codecs": ["gzip", "bytes"]}, 'codecs[1]: codec "bytes" takes an array'),
        ({"index_codecs": ["gzip", "bytes"]}, 'index_codecs[1]: codec "bytes" takes an array'),
    ],
)
def test_what_does_not_fit_the_chunk_is_named(members: dict, where: str) -> None:
    specs = parse_codec_list("zarr3", [json(**({"chunk_shape": [2, 3]} | members))])

    for run in (bind_chain, resolve_chain):
        if run is resolve_chain and "index must" in where:
            continue
        with pytest.raises(SpecError) as caught:
            run(specs, chunk_type((4, 6), "uint16"))
        assert str(caught.value).startswith(f"codecs[0].configuration.{where}")


def test_partial_specs_merge_member_by_member() -> None:
    one = ShardingIndexedSpec.parse({"chunk_shape": [2, 3], "codecs": ["gzip"]})
    two = ShardingIndexedSpec.parse({"index_location": "start", "codecs": ["bytes", "gzip"]})

    assert one.merged(two).to_json() == {
        "chunk_shape": [2, 3],
        "codecs": [{"name": "bytes"}, {"name": "gzip"}],
        "index_location": "start",
    }
    with pytest.raises(MismatchError, match="chunk_shape"):
        one.merged(ShardingIndexedSpec.parse({"chunk_shape": [2, 4]}))
    with pytest.raises(MismatchError, match="index_location"):
        two.merged(ShardingIndexedSpec.parse({"index_location": "end"}))


def test_a_fill_value_that_varies_over_the_last_dimension() -> None:
    fill = np.array([1, 2, 3], np.uint16)
    codec = ShardingIndexedSpec.parse({"chunk_shape": [2, 3]}).bind(
        ChunkType((4, 3), np.dtype(np.uint16), fill)
    )
    values = np.tile(fill, (4, 1))
    values[3, 1] = 9

    data = codec.encode(values)

    entries = codec.decode_index(data[-codec.index_size :]).tolist()
    assert [entry[0] == MISSING for entry in entries] == [True, False]
    assert codec.decode(data).tolist() == values.tolist()
