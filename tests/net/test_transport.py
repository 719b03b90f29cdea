"""One attempt through the client: what servers send, and what of it becomes a value."""

import asyncio
import gzip
import hashlib
import zlib
from base64 import b64encode
from binascii import crc32

import numcodecs.zstd
import pytest

from tensorstore_py.errors import (
    DataLossError,
    SpecError,
    TensorStoreError,
    UnavailableError,
    UnsupportedError,
)
from tensorstore_py.plugin.http import HttpDialect, HttpRequest
from tensorstore_py.plugin.kvstore import WHOLE, ByteRange, crc32c
from tensorstore_py.testing import Fault, Reply, WebValues
from tensorstore_py.testing.fault_server import (
    GARBAGE,
    chunked_cut,
    close_within,
    flipped,
    reset_within,
    slow,
    stalled_within,
    unframed,
    with_length,
)

SMALL = bytes(range(256)) * 3
LARGE = bytes(range(251)) * 8192


@pytest.fixture(params=[SMALL, LARGE], ids=["small", "large"])
def value(request):
    return request.param


@pytest.fixture
def exchange(run, client):
    """One attempt, whatever the status."""

    def exchange(url, byte_range=WHOLE, *, method="GET", body=None, headers=None, **options):
        sender = client(max_retries=0, **{"idle_timeout_s": 30.0, **options})
        request = HttpRequest(method, url, headers or {}, body)
        return run(lambda: sender.send(request, range(100, 600), byte_range))

    return exchange


def test_receives_a_whole_value(serve, exchange, value):
    server = serve(WebValues({"a": value}).handle)

    response = exchange(server.url + "/a")

    assert response.status == 200
    assert bytes(response.body) == value
    assert response.size == len(value)
    assert response.headers["etag"]


def test_a_url_without_a_path_is_that_of_the_root(serve, exchange, value):
    server = serve(WebValues({"": value}).handle)

    assert bytes(exchange(server.url).body) == value


@pytest.mark.parametrize("ranges", [True, False], ids=["served", "ignored"])
@pytest.mark.parametrize(
    "byte_range",
    [ByteRange(0, 7), ByteRange(300, 555), ByteRange(700), ByteRange(-11), ByteRange(9, 9)],
)
def test_receives_exactly_a_part(serve, exchange, value, byte_range, ranges):
    server = serve(WebValues({"a": value}, ranges=ranges).handle)

    response = exchange(server.url + "/a", byte_range)

    start, stop = byte_range.resolve(len(value))
    assert bytes(response.body) == value[start:stop]
    assert response.size == len(value)


def test_no_bytes_leave_the_connection_as_it_should_be(serve, exchange, value):
    """The byte that stands in for an empty range is received, however late it comes."""
    server = serve(WebValues({"a": value}).handle, [slow(1, 0.02), slow(1, 0.02)])

    responses = [exchange(server.url + "/a", ByteRange(4, 4)) for _ in range(2)]

    assert [bytes(response.body) for response in responses] == [b"", b""]
    assert server.connections == 1


def test_what_is_not_wanted_is_not_waited_for(serve, exchange):
    # The rest never comes.
    server = serve(WebValues({"a": LARGE}, ranges=False).handle, [stalled_within(1000)])

    response = exchange(server.url + "/a", ByteRange(100, 900))

    assert bytes(response.body) == LARGE[100:900]


def test_a_connection_is_used_again(serve, exchange, value):
    server = serve(WebValues({"a": value}).handle)
    for byte_range in (WHOLE, ByteRange(2, 5), WHOLE, ByteRange(-5)):
        exchange(server.url + "/a", byte_range)

    assert server.connections == 1
    assert [request.connection for request in server.requests] == [0, 0, 0, 0]


@pytest.mark.parametrize(
    "fault",
    [
        reset_within(10),
        close_within(10),
        chunked_cut(100),
        with_length(3),
        with_length(-3),
        GARBAGE,
    ],
    ids=repr,
)
def test_a_broken_answer_is_none(serve, exchange, value, fault):
    server = serve(WebValues({"a": value}).handle, [fault])

    with pytest.raises((UnavailableError, DataLossError)):
        exchange(server.url + "/a")

    assert bytes(exchange(server.url + "/a").body) == value
    assert len(server.requests) == 2


