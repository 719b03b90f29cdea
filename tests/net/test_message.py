"""Requests and responses as values: what is shown, sent and read of them; ranges of bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorstore_py._net.byte_ranges import body_window, range_header
from tensorstore_py._net.connection import request_head
from tensorstore_py._net.failures import Failure
from tensorstore_py._net.message import HeaderFields, http_date, retry_after_s
from tensorstore_py.errors import DataLossError, OutOfRangeError, SpecError
from tensorstore_py.plugin.http import HttpRequest, HttpResponse, show_url
from tensorstore_py.plugin.kvstore import WHOLE, ByteRange


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://host/a/b", "https://host/a/b"),
        ("https://me:pass@host:80/a", "https://host:80/a"),
        ("https://host/a?token=abc&X-Sig=q%20r&flag", "https://host/a?token=...&X-Sig=...&flag"),
        ("https://host?q=1#frag", "https://host?q=..."),
        ("https://host/a@b/c", "https://host/a@b/c"),
        ("http://a@b:c@host/", "http://host/"),
        ("https://host/%40%3F", "https://host/%40%3F"),
    ],
)
def test_shows_urls_without_secrets(url, shown):
    assert show_url(url) == shown


def test_a_changed_request_is_for_the_same_thing():
    request = HttpRequest("PUT", "http://a/k", {"A": "1"}, b"body", action="write", key="k")

    changed = request.changed("http://b/k", {"B": "2"})

    assert (changed.url, changed.headers) == ("http://b/k", {"B": "2"})
    assert (changed.method, changed.body, changed.action, changed.key) == (
        "PUT", b"body", "write", "k"
    )  # fmt: skip


def test_a_request_shows_no_headers_and_no_query():
    request = HttpRequest("GET", "http://me:x@a/k?sig=s3cret", {"Authorization": "Bearer s3cret"})

    assert repr(request) == "GET http://a/k?sig=..."


def test_a_response_is_the_first_and_certain_unless_said_otherwise():
    response = HttpResponse(200, {})

    assert (response.attempts, response.ambiguous, response.body) == (1, False, b"")


@pytest.mark.parametrize(
    "text", [None, "", "soon", "0", "Wed, 99 Oct 2015 07:28:00 GMT", "Wed, 21 Oct 99999 0:0:0 GMT"]
)
def test_what_is_no_date_is_none(text):
    assert http_date(text) is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (None, None),
        ("0", 0.0),
        (" 7 ", 7.0),
        ("-3", None),
        ("1.5", None),
        ("9" * 30, None),
        ("٣", None),
        ("later", None),
        ("Wed, 21 Oct 2015 07:28:10 GMT", 10.0),
        ("Wed, 21 Oct 2015 07:27:00 GMT", 0.0),
    ],
)
def test_how_long_to_wait(text, seconds):
    assert retry_after_s(text, 1445412480.0) == seconds


def test_a_request_has_what_it_needs():
    headers = {"Range": "bytes=0-4", "accept": "text/xml"}

    assert request_head("GET", "/a?b", "there:80", headers, None) == (
        b"GET /a?b HTTP/1.1\r\nHost: there:80\r\nRange: bytes=0-4\r\naccept: text/xml\r\n"
        b"Accept-Encoding: identity\r\nUser-Agent: tensorstore_py\r\n\r\n"
    )
    assert request_head("HEAD", "/", "there", {"host": "else", "user-agent": "me"}, None) == (
        b"HEAD / HTTP/1.1\r\nhost: else\r\nuser-agent: me\r\nAccept: */*\r\n"
        b"Accept-Encoding: identity\r\n\r\n"
    )


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE"])
def test_a_request_says_how_long_its_body_is(method):
    assert b"\r\nContent-Length: 0\r\n" in request_head(method, "/", "there", {}, None)
    head = request_head(method, "/", "there", {}, 7)
    assert b"\r\nContent-Length: 7\r\n" in head
    assert b"\r\nContent-Type: application/octet-stream\r\n" in head
    typed = request_head(method, "/", "there", {"Content-type": "text/xml"}, 7)
    assert typed.lower().count(b"content-type") == 1


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n", "\0"])
@pytest.mark.parametrize("where", ["name", "value", "target"])
def test_no_header_begins_another_line(where, end):
    injected = f"a{end}X-Evil: 1"
    target = f"/{injected}" if where == "target" else "/"
    headers = {} if where == "target" else {injected: "1"} if where == "name" else {"A": injected}

    with pytest.raises(Failure, match="line break") as failure:
        request_head("GET", target, "there", headers, None)

    assert failure.value.error is SpecError
    assert "X-Evil" not in str(failure.value)


def test_what_a_server_said_can_be_said_to_it():
    fields = HeaderFields({"etag": b'"\xff\xc3\xa9"'.decode("utf-8", "surrogateescape")})

    head = request_head("GET", "/", "there", {"If-Match": fields["ETag"]}, None)

    assert b'If-Match: "\xff\xc3\xa9"\r\n' in head


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
