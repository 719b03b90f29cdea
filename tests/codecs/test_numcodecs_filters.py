"""The filters that numcodecs runs, and categorize: what their members may say."""

import numpy as np
import pytest

from tensorstore_py.errors import DataLossError, SpecError
from tensorstore_py.plugin.codec import ChunkType
from tensorstore_py.testing.codecs import chunk_type
from tests.codecs.bound import asked, bound

OBJECTS = ChunkType((2, 3), np.dtype(object), np.array(""))
NUMBER_FILTERS = {
    "delta": {},
    "quantize": {"digits": 2},
    "fixedscaleoffset": {"offset": 0, "scale": 1},
}


@pytest.mark.parametrize("name", NUMBER_FILTERS)
def test_stating_the_default_changes_nothing(name: str) -> None:
    members = NUMBER_FILTERS[name]
    short = asked("zarr", name, dtype="f4", **members)

    assert short == asked("zarr", name, dtype="<f4", astype="<f4", **members)
    assert short.to_json()["astype"] == "<f4"


@pytest.mark.parametrize("name", NUMBER_FILTERS)
def test_in_version_3_the_elements_are_the_array_s(name: str) -> None:
    spec = asked("zarr3", f"numcodecs.{name}", **NUMBER_FILTERS[name])
    chunk = chunk_type((2, 3), "<f4")

    assert "dtype" not in spec.to_json()
    assert spec.resolved(chunk).to_json() == {**spec.to_json(), "dtype": "<f4"}
    stored = bound("zarr3", f"numcodecs.{name}", chunk, astype=">f8", **NUMBER_FILTERS[name])
    assert stored.encoded.dtype == np.dtype("=f8")
    with pytest.raises(SpecError, match=r"^dtype: this member is required"):
        asked("zarr", name, **NUMBER_FILTERS[name])


def test_bytes_are_taken_for_the_filter_s_own_elements() -> None:
    values = np.random.default_rng(0).normal(size=6).astype("<f8")
    codec = bound("zarr", "delta", chunk_type((6,), "<f8"), dtype="<i4")

    encoded = codec.encode(values)

    assert (encoded.shape, encoded.dtype) == ((12,), np.dtype("<i4"))
    assert codec.decode(encoded).tobytes() == values.tobytes()


@pytest.mark.parametrize("first", [0, 70_000])
def test_differences_that_do_not_fit_wrap_around(first: int) -> None:
    codec = bound("zarr", "delta", chunk_type((2,), "<i4"), dtype="<i4", astype="<i2")

    encoded = codec.encode(np.array([first, first + 70_000], "<i4"))

    assert encoded.tolist() == [first % 65536, 70_000 % 65536]


@pytest.mark.parametrize("family", ["zarr", "zarr3"])
def test_a_filter_takes_elements_in_either_byte_order_and_any_memory_order(family: str) -> None:
    name = "delta" if family == "zarr" else "numcodecs.delta"
    values = np.arange(6, dtype="<i4").reshape(2, 3)
    codec = bound(family, name, chunk_type((2, 3), "<i4"), dtype="<i4")

    encoded = codec.encode(np.asfortranarray(values))

    assert encoded.ravel().tolist() == [0, 1, 1, 1, 1, 1]
    assert codec.decode(encoded.astype(">i4")).tolist() == values.tolist()
    assert codec.decode(np.asfortranarray(encoded)).tolist() == values.tolist()


def test_nan_becomes_some_integer_without_a_warning() -> None:
    members = {"offset": 0, "scale": 1, "dtype": "<f8", "astype": "<i4"}
    codec = bound("zarr", "fixedscaleoffset", chunk_type((3, 4), "<f8"), **members)

    assert codec.encode(np.full((3, 4), np.nan)).dtype == np.dtype("<i4")


def test_text_that_is_no_number_is_data_loss() -> None:
    chunk = chunk_type((3, 4), "<i4")
    codec = bound("zarr", "astype", chunk, encode_dtype="|S4", decode_dtype="<i4")

    with pytest.raises(DataLossError, match=r"^astype: invalid literal"):
        codec.decode(np.full((3, 4), b"x", "|S4"))