@pytest.mark.parametrize("count", [None, 10])
def test_a_body_without_any_length_cannot_be_trusted(serve, exchange, value, count):
    server = serve(WebValues({"a": value}).handle, [unframed(count)])

    with pytest.raises(TensorStoreError, match="neither") as failure:
        exchange(server.url + "/a")

    assert type(failure.value) is DataLossError


def test_a_part_without_a_length_is_known_by_its_range(serve, exchange, value):
    server = serve(WebValues({"a": value}).handle, [unframed(), unframed(4)])

    assert bytes(exchange(server.url + "/a", ByteRange(3, 9)).body) == value[3:9]
    with pytest.raises(TensorStoreError, match="4 of 6 bytes"):
        exchange(server.url + "/a", ByteRange(3, 9))


def test_chunks_without_a_length_are_framed(serve, exchange, value):
    def chunked(_):
        body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(value), value)
        return Reply(200, body, {"Transfer-Encoding": "chunked", "ETag": '"e"'})

    server = serve(chunked)
    server.plan = lambda _: unframed()

    assert bytes(exchange(server.url + "/a").body) == value
    assert bytes(exchange(server.url + "/a", ByteRange(5, 9)).body) == value[5:9]
    with pytest.raises(TensorStoreError, match="outside"):
        exchange(server.url + "/a", ByteRange(5, 10**9))


