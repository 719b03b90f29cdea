from datetime import UTC, datetime

import pytest

from tensorstore_py.kvstores.obstore.generations import generation_of, get_options, put_mode
from tensorstore_py.plugin import NO_VALUE, UNKNOWN, WHOLE, ByteRange


def told(e_tag, version=None):
    return {
        "path": "a", "size": 5, "last_modified": datetime(2020, 1, 1, tzinfo=UTC),
        "e_tag": e_tag, "version": version,
    }  # fmt: skip


def test_a_generation_is_what_the_service_says():
    assert generation_of(told('"abc"')) == b'"abc"'
    assert generation_of(told('"abc"', "7")) == b'"abc"\n7'
    assert generation_of(told(None, "7")) == b"\n7"
    assert b" 5" in generation_of(told(None))


@pytest.mark.parametrize(
    ("generation", "mode"),
    [
        (NO_VALUE, "create"),
        (b'"abc"', {"e_tag": '"abc"'}),
        (b'"abc"\n7', {"e_tag": '"abc"', "version": "7"}),
        (b"\n7", {"version": "7"}),
        (generation_of(told(None)), None),
        (b"\0some other generation", None),
    ],
)
def test_a_condition_of_a_write(generation, mode):
    assert put_mode(generation) == mode


def test_quotes_may_be_left_out():
    assert put_mode(b'"abc"', bare=True) == {"e_tag": "abc"}
    assert put_mode(NO_VALUE, bare=True) == "create"


@pytest.mark.parametrize(
    ("byte_range", "options"),
    [
        (WHOLE, {}),
        (ByteRange(2, 5), {"range": (2, 5)}),
        (ByteRange(2), {"range": {"offset": 2}}),
        (ByteRange(-2), {"range": {"suffix": 2}}),
    ],
)
def test_a_part_of_a_value(byte_range, options):
    assert get_options(byte_range, None, None) == options


def test_conditions_of_reads():
    assert get_options(WHOLE, b'"x"', b'"y"\n7') == {"if_match": '"x"', "if_none_match": '"y"'}
    for nothing in (None, UNKNOWN, NO_VALUE, b"\0other"):
        assert get_options(WHOLE, nothing, nothing) == {}
