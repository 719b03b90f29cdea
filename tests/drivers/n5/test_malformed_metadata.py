"""Documents that are wrong: each is refused by a typed error that names the key and the member."""

import json

import pytest

import tensorstore_py as ts
from tensorstore_py.errors import DataLossError, MismatchError
from tests.drivers.documents import Documents, no_documents

DOCUMENT = {
    "dimensions": [5, 4],
    "blockSize": [3, 2],
    "dataType": "uint16",
    "compression": {"type": "raw"},
    "axes": ["x", "y"],
    "units": ["nm", "um"],
    "resolution": [4, 3.5],
}
REQUIRED = ("dimensions", "blockSize", "dataType", "compression")
KEY = '"a/attributes.json"'
BLOSC = {"type": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1}

TEXTS = no_documents(DOCUMENT, "n5")
DOCUMENTS = Documents("n5", "attributes.json")
refusal = DOCUMENTS.refusal

#: Member and value: whatever it is, the error names the member.
VALUES: dict[str, list] = {
    "dimensions": [
        5, "5", {}, None, [5, -1], [5, 1.5], [5, "4"], [5, True], [5, None], [5, [4]], [5],
        [5, 4, 1], [5, 2**63], [5, 2**64], [5, 1e400], [1] * 33,
    ],
    "blockSize": [
        3, "3", {}, None, [3, 0], [3, -2], [3, 1.5], [3, "2"], [3, False], [3], [3, 2, 1],
        [3, 2**63], [3, 2**70], [2**31, 1], [2**16, 2**15 + 1], [2**32, 2**32], [1] * 33,
    ],
    "dataType": [
        5, True, None, {}, [], "", "bool", "float16", "bfloat16", "complex64", "uint", "uint128",
        "string", "char", "byte", "object", "json", "UINT8", "<u2", " uint16", "float",
    ],
    "compression": [
        None, 1, [], {}, {"level": 1}, {"type": 5}, {"type": None}, {"type": ""},
        {"type": "lzma"}, {"type": "zlib"}, {"type": "bz2"}, {"type": "../gzip"},
        {"type": "raw", "level": 1}, {"type": "gzip", "level": 10}, {"type": "gzip", "level": -2},
        {"type": "gzip", "level": "1"},
        {"type": "gzip", "level": 1.5}, {"type": "gzip", "useZlib": 1},
        {"type": "gzip", "usezlib": True},
        {"type": "bzip2", "blockSize": 0}, {"type": "bzip2", "blockSize": 10},
        {"type": "bzip2", "level": 0}, {"type": "xz", "preset": 10}, {"type": "xz", "preset": -1},
        {"type": "xz", "level": 6}, {"type": "zstd", "level": 23},
        {"type": "zstd", "level": -131073}, {"type": "zstd", "checksum": True},
        {**BLOSC, "cname": "lz5"}, {**BLOSC, "clevel": 10}, {**BLOSC, "shuffle": 3},
        {**BLOSC, "shuffle": -1}, {**BLOSC, "shuffle": "shuffle"}, {**BLOSC, "blocksize": -1},
        {**BLOSC, "typesize": 2},
    ],
    "axes": [["x", "x"]],
    "resolution": [[1, 1e400]],
}  # fmt: skip
CASES = [(name, value) for name, values in VALUES.items() for value in values]


def test_there_are_enough_of_them() -> None:
    assert len(TEXTS) + len(CASES) + len(REQUIRED) > 100


@pytest.mark.parametrize("name", TEXTS)
def test_what_is_no_document_is_named(name: str) -> None:
    error = refusal(TEXTS[name])

    assert type(error) is DataLossError
    assert str(error).startswith(f"Error reading {KEY}: ")
    assert "no JSON" in str(error) or "expected an object" in str(error)


@pytest.mark.parametrize("name", REQUIRED)
def test_a_member_that_is_missing_is_named(name: str) -> None:
    error = refusal(json.dumps({key: DOCUMENT[key] for key in DOCUMENT if key != name}))

    assert str(error) == f"Error reading {KEY}: {name}: this member is required"


@pytest.mark.parametrize("document", [{"n5": "2.5.1"}, {}, {"note": [1]}])
@pytest.mark.parametrize("url", ["memory://a/|n5:", "memory://a/"])
def test_a_group_is_no_array(url: str, document: dict) -> None:
    context = DOCUMENTS.stored(json.dumps(document))

    with pytest.raises(MismatchError, match=rf"^Error opening {KEY}: this is a group"):
        ts.open(url, context=context).result()


@pytest.mark.parametrize(
    ("name", "value"), CASES, ids=[f"{name}-{json.dumps(value)[:40]}" for name, value in CASES]
)
def test_a_wrong_value_is_named_with_its_key_and_member(name: str, value: object) -> None:
    error = refusal(json.dumps({**DOCUMENT, name: value}))

    assert type(error) is DataLossError
    place = str(error).removeprefix(f"Error reading {KEY}: ")
    # Of two members that contradict each other, either may be the wrong one.
    either = ("dimensions", "blockSize") if name == "dimensions" else (name,)
    assert place != str(error)
    assert place.startswith(either), place
    assert len(place) < 400


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        ({"dtype": "int16"}, "dtype"),
        ({"schema": {"rank": 3}}, "rank"),
        ({"schema": {"dimension_units": ["5 nm", None]}}, "dimension_units"),
        ({"schema": {"chunk_layout": {"chunk": {"shape": [3, 3]}}}}, "chunk_layout"),
        ({"metadata": {"dimensions": [5, 5]}}, '"dimensions" is [5,4] in the stored metadata'),
        ({"metadata": {"note": 1}}, '"note" is not in the stored metadata'),
    ],
)
def test_what_does_not_match_is_named_with_its_key(members: dict, problem: str) -> None:
    error = refusal(json.dumps(DOCUMENT), **members)

    assert type(error) is MismatchError
    assert KEY in str(error)
    assert problem in str(error)
