"""The handler that answers as web servers do; nginx's answers are the model."""

import time

import pytest

from tensorstore_py.plugin.http import HttpResponse
from tensorstore_py.testing import Reply, Request, WebValues

VALUE = b"0123456789"


def get(web: WebValues, target: str = "/a", method: str = "GET", **headers: str) -> Reply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return web.handle(Request(method, target, named))


@pytest.fixture
def web() -> WebValues:
    return WebValues({"a": VALUE, "d/é b": b"odd"})


def test_a_value(web: WebValues) -> None:
    reply = get(web)

    assert (reply.status, reply.body) == (200, VALUE)
    assert reply.headers["ETag"].startswith('"')


def test_paths_are_decoded_and_queries_passed_over(web: WebValues) -> None:
    assert get(web, "/d/%C3%A9%20b?token=5").body == b"odd"
    assert get(web, "/d").status == 404


def test_reads_only(web: WebValues) -> None:
    assert get(web, method="PUT").status == 405
    assert get(web, method="HEAD").status == 200


@pytest.mark.parametrize(
    ("wanted", "status", "body", "content_range"),
    [
        ("bytes=2-4", 206, b"234", "bytes 2-4/10"),
        ("bytes=7-", 206, b"789", "bytes 7-9/10"),
        ("bytes=-3", 206, b"789", "bytes 7-9/10"),
        ("bytes=-30", 206, VALUE, "bytes 0-9/10"),
        ("bytes=8-30", 206, b"89", "bytes 8-9/10"),
        ("bytes=10-", 416, b"", "bytes */10"),
        ("bytes=0-1,4-5", 200, VALUE, None),
    ],
)
def test_parts(
    web: WebValues, wanted: str, status: int, body: bytes, content_range: str | None
) -> None:
    reply = get(web, range=wanted)

    assert (reply.status, reply.body) == (status, body)
    assert reply.headers.get("Content-Range") == content_range


def test_parts_may_be_switched_off(web: WebValues) -> None:
    web.ranges = False

    assert get(web, range="bytes=2-4").body == VALUE


def test_conditions(web: WebValues) -> None:
    etag = get(web).headers["ETag"]

    assert get(web, if_none_match=etag).status == 304
    assert get(web, if_none_match='"other"').status == 200
    assert get(web, if_match=etag).status == 200
    assert get(web, if_match='"other"').status == 412
    web.values["a"] += b"!"
    assert get(web, if_match=etag).status == 412


def test_conditions_may_be_switched_off(web: WebValues) -> None:
    etag = get(web).headers["ETag"]
    web.conditions = False

    assert get(web, if_none_match=etag).status == 200
    assert get(web, if_match='"other"').status == 200


def test_etags_may_be_switched_off_and_dates_on(web: WebValues) -> None:
    web.etags, web.changed = False, 1_000_000.0

    headers = get(web).headers

    assert "ETag" not in headers
    response = HttpResponse(200, headers)
    assert response.date("Last-Modified") == 1_000_000.0
    assert response.date() == pytest.approx(time.time(), abs=60)


def test_further_headers(web: WebValues) -> None:
    web.headers = {"Cache-Control": "public"}

    assert get(web, range="bytes=0-1").headers["Cache-Control"] == "public"
