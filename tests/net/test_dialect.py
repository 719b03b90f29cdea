import pytest

from tensorstore_py._net.dialect import HttpDialect, HttpVerdict
from tensorstore_py._net.message import HttpResponse
from tensorstore_py.errors import PermissionDeniedError, UnavailableError


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_what_may_pass_is_tried_again(status):
    assert HttpDialect().verdict(HttpResponse(status, {})) is HttpVerdict.RETRY


@pytest.mark.parametrize("status", [300, 302, 400, 403, 404, 405, 409, 412, 416, 451, 501, 505])
def test_the_rest_is_not(status):
    assert HttpDialect().verdict(HttpResponse(status, {})) is HttpVerdict.FAIL


def test_refused_credentials_may_be_renewed():
    assert HttpDialect().verdict(HttpResponse(401, {})) is HttpVerdict.REFRESH


def test_errors_are_by_status():
    assert HttpDialect().error(HttpResponse(403, {})) is PermissionDeniedError
    assert HttpDialect().error(HttpResponse(503, {})) is UnavailableError


def test_plain_words_are_told_in_one_line():
    plain = HttpResponse(403, {"Content-Type": "text/plain"}, b"ask\n the  owner")
    page = HttpResponse(403, {"Content-Type": "text/html"}, b"<html>")

    assert HttpDialect().words(plain) == "ask the owner"
    assert HttpDialect().words(page) == ""
    assert len(HttpDialect().words(HttpResponse(403, plain.headers, b"x" * 9999))) == 200


def test_states_the_checksums_of_the_headers():
    assert set(HttpDialect().digests({"x-goog-hash": "crc32c=4waSgw=="})) == {"crc32c"}
