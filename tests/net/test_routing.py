"""Where requests go: origins, proxies of the environment, redirects."""

import pytest

from tensorstore_py._net.failures import Failure
from tensorstore_py._net.routing import Proxy, follow, origin_of, proxy_for
from tensorstore_py.errors import (
    FailedPreconditionError,
    PermissionDeniedError,
    UnsupportedError,
)
from tensorstore_py.plugin.http import HttpRequest, HttpResponse

HEADERS = {
    "Authorization": "Bearer secret",
    "Cookie": "secret",
    "X-Api-Key": "secret",
    "Range": "bytes=0-9",
    "If-Match": '"e"',
    "accept-encoding": "identity",
}


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://host/a/b?c", "https://host"),
        ("HTTP://Host:80?x", "http://host:80"),
        ("http://u:p@[::1]:8/a", "http://[::1]:8"),
        ("http://host#f/@x", "http://host"),
    ],
)
def test_the_origin_of_a_url(url, origin):
    assert origin_of(url) == origin


def test_without_a_word_of_the_environment_there_is_none():
    assert proxy_for("https://example.org") is None


def test_the_scheme_decides(monkeypatch):
    monkeypatch.setenv("https_proxy", "http://secure:1")
    monkeypatch.setenv("http_proxy", "plain:2")

    assert proxy_for("https://example.org") == Proxy("http://secure:1")
    assert proxy_for("http://example.org") == Proxy("http://plain:2")


def test_one_for_all(monkeypatch):
    monkeypatch.setenv("all_proxy", "http://every:3")

    assert proxy_for("https://example.org") == Proxy("http://every:3")


def test_some_hosts_are_reached_directly(monkeypatch):
    monkeypatch.setenv("https_proxy", "http://secure:1")
    monkeypatch.setenv("no_proxy", "example.org,10.0.0.1:8080")

    assert proxy_for("https://data.example.org") is None
    assert proxy_for("https://10.0.0.1:8080") is None
    assert proxy_for("https://other.org") is not None


def test_credentials_go_into_a_header(monkeypatch):
    monkeypatch.setenv("https_proxy", "http://me:p%40ss@secure:1")

    proxy = proxy_for("https://example.org")

    assert proxy == Proxy("http://secure:1", "Basic bWU6cEBzcw==")


def test_other_kinds_are_refused_by_name(monkeypatch):
    monkeypatch.setenv("https_proxy", "socks5://secure:1")

    with pytest.raises(UnsupportedError, match="socks5"):
        proxy_for("https://example.org")


@pytest.mark.parametrize("proxy", ["http://me:swordfish@[::1/", "http://me:swordfish@host:99999/"])
def test_a_proxy_that_is_no_url_is_named_without_its_password(monkeypatch, proxy):
    monkeypatch.setenv("http_proxy", proxy)

    with pytest.raises(UnsupportedError, match="http_proxy is no URL") as caught:
        proxy_for("http://example.org")
    assert "swordfish" not in str(caught.value)


def led(location, url="https://host/a?q=1"):
    headers = {} if location is None else {"Location": location}
    return follow(HttpRequest("GET", url, HEADERS, key="a"), HttpResponse(302, headers))


@pytest.mark.parametrize(
    ("location", "url"),
    [
        ("/b", "https://host/b"),
        ("b?x=%20#part", "https://host/b?x=%20"),
        ("https://host/c", "https://host/c"),
        ("//host/d", "https://host/d"),
        ("https://host", "https://host/"),
        ("https://host?x=a/b", "https://host/?x=a/b"),
    ],
)
def test_the_same_host_gets_everything(location, url):
    request = led(location)

    assert request is not None
    assert (request.url, request.headers, request.key) == (url, HEADERS, "a")


@pytest.mark.parametrize(
    "location", ["https://other/a", "https://host:444/a", "https://sub.host/a", "//host@other/a"]
)
def test_another_host_gets_no_secrets(location):
    request = led(location)

    assert request is not None
    assert request.headers == {
        name: HEADERS[name] for name in ("Range", "If-Match", "accept-encoding")
    }


def test_from_http_to_https_only_in_that_direction():
    up = led("https://host/a2", "http://host/a")

    assert up is not None
    assert "X-Api-Key" not in up.headers
    with pytest.raises(Failure) as failure:
        led("http://host/a?sig=secret")
    assert failure.value.error is PermissionDeniedError
    assert "secret" not in failure.value.text


@pytest.mark.parametrize("location", ["ftp://host/a", "file:///etc/passwd", "javascript:0"])
def test_other_schemes_are_not_followed(location):
    with pytest.raises(Failure) as failure:
        led(location)

    assert failure.value.error is PermissionDeniedError


@pytest.mark.parametrize("location", [None, ""])
def test_a_redirect_to_nowhere_is_an_error(location):
    with pytest.raises(Failure) as failure:
        led(location)

    assert failure.value.error is FailedPreconditionError


@pytest.mark.parametrize("location", ["/a/", "https://host/a/?q=1", "a/"])
def test_a_slash_behind_it_means_a_directory(location):
    assert led(location) is None


@pytest.mark.parametrize(
    ("location", "problem"),
    [
        ("https://[::1", "IPv6|no address"),
        ("https://host:99999/a", "port"),
        ("https://host:x/a", "port"),
        ("//[::1/a", "no address"),
    ],
)
def test_a_redirect_to_what_is_no_url_is_an_error(location, problem):
    with pytest.raises(Failure, match=f"no URL: .*({problem})") as caught:
        led(location)
    assert caught.value.error is FailedPreconditionError
