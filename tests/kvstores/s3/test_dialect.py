import hashlib
from base64 import b64encode

import pytest

import tensorstore_py as ts
from tensorstore_py.kvstores.s3.dialect import S3Dialect, error_code, stated_region
from tensorstore_py.plugin import HttpRequest, HttpResponse, HttpVerdict
from tests.kvstores.s3.fake_s3 import error


def answer(status, code="", more=""):
    reply = error(status, code, more)
    return HttpResponse(status, reply.headers, reply.body if code else b"")


@pytest.mark.parametrize(
    ("status", "code", "verdict"),
    [
        (503, "SlowDown", HttpVerdict.RETRY),
        (400, "RequestTimeout", HttpVerdict.RETRY),
        (409, "ConditionalRequestConflict", HttpVerdict.RETRY),
        (400, "ThrottlingSomewhere", HttpVerdict.RETRY),
        (500, "", HttpVerdict.RETRY),
        (429, "", HttpVerdict.RETRY),
        (500, "Unheard", HttpVerdict.RETRY),
        (403, "RequestTimeTooSkewed", HttpVerdict.SKEWED),
        (400, "ExpiredToken", HttpVerdict.REFRESH),
        (400, "AuthorizationHeaderMalformed", HttpVerdict.REFRESH),
        (400, "BadDigest", HttpVerdict.REFRESH),
        (401, "", HttpVerdict.REFRESH),
        (400, "", HttpVerdict.REFRESH),
        (403, "AccessDenied", HttpVerdict.FAIL),
        (501, "NotImplemented", HttpVerdict.FAIL),
        (400, "InvalidArgument", HttpVerdict.FAIL),
    ],
)
def test_what_to_do_about_an_answer(status, code, verdict):
    assert S3Dialect().verdict(answer(status, code)) is verdict


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (503, "SlowDown", ts.UnavailableError),
        (403, "AccessDenied", ts.PermissionDeniedError),
        (403, "SignatureDoesNotMatch", ts.PermissionDeniedError),
        (400, "ExpiredToken", ts.PermissionDeniedError),
        (404, "NoSuchBucket", ts.NotFoundError),
        (501, "NotImplemented", ts.UnsupportedError),
        (400, "BadDigest", ts.DataLossError),
        (403, "", ts.PermissionDeniedError),
        (400, "InvalidArgument", ts.FailedPreconditionError),
    ],
)
def test_which_error_an_answer_becomes(status, code, kind):
    assert S3Dialect().error(answer(status, code)) is kind


def test_the_code_is_in_the_text_or_in_a_header():
    assert error_code(answer(400, "ExpiredToken")) == "ExpiredToken"
    named = HttpResponse(400, {"x-amzn-errortype": "ThrottlingException:http://x"})
    assert error_code(named) == "ThrottlingException"
    assert error_code(HttpResponse(400, {}, b"<html>no</html>")) == ""


def test_only_code_and_message_are_repeated():
    secret = "<StringToSign>AWS4-HMAC-SHA256 do-not-print</StringToSign>"

    words = S3Dialect().words(answer(403, "SignatureDoesNotMatch", secret))

    assert words == "SignatureDoesNotMatch: Something about SignatureDoesNotMatch"
    assert S3Dialect().words(HttpResponse(500, {}, b"<html>")) == ""


def test_an_error_may_come_with_status_200():
    dialect = S3Dialect()
    failed = answer(200, "InternalError")
    fine = HttpResponse(200, {}, b"<DeleteResult><Error><Code>X</Code></Error></DeleteResult>")
    post, get = HttpRequest("POST", "http://x/", {}), HttpRequest("GET", "http://x/", {})

    assert dialect.belies(post, failed)
    assert dialect.verdict(failed) is HttpVerdict.RETRY
    assert not dialect.belies(post, fine)
    assert not dialect.belies(get, failed), "a value may look like that"
    assert not dialect.belies(post, answer(404, "NoSuchKey"))


def test_checksums():
    md5 = hashlib.md5(b"abc").hexdigest()
    dialect = S3Dialect()

    assert dialect.digests({"ETag": f'"{md5}"'}) == {"md5": bytes.fromhex(md5)}
    assert dialect.digests({"ETag": f'"{md5}-2"'}) == {}, "of several parts"
    assert S3Dialect(trusts_line=True).digests({"ETag": f'"{md5}"'}) == {}
    for encryption in ("aws:kms", "aws:kms:dsse"):
        headers = {"ETag": f'"{md5}"', "x-amz-server-side-encryption": encryption}
        assert dialect.digests(headers) == {}, "of what is stored"


def test_the_cheap_checksum_is_taken_where_there_is_one():
    text = b64encode(bytes(4)).decode()
    headers = {"ETag": f'"{"0" * 32}"', "x-amz-checksum-crc32c": text}

    assert S3Dialect().digests(headers) == {"crc32c": bytes(4)}
    composite = {**headers, "x-amz-checksum-type": "COMPOSITE"}
    assert S3Dialect(trusts_line=True).digests(composite) == {}
    assert S3Dialect(trusts_line=True).digests({"x-amz-checksum-crc32c": f"{text}-3"}) == {}
    assert S3Dialect(trusts_line=True).digests({"x-amz-checksum-crc32c": "no"}) == {}


def test_answers_state_the_region_in_a_header_or_in_their_text():
    body = b"<Error><Code>AuthorizationHeaderMalformed</Code><Region>eu-west-1</Region></Error>"

    assert stated_region(HttpResponse(400, {}, body)) == "eu-west-1"
    assert stated_region(HttpResponse(301, {"x-amz-bucket-region": "us-west-2"})) == "us-west-2"
    assert stated_region(HttpResponse(301, {})) is None
