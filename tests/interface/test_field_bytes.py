from typing import Literal

import numpy as np
import pytest

from tensorstore_py._interface.field_bytes import FieldBytes
from tensorstore_py.drivers.zarr.data_type import StoredType
from tensorstore_py.errors import DataLossError

PAIR = StoredType.parse([["x", "<u2", [2]], ["y", ">f4"], ["b", "|b1"]])
RECORD = np.dtype([("x", "<u2", (2,)), ("y", ">f4"), ("b", "|b1")])
CHUNKS = (2, 3)
BLANK = np.array(([1, 2], 3.0, True), RECORD).tobytes()


def records() -> np.ndarray:
    chunk = np.zeros(CHUNKS, RECORD)
    chunk["x"] = np.arange(12).reshape(2, 3, 2)
    chunk["y"] = np.arange(6).reshape(2, 3) / 2
    chunk["b"] = [[True, False, True], [False, False, True]]
    return chunk


def field_bytes(name: str, order: str = "C") -> FieldBytes:
    return FieldBytes(PAIR.view(name), CHUNKS, order, BLANK)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("name", ["x", "y", "b"])
def test_a_field_is_a_view_of_the_records(name: str, order: Literal["C", "F"]) -> None:
    chunk = records()

    found = field_bytes(name, order).decode(chunk.tobytes(order))

    assert np.array_equal(found, chunk[name])


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("name", ["x", "y", "b"])
def test_writing_a_field_leaves_the_others_alone(name: str, order: Literal["C", "F"]) -> None:
    chunk = records()
    codec = field_bytes(name, order)
    changed = chunk.copy()
    changed[name] = chunk[name][::-1]

    data = codec.encode_over(changed[name], chunk.tobytes(order), keep_fill=False)

    assert bytes(data or b"") == changed.tobytes(order)


def test_without_anything_stored_the_others_are_filled() -> None:
    chunk = np.full(CHUNKS, np.frombuffer(BLANK, RECORD)[0])
    chunk["y"] = 7

    codec = field_bytes("y")

    assert bytes(codec.encode(chunk["y"])) == chunk.tobytes()
    assert codec.encode_over(chunk["y"], None, keep_fill=False) == chunk.tobytes()


def test_a_chunk_of_fill_values_need_not_be_stored() -> None:
    codec = field_bytes("y")
    fill = np.full(CHUNKS, 3.0, "f4")

    assert codec.encode_over(fill, None, keep_fill=False) is None
    assert codec.encode_over(fill, None, keep_fill=True) == BLANK * 6
    assert codec.encode_over(fill, records().tobytes(), keep_fill=False) is not None


def test_stored_truth_values_of_any_bits_are_true() -> None:
    data = bytearray(records().tobytes())
    data[PAIR.view("b").offset] = 2

    found = field_bytes("b").decode(data)

    assert found.view(np.uint8)[0, 0] == 1


def test_a_chunk_of_the_wrong_size_is_corrupt() -> None:
    data = records().tobytes()[:-1]
    codec = field_bytes("y")

    with pytest.raises(DataLossError, match="decoded to 53 bytes, expected 54"):
        codec.decode(data)
    with pytest.raises(DataLossError, match="expected 54"):
        codec.encode_over(np.zeros(CHUNKS, "f4"), data, keep_fill=False)


@pytest.mark.parametrize("order", ["C", "F"])
def test_all_fields_together_are_records(order: Literal["C", "F"]) -> None:
    chunk = records()
    codec = FieldBytes(PAIR.view(), CHUNKS, order, BLANK)
    native = chunk.astype(PAIR.view().native)

    assert bytes(codec.encode(native)) == chunk.tobytes(order)
    assert np.array_equal(codec.decode(chunk.tobytes(order)), native)
    assert not codec.partial
    out = np.zeros(CHUNKS, native.dtype)
    codec.decode_into(chunk.tobytes(order), out)
    assert np.array_equal(out, native)


def test_truth_values_of_any_bits_are_true_in_records_too() -> None:
    data = bytearray(records().tobytes())
    data[PAIR.view("b").offset] = 2

    found = FieldBytes(PAIR.view(), CHUNKS, "C", BLANK).decode(data)

    assert found["b"].view(np.uint8)[0, 0] == 1  # type: ignore[call-overload]


def test_text_that_no_unicode_has_is_corrupt() -> None:
    text = StoredType.parse([["x", "<u2"], ["t", ">U2"]])
    data = bytearray(10 * 6)
    data[12:16] = b"\0\x11\0\0"

    for name in (None, "t"):
        codec = FieldBytes(text.view(name), CHUNKS, "C", bytes(10))
        with pytest.raises(DataLossError, match="a stored character is 0x110000"):
            codec.decode(data)
    FieldBytes(text.view("x"), CHUNKS, "C", bytes(10)).decode(data)


def test_records_that_are_stored_as_in_memory_are_decoded_in_place() -> None:
    plain = StoredType.parse([["x", "<u2"], ["y", "<f4"]])
    out = np.zeros(CHUNKS, plain.view().native)

    assert FieldBytes(plain.view(), CHUNKS, "C", bytes(6)).direct(out) is not None
    assert FieldBytes(plain.view(), CHUNKS, "F", bytes(6)).direct(out) is None
    assert FieldBytes(plain.view(), CHUNKS, "C", bytes(6)).direct(out.T) is None
    assert FieldBytes(PAIR.view(), CHUNKS, "C", BLANK).direct(records()) is None
