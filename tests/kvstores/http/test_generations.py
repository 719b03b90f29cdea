import pytest

from tensorstore_py.kvstores.http.generations import (
    NO_SIGN,
    etag_of,
    generation_of,
    is_unchanged,
)
from tensorstore_py.plugin import NO_VALUE, UNKNOWN

MONDAY = "Mon, 19 Oct 2015 07:28:00 GMT"
TUESDAY = "Tue, 20 Oct 2015 07:28:00 GMT"
WEDNESDAY = "Wed, 21 Oct 2015 07:28:00 GMT"


@pytest.mark.parametrize(
    ("etag", "generation"),
    [
        ('"abc"', b"\0abc"),
        (' "a b" ', b"\0a b"),
        ('"é"', b"\0\xc3\xa9"),
        ('W/"abc"', NO_SIGN),
        ("abc", NO_SIGN),
        ('""', NO_SIGN),
        ("", NO_SIGN),
    ],
)
def test_a_strong_etag_is_the_generation(etag, generation):
    assert generation_of({"ETag": etag}, 3) == generation


def test_without_one_the_date_of_the_last_change_will_do():
    first = generation_of({"Last-Modified": MONDAY, "Date": TUESDAY}, 3)

    assert first not in (NO_SIGN, UNKNOWN, NO_VALUE)
    assert generation_of({"Last-Modified": MONDAY, "Date": TUESDAY}, 3) == first
    assert generation_of({"Last-Modified": MONDAY, "Date": TUESDAY}, 4) != first
    assert generation_of({"Last-Modified": TUESDAY, "Date": WEDNESDAY}, 3) != first
    assert generation_of({"Last-Modified": MONDAY, "Date": TUESDAY, "ETag": 'W/"x"'}, 3) == first


@pytest.mark.parametrize(
    ("headers", "size"),
    [
        ({"Last-Modified": MONDAY}, 3),
        ({"Last-Modified": MONDAY, "Date": MONDAY}, 3),
        ({"Last-Modified": TUESDAY, "Date": MONDAY}, 3),
        ({"Last-Modified": "lately", "Date": MONDAY}, 3),
        ({"Last-Modified": MONDAY, "Date": TUESDAY}, None),
        ({"Date": TUESDAY}, 3),
    ],
)
def test_unless_the_date_proves_nothing(headers, size):
    assert generation_of(headers, size) == NO_SIGN


@pytest.mark.parametrize(
    ("generation", "etag"),
    [
        (b"\0abc", '"abc"'),
        (b"\0a b", '"a b"'),
        (b'\0a"b', None),
        (b"\0a\r\nX: y", None),
        (b"\0\xff", None),
        (b"\0", None),
        (b"abc", None),
        (b"\x01123:4", None),
        (NO_SIGN, None),
        (NO_VALUE, None),
        (UNKNOWN, None),
    ],
)
def test_only_etags_are_sent_as_conditions(generation, etag):
    assert etag_of(generation) == etag


def test_no_sign_proves_nothing():
    assert is_unchanged(b"\0abc", b"\0abc")
    assert not is_unchanged(b"\0abc", b"\0abd")
    assert not is_unchanged(b"\0abc", None)
    assert not is_unchanged(NO_SIGN, NO_SIGN)
    assert not is_unchanged(UNKNOWN, UNKNOWN)
