import pytest

from tensorstore_py._net.message import HttpRequest, HttpResponse, show_url


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