@pytest.mark.parametrize("framed", [True, False])
def test_of_a_body_without_end_only_the_wanted_part_is_received(run, client, framed):
    async def endless(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        kind = b"Transfer-Encoding: chunked\r\n" if framed else b""
        writer.write(b"HTTP/1.1 200 OK\r\n" + kind + b"\r\n")
        piece = b"a" * 4096
        try:
            while True:
                writer.write(b"1000\r\n%b\r\n" % piece if framed else piece)
                await writer.drain()
        except ConnectionError:
            writer.close()

    async def body():
        server = await asyncio.start_server(endless, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/a"
        try:
            request = HttpRequest("GET", url, {"Range": "bytes=5-99999"})
            return await client().send(request, {200}, ByteRange(5, 100_000))
        finally:
            server.close()

    assert bytes(run(body).body) == b"a" * 99_995


CHECKED = b"123456789"
MD5, SHA = (hashlib.new(name, CHECKED).digest() for name in ("md5", "sha256"))


def text(digest):
    return b64encode(digest).decode()


def test_stated_checksums_are_verified(serve, exchange):
    headers = {"x-goog-hash": "crc32c=4waSgw=="}
    server = serve(WebValues({"a": CHECKED}, headers=headers).handle, [flipped(5)])

    with pytest.raises(DataLossError, match="crc32c"):
        exchange(server.url + "/a")
    assert bytes(exchange(server.url + "/a").body) == CHECKED
    # Parts cannot be checked.
    assert bytes(exchange(server.url + "/a", ByteRange(0, 3)).body) == b"123"


@pytest.mark.parametrize("name", ["md5", "sha-1", "sha-256", "sha-512", "crc32"])
def test_the_right_bytes_pass_and_wrong_ones_do_not(serve, exchange, name):
    if name == "crc32":
        digest = crc32(CHECKED).to_bytes(4, "big")
    else:
        digest = hashlib.new(name.replace("-", ""), CHECKED).digest()
    values = WebValues({"a": CHECKED}, headers={"Digest": f"{name}={text(digest)}"})
    server = serve(values.handle, [flipped(5)])

    with pytest.raises(DataLossError, match=f"the {name} of the 9 bytes"):
        exchange(server.url + "/a")
    assert bytes(exchange(server.url + "/a").body) == CHECKED


@pytest.mark.parametrize(
    "stated", ["crc32c=4waSgw==, sha-256=AAAA", "crc64nvme=AAAA", "md5=!!!", "unixsum=30637"]
)
def test_the_cheapest_known_one_is_enough(serve, exchange, stated):
    server = serve(WebValues({"a": CHECKED}, headers={"Digest": stated}).handle)

    assert bytes(exchange(server.url + "/a").body) == CHECKED


@pytest.mark.parametrize("make", [bytes, bytearray, memoryview])
def test_crc32c_of_any_buffer(make):
    assert crc32c(make(CHECKED)) == 0xE3069283
    assert crc32c(make(b"")) == 0


@pytest.mark.parametrize(
    ("headers", "stated"),
    [
        ({}, {}),
        ({"Content-MD5": text(MD5)}, {"md5": MD5}),
        ({"Digest": f"MD5={text(MD5)},SHA-256={text(SHA)}"}, {"md5": MD5, "sha-256": SHA}),
        ({"Repr-Digest": f"sha-256=:{text(SHA)}:"}, {"sha-256": SHA}),
        ({"Content-Digest": f"sha-256=:{text(SHA)}:, adler=:AAAA:"}, {"sha-256": SHA}),
        ({"x-goog-hash": "crc32c=4waSgw=="}, {"crc32c": bytes.fromhex("e3069283")}),
        ({"x-goog-hash": "crc32c=4waSgw==", "x-goog-stored-content-encoding": "gzip"}, {}),
        ({"Digest": "md5=!!!"}, {}),
        ({"Digest": "unixsum=30637"}, {}),
    ],
)
def test_finds_what_the_headers_state(headers, stated):
    assert HttpDialect().digests(headers) == stated


def test_large_values_are_verified_without_keeping_others_waiting(serve, exchange):
    digest = b64encode(hashlib.md5(LARGE).digest()).decode()
    values = WebValues({"a": LARGE}, headers={"Content-MD5": digest})
    server = serve(values.handle, [flipped(5)])

    with pytest.raises(TensorStoreError, match="md5") as failure:
        exchange(server.url + "/a")
    assert type(failure.value) is DataLossError
    assert bytes(exchange(server.url + "/a").body) == LARGE


PLAIN = bytes(range(256)) * 30 + b"the end"


def deflated(data, window):
    packer = zlib.compressobj(wbits=window)
    return packer.compress(data) + packer.flush()


PACKED = {
    "gzip": gzip.compress(PLAIN),
    "x-gzip": gzip.compress(PLAIN[:9]) + gzip.compress(PLAIN[9:]),
    "deflate": deflated(PLAIN, 15),
    "zstd": numcodecs.zstd.compress(PLAIN),
}


@pytest.fixture
def get_packed(serve, exchange):
    """What comes of a value that is stored with a `Content-Encoding`."""

    def get_packed(packed, name):
        server = serve(WebValues({"a": packed}, headers={"Content-Encoding": name}).handle)
        return bytes(exchange(server.url + "/a", unpack=True).body)

    return get_packed


@pytest.mark.parametrize("name", PACKED)
def test_what_was_packed_is_undone(get_packed, name):
    assert get_packed(PACKED[name], name) == PLAIN


def test_deflate_may_have_no_head(get_packed):
    assert get_packed(deflated(PLAIN, -15), "deflate") == PLAIN


def test_what_was_packed_twice_is_undone_in_turn(get_packed):
    assert get_packed(gzip.compress(PACKED["zstd"]), "identity, zstd, GZIP") == PLAIN


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.parametrize("by", [1, 4, 8, 20, 10**5])
def test_what_does_not_end_is_not_whole(get_packed, name, by):
    with pytest.raises(DataLossError, match=rf"Content-Encoding: {name}"):
        get_packed(PACKED[name][: max(0, len(PACKED[name]) - by)], name)


def test_what_stands_behind_the_end_is_not_passed_over(get_packed):
    with pytest.raises(DataLossError, match="gzip"):
        get_packed(PACKED["gzip"] + b"more", "gzip")


def test_an_unknown_way_is_named(get_packed):
    with pytest.raises(UnsupportedError, match="Content-Encoding: lz9"):
        get_packed(b"1", "lz9")


def test_packed_values_are_unpacked_if_wanted(serve, exchange):
    packed = gzip.compress(SMALL)
    headers = {"Content-Encoding": "gzip"}
    server = serve(WebValues({"a": packed}, headers=headers).handle)

    assert bytes(exchange(server.url + "/a").body) == packed
    assert bytes(exchange(server.url + "/a", unpack=True).body) == SMALL


def test_parts_of_packed_values_are_of_no_use(serve, exchange):
    headers = {"Content-Encoding": "gzip"}
    web = WebValues({"a": gzip.compress(SMALL)}, headers=headers)
    server = serve(web.handle)

    with pytest.raises(TensorStoreError, match="gzip") as failure:
        exchange(server.url + "/a", ByteRange(1, 3), unpack=True)
    assert type(failure.value) is UnsupportedError
    web.ranges = False
    assert bytes(exchange(server.url + "/a", ByteRange(1, 3), unpack=True).body) == SMALL[1:3]


@pytest.mark.parametrize("byte_range", [WHOLE, ByteRange(1, 3), ByteRange(-3)])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_packed_value_that_does_not_end_is_not_whole(serve, exchange, byte_range, chunked):
    packed = gzip.compress(LARGE)
    headers = {"Content-Encoding": "gzip"}
    web = WebValues({"a": packed[:-100]}, headers=headers)
    web.ranges = False
    server = serve(web.handle, [chunked_short()] if chunked else [])

    with pytest.raises(TensorStoreError, match=r"gzip.*truncated") as failure:
        exchange(server.url + "/a", byte_range, unpack=True)
    assert type(failure.value) is DataLossError


def chunked_short():
    """Chunks that end as they should, whatever the value is."""

    async def act(at):
        reply = at.serve()
        head = Reply(200, b"", {**reply.headers, "Transfer-Encoding": "chunked"}).head(-1)
        await at.send(head + b"%x\r\n%b\r\n0\r\n\r\n" % (len(reply.body), reply.body))
        return True

    return Fault("chunks", act)


def test_an_unknown_packing_is_an_error_at_once(serve, exchange):
    server = serve(WebValues({"a": b"1"}, headers={"Content-Encoding": "br"}).handle)

    with pytest.raises(TensorStoreError, match="Content-Encoding") as failure:
        exchange(server.url + "/a", unpack=True)
    assert type(failure.value) is UnsupportedError


def test_errors_are_answers_with_a_beginning_of_their_body(serve, exchange):
    server = serve(lambda _: Reply(503, b"x" * 10**6, {"Retry-After": "3"}))

    response = exchange(server.url + "/a")

    assert (response.status, response.reason) == (503, "Service Unavailable")
    assert 0 < len(response.body) <= 2**16
    assert response.headers["retry-after"] == "3"


@pytest.mark.parametrize("status", [204, 304])
def test_answers_without_a_body(serve, exchange, status):
    server = serve(lambda _: Reply(status))

    response = exchange(server.url + "/a")

    assert (response.status, bytes(response.body)) == (status, b"")


def test_a_head_has_no_body(serve, exchange, value):
    server = serve(WebValues({"a": value}).handle)

    response = exchange(server.url + "/a", method="HEAD")

    assert response.headers["Content-Length"] == str(len(value))
    assert bytes(response.body) == b""


@pytest.mark.parametrize("size", [0, 1, 2**15, 2**15 + 1, 2**18, 2**21 + 7])
@pytest.mark.parametrize("make", [bytes, bytearray, memoryview])
def test_sends_a_body_whole(serve, exchange, size, make):
    body = (LARGE * 2)[:size]
    server = serve(lambda _: Reply(200, b"ok"))

    response = exchange(server.url + "/a", method="PUT", body=make(body))

    assert bytes(response.body) == b"ok"
    (request,) = server.requests
    assert request.body == body
    assert request.headers["content-length"] == str(size)
    assert "transfer-encoding" not in request.headers


@pytest.mark.parametrize("size", [0, 5, 2**15, 2**21 + 7])
def test_sends_a_body_of_several_parts(serve, exchange, size):
    parts = (b"first,", memoryview((LARGE * 2)[:size]), b"", bytearray(b",last"))
    server = serve(lambda _: Reply(200, b"ok"))

    exchange(server.url + "/a", method="PUT", body=parts)

    (request,) = server.requests
    assert request.body == b"".join(parts)
    assert request.headers["content-length"] == str(size + 11)


def test_sends_no_headers_but_those_given_and_the_necessary(serve, exchange):
    server = serve(lambda _: Reply(200, b"ok"))

    exchange(server.url + "/a", headers={"Accept-Encoding": "identity", "User-Agent": "me"})

    (request,) = server.requests
    assert dict(request.headers) == {
        "host": server.url.removeprefix("http://"),
        "accept": "*/*",
        "accept-encoding": "identity",
        "user-agent": "me",
    }


def test_the_path_goes_out_as_it_is(serve, exchange):
    server = serve(lambda _: Reply(200, b"ok"))

    exchange(server.url + "/a%2Fb/../c%20d//e?x=%2F&y")

    assert server.requests[0].target == "/a%2Fb/../c%20d//e?x=%2F&y"


@pytest.mark.parametrize("count", [0, 10])
def test_a_stall_is_noticed(serve, exchange, value, count):
    server = serve(WebValues({"a": value}).handle, [stalled_within(count)])

    with pytest.raises(TensorStoreError, match="nothing moved"):
        exchange(server.url + "/a", idle_timeout_s=0.05)


def test_a_stall_while_sending_is_noticed(run, client):
    async def body():
        gone = asyncio.Event()

        async def deaf(_, writer):
            await gone.wait()
            writer.close()
            closed.set()

        closed = asyncio.Event()
        server = await asyncio.start_server(deaf, "127.0.0.1", 0, limit=2**10)
        port = server.sockets[0].getsockname()[1]
        try:
            request = HttpRequest("PUT", f"http://127.0.0.1:{port}/a", {}, bytes(2**25))
            await client(max_retries=0, idle_timeout_s=0.05).send(request, {200})
        finally:
            server.close()
            gone.set()
            await closed.wait()

    with pytest.raises(TensorStoreError, match="nothing moved"):
        run(body)


def test_slow_is_not_stalled(serve, exchange):
    server = serve(WebValues({"a": SMALL}).handle, [slow(pieces=24, gap_s=0.01)])

    response = exchange(server.url + "/a", idle_timeout_s=0.2)

    assert bytes(response.body) == SMALL


def test_no_server_there(serve, exchange):
    server = serve(WebValues().handle)
    url = server.url
    server.plan = ()

    with pytest.raises(UnavailableError, match="no connection"):
        exchange(url.rpartition(":")[0] + ":9/a")


def test_a_proxy_of_the_environment_is_asked(serve, exchange, monkeypatch):
    proxy = serve(lambda request: Reply(200, request.target.encode()))
    monkeypatch.setenv("http_proxy", proxy.url.replace("http://", "http://me:secret@"))

    response = exchange("http://data.example/a?b=%20")

    assert bytes(response.body) == b"http://data.example/a?b=%20"
    assert proxy.requests[0].headers["proxy-authorization"].startswith("Basic ")
    assert proxy.requests[0].headers["host"] == "data.example"


def test_https_goes_through_a_tunnel(serve, exchange, monkeypatch):
    proxy = serve(lambda _: Reply(407))
    monkeypatch.setenv("https_proxy", proxy.url.replace("http://", "http://me:secret@"))

    with pytest.raises(TensorStoreError, match="407"):
        exchange("https://data.example/a")

    (request,) = proxy.requests
    assert (request.method, request.target) == ("CONNECT", "data.example:443")
    assert request.headers["proxy-authorization"].startswith("Basic ")


def test_plain_http_at_a_secure_port(run, client):
    async def refuse(_, writer):
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async def body():
        server = await asyncio.start_server(refuse, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        try:
            request = HttpRequest("GET", f"https://127.0.0.1:{port}/a", {})
            await client(max_retries=0).send(request, {200})
        finally:
            server.close()

    with pytest.raises(UnavailableError, match="secure connection"):
        run(body)


def test_a_header_cannot_begin_another_line(exchange):
    with pytest.raises(SpecError, match="line break"):
        exchange("http://127.0.0.1:9/a", headers={"A": "b\r\nX-Evil: 1"})


def test_a_url_that_is_none_is_an_error(exchange):
    with pytest.raises(SpecError, match="URL is not valid"):
        exchange("http://host:99999/a")
