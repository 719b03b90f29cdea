import struct
from typing import Any

import numpy as np
import pytest

from tensorstore_py.errors import DataLossError, SpecError
from tensorstore_py.plugin.codec import ChunkType
from tensorstore_py.testing.codecs import chunk_type
from tests.codecs.bound import asked, bound


def objects(*values: object) -> np.ndarray:
    array = np.empty(len(values), object)
    array[:] = values
    return array


def chunk(shape: tuple[int, ...], missing: object = None) -> ChunkType:
    return ChunkType(shape, np.dtype(object), np.array(missing, object))


VALUES = {
    "vlen-utf8": objects("", "a", "bb", "é", "\U0001f600 x", "\0").reshape(2, 3),
    "vlen-bytes": objects(b"", b"a", b"\0", b"\xff\xfe", b"long" * 20, b"").reshape(2, 3),
    "vlen-array": objects(np.arange(3), np.arange(0), np.arange(5)),
}
MEMBERS = {"vlen-array": {"dtype": "<i4"}}
EACH = pytest.mark.parametrize("name", VALUES)


def codec(name: str) -> Any:
    missing = {"vlen-utf8": "", "vlen-bytes": b""}.get(name)
    return bound("zarr", name, chunk(VALUES[name].shape, missing), **MEMBERS.get(name, {}))


def plain(values: np.ndarray) -> list[object]:
    """The values, with arrays among them as lists."""
    return [each.tolist() if isinstance(each, np.ndarray) else each for each in values.flat]


@EACH
def test_what_was_encoded_is_decoded(name: str) -> None:
    encoded = bytes(codec(name).encode(VALUES[name]))

    for data in (encoded, bytearray(encoded), memoryview(encoded)):
        found = codec(name).decode(data)
        assert plain(found) == plain(VALUES[name])
        assert found.shape == VALUES[name].shape
    assert codec(name).encoded_size is None


@EACH
def test_memory_of_the_user_s_may_be_in_any_order_and_read_only(name: str) -> None:
    encoded = bytes(codec(name).encode(VALUES[name]))
    mine = np.asfortranarray(VALUES[name])
    mine.flags.writeable = False

    assert bytes(codec(name).encode(mine)) == encoded


@EACH
def test_what_was_read_does_not_change_with_the_buffer(name: str) -> None:
    encoded = bytearray(codec(name).encode(VALUES[name]))
    found = codec(name).decode(encoded)

    encoded[:] = bytes(len(encoded))

    assert plain(found) == plain(VALUES[name])


@EACH
@pytest.mark.parametrize("dtype", ["<i4", "<U4", "|S4"])
def test_elements_of_fixed_size_are_refused(name: str, dtype: str) -> None:
    with pytest.raises(SpecError, match=f'codec "{name}" stores .*, but the chunk holds'):
        bound("zarr", name, chunk_type((3,), dtype), **MEMBERS.get(name, {}))


@EACH
@pytest.mark.parametrize("count", [0, 2, 7, 2**31, 2**32 - 1])
def test_another_number_of_elements_allocates_nothing(name: str, count: int) -> None:
    data = struct.pack("<I", count) + bytes(codec(name).encode(VALUES[name]))[4:]

    with pytest.raises(DataLossError, match=f"^{name}: the data holds {count} elements, expected"):
        codec(name).decode(data)


@EACH
def test_truncated_data_is_data_loss(name: str) -> None:
    encoded = bytes(codec(name).encode(VALUES[name]))

    for stop in range(len(encoded)):
        with pytest.raises(DataLossError, match=r"too few|truncated"):
            codec(name).decode(encoded[:stop])


@EACH
@pytest.mark.parametrize("length", [2**32 - 1, 2**31, 1001])
def test_a_length_that_lies_is_data_loss(name: str, length: int) -> None:
    encoded = bytearray(codec(name).encode(VALUES[name]))
    encoded[4:8] = struct.pack("<I", length)

    with pytest.raises(DataLossError, match=f"corrupt {name} data"):
        codec(name).decode(encoded)


def test_bytes_that_are_no_text_are_data_loss() -> None:
    encoded = bytes(codec("vlen-utf8").encode(VALUES["vlen-utf8"]))

    with pytest.raises(DataLossError, match="corrupt vlen-utf8 data: 'utf-8' codec"):
        codec("vlen-utf8").decode(encoded.replace("é".encode(), b"\xff\xff"))


def test_strings_of_numpy_are_read_as_plain_ones() -> None:
    found = codec("vlen-utf8").decode(bytes(codec("vlen-utf8").encode(VALUES["vlen-utf8"])))

    assert {type(text).__name__ for text in found.flat} == {"str"}


@pytest.mark.parametrize(
    ("name", "object_type", "other", "problem"),
    [
        ("vlen-utf8", "ustring", b"", "stores strings, but the chunk holds byte strings$"),
        ("vlen-bytes", "string", "", "stores byte strings, but the chunk holds text$"),
    ],
)
def test_version_3_writes_the_same_and_wants_the_type_that_it_stores(
    name: str, object_type: str, other: object, problem: str
) -> None:
    spec = asked("zarr3", name)
    missing = VALUES[name].flat[0]

    found = bound("zarr3", name, chunk(VALUES[name].shape, missing)).encode(VALUES[name])

    assert bytes(found) == bytes(codec(name).encode(VALUES[name]))
    assert spec.object_type == object_type
    with pytest.raises(SpecError, match=problem):
        bound("zarr3", name, chunk((2,), other))
    with pytest.raises(SpecError, match=r"^encoding: no such member"):
        asked("zarr", name, encoding="utf-8")


@pytest.mark.parametrize("dtype", ["<i4", ">f8", "|u1"])
def test_arrays_are_of_one_type(dtype: str) -> None:
    values = objects(np.arange(3), None, [1.0, 2.0])
    each = bound("zarr", "vlen-array", chunk((3,)), dtype=dtype)

    found = each.decode(bytes(each.encode(values)))

    assert plain(found) == [[0, 1, 2], [], [1, 2]]
    assert {element.dtype for element in found} == {np.dtype(dtype)}


@pytest.mark.parametrize("dtype", ["|O", None, "x", "i4,i4"])
def test_a_wrong_type_of_arrays_is_named(dtype: str) -> None:
    with pytest.raises(SpecError, match=r"^dtype: "):
        asked("zarr", "vlen-array", dtype=dtype)
