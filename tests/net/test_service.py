"""What the base classes know of any service: verdicts, errors, words, pages."""

import pytest

from tensorstore_py._net.service import Paging
from tensorstore_py.errors import (
    AbortedError,
    DataLossError,
    FailedPreconditionError,
    NotFoundError,
    OutOfRangeError,
    PermissionDeniedError,
    UnavailableError,
    UnsupportedError,
)
from tensorstore_py.plugin.http import (
    HttpDialect,
    HttpRequest,
    HttpResponse,
    HttpSigner,
    HttpVerdict,
)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (302, FailedPreconditionError),
        (400, FailedPreconditionError),
        (401, PermissionDeniedError),
        (403, PermissionDeniedError),
        (404, NotFoundError),
        (405, UnsupportedError),
        (408, UnavailableError),
        (409, AbortedError),
        (412, FailedPreconditionError),
        (416, OutOfRangeError),
        (418, FailedPreconditionError),
        (429, UnavailableError),
        (500, UnavailableError),
        (501, UnsupportedError),
        (503, UnavailableError),
        (599, UnavailableError),
    ],
)
def test_a_status_becomes_the_error_with_its_remedy(status, error):
    assert HttpDialect().error(HttpResponse(status, {})) is error


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_what_may_pass_is_tried_again(status):
    assert HttpDialect().verdict(HttpResponse(status, {})) is HttpVerdict.RETRY


@pytest.mark.parametrize("status", [300, 302, 400, 403, 404, 405, 409, 412, 416, 451, 501, 505])
def test_the_rest_is_not(status):
    assert HttpDialect().verdict(HttpResponse(status, {})) is HttpVerdict.FAIL


def test_refused_credentials_may_be_renewed():
    assert HttpDialect().verdict(HttpResponse(401, {})) is HttpVerdict.REFRESH


def test_plain_text_is_shown_in_one_line():
    plain = HttpResponse(403, {"Content-Type": "text/plain"}, b"ask\n the  owner")
    page = HttpResponse(403, {"Content-Type": "text/html"}, b"<html>")

    assert HttpDialect().words(plain) == "ask the owner"
    assert HttpDialect().words(page) == ""
    assert len(HttpDialect().words(HttpResponse(403, plain.headers, b"x" * 9999))) == 200


def test_states_the_checksums_of_the_headers():
    assert set(HttpDialect().digests({"x-goog-hash": "crc32c=4waSgw=="})) == {"crc32c"}


async def test_a_signer_has_no_other_credentials_unless_it_says_so():
    class Fixed(HttpSigner):
        async def sign(self, request, now):
            return {**request.headers, "Authorization": "x"}

    signer = Fixed()

    assert await signer.sign(HttpRequest("GET", "http://a/", {"A": "1"}), 0.0) == {
        "A": "1", "Authorization": "x"
    }  # fmt: skip
    assert not await signer.refresh(HttpResponse(403, {}))


def test_a_long_listing_goes_on():
    paging = Paging("here")

    for number in range(1000):
        paging.page([f"{number}", f"{number}x"], f"token {number}")
    paging.page(["last"], None)


def test_the_last_page_may_be_anything():
    paging = Paging("here")
    paging.page(["a"], "1")

    paging.page(["a"], "")


@pytest.mark.parametrize(
    ("names", "token"), [(["b"], "1"), (["a"], "2")], ids=["token again", "page again"]
)
def test_what_came_before_ends_it(names, token):
    paging = Paging("here")
    paging.page(["a"], "1")

    with pytest.raises(DataLossError, match=r"cannot list here: .*2 pages"):
        paging.page(names, token)


def test_names_in_between_begin_the_count_of_empty_pages_anew():
    paging = Paging("here")
    for number in range(3):
        for each in range(Paging.MOST_EMPTY):
            paging.page([], f"{number} {each}")
        paging.page([f"{number}"], f"{number}")
    for each in range(Paging.MOST_EMPTY):
        paging.page([], f"last {each}")
    with pytest.raises(DataLossError):
        paging.page([], "one more")
