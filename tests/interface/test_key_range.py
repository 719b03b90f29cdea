"""Key ranges: intervals in the order of encoded keys."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorstore_py._interface.key_range import ALL, KeyRange, decode_key, encode_key

#: Few letters, so that prefixes meet; the greatest byte and the greatest code point among them.
RAW = st.binary(max_size=4).map(lambda raw: bytes(b"ab/\xff"[byte % 4] for byte in raw))
TEXT = st.text("ab/é\U0010ffff", max_size=4)
KEYS = st.one_of(TEXT, RAW.map(decode_key))
RANGES = st.builds(KeyRange, RAW, RAW)


@given(st.one_of(st.binary(max_size=8), RAW))
def test_any_bytes_are_a_key_and_back(raw):
    assert encode_key(decode_key(raw)) == raw


def test_text_is_its_own_key():
    assert decode_key("é/a") == "é/a" == decode_key("é/a".encode())


@given(RANGES, KEYS)
def test_contains_what_lies_between_in_byte_order(key_range, key):
    raw, high = encode_key(key), key_range.exclusive_max
    expected = key_range.inclusive_min <= raw and (high == b"" or raw < high)
    assert (key in key_range) == expected
    if key_range.empty:
        assert not expected


@given(KEYS, KEYS)
def test_a_prefix_is_the_range_of_the_keys_that_begin_with_it(prefix, key):
    begins = encode_key(key).startswith(encode_key(prefix))
    assert (key in KeyRange.prefix(prefix)) == begins


@given(KEYS, RANGES, KEYS)
def test_a_base_is_put_in_front(base, key_range, key):
    moved = key_range.with_base(base)
    assert (decode_key(encode_key(base) + encode_key(key)) in moved) == (key in key_range)


@given(TEXT, RANGES, KEYS)
def test_nothing_outside_the_base_comes_in(base, key_range, key):
    if not encode_key(key).startswith(encode_key(base)):
        assert key not in key_range.with_base(base)


@given(RANGES, KEYS)
def test_every_key_of_a_range_begins_with_its_common_prefix(key_range, key):
    if key in key_range:
        assert encode_key(key).startswith(encode_key(key_range.common_prefix()))


@pytest.mark.parametrize(
    ("low", "high", "prefix"),
    [
        (b"\xffb", b"\xffba", "\udcffb"),
        ("aé".encode(), "aê".encode(), "aé"),
        ("aé".encode()[:2], "aé".encode(), "a"),
        (b"ab", b"ad", "a"),
        (b"ab", b"", ""),
    ],
)
def test_no_character_is_cut_in_two(low, high, prefix):
    assert KeyRange(low, high).common_prefix() == prefix


@given(TEXT)
def test_the_common_prefix_of_a_prefix_is_that(prefix):
    if not prefix.endswith("\U0010ffff"):
        assert KeyRange.prefix(prefix).common_prefix() == prefix


@pytest.mark.parametrize(
    ("low", "high", "empty"),
    [(b"", b"", False), (b"a", b"", False), (b"a", b"b", False), (b"b", b"b", True),
     (b"b", b"a", True), (b"", b"a", False)],
)  # fmt: skip
def test_knows_when_no_key_can_be_inside(low, high, empty):
    assert KeyRange(low, high).empty == empty


def test_everything():
    assert KeyRange.prefix("") == ALL
    assert all(key in ALL for key in ("", "a", "\U0010ffff", decode_key(b"\xff")))
    assert ALL.common_prefix() == ""