def test_the_number_of_filling_bits_is_checked() -> None:
    codec = bound("zarr", "packbits", chunk_type((9,), bool))
    encoded = codec.encode(np.ones(9, bool))
    encoded[0] = 6

    with pytest.raises(DataLossError, match=r"leave 7 bits of the last byte, but .* says 6"):
        codec.decode(encoded)


@pytest.mark.parametrize(
    ("name", "members", "problem"),
    [
        ("delta", {"dtype": "|O"}, r"^dtype: expected an element type"),
        ("delta", {"dtype": "i4,i4"}, r"^dtype: expected an element type"),
        ("delta", {"dtype": 4}, r"^dtype: expected an element type"),
        ("delta", {"dtype": "<U4"}, r"^dtype: expected a type of numbers"),
        ("delta", {"dtype": "<i4", "astype": "|S4"}, r"^astype: expected a type of numbers"),
        ("delta", {"dtype": "<i8"}, "12 bytes are no whole number"),
        ("delta", {}, r"^dtype: this member is required"),
        ("astype", {"encode_dtype": "|V4", "decode_dtype": "<i4"}, r"^encode_dtype: .* converted"),
        ("astype", {"encode_dtype": "<i4", "decode_dtype": "|V4"}, r"^decode_dtype: .* converted"),
        ("astype", {"encode_dtype": "|O", "decode_dtype": "<i4"}, r"^encode_dtype: .* element"),
        ("astype", {"encode_dtype": "<i4", "decode_dtype": 3}, r"^decode_dtype: .* element"),
        ("quantize", {"digits": 2, "dtype": "<i4"}, r'^dtype: expected a floating-.*"<i4"'),
        ("quantize", {"digits": 2, "dtype": "<f4", "astype": "<i4"}, r"^astype: .* floating-point"),
        ("quantize", {"digits": 301, "dtype": "<f4"}, r"^digits: "),
        ("quantize", {"digits": 1.5, "dtype": "<f4"}, r"^digits: "),
        ("fixedscaleoffset", {"offset": 0, "scale": 0, "dtype": "<f4"}, r"^scale: .* than 0"),
        ("fixedscaleoffset", {"offset": 0, "scale": "1", "dtype": "<f4"}, r"^scale"),
        ("fixedscaleoffset", {"offset": None, "scale": 1, "dtype": "<f4"}, r"^offset"),
        ("fixedscaleoffset", {"offset": 0, "scale": 1, "dtype": "<U3"}, "not possible for <U3"),
        ("fixedscaleoffset", {"offset": 1000, "scale": 1, "dtype": "|i1"}, "possible for int8"),
    ],
)
def test_wrong_members_are_named(name: str, members: dict, problem: str) -> None:
    with pytest.raises(SpecError, match=problem):
        bound("zarr", name, chunk_type((3,), "<i4"), **members)


def test_numbers_of_no_label_are_empty() -> None:
    codec = bound("zarr", "categorize", OBJECTS, labels=["a"], dtype="|O", astype="<i2")
    stored = np.array([[0, 1, 2], [-1, 300, 1]], "<i2")

    assert codec.decode(stored).tolist() == [["", "a", ""], ["", "", "a"]]


def test_only_objects_make_an_array_of_strings() -> None:
    objects = asked("zarr", "categorize", labels=[], dtype="object")
    text = asked("zarr", "categorize", labels=[], dtype="<U3")

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
def test_wrong_members_of_categorize_are_named(members: dict, problem: str) -> None:
    with pytest.raises(SpecError, match=problem):
        bound("zarr", "categorize", OBJECTS, **members)


def test_strings_are_not_looked_for_among_numbers() -> None:
    with pytest.raises(SpecError, match=r"^dtype: the array holds no Python objects, but int32"):
        bound("zarr", "categorize", chunk_type((3,), "<i4"), labels=["a"], dtype="|O")
