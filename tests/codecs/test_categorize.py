import numcodecs
import numpy as np
import pytest

from tensorstore_py.errors import SpecError
from tensorstore_py.plugin import ArrayToArray, ChunkType, parse_codec_json
from tensorstore_py.testing.codecs import chunk_type

TEXTS = ["a", "bb", "", "other", "a", "ccc"]
OBJECTS = ChunkType((2, 3), np.dtype(object), np.array(""))


def bind(members: dict, chunk: ChunkType = OBJECTS) -> ArrayToArray:
    bound = parse_codec_json("zarr", {"id": "categorize", **members}).bind(chunk)  # type: ignore[attr-defined]
    assert isinstance(bound, ArrayToArray)
    return bound


@pytest.mark.parametrize("dtype", ["|O", "<U5", ">U5"])
@pytest.mark.parametrize("labels", [["a", "bb"], ["ccc", "", "a"], ["a", "a"], []])
@pytest.mark.parametrize("astype", ["|u1", "<i2", ">u4"])
def test_other_implementations_read_and_write_the_same(
    dtype: str, labels: list[str], astype: str
) -> None:
    values = np.array(TEXTS, dtype).reshape(2, 3)
    members = {"labels": labels, "dtype": dtype, "astype": astype}
    library = numcodecs.Categorize(**members)
    codec = bind(members, OBJECTS if dtype == "|O" else chunk_type((2, 3), dtype))

    encoded = codec.encode(values)

    assert encoded.tobytes() == library.encode(values).tobytes()
    assert codec.decode(encoded).tolist() == library.decode(encoded).reshape(2, 3).tolist()
    assert codec.decode(encoded).dtype == values.dtype


def test_numbers_of_no_label_are_empty() -> None:
    codec = bind({"labels": ["a"], "dtype": "|O", "astype": "<i2"})
    stored = np.array([[0, 1, 2], [-1, 300, 1]], "<i2")

    assert codec.decode(stored).tolist() == [["", "a", ""], ["", "", "a"]]


def test_only_objects_make_an_array_of_strings() -> None:
    objects = parse_codec_json("zarr", {"id": "categorize", "labels": [], "dtype": "object"})
    text = parse_codec_json("zarr", {"id": "categorize", "labels": [], "dtype": "<U3"})

    assert (objects.object_type, text.object_type) == ("ustring", None)
    assert objects.to_json() == {"astype": "|u1", "dtype": "|O", "labels": []}


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        ({"labels": ["a"], "dtype": "<i4"}, r'^dtype: expected "\|O" or a text type'),
        ({"labels": [1], "dtype": "|O"}, r"^labels\[0\]: "),
        ({"labels": "ab", "dtype": "|O"}, r"^labels: "),
        ({"labels": ["a"], "dtype": "|O", "astype": "<f4"}, r"^astype: expected an integer type"),
        (
            {"labels": ["x"] * 256, "dtype": "|O"},
            r"^astype: expected an integer type for 256 labels, but found uint8",
        ),
        ({"labels": ["a"], "dtype": "<U7"}, "Python objects here"),
    ],
)
def test_wrong_members_are_named(members: dict, problem: str) -> None:
    with pytest.raises(SpecError, match=problem):
        bind(members)


def test_strings_are_not_looked_for_among_numbers() -> None:
    with pytest.raises(SpecError, match=r"^dtype: the array holds no Python objects, but int32"):
        bind({"labels": ["a"], "dtype": "|O"}, chunk_type((3,), "<i4"))
