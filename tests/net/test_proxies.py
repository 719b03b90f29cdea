import pytest

from tensorstore_py._net.proxies import Proxy, origin_of, proxy_for
from tensorstore_py.errors import UnsupportedError


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

    assert proxy_for("https://example.org") == Proxy("http://secure:1", {})
    assert proxy_for("http://example.org") == Proxy("http://plain:2", {})


def test_one_for_all(monkeypatch):
    monkeypatch.setenv("all_proxy", "http://every:3")

    assert proxy_for("https://example.org") == Proxy("http://every:3", {})


def test_some_hosts_are_reached_directly(monkeypatch):
    monkeypatch.setenv("https_proxy", "http://secure:1")
    monkeypatch.setenv("no_proxy", "example.org,10.0.0.1:8080")

    assert proxy_for("https://data.example.org") is None
    assert proxy_for("https://10.0.0.1:8080") is None
    assert proxy_for("https://other.org") is not None


def test_credentials_go_into_a_header(monkeypatch):
    monkeypatch.setenv("https_proxy", "http://me:p%40ss@secure:1")

    proxy = proxy_for("https://example.org")

    assert proxy == Proxy("http://secure:1", {"Proxy-Authorization": "Basic bWU6cEBzcw=="})


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
