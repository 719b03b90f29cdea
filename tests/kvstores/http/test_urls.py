import pytest

from tensorstore_py.errors import SpecError
from tensorstore_py.kvstores.http.urls import Place, check_key, join, split_base


@pytest.mark.parametrize(
    ("url", "base", "path"),
    [
        ("http://h", "http://h", ""),
        ("https://h/", "https://h", "/"),
        ("http://h/a//b/", "http://h", "/a//b/"),
        ("http://h/a%20b?q=%20&r", "http://h?q=%20&r", "/a b"),
        ("http://h/a%2Fb/c%20d", "http://h/a%2Fb", "/c d"),
        ("http://h/a%2fb%2Fc", "http://h/a%2fb%2Fc", ""),
        ("http://h/x?", "http://h", "/x"),
        ("http://h?q=/a%2F", "http://h?q=/a%2F", ""),
        ("http://u:p@h:8/%C3%A9", "http://u:p@h:8", "/é"),
        ("http://h/é", "http://h", "/é"),
    ],
)
def test_takes_apart_what_a_key_can_say(url, base, path):
    assert split_base(url) == (base, path)
    assert split_base(base) == (base, "")


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("", "scheme"),
        ("h/a", "scheme"),
        ("ftp://h/a", '"ftp"'),
        ("HTTP://h/a", '"HTTP"'),
        ("http://h/a#b", "Fragment"),
        ("http://h/%zz", "percent"),
        ("http://h/%ff", "UTF-8"),
        ("http://h h/a", "blanks"),
        ("http://h/a?b c", "blanks"),
        ("http://h\r\nX: y/a", "blanks"),
        ("http://[::1/a", "write IPv6 like"),
        ("http://h:99999/a", "port"),
        ("http://h:x/a", "port"),
        ("http://:80/a", "no host"),
        ("http:///a", "no host"),
    ],
)
def test_refuses_what_is_no_url_of_the_web(url, problem):
    with pytest.raises(SpecError, match=problem):
        split_base(url)


@pytest.mark.parametrize(
    ("base", "key", "url"),
    [
        ("http://h", "", "http://h/"),
        ("http://h", "a", "http://h/a"),
        ("http://h", "/a", "http://h/a"),
        ("http://h", "//a", "http://h//a"),
        ("http://h?q=1", "/a b?c#d%é", "http://h/a%20b%3Fc%23d%25%C3%A9?q=1"),
        ("http://h/x%2Fy", "/c", "http://h/x%2Fy/c"),
        ("http://h", "/\udcff", "http://h/%FF"),
    ],
)
def test_puts_a_key_in(base, key, url):
    assert Place.of(base).url(key) == url


@pytest.mark.parametrize(
    ("above", "path", "joined"),
    [
        ("", "a", "a"),
        ("", "/a", "/a"),
        ("/a", "", "/a"),
        ("/a", "b/", "/a/b/"),
        ("/a/", "b", "/a/b"),
    ],
)
def test_joins_what_stands_in_two_places(above, path, joined):
    assert join(above, path) == joined


def test_two_beginnings_contradict_each_other():
    with pytest.raises(SpecError, match="absolute"):
        join("/a", "/b")


@pytest.mark.parametrize("key", ["a", "a/b", ".a", "a/..b", "a./b", "...", "", "/a", "a//b"])
def test_most_keys_stay_below(key):
    check_key(key)


@pytest.mark.parametrize("key", [".", "..", "a/..", "../a", "a/./b", "a\\..\\b"])
def test_some_keys_lead_out(key):
    with pytest.raises(SpecError, match="servers read"):
        check_key(key)
