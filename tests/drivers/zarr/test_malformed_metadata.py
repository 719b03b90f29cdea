"""Documents that are wrong: each is refused by a typed error that names the key and the member."""

import json

import pytest

from tensorstore_py.errors import DataLossError, MismatchError, UnsupportedError
from tests.drivers.documents import Documents, no_documents

DOCUMENT = {
    "zarr_format": 2,
    "shape": [4, 6],
    "chunks": [2, 3],
    "dtype": "<i2",
    "compressor": {"id": "zlib", "level": 1},
    "fill_value": 0,
    "order": "C",
    "filters": None,
    "dimension_separator": ".",
}
KEY = '"a/.zarray"'

TEXTS = no_documents(DOCUMENT, "zarr")
DOCUMENTS = Documents("zarr", ".zarray")
refusal = DOCUMENTS.refusal

#: Member and value: whatever it is, the error names the member.
VALUES: dict[str, list] = {
    "zarr_format": [1, 3, 2.5, "2", True, [2], {}],
    "shape": [
        4, "4", {}, [4, -1], [4, 1.5], [4, "6"], [4, True], [4, None], [4, [6]], [4], [4, 6, 1],
        [4, 2**63], [4, 2**64], [4, 1e400], [1] * 33,
    ],
    "chunks": [
        2, "2", {}, [2, 0], [2, -3], [2, 1.5], [2, "3"], [2, False], [2], [2, 3, 1],
        [2, 2**63], [2, 2**70], [1] * 33,
    ],
    "dtype": [
        2, True, {}, "", "<i3", "<i16", "<f1", "<f16", "<c4", "<b2", "<x4",
        "<M8", "<M8[x]", "<M4[s]", "|M8[s]", "<m8[0s]", "<U", "<U0", "|U4", "|S", "|S-1",
        "|S99999999999", "<O", "|O8", "object", "float8", "<bfloat16", "<i2 ", " <i2",
        "<i2\n", [], [[]], ["<i2"], [["x"]], [["x", "<i2", [1], 1]], [["x", "<i3"]],
        [["", "<i2"]], [[1, "<i2"]], [["x", "<i2"], ["x", "<i2"]], [["x", "<i2", 2]],
        [["x", "<i2", [0]]], [["x", "<i2", [-1]]], [["x", "<i2", ["2"]]], [["x", None]],
        [["x", []]], [["x", [["y", "<i3"]]]], [["x", "|O"]], [["x", "<i8", [2**31, 2]]],
        [["x", "<i8", [2**30]], ["y", "<i8", [2**30]]],
    ],
    "compressor": [
        "zlib", 1, [], {}, {"level": 1}, {"id": 1}, {"id": None}, {"id": "lzip"}, {"id": ""},
        {"id": "zlib", "level": 10}, {"id": "zlib", "level": "1"},
        {"id": "zlib", "levle": 1}, {"id": "blosc", "cname": "lz5"}, {"id": "blosc", "shuffle": 3},
        {"id": "blosc", "clevel": -1}, {"id": "blosc", "blocksize": -1},
        {"id": "bz2", "level": 0}, {"id": "zstd", "level": 23},
        {"id": "zstd", "checksum": 1}, {"id": "lz4", "acceleration": "1"},
        {"id": "lzma", "format": 9}, {"id": "lzma", "preset": 99}, {"id": "lzma", "filters": 1},
        {"id": "vlen-utf8"}, {"id": "bytes"}, {"id": "transpose"}, {"id": "../zlib"},
        {"id": "os.system"},
    ],
    "filters": [
        "delta", 1, {}, {"id": "shuffle"}, [None], [[]], ["shuffle"], [{}], [{"id": "shufle"}],
        [{"id": "shuffle", "elementsize": -1}], [{"id": "shuffle", "elementsize": 5}],
        [{"id": "delta"}], [{"id": "delta", "dtype": "<i3"}], [{"id": "delta", "dtype": "|O"}],
        [{"id": "delta", "dtype": "<i8"}, {"id": "delta", "dtype": "<i4", "astype": 1}],
        [{"id": "fixedscaleoffset", "dtype": "<i2", "scale": 0, "offset": 0}],
        [{"id": "fixedscaleoffset", "dtype": "<i2", "scale": "x", "offset": 0}],
        [{"id": "quantize", "digits": 1, "dtype": "<i2"}], [{"id": "bitround", "keepbits": 3}],
        [{"id": "astype", "encode_dtype": "<i3", "decode_dtype": "<i2"}],
        [{"id": "categorize", "labels": 1, "dtype": "<U2"}],
        [{"id": "categorize", "labels": ["a"], "dtype": "|O"}], [{"id": "vlen-utf8"}],
        [{"id": "vlen-array", "dtype": None}], [{"id": "crc32", "location": "middle"}],
        [{"id": "json2", "encoding": "utf-9"}],
        [{"id": "zlib"}, {"id": "delta", "dtype": "|u1"}],
    ],
    "fill_value": [
        "x", "NaN", 1.5, True, 40000, -40000, [0], [], {}, 2**64, "AAA=", 1e400,
    ],
    "order": ["c", "K", "", 0, True, [], ["C"], {}],
    "dimension_separator": ["-", "", "..", 0, ["."], True],
}  # fmt: skip

