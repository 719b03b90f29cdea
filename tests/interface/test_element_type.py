import numpy as np
import pytest

from tensorstore_py._interface.codec import ChunkType
from tensorstore_py._interface.element_type import (
    check_characters,
    element_type,
    flat_view,
    viewed_as,
)
from tensorstore_py.errors import DataLossError, SpecError


@pytest.mark.parametrize(
    ("json", "text"),
    [
        ("<i4", "<i4"),
        (">f8", ">f8"),
        ("i2", "<i2"),
        ("u1", "|u1"),
        ("|b1", "|b1"),
        ("?", "|b1"),
        ("bool", "|b1"),
        ("int16", "<i2"),
        ("complex128", "<c16"),
        ("<U5", "<U5"),
        ("S3", "|S3"),
        ("<M8[ns]", "<M8[ns]"),
        (">m8[10us]", ">m8[10us]"),
    ],
)
def test_plain_types_are_written_in_one_way(json: str, text: str) -> None:
    assert element_type(json) == text


@pytest.mark.parametrize(
    "json",
    ["|O", "object", "i4,i4", "(2,)i4", "<i3", "int17", "S0", "U", "", "<", 4, None, ["<i4"], "i4 ",
     "<M8", "M8[x]", "bfloat16", "{'names': ['a']}", "S99999999999"],
)  # fmt: skip
def test_anything_else_is_refused(json: object) -> None:
    with pytest.raises(SpecError, match="expected an element type"):
        element_type(json)


def chunk(shape: tuple[int, ...], dtype: str) -> ChunkType:
    return ChunkType(shape, np.dtype(dtype), np.zeros((), dtype))


def test_elements_of_one_size_keep_the_shape() -> None:
    assert viewed_as(chunk((2, 3), "<f4"), np.dtype(">i4")).shape == (2, 3)
    assert viewed_as(chunk((2, 3), "<f4"), np.dtype("<i2")).shape == (12,)
    assert viewed_as(chunk((2, 3), "|u1"), np.dtype("<i2")).shape == (3,)
    assert viewed_as(chunk((), "<f8"), np.dtype("<i2")).shape == (4,)


def test_what_cannot_be_seen_so_is_refused() -> None:
    with pytest.raises(SpecError, match="6 bytes are no whole number"):
        viewed_as(chunk((2, 3), "|u1"), np.dtype("<i4"))
    with pytest.raises(SpecError, match="Python objects here"):
        viewed_as(ChunkType((2,), np.dtype(object), np.array(None)), np.dtype("<i4"))


def test_any_memory_order_is_seen_in_c_order() -> None:
    array = np.asfortranarray(np.arange(6, dtype="<u2").reshape(2, 3))

    assert flat_view(array, np.dtype("|u1")).tolist() == [0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0]


@pytest.mark.parametrize("order", "<>")
def test_numbers_that_are_no_characters_are_found(order: str) -> None:
    text = np.array([["ab", "\U0010ffff"], ["", "c"]], f"{order}U2")
    record = np.zeros(3, [("n", "u1"), ("deep", [("t", f"{order}U2", (2,))])])
    check_characters(text)
    check_characters(text[:, ::-1])
    check_characters(record)
    check_characters(np.array([2**32 - 1], "<u4"))
    check_characters(np.empty(0, "<U3"))

    text.view(f"{order}u4")[1, 2] = 0x110000
    record["deep"]["t"].view(f"{order}u4")[1, 2] = 2**32 - 1

    with pytest.raises(DataLossError, match="0x110000"):
        check_characters(text)
    with pytest.raises(DataLossError, match="0xffffffff"):
        check_characters(record)
