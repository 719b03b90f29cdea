import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorstore_py.errors import DataLossError
from tensorstore_py.kvstores.gcs.listing import (
    directory_parameters,
    listing_parameters,
    parse_page,
)
from tensorstore_py.plugin import KeyRange, ListEntry

names = st.text(st.sampled_from("ab/!~éü😀\ud7ff\ue000\uffff"), min_size=1, max_size=4)
bounds = st.one_of(
    names.map(str.encode),
    names.map(lambda name: name.encode() + b"\0"),
    st.binary(max_size=5),
)


def served(asked, name):
    """Whether the service lists a name, as it documents its parameters."""
    encoded = name.encode()
    return (
        encoded.startswith(asked.get("prefix", "").encode())
        and encoded >= asked.get("startOffset", "").encode()
        and ("endOffset" not in asked or encoded < asked["endOffset"].encode())
    )


@given(low=bounds, high=bounds, name=names)
def test_whatever_is_inside_is_asked_for(low, high, name):
    key_range = KeyRange(low, high)
    if name in key_range:
        assert served(listing_parameters(key_range), name)


@given(low=bounds, high=bounds)
def test_what_is_sent_can_be_sent(low, high):
    for text in listing_parameters(KeyRange(low, high)).values():
        text.encode()
        assert min(text, default="x") >= " "


@given(prefix=names, name=names)
def test_of_a_prefix_nothing_else_is_asked_for(prefix, name):
    asked = listing_parameters(KeyRange.prefix(prefix))

    assert served(asked, name) == name.startswith(prefix)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (b"", b"", {}),
        (b"a/", b"a0", {"prefix": "a/", "endOffset": "a0"}),
        (b"b", b"d", {"startOffset": "b", "endOffset": "d"}),
        (b"a/1", b"", {"startOffset": "a/1"}),
        (b"a/1", b"a/1\0", {"prefix": "a/1", "endOffset": "a/1!"}),
    ],
)
def test_asks_for_no_more_than_it_must(low, high, expected):
    asked = listing_parameters(KeyRange(low, high))

    assert {name: asked[name] for name in asked if name not in ("maxResults", "fields")} == expected


def test_reads_a_page():
    page = {"items": [{"name": "a", "size": "5"}, {"name": "é"}], "nextPageToken": "t"}

    found = parse_page(json.dumps(page).encode())

    assert found == ([ListEntry("a", 5), ListEntry("é", -1)], "t", ())
    assert parse_page(b"{}") == ([], "", ())


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'{"items": 5}',
        b'{"items": [5]}',
        b'{"items": [{"size": "5"}]}',
        b'{"items": [{"name": "a", "size": "5"}]',
        b'{"prefixes": 5}',
        b"\xff",
        b"[" * 100_000,
    ],
)
def test_what_is_no_page_is_an_error(body):
    with pytest.raises(DataLossError, match=r"the service"):
        parse_page(body)


def test_what_one_level_is_asked_for_and_tells():
    asked = directory_parameters("a/")

    assert (asked["prefix"], asked["delimiter"]) == ("a/", "/")
    assert "prefix" not in directory_parameters("")
    body = b'{"prefixes": ["a/b/", "a/c/"], "items": [{"name": "a/x", "size": "3"}]}'
    assert parse_page(body).prefixes == ("a/b/", "a/c/")