#: Data type, filters and a fill value that is none of its values.
FILL_VALUES = [
    ("|b1", None, 1),
    ("|b1", None, "true"),
    ("|u1", None, -1),
    ("<f4", None, "0x00"),
    ("<f4", None, True),
    ("<c8", None, 1.5),
    ("<c8", None, [1]),
    ("<c8", None, [1, "x"]),
    ("int4", None, 8),
    ("<M8[s]", None, "2020-01-01"),
    ("<M8[s]", None, 1.5),
    ("<m8[s]", None, 2**63),
    ("<U2", None, "abc"),
    ("<U2", None, 0),
    ("|S2", None, "a!c="),
    ("|S2", None, "AAAA"),
    ("|V2", None, "AA=="),
    ("|V2", None, 0),
    ([["x", "<i2"]], None, 0),
    ([["x", "<i2"]], None, "AAAA"),
    ([["x", "<i2"]], None, [1]),
    ("|O", [{"id": "vlen-utf8"}], 1),
    ("|O", [{"id": "vlen-utf8"}], ["a"]),
    ("|O", [{"id": "vlen-bytes"}], "a"),
]
CASES = [(name, value) for name, values in VALUES.items() for value in values]


def test_there_are_enough_of_them() -> None:
    assert len(TEXTS) + len(CASES) + len(FILL_VALUES) + len(DOCUMENT) - 1 > 200


@pytest.mark.parametrize("name", TEXTS)
def test_what_is_no_document_is_named(name: str) -> None:
    error = refusal(TEXTS[name])

    assert type(error) is DataLossError
    assert str(error).startswith(f"Error reading {KEY}: ")
    assert "no JSON" in str(error) or "expected an object" in str(error)


@pytest.mark.parametrize("name", ["chunks", "dtype", "shape", "zarr_format"])
def test_a_member_that_is_missing_is_named(name: str) -> None:
    error = refusal(json.dumps({key: DOCUMENT[key] for key in DOCUMENT if key != name}))

    assert str(error) == f"Error reading {KEY}: {name}: this member is required"


@pytest.mark.parametrize(
    ("name", "value"), CASES, ids=[f"{name}-{json.dumps(value)[:40]}" for name, value in CASES]
)
def test_a_wrong_value_is_named_with_its_key_and_member(name: str, value: object) -> None:
    error = refusal(json.dumps({**DOCUMENT, name: value}))

    assert type(error) is DataLossError
    place = str(error).removeprefix(f"Error reading {KEY}: ")
    # Of two members that contradict each other, either may be the wrong one.
    either = {"shape": ("shape", "chunks"), "dtype": ("dtype", "fill_value")}.get(name, (name,))
    assert place != str(error)
    assert place.startswith(either), place
    assert len(place) < 400


@pytest.mark.parametrize(("dtype", "filters", "value"), FILL_VALUES)
def test_a_fill_value_is_one_of_the_type_s(dtype: object, filters: object, value: object) -> None:
    changes = {"dtype": dtype, "filters": filters, "fill_value": value}

    error = refusal(json.dumps({**DOCUMENT, **changes}))

    assert type(error) is DataLossError
    assert str(error).startswith(f"Error reading {KEY}: fill_value")


@pytest.mark.parametrize("filters", [None, [], [{"id": "zlib"}], [{"id": "shuffle"}]])
def test_objects_without_a_codec_for_them_are_refused(filters: object) -> None:
    changes = {"dtype": "|O", "filters": filters, "fill_value": None, "compressor": None}

    error = refusal(json.dumps({**DOCUMENT, **changes}))

    assert type(error) is DataLossError
    assert str(error).startswith(f"Error reading {KEY}: filters")
    assert "Python objects" in str(error)


def test_pickles_are_refused_by_key_and_member() -> None:
    changes = {"dtype": "|O", "filters": [{"id": "pickle"}], "fill_value": None}

    error = refusal(json.dumps({**DOCUMENT, **changes}))

    assert type(error) is UnsupportedError
    assert str(error).startswith(f"Error reading {KEY}: filters[0]: ")


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        ({"field": "x"}, 'field: no field "x": the data type "<i2" has no named fields'),
        ({"schema": {"dtype": "int32"}}, "dtype"),
        ({"schema": {"rank": 3}}, "rank"),
        ({"metadata": {"shape": [4, 7]}}, '"shape" is [4,6] in the stored metadata'),
        ({"metadata": {"filters": [{"id": "shuffle"}]}}, '"filters" is null in the stored'),
    ],
)
def test_what_does_not_match_is_named_with_its_key(members: dict, problem: str) -> None:
    error = refusal(json.dumps(DOCUMENT), **members)

    assert type(error) is MismatchError
    assert KEY in str(error)
    assert problem in str(error)


@pytest.mark.parametrize("size", [1, 100, 10_000])
def test_a_data_type_may_not_be_nested_without_end(size: int) -> None:
    dtype = "<i3"
    for _ in range(size):
        dtype = f'[["x", {dtype if dtype.startswith("[") else json.dumps(dtype)}]]'
    text = json.dumps({**DOCUMENT, "dtype": "?"}).replace('"?"', dtype)

    error = refusal(text)

    assert type(error) is DataLossError
    assert KEY in str(error)
