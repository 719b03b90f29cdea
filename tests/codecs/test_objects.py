import json
import pickle
import sys
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from numcodecs.json import JSON

from tensorstore_py.codecs import objects
from tensorstore_py.codecs.objects import listed_elements
from tensorstore_py.errors import DataLossError, SpecError, UnsupportedError
from tensorstore_py.plugin.codec import ChunkType
from tensorstore_py.testing.codecs import chunk_type
from tests.codecs.bound import asked, bound

VALUES = np.empty((2, 3), object)
for place, value in zip(
    np.ndindex(2, 3), [None, "é", {"b": 1, "a": [2]}, [1, [2]], -0.5, True], strict=True
):
    VALUES[place] = value
CHUNK = ChunkType((2, 3), np.dtype(object), np.array(None))
LISTS = ("json2", *(("msgpack2",) if find_spec("msgpack") else ()))
EACH = pytest.mark.parametrize("name", LISTS)


def codec(name: str, chunk: ChunkType = CHUNK, **members: object) -> Any:
    return bound("zarr", name, chunk, **members)


def packed(name: str, value: object) -> bytes:
    """A list in the notation of a codec."""
    if name == "json2":
        return json.dumps(value).encode()
    import msgpack

    data: bytes = msgpack.packb(value)
    return data


def test_what_other_implementations_print_is_read() -> None:
    printed = json.loads(json.dumps(JSON().get_config()))
    spec = asked("zarr", **{"name": printed.pop("id"), **printed})

    assert spec == asked("zarr", "json2")
    assert printed.items() >= spec.to_json(include_defaults=True).items()


def test_separators_follow_from_the_indent() -> None:
    for members, separators in (({}, [",", ":"]), ({"indent": 1}, [", ", ": "])):
        assert asked("zarr", "json2", **members) == asked(
            "zarr", "json2", separators=separators, **members
        )


@EACH
@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (2, 1, 2)])
@pytest.mark.parametrize("dtype", ["<f8", ">i4", "<U3", "|b1"])
def test_elements_of_fixed_size_are_stored_too(
    name: str, shape: tuple[int, ...], dtype: str
) -> None:
    values = np.arange(np.prod(shape, dtype=int)).astype(dtype).reshape(shape)
    each = codec(name, chunk_type(shape, dtype))

    found = each.decode(each.encode(values))

    assert found.tolist() == values.tolist()
    assert found.dtype == values.dtype


@EACH
def test_objects_that_are_lists_stay_elements(name: str) -> None:
    each = codec(name, ChunkType((2,), np.dtype(object), np.array(None)))
    values = np.empty(2, object)
    values[:] = [[1, 2], [3, 4]]

    assert each.decode(each.encode(values)).tolist() == [[1, 2], [3, 4]]


@EACH
def test_a_chunk_without_dimensions_is_stored_too(name: str) -> None:
    each = codec(name, ChunkType((), np.dtype(object), np.array(None)))

    assert each.decode(each.encode(np.array({"a": 1}, object))).item() == {"a": 1}
    assert each.decode(each.encode(np.array(None, object))).item() is None


@EACH
@pytest.mark.parametrize(
    ("stored", "problem"),
    [
        ({}, "is no list of elements"),
        (5, "is no list of elements"),
        ([], "is no list of elements"),
        (["|O"], "is no list of elements"),
        ([[1, 2, 3], [4, 5, 6], "<f8", [2, 3]], "holds elements of '<f8', expected object"),
        ([[1, 2, 3], [4, 5, 6], ["|O"], [2, 3]], r"holds elements of \['\|O'\]"),
        ([[1, 2, 3], "|O", [1, 3]], r"has shape \[1, 3\], expected \[2, 3\]"),
        (["|O", [1000000000000]], "has shape"),
        ([1, 2, 3, 4, 5, 6, "|O", 6], "has shape 6"),
        ([1, 2, 3, 4, 5, 6, "|O", None], "has shape None"),
        ([1, 2, 3, 4, 5, 6, "|O", [-2, -3]], "has shape"),
        ([1, 2, 3, 4, 5, 6, "|O", [2.0, 3]], "has shape"),
        ([1, 2, 3, 4, 5, 6, "|O", [True, 6]], "has shape"),
        ([[1, 2, 3], [4, 5], "|O", [2, 3]], "are not nested as"),
        ([[1, 2, 3], 4, "|O", [2, 3]], "are not nested as"),
        ([[1, 2, 3], [4, 5, 6], [7, 8, 9], "|O", [2, 3]], "are not nested as"),
        ([1, 2, 3, 4, 5, "|O", [6]], "are not nested as"),
        ([1, 2, 3, 4, 5, 6, "|O", [6, 1]], "are not nested as"),
    ],
)
def test_what_a_list_says_of_itself_is_compared(name: str, stored: object, problem: str) -> None:
    with pytest.raises(DataLossError, match=f"^{name}: .*{problem}"):
        codec(name).decode(packed(name, stored))


