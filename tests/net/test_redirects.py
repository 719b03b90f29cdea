import pytest

from tensorstore_py._net.failures import Failure
from tensorstore_py._net.message import HttpRequest, HttpResponse
from tensorstore_py._net.redirects import follow
from tensorstore_py.errors import FailedPreconditionError, PermissionDeniedError

HEADERS = {
    "Authorization": "Bearer secret",
    "Cookie": "secret",
    "X-Api-Key": "secret",
    "Range": "bytes=0-9",
    "If-Match": '"e"',
    "accept-encoding": "identity",
}


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
