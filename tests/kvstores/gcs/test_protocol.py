import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorstore_py.errors import (
    AbortedError,
    DataLossError,
    FailedPreconditionError,
    NotFoundError,
    PermissionDeniedError,
    UnavailableError,
    UnsupportedError,
)
from tensorstore_py.kvstores.gcs.credentials import GcsSigner, Grant
from tensorstore_py.kvstores.gcs.protocol import (
    FOREIGN,
    GcsDialect,
    directory_parameters,
    generation_of,
    is_condition,
    listing_parameters,
    number_of,
    parse_page,
)
from tensorstore_py.plugin.http import HttpResponse, HttpVerdict
from tensorstore_py.plugin.kvstore import NO_VALUE, UNKNOWN, KeyRange, ListEntry

STORED_AS = "x-goog-stored-content-encoding"
DAMAGED = json.dumps(
    {
        "error": {
            "code": 400,
            "message": 'Provided CRC32C "a==" doesn\'t match calculated CRC32C "b==".',
        }
    }
).encode()


def answer(status, body=b""):
    return HttpResponse(status, {}, body)


@pytest.mark.parametrize("status", [408, 425, 429, 500, 501, 502, 503, 504, 599])
def test_may_pass(status):
    assert GcsDialect().verdict(answer(status)) is HttpVerdict.RETRY


@pytest.mark.parametrize("status", [302, 307, 400, 403, 404, 409, 410, 412, 413, 416])
def test_will_not_pass(status):
    assert GcsDialect().verdict(answer(status)) is HttpVerdict.FAIL


def test_a_token_may_have_ended():
    assert GcsDialect().verdict(answer(401)) is HttpVerdict.REFRESH


def test_what_was_damaged_on_its_way_is_sent_again():
    assert GcsDialect().verdict(answer(400, DAMAGED)) is HttpVerdict.RETRY
    assert GcsDialect().error(answer(400, DAMAGED)) is DataLossError


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, FailedPreconditionError),
        (401, PermissionDeniedError),
        (403, PermissionDeniedError),
        (404, NotFoundError),
        (409, AbortedError),
        (429, UnavailableError),
        (501, UnsupportedError),
        (503, UnavailableError),
    ],
)
def test_errors_by_their_remedy(status, error):
    assert GcsDialect().error(answer(status)) is error


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"error": {"code": 404, "message": "The bucket\\nis gone."}}', "The bucket is gone."),
        (b'{"error": "invalid_grant"}', "invalid_grant"),
        (b'{"kind": "x"}', ""),
        (b"{broken", ""),
        (b"No such object: b/a", "No such object: b/a"),
        (b"<html>...</html>", ""),
        (b"", ""),
        (b"x" * 1000, "x" * 300),
    ],
)  # fmt: skip
def test_says_what_the_service_says(body, words):
    assert GcsDialect().words(answer(404, body)) == words


@pytest.mark.parametrize(
    ("headers", "stated"),
    [
        ({"x-goog-hash": "crc32c=4waSgw==,md5=JfnnlDI7RTiF9RgfG2JNCw=="}, ["crc32c"]),
        ({"x-goog-hash": "md5=JfnnlDI7RTiF9RgfG2JNCw==, crc32c=4waSgw=="}, ["crc32c"]),
        ({"x-goog-hash": "md5=JfnnlDI7RTiF9RgfG2JNCw=="}, ["md5"]),
        ({"x-goog-hash": "crc32c=4waSgw==", STORED_AS: "gzip"}, []),
        ({"x-goog-hash": "crc32c=4waSgw==", STORED_AS: "identity"}, ["crc32c"]),
        ({"x-goog-hash": "crc32c=!"}, []),
        ({}, []),
    ],
)  # fmt: skip
def test_the_checksum_of_a_value(headers, stated):
    found = GcsDialect().digests(headers)

    assert list(found) == stated
    assert found.get("crc32c", b"\xe3\x06\x92\x83") == b"\xe3\x06\x92\x83"


async def test_says_if_there_was_no_waiter():
    signer = GcsSigner(Grant(lambda: None))
    dialect = GcsDialect(signer)
    assert dialect.words(answer(403, b"denied")) == "denied"

    signer.anonymous = True

    assert dialect.words(answer(403, b"denied")).startswith("denied; it was asked without cred")
    assert dialect.words(answer(401)).startswith("it was asked without credentials")
    assert dialect.words(answer(404, b"nothing")) == "nothing"


@pytest.mark.parametrize("number", [1, 5, 1700000000123456, 2**64 - 1])
def test_numbers_survive(number):
    generation = generation_of(str(number))

    assert generation is not None
    assert len(generation) == 9
    assert number_of(generation) == number


@pytest.mark.parametrize("text", [None, "", "0", "-5", "x", "5.0", "٥", str(2**64), 5])
def test_what_is_no_number_is_no_generation(text):
    assert generation_of(text) is None


@pytest.mark.parametrize(
    ("generation", "number"),
    [
        (NO_VALUE, 0),
        (b"\0" + bytes(8), FOREIGN),
        (b"\0abc", FOREIGN),
        (b"\1" + bytes([5]) + bytes(7), FOREIGN),
        (b"x" * 9, FOREIGN),
        (b"\0" + bytes(9), FOREIGN),
    ],
)
def test_generations_of_others_match_nothing(generation, number):
    assert number_of(generation) == number


def test_no_generation_asks_for_nothing():
    assert not is_condition(None)
    assert not is_condition(UNKNOWN)
    assert is_condition(NO_VALUE)
    assert is_condition(b"\0abc")


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
