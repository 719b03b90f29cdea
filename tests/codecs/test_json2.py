import json

import numpy as np
import pytest
from numcodecs.json import JSON

from tensorstore_py.errors import DataLossError, SpecError
from tensorstore_py.plugin import ArrayToBytes, ChunkType, parse_codec_json
from tensorstore_py.testing.codecs import chunk_type

VALUES = np.empty((2, 3), object)
for place, value in zip(
    np.ndindex(2, 3), [None, "é", {"b": 1, "a": [2]}, [1, [2]], -0.5, True], strict=True
):
    VALUES[place] = value
CHUNK = ChunkType((2, 3), np.dtype(object), np.array(None))


def bound(members: dict | None = None, chunk: ChunkType = CHUNK) -> ArrayToBytes:
    codec = parse_codec_json("zarr", {"id": "json2", **(members or {})}).bind(chunk)  # type: ignore[attr-defined]
    assert isinstance(codec, ArrayToBytes)
    return codec


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"indent": 2},
        {"indent": None, "separators": [", ", " : "]},
        {"ensure_ascii": False, "encoding": "utf-16"},
        {"sort_keys": False},
    ],
)
def test_other_implementations_read_and_write_the_same(members: dict) -> None:
    encoded = bound(members).encode(VALUES)

    assert encoded == JSON(**members).encode(VALUES)
    assert bound(members).decode(encoded).tolist() == VALUES.tolist()


def test_what_other_implementations_print_is_read() -> None:
    printed = json.loads(json.dumps(JSON().get_config()))
    codec = parse_codec_json("zarr", printed)

    assert codec == parse_codec_json("zarr", {"id": "json2"})
    assert printed.items() >= codec.to_json(include_defaults=True).items()


@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (2, 1, 2)])
@pytest.mark.parametrize("dtype", ["<f8", ">i4", "<U3", "|b1"])
def test_elements_of_fixed_size_are_stored_too(shape: tuple[int, ...], dtype: str) -> None:
    values = np.arange(np.prod(shape, dtype=int)).astype(dtype).reshape(shape)
    codec = bound({}, chunk_type(shape, dtype))

    encoded = codec.encode(values)

    assert encoded == JSON().encode(values)
    assert codec.decode(encoded).tolist() == values.tolist()
    assert codec.decode(encoded).dtype == values.dtype


def test_lists_of_one_length_stay_elements() -> None:
    chunk = ChunkType((2,), np.dtype(object), np.array(None))
    values = np.empty(2, object)
    values[:] = [[1, 2], [3, 4]]

    assert bound({}, chunk).decode(bound({}, chunk).encode(values)).tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "corrupt json2 data"),
        (b"[1,2", "corrupt json2 data"),
        (b"\xff\xff", "corrupt json2 data"),
        (b"[" * 100_000, "corrupt json2 data"),
        (b"{}", "is no list of elements"),
        (b"[]", "is no list of elements"),
        (b'[[1,2,3],[4,5,6],"<f8",[2,3]]', "holds elements of '<f8', expected object"),
        (b'[[1,2,3],[4,5,6],["|O"],[2,3]]', r"holds elements of \['\|O'\]"),
        (b'[[1,2,3],"|O",[1,3]]', r"has shape \[1, 3\], expected \[2, 3\]"),
        (b'["|O",[1000000000000]]', "has shape"),
        (b'[1,2,3,4,5,6,"|O",6]', "has shape 6"),
        (b'[1,2,3,4,5,6,"|O",[-2,-3]]', "has shape"),
        (b'[1,2,3,4,5,6,"|O",[2.0,3]]', "has shape"),
        (b'[[1,2,3],[4,5],"|O",[2,3]]', "are not nested as"),
        (b'[[1,2,3],4,"|O",[2,3]]', "are not nested as"),
        (b'[1,2,3,4,5,"|O",[6]]', "are not nested as"),
    ],
)
def test_damaged_data_is_data_loss(data: bytes, problem: str) -> None:
    with pytest.raises(DataLossError, match=problem):
        bound().decode(data)


def test_an_element_that_does_not_fit_is_data_loss() -> None:
    with pytest.raises(DataLossError, match="an element is no int32"):
        bound({}, chunk_type((2,), "<i4")).decode(b'[1,"x","<i4",[2]]')


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        ({"encoding": "utf-9"}, r"^encoding: no such text encoding"),
        ({"encoding": "zlib_codec"}, r"^encoding: no such text encoding"),
        ({"separators": [","]}, r"^separators"),
        ({"strict": 1}, r"^strict: "),
        ({"sort_keys": None}, r"^sort_keys: null"),
        ({"indent": [1]}, r"^indent"),
        ({"check": 1}, r"^check: no such member"),
    ],
)
def test_wrong_members_are_named(members: dict, problem: str) -> None:
    with pytest.raises(SpecError, match=problem):
        bound(members)
