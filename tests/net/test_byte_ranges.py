import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorstore_py._net.byte_ranges import body_window, range_header
from tensorstore_py._net.failures import Failure
from tensorstore_py.errors import DataLossError, OutOfRangeError
from tensorstore_py.plugin.kvstore import WHOLE, ByteRange


def sent(value, byte_range):
    """What a good server makes of the header: status, headers, body."""
    header = range_header(byte_range)
    if header is None:
        return 200, {"Content-Length": str(len(value))}, value
    first, _, last = header.removeprefix("bytes=").partition("-")
    size = len(value)
    if first:
        start, stop = int(first), min(size, int(last) + 1 if last else size)
    else:
        start, stop = max(0, size - int(last)), size
    if start >= stop:
        return 416, {"Content-Range": f"bytes */{size}"}, b""
    headers = {"Content-Range": f"bytes {start}-{stop - 1}/{size}"}
    return 206, headers, value[start:stop]


def ranges(most=12):
    bounds = st.integers(0, most)
    return st.one_of(
        st.tuples(bounds, bounds).map(lambda pair: ByteRange(min(pair), max(pair))),
        bounds.map(ByteRange),
        st.integers(1, most).map(lambda count: ByteRange(-count)),
    )


@given(st.integers(0, 10).map(lambda size: bytes(range(size))), ranges(), st.booleans())
def test_a_good_answer_gives_exactly_what_was_asked_for(value, byte_range, ignores_ranges):
    if ignores_ranges:
        status, headers, body = 200, {"Content-Length": str(len(value))}, value
    else:
        status, headers, body = sent(value, byte_range)
    try:
        start, stop = byte_range.resolve(len(value))
    except OutOfRangeError:
        with pytest.raises(Failure) as failure:
            body_window(byte_range, status, headers)
        assert failure.value.error is OutOfRangeError
        return

    window = body_window(byte_range, status, headers)

    assert window is not None
    assert body[window.skip : window.skip + (window.take or 0)] == value[start:stop]
    assert window.take == stop - start
    assert window.size == len(value)


@given(ranges(), st.integers(0, 12), st.integers(0, 12), st.none() | st.integers(0, 12))
def test_a_part_is_never_taken_for_another(byte_range, first, last, size):
    """Whatever a server claims: if it is accepted, it is the part that was asked for."""
    headers = {"Content-Range": f"bytes {first}-{last}/{'*' if size is None else size}"}
    try:
        window = body_window(byte_range, 206, headers)
    except Failure:
        return

    assert window is not None
    assert not byte_range.is_whole
    got = range(first, last + 1)[window.skip :][: window.take]
    if size is not None:
        assert got == range(*byte_range.resolve(size))
    elif byte_range.start < 0:
        assert len(got) == -byte_range.start
    elif byte_range.stop is None:
        assert got.start == byte_range.start
    else:
        assert got == range(byte_range.start, byte_range.stop)


@pytest.mark.parametrize(
    ("byte_range", "status", "headers"),
    [
        (WHOLE, 206, {"Content-Range": "bytes 0-9/10"}),
        (ByteRange(2, 5), 206, {}),
        (ByteRange(2, 5), 206, {"Content-Range": "bytes */10"}),
        (ByteRange(2, 5), 206, {"Content-Range": "items 2-4/10"}),
        (ByteRange(2, 5), 206, {"Content-Range": "bytes 2-4"}),
        (ByteRange(2, 5), 206, {"Content-Range": "bytes 3-5/10"}),
        (ByteRange(2, 5), 206, {"Content-Range": "bytes 2-5/10"}),
        (ByteRange(2, 5), 206, {"Content-Range": "bytes 4-2/10"}),
        (ByteRange(2, 5), 206, {"Content-Range": "bytes 2-4/4"}),
        (ByteRange(2, 5), 206, {"Content-Range": "bytes 2-4/10", "Content-Length": "4"}),
        (ByteRange(2, 5), 206, {"Content-Type": "multipart/byteranges; boundary=x"}),
        (ByteRange(-3), 206, {"Content-Range": "bytes 6-8/10"}),
        (ByteRange(2, 5), 416, {"Content-Range": "bytes */10"}),
    ],
)
def test_answers_that_contradict_themselves_are_damage(byte_range, status, headers):
    with pytest.raises(Failure) as failure:
        body_window(byte_range, status, headers)

    assert failure.value.error is DataLossError


@pytest.mark.parametrize(
    ("byte_range", "headers"),
    [
        (ByteRange(2, 50), {"Content-Range": "bytes 2-9/*"}),
        (ByteRange(-5), {"Content-Range": "bytes 0-3/*"}),
        (ByteRange(-30), {"Content-Range": "bytes 0-9/10"}),
    ],
)
def test_less_than_was_asked_for_is_out_of_range(byte_range, headers):
    with pytest.raises(Failure) as failure:
        body_window(byte_range, 206, headers)

    assert failure.value.error is OutOfRangeError


def test_a_refused_range_without_a_size_is_out_of_range_unless_it_is_nothing():
    with pytest.raises(Failure) as failure:
        body_window(ByteRange(10), 416, {})
    nothing = body_window(ByteRange(0, 0), 416, {})

    assert failure.value.error is OutOfRangeError
    assert nothing is not None
    assert nothing.take == 0


def test_a_whole_value_has_the_length_that_the_server_says():
    assert body_window(WHOLE, 200, {"Content-Length": "7"}) == (0, 7, 7, 7)
    assert body_window(WHOLE, 200, {}) == (0, None, None, None)
    assert body_window(ByteRange(1, 3), 200, {}) == (0, None, None, None)
    assert body_window(WHOLE, 200, {"Content-Length": "much"}) == (0, None, None, None)


@pytest.mark.parametrize("status", [100, 304, 404, 500])
def test_other_answers_are_no_values(status):
    assert body_window(ByteRange(1, 3), status, {"Content-Length": "7"}) is None


def test_a_whole_read_has_no_range_to_refuse():
    assert body_window(WHOLE, 416, {}) is None


@pytest.mark.parametrize(
    ("byte_range", "header"),
    [
        (WHOLE, None),
        (ByteRange(0, 0), "bytes=0-0"),
        (ByteRange(5, 5), "bytes=4-4"),
        (ByteRange(5, 6), "bytes=5-5"),
        (ByteRange(5), "bytes=5-"),
        (ByteRange(-5), "bytes=-5"),
    ],
)
def test_the_header_names_the_first_and_the_last_byte(byte_range, header):
    assert range_header(byte_range) == header
