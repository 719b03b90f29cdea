import numpy as np
import pytest

from tensorstore_py._interface.codec import ChunkType
from tensorstore_py._interface.listed_elements import listed_elements
from tensorstore_py.errors import DataLossError


def chunk(shape: tuple[int, ...], dtype: object = object) -> ChunkType:
    return ChunkType(shape, np.dtype(dtype), np.zeros((), dtype))  # type: ignore[call-overload]


def test_elements_are_nested_by_the_stated_shape() -> None:
    nested = [[1, [2]], ["a", None], "|O", [2, 2]]

    found = listed_elements("x", nested, chunk((4,)))

    assert found.tolist() == [1, [2], "a", None]


def test_the_type_may_be_text_or_bytes() -> None:
    for kind in ("<i4", b"<i4"):
        assert listed_elements("x", [1, 2, kind, [2]], chunk((2, 1), "<i4")).tolist() == [[1], [2]]


def test_without_dimensions_there_is_one_element() -> None:
    assert listed_elements("x", [[5], "|O", []], chunk(())).item() == [5]


@pytest.mark.parametrize(
    ("stored", "problem"),
    [
        (None, "is no list"),
        (["|O"], "is no list"),
        ([1, 2, "<i8", [2]], "elements of '<i8', expected object"),
        ([1, 2, "|O", [3]], r"shape \[3\], expected \[2\]"),
        ([1, 2, "|O", None], "shape None"),
        ([1, 2, "|O", [True, 2]], "shape"),
        ([1, "|O", [2]], "not nested"),
        ([[1, 2], "|O", [1, 2], "|O", [1, 2]], "not nested"),
        ([1, "|O", [2, 1]], "not nested"),
    ],
)
def test_what_the_list_says_is_compared(stored: object, problem: str) -> None:
    with pytest.raises(DataLossError, match=f"^x: .*{problem}"):
        listed_elements("x", stored, chunk((2,)))


def test_an_element_that_does_not_fit_is_data_loss() -> None:
    for element in ("x", None, 2**40, [1]):
        with pytest.raises(DataLossError, match="an element is no int32"):
            listed_elements("x", [1, element, "<i4", [2]], chunk((2,), "<i4"))
