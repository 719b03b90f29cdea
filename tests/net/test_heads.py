import pytest

from tensorstore_py._net.failures import Failure
from tensorstore_py._net.heads import HeadFields, parse_head, request_head
from tensorstore_py.errors import DataLossError, SpecError


def test_an_answer_is_taken_apart():
    head = parse_head(
        b'HTTP/1.1 206 Partial Content\r\nContent-Length: 10\r\nETag:\t"a b" \r\nX:\r\n'
        b"x-name: caf\xc3\xa9 \xff\r\n\r\n"
    )

    assert head is not None
    assert (head.status, head.reason, head.length) == (206, "Partial Content", 10)
    assert dict(head.fields) == {
        "content-length": "10",
        "etag": '"a b"',
        "x": "",
        "x-name": "café \udcff",
    }


@pytest.mark.parametrize("line", ["HTTP/1.1 200", "HTTP/1.1 200 ", "HTTP/1.1 200 OK"])
def test_words_may_be_missing(line):
    head = parse_head(f"{line}\r\nContent-Length: 0\r\n\r\n".encode())

    assert head is not None
    assert (head.status, head.length) == (200, 0)


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.0 200 OK\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"http/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1  200 OK\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/1.1 200OK\r\n\r\n",
        b"HTTP/1.1 200 O\x00K\r\n\r\n",
        b"\r\nHTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\nContent-Length: 5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n Content-Length: 5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: b\r\n folded\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n: no name\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\ncontent-length: 6\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nconnection: close\r\n\r\n",
        b"HTTP/1.1 101 Go\r\nConnection: upgrade\r\n\r\n",
        b"SSH-2.0-OpenSSH\r\n\r\n",
    ],
)
def test_whatever_is_not_plain_is_left_alone(head):
    assert parse_head(head) is None


@pytest.mark.parametrize("length", [b"+5", b"5, 5", b"-5", b"\xd9\xa5", b"", b"1" * 20])
def test_a_length_that_is_no_number_is_a_failure(length):
    with pytest.raises(Failure, match="says that the answer has") as failure:
        parse_head(b"HTTP/1.1 200 OK\r\nContent-Length: " + length + b"\r\n\r\n")

    assert failure.value.error is DataLossError
    assert failure.value.may_have_run


def test_of_two_headers_of_one_name_the_first_counts():
    fields = HeadFields("x-goog-hash: crc32c=1\r\nX-Goog-Hash: md5=2\r\n")

    assert fields["X-GOOG-HASH"] == "crc32c=1"
    assert len(fields) == 1
    assert "x-Goog-hash" in fields
    assert fields.get("ETag") is None
    assert fields.get("ETag", "none") == "none"
    with pytest.raises(KeyError):
        fields["ETag"]


def test_a_request_has_what_it_needs():
    headers = {"Range": "bytes=0-4", "accept": "text/xml"}

    assert request_head("GET", "/a?b", "there:80", headers, None) == (
        b"GET /a?b HTTP/1.1\r\nHost: there:80\r\nRange: bytes=0-4\r\naccept: text/xml\r\n\r\n"
    )
    assert request_head("HEAD", "/", "there", {"host": "else"}, None) == (
        b"HEAD / HTTP/1.1\r\nhost: else\r\nAccept: */*\r\n\r\n"
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
    fields = HeadFields(b'ETag: "\xff\xc3\xa9"'.decode("utf-8", "surrogateescape"))

    head = request_head("GET", "/", "there", {"If-Match": fields["ETag"]}, None)

    assert b'If-Match: "\xff\xc3\xa9"\r\n' in head
