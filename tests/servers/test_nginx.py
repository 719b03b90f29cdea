"""nginx serves a folder of the test's own, as the web does and in worse ways."""

from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

import pytest

OPENER = build_opener(ProxyHandler({}))


def get(url, **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    with OPENER.open(Request(url, headers=named)) as reply:
        return reply.status, dict(reply.headers.items()), reply.read()


@pytest.fixture
def folder(nginx_http):
    (nginx_http.files / "a").write_bytes(b"0123456789")
    return nginx_http


def test_ranges_and_etags(folder):
    status, headers, body = get(folder.url + "a")
    assert (status, body) == (200, b"0123456789")

    status, part, body = get(folder.url + "a", Range="bytes=2-4")
    assert (status, part["Content-Range"], body) == (206, "bytes 2-4/10", b"234")
    assert part["ETag"] == headers["ETag"]

    with pytest.raises(HTTPError, match="304") as unchanged:
        get(folder.url + "a", If_None_Match=headers["ETag"])
    unchanged.value.close()
    with pytest.raises(HTTPError, match="404") as missing:
        get(folder.url + "b")
    missing.value.close()


def test_the_same_folder_served_worse(folder):
    def at(way):
        return f"{folder.site}/{way}/{folder.name}/a"

    assert get(at("no-ranges"), Range="bytes=2-4")[0] == 200
    assert "ETag" not in get(at("no-etags"))[1]
    assert get(at("gzip"), Accept_Encoding="gzip")[1]["Content-Encoding"] == "gzip"
    assert get(at("kept"))[1]["Cache-Control"] == "max-age=3600"
    assert get(at("moved"))[2] == b"0123456789"
    with pytest.raises(HTTPError, match="403") as refused:
        get(at("refused"))
    refused.value.close()
