import hashlib
from base64 import b64encode

import pytest

import tensorstore_py as ts
from tensorstore_py.errors import DataLossError
from tensorstore_py.kvstores.s3.dialect import (
    S3Dialect,
    error_code,
    etag_of,
    first_text,
    generation_of,
    local_name,
    named,
    parse_xml,
    quoted,
    stated_region,
)
from tensorstore_py.plugin.http import HttpRequest, HttpResponse, HttpVerdict
from tests.kvstores.s3.fake_s3 import error

BOMB = (
    b"""<!DOCTYPE a [<!ENTITY x "ha"><!ENTITY y "&x;&x;&x;&x;">]><Error><Code>&y;</Code></Error>"""
)


@pytest.mark.parametrize("space", [b"", b' xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'])
def test_names_are_found_with_or_without_a_namespace(space):
    root = parse_xml(
        b"\n \n<?xml version='1.0'?><A%b><B><C>1&amp;2</C></B><C>3</C></A>" % space, "A"
    )

    assert local_name(root) == "A"
    assert root.findtext(named(root, "C")) == "3"
    assert first_text(root, "C") == "1&2"
    assert first_text(root, "D") is None


@pytest.mark.parametrize("length", range(len(b"<A><B>1</B></A>")))
def test_no_beginning_of_a_document_is_one(length):
    with pytest.raises(DataLossError, match="no whole XML document"):
        parse_xml(b"<A><B>1</B></A>"[:length])


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (BOMB, "declares"),
        (BOMB.decode().encode("utf-16"), "no whole"),
        (b'<?xml version="1.0" encoding="utf-16"?><A/>x', "no whole"),
        (b"<A>&undeclared;</A>", "no whole"),
        (b"<A>\xff</A>", "no whole"),
        (b"<B></B>", "about <B> instead of <A>"),
        (b"<A></A><A></A>", "no whole"),
    ],
)
def test_what_services_do_not_send_is_refused(body, said):
    with pytest.raises(DataLossError, match=said):
        parse_xml(body, "A")


def test_a_generation_is_the_etag_as_the_reference_has_it():
    assert generation_of('"c4ca4238"') == b'\x00"c4ca4238"'


def test_servers_without_quotes_have_the_same_generations():
    assert generation_of("c4ca4238-2") == generation_of('"c4ca4238-2"')
    assert quoted(" 5 ") == '"5"'


def test_the_etag_comes_back():
    assert etag_of(generation_of('"c4ca4238-2"')) == '"c4ca4238-2"'


@pytest.mark.parametrize(
    "generation", [b"", b"\x02", b"5", b"\x00", b"\x005", b'\x00"5', b'\x00"5\r\n"', b'\x00"5"6"']
)
def test_other_generations_are_of_no_value_here(generation):
    assert etag_of(generation) is None


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
