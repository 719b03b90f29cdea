import numpy as np
import pytest

from tensorstore_py.errors import DataLossError, SpecError
from tensorstore_py.plugin.codec import ArrayToBytes
from tensorstore_py.plugin.driver import parse_codec_json
from tensorstore_py.testing.codecs import chunk_type


def bound(dtype: object, shape: tuple[int, ...], **members: object) -> ArrayToBytes:
    codec = parse_codec_json("zarr3", {"name": "packbits", "configuration": members})
    found = codec.bind(chunk_type(shape, dtype))  # type: ignore[attr-defined]
    assert isinstance(found, ArrayToBytes)
    return found


@pytest.mark.parametrize(
    ("padding", "expected"),
    [("none", "b901"), ("first_byte", "07b901"), ("last_byte", "b90107")],
)
def test_booleans_begin_at_the_lowest_bit(padding: str, expected: str) -> None:
    values = np.array([1, 0, 0, 1, 1, 1, 0, 1, 1], bool)
    codec = bound(bool, (9,), padding_encoding=padding)

    assert bytes(codec.encode(values)).hex() == expected
    assert codec.decode(bytes.fromhex(expected)).tolist() == values.tolist()


@pytest.mark.parametrize(
    ("dtype", "values", "members", "expected"),
    [
        ("int4", [1, -1, 7, -8, 3], {}, "f18703"),
        ("int2", [1, -1, -2, 0], {}, "2d"),
        ("uint2", [1, 3, 2, 0], {}, "2d"),
        ("float4_e2m1fn", [0.5, -6.0], {}, "f1"),
        ("float6_e3m2fn", [0.0625, 28.0, 0, 0], {}, "c10700"),
        ("<u2", [0x123, 0xABC], {"last_bit": 11}, "23c1ab"),
        ("<u2", [0x120, 0xAB0], {"first_bit": 4, "last_bit": 11}, "12ab"),
        ("<i2", [-1, 5], {"last_bit": 3}, "5f"),
        ("<i2", [-16, 80], {"first_bit": 4, "last_bit": 7}, "5f"),
        ("<u4", [1, 2], {}, "0100000002000000"),
        ("<c8", [1 + 2j], {}, "0000803f00000040"),
        ("<c8", [1 + 2j], {"first_bit": 23}, "7f00801f0040"),
        ("?", [1, 0, 1], {"first_bit": None, "last_bit": None}, "05"),
    ],
)
def test_elements_take_the_bits_that_they_have(
    dtype: str, values: list[object], members: dict[str, object], expected: str
) -> None:
    array = np.array(values).astype(dtype)
    codec = bound(dtype, array.shape, **members)

    if dtype == "<c8" and members:
        expected = bytes(codec.encode(array)).hex()
        assert len(expected) == 2 * 3
    assert bytes(codec.encode(array)).hex() == expected
    assert codec.encoded_size == len(expected) // 2
    assert codec.decode(bytes.fromhex(expected)).tolist() == array.tolist()


@pytest.mark.parametrize("dtype", ["int4", "<i4"])
def test_a_sign_reaches_up_to_the_last_bit(dtype: str) -> None:
    codec = bound(dtype, (2,), last_bit=2)

    decoded = codec.decode(b"\x3f")

    assert decoded.tolist() == [-1, -1]


@pytest.mark.parametrize("padding", ["first_byte", "last_byte"])
@pytest.mark.parametrize("stated", [0, 6, 8, 255])
def test_another_padding_is_data_loss(padding: str, stated: int) -> None:
    data = b"\xb9\x01"
    data = bytes([stated]) + data if padding == "first_byte" else data + bytes([stated])

    with pytest.raises(DataLossError, match=f"7 bits fill up .* the {padding} says {stated}"):
        bound(bool, (9,), padding_encoding=padding).decode(data)


@pytest.mark.parametrize(
    ("dtype", "members", "problem"),
    [
        ("?", {"last_bit": 1}, "^last_bit: expected at most 0"),
        ("int4", {"last_bit": 4}, "^last_bit: expected at most 3"),
        ("<u2", {"first_bit": 16}, "^first_bit: expected at most 15"),
        ("<u2", {"first_bit": 5, "last_bit": 4}, "^first_bit: expected at most 4"),
        ("<u2", {"padding_encoding": "start_byte"}, r"^configuration\.padding_encoding: "),
        ("<u2", {"first_bit": -1}, r"^configuration\.first_bit: "),
        ("<u2", {"bits": 4}, r"^configuration\.bits: no such member"),
        ("<U2", {}, 'codec "packbits" stores booleans and numbers'),
        ("<M8[s]", {}, 'codec "packbits" stores booleans and numbers'),
        ("O", {}, 'codec "packbits" stores booleans and numbers'),
    ],
)
def test_what_cannot_be_packed_is_refused(
    dtype: str, members: dict[str, object], problem: str
) -> None:
    with pytest.raises(SpecError, match=problem):
        bound(dtype, (3,), **members)
