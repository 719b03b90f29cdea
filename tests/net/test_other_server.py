"""Our client and a server that knows nothing of it, aiohttp's, in all the ways it answers."""

import gzip
import zlib

import pytest
from aiohttp import web

from tensorstore_py.plugin.http import HttpRequest
from tensorstore_py.plugin.kvstore import ByteRange

VALUE = bytes(range(256)) * 1000


async def whole(_):
    return web.Response(body=VALUE)


async def in_chunks(request):
    response = web.StreamResponse()
    response.enable_chunked_encoding()
    await response.prepare(request)
    for at in range(0, len(VALUE), 10_001):
        await response.write(VALUE[at : at + 10_001])
    await response.write_eof()
    return response


async def compressed(_):
    response = web.Response(body=VALUE)
    response.enable_compression()
    return response


async def last_word(_):
    response = web.Response(body=VALUE)
    response.force_close()
    return response


async def echo(request):
    return web.Response(body=await request.read(), headers={"X-Length": str(len(VALUE))})


@pytest.fixture
def talk(run, client, tmp_path):
    """What comes of requests, one after the other: `talk(("GET", "/whole", None, WHOLE), ...)`."""
    (tmp_path / "value").write_bytes(VALUE)

    async def stored(_):
        return web.FileResponse(tmp_path / "value")

    def talk(*requests, **options):
        async def body():
            app = web.Application(client_max_size=2**24)
            for handler in (whole, in_chunks, compressed, last_word, stored):
                app.router.add_get(f"/{handler.__name__}", handler)
            app.router.add_put("/echo", echo)
            runner = web.AppRunner(app)
            await runner.setup()
            try:
                site = web.TCPSite(runner, "127.0.0.1", 0)
                await site.start()
                port = runner.addresses[0][1]
                sender = client(max_retries=0, **options)
                bodies = []
                for method, path, sent, headers, byte_range in requests:
                    request = HttpRequest(method, f"http://127.0.0.1:{port}{path}", headers, sent)
                    more = () if byte_range is None else (byte_range,)
                    response = await sender.send(request, {200, 206, 404}, *more)
                    bodies.append(bytes(response.body))
                return bodies
            finally:
                await runner.cleanup()

        return run(body)

    return talk


def get(path, byte_range=None, **headers):
    return "GET", path, None, headers, byte_range


def test_one_kind_of_answer_after_the_other(talk):
    paths = ["/whole", "/in_chunks", "/stored", "/last_word", "/in_chunks", "/last_word", "/whole"]

    assert talk(*(get(path) for path in paths)) == [VALUE] * len(paths)


@pytest.mark.parametrize(
    "byte_range", [ByteRange(0, 10), ByteRange(70_000, 256_000), ByteRange(255_000), ByteRange(-7)]
)
def test_parts(talk, byte_range):
    start, stop = byte_range.resolve(len(VALUE))
    paths = ["/stored", "/whole", "/in_chunks", "/stored"]

    assert talk(*(get(path, byte_range) for path in paths)) == [VALUE[start:stop]] * len(paths)


@pytest.mark.parametrize("name", ["gzip", "deflate"])
def test_compressed_while_it_is_sent(talk, name):
    request = get("/compressed", **{"Accept-Encoding": name})

    assert talk(request, get("/whole"), unpack=True) == [VALUE, VALUE]
    (packed,) = talk(request)
    assert (gzip.decompress if name == "gzip" else zlib.decompress)(packed) == VALUE


@pytest.mark.parametrize("size", [0, 1, 2**17 + 1, 2**22])
@pytest.mark.parametrize("headers", [{}, {"Expect": "100-continue"}], ids=["", "expect"])
def test_bodies_that_are_sent(talk, size, headers):
    sent = (VALUE * 17)[:size]

    assert talk(*[("PUT", "/echo", sent, headers, None)] * 2) == [sent, sent]


def test_errors(talk):
    assert talk(get("/nowhere"), get("/whole")) == [b"404: Not Found", VALUE]
