"""Requests and responses as values: what is shown of them, sent of them, and read in them."""

import pytest

from tensorstore_py._net.connection import request_head
from tensorstore_py._net.failures import Failure
from tensorstore_py._net.message import HeaderFields, http_date, retry_after_s
from tensorstore_py.errors import SpecError
from tensorstore_py.plugin.http import HttpRequest, HttpResponse, show_url


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
