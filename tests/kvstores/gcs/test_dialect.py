import json

import pytest

from tensorstore_py.errors import (
    AbortedError,
    DataLossError,
    FailedPreconditionError,
    NotFoundError,
    PermissionDeniedError,
    UnavailableError,
    UnsupportedError,
)
from tensorstore_py.kvstores.gcs.credentials import GcsSigner, Grant
from tensorstore_py.kvstores.gcs.dialect import GcsDialect
from tensorstore_py.plugin import HttpResponse, HttpVerdict

STORED_AS = "x-goog-stored-content-encoding"
DAMAGED = json.dumps(
    {
        "error": {
            "code": 400,
            "message": 'Provided CRC32C "a==" doesn\'t match calculated CRC32C "b==".',
        }
    }
).encode()


def answer(status, body=b""):
    return HttpResponse(status, {}, body)


@pytest.mark.parametrize("status", [408, 425, 429, 500, 501, 502, 503, 504, 599])
def test_may_pass(status):
    assert GcsDialect().verdict(answer(status)) is HttpVerdict.RETRY


@pytest.mark.parametrize("status", [302, 307, 400, 403, 404, 409, 410, 412, 413, 416])
def test_will_not_pass(status):
    assert GcsDialect().verdict(answer(status)) is HttpVerdict.FAIL


def test_a_token_may_have_ended():
    assert GcsDialect().verdict(answer(401)) is HttpVerdict.REFRESH


def test_what_was_damaged_on_its_way_is_sent_again():
    assert GcsDialect().verdict(answer(400, DAMAGED)) is HttpVerdict.RETRY
    assert GcsDialect().error(answer(400, DAMAGED)) is DataLossError


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, FailedPreconditionError),
        (401, PermissionDeniedError),
        (403, PermissionDeniedError),
        (404, NotFoundError),
        (409, AbortedError),
        (429, UnavailableError),
        (501, UnsupportedError),
        (503, UnavailableError),
    ],
)
def test_errors_by_their_remedy(status, error):
    assert GcsDialect().error(answer(status)) is error


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"error": {"code": 404, "message": "The bucket\\nis gone."}}', "The bucket is gone."),
        (b'{"error": "invalid_grant"}', "invalid_grant"),
        (b'{"kind": "x"}', ""),
        (b"{broken", ""),
        (b"No such object: b/a", "No such object: b/a"),
        (b"<html>...</html>", ""),
        (b"", ""),
        (b"x" * 1000, "x" * 300),
    ],
)  # fmt: skip
def test_says_what_the_service_says(body, words):
    assert GcsDialect().words(answer(404, body)) == words


@pytest.mark.parametrize(
    ("headers", "stated"),
    [
        ({"x-goog-hash": "crc32c=4waSgw==,md5=JfnnlDI7RTiF9RgfG2JNCw=="}, ["crc32c"]),
        ({"x-goog-hash": "md5=JfnnlDI7RTiF9RgfG2JNCw==, crc32c=4waSgw=="}, ["crc32c"]),
        ({"x-goog-hash": "md5=JfnnlDI7RTiF9RgfG2JNCw=="}, ["md5"]),
        ({"x-goog-hash": "crc32c=4waSgw==", STORED_AS: "gzip"}, []),
        ({"x-goog-hash": "crc32c=4waSgw==", STORED_AS: "identity"}, ["crc32c"]),
        ({"x-goog-hash": "crc32c=!"}, []),
        ({}, []),
    ],
)  # fmt: skip
def test_the_checksum_of_a_value(headers, stated):
    found = GcsDialect().digests(headers)

    assert list(found) == stated
    assert found.get("crc32c", b"\xe3\x06\x92\x83") == b"\xe3\x06\x92\x83"


async def test_says_if_nobody_was_asking():
    signer = GcsSigner(Grant(lambda: None))
    dialect = GcsDialect(signer)
    assert dialect.words(answer(403, b"denied")) == "denied"

    signer.anonymous = True

    assert dialect.words(answer(403, b"denied")).startswith("denied; it was asked without cred")
    assert dialect.words(answer(401)).startswith("it was asked without credentials")
    assert dialect.words(answer(404, b"nothing")) == "nothing"
