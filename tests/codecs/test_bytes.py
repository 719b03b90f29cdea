import sys

import ml_dtypes
import numpy as np
import pytest

from tensorstore_py.codecs.bytes import BytesSpec
from tensorstore_py.errors import DataLossError, SpecError
from tensorstore_py.plugin.driver import resolve_chain
from tensorstore_py.testing.codecs import DTYPES, assert_same_bits, chunk_type, sample

MORE_DTYPES = tuple(
    np.dtype(dtype)
    for dtype in (
        "float16",
        "datetime64[ns]",
        "timedelta64[s]",
        [("a", "<u2"), ("b", "u1")],
        "V5",
        "S3",
        "U2",
        ml_dtypes.int2,
        ml_dtypes.uint4,
        ml_dtypes.float4_e2m1fn,
        ml_dtypes.float8_e5m2,
    )
)


@pytest.mark.parametrize("endian", ["little", "big"])
@pytest.mark.parametrize("dtype", MORE_DTYPES, ids=str)
def test_other_element_types_survive(dtype: np.dtype, endian: str) -> None:
    chunk = chunk_type((3, 4), dtype)
    raw = np.random.default_rng(0).integers(0, 2, chunk.size_bytes, np.uint8)
    if dtype.kind == "U":
        raw[3::4] = 0  # a character has 21 bits
    array = raw.view(dtype).reshape(chunk.shape)
    bound = BytesSpec.parse({"endian": endian}).bind(chunk)

    decoded = bound.decode(bytes(bound.encode(array)))

    assert_same_bits(array, decoded)


def test_numbers_that_are_no_characters_are_data_loss() -> None:
    bound = BytesSpec.parse({"endian": "big"}).bind(chunk_type((2,), "<U1", ""))

    assert bound.decode(b"\0\x10\xff\xff" * 2).tolist() == [chr(0x10FFFF)] * 2
    with pytest.raises(DataLossError, match="a stored character is 0x110000"):
        bound.decode(b"\0\x10\xff\xff\0\x11\0\0")


@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if dtype.isbuiltin == 1], ids=str)
def test_byte_order_is_as_numpy_writes_it(dtype: np.dtype) -> None:
    array = sample(chunk_type((3, 4), dtype))

    little = BytesSpec(endian="little").bind(chunk_type((3, 4), dtype))
    big = BytesSpec(endian="big").bind(chunk_type((3, 4), dtype))

    assert bytes(little.encode(array)) == array.astype(dtype.newbyteorder("<")).tobytes()
    assert bytes(big.encode(array)) == array.astype(dtype.newbyteorder(">")).tobytes()


def test_extension_types_have_a_byte_order_too() -> None:
    chunk = chunk_type((2,), ml_dtypes.bfloat16)
    array = np.array([1.0, -2.0], ml_dtypes.bfloat16)
    bound = BytesSpec(endian="big").bind(chunk)

    assert bytes(bound.encode(array)).hex() == "3f80c000"
    assert_same_bits(array, bound.decode(bytes.fromhex("3f80c000")))


def test_encoding_and_decoding_in_native_order_copy_nothing() -> None:
    chunk = chunk_type((3, 4), "uint16")
    array = sample(chunk)
    bound = BytesSpec.parse({"endian": sys.byteorder}).bind(chunk)

    data = bound.encode(array)

    assert np.shares_memory(np.frombuffer(data, np.uint8), array)
    assert np.shares_memory(bound.decode(data), array)


def test_memory_is_direct_only_where_bytes_may_land_as_they_are() -> None:
    chunk = chunk_type((3, 4), "uint16")
    native = BytesSpec.parse({"endian": sys.byteorder}).bind(chunk)
    foreign = BytesSpec.parse({"endian": "big" if sys.byteorder == "little" else "little"})
    out = np.zeros((3, 4), "uint16")
    frozen = out.copy()
    frozen.flags.writeable = False

    memory = native.direct(out)

    assert memory is not None
    memory[:] = bytes(range(24))
    assert out.tobytes() == bytes(range(24))
    assert native.direct(np.asfortranarray(out)) is None
    assert native.direct(np.zeros((3, 8), "uint16")[:, ::2]) is None
    assert native.direct(frozen) is None
    assert foreign.bind(chunk).direct(out) is None


def test_booleans_are_never_decoded_unchecked() -> None:
    bound = BytesSpec().bind(chunk_type((2,), np.bool_))

    assert bound.direct(np.zeros(2, np.bool_)) is None
    with pytest.raises(DataLossError, match="neither 0 nor 1"):
        bound.decode(b"\1\2")


@pytest.mark.parametrize(
    ("asked", "dtype", "stated"),
    [
        ({}, "uint16", {"endian": "little"}),
        ({"endian": "big"}, "uint16", {"endian": "big"}),
        ({}, "uint8", {}),
        ({"endian": "big"}, "uint8", {}),
        ({"endian": "big"}, ml_dtypes.int4, {}),
        ({}, ml_dtypes.bfloat16, {"endian": "little"}),
    ],
)
def test_metadata_states_the_byte_order_where_there_is_one(
    asked: dict, dtype: object, stated: dict
) -> None:
    resolved = resolve_chain([BytesSpec.parse(asked)], chunk_type((2,), dtype))

    assert [spec.to_json() for spec in resolved] == [stated]


def test_python_objects_have_no_fixed_size() -> None:
    with pytest.raises(SpecError, match="variable length"):
        BytesSpec().bind(chunk_type((2,), np.object_))


def test_a_byte_order_is_little_or_big() -> None:
    with pytest.raises(SpecError, match=r'^endian: .*"little"'):
        BytesSpec.parse({"endian": "litle"})


def test_a_record_says_its_byte_order() -> None:
    for fields in ([("x", "u1")], [("x", "u2"), ("y", "S2")]):
        chunk = chunk_type((2,), np.dtype(fields), np.zeros((), fields))
        assert BytesSpec().resolved(chunk).endian == "little"