@pytest.mark.parametrize(
    ("name", "data"),
    [
        *(("json2", data) for data in (b"", b"[1,2", b"\xff\xff", b"[" * 100_000)),
        *(
            (name, data)
            for name in LISTS[1:]
            for data in (b"", b"\xc1", b"\xdd\xff\xff\xff\xff", b"\x91" * 100_000, b"\x90\0")
        ),
    ],
)
def test_damaged_data_is_data_loss(name: str, data: bytes) -> None:
    with pytest.raises(DataLossError, match=f"corrupt {name} data"):
        codec(name).decode(data)


@EACH
def test_an_element_that_does_not_fit_is_data_loss(name: str) -> None:
    for element in ("x", None, 2**40, [1]):
        with pytest.raises(DataLossError, match="an element is no int32"):
            codec(name, chunk_type((2,), "<i4")).decode(packed(name, [1, element, "<i4", [2]]))


def test_the_type_may_be_text_or_bytes() -> None:
    for kind in ("<i4", b"<i4"):
        found = listed_elements("x", [1, 2, kind, [2]], chunk_type((2, 1), "<i4"))
        assert found.tolist() == [[1], [2]]


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
def test_wrong_members_of_json2_are_named(members: dict, problem: str) -> None:
    with pytest.raises(SpecError, match=problem):
        codec("json2", **members)


def test_objects_of_both_are_json_values() -> None:
    assert asked("zarr", "json2").object_type == asked("zarr", "msgpack2").object_type == "json"
    with pytest.raises(SpecError, match=r"^raw: "):
        asked("zarr", "msgpack2", raw=1)


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    objects._msgpack.cache_clear()
    monkeypatch.setitem(sys.modules, "msgpack", None)

    with pytest.raises(UnsupportedError, match=r"tensorstore-py\[codecs\]"):
        codec("msgpack2")


if find_spec("msgpack"):

    def test_text_is_read_as_bytes_if_that_is_asked() -> None:
        found = codec("msgpack2", raw=True).decode(codec("msgpack2").encode(VALUES))

        assert found[0, 1] == "é".encode()


PICKLED = ChunkType((2, 2), np.dtype(object), np.array(None))
ANY = np.array([[1, {2}], [(3,), b"4"]], object)


def test_a_chunk_is_a_pickled_array() -> None:
    encoded = codec("pickle", PICKLED, protocol=4).encode(ANY)

    assert pickle.loads(encoded).tolist() == ANY.tolist()
    for protocol in (4, 5):
        assert codec("pickle", PICKLED, protocol=protocol).decode(encoded).tolist() == ANY.tolist()


def test_a_pickled_array_in_fortran_order_is_read_as_it_lies() -> None:
    values = np.arange(6, dtype="<i4").reshape(2, 3)
    encoded = pickle.dumps(np.asfortranarray(values))

    found = codec("pickle", chunk_type((6,), "<i4")).decode(encoded)

    assert found.tolist() == values.ravel("F").tolist()


def test_pickle_says_that_it_runs_code() -> None:
    assert asked("zarr", "pickle").runs_code
    assert asked("zarr", "pickle").object_type == "object"
    with pytest.raises(SpecError, match=r"^protocol: "):
        asked("zarr", "pickle", protocol=6)
    with pytest.raises(SpecError, match="no zarr3 codec is named"):
        asked("zarr3", "numcodecs.pickle")


@pytest.mark.parametrize(
    "data",
    [b"", b"\x80", pickle.dumps(5), pickle.dumps(np.arange(4)), pickle.dumps(ANY[0]),
     b"cos\nno_such_name\n."],
)  # fmt: skip
def test_any_other_pickle_is_data_loss(data: bytes) -> None:
    with pytest.raises(DataLossError):
        codec("pickle", PICKLED).decode(data)
