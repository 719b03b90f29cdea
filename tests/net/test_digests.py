import hashlib
from base64 import b64encode

import pytest

from tensorstore_py._net.digests import check_digests, crc32c, stated_digests
from tensorstore_py._net.failures import Failure
from tensorstore_py.errors import DataLossError

BODY = b"123456789"
MD5 = hashlib.md5(BODY).digest()
SHA = hashlib.sha256(BODY).digest()


def text(digest):
    return b64encode(digest).decode()


@pytest.mark.parametrize("make", [bytes, bytearray, memoryview])
def test_crc32c_of_any_buffer(make):
    assert crc32c(make(BODY)) == 0xE3069283
    assert crc32c(make(b"")) == 0


@pytest.mark.parametrize(
    ("headers", "stated"),
    [
        ({}, {}),
        ({"Content-MD5": text(MD5)}, {"md5": MD5}),
        ({"Digest": f"MD5={text(MD5)},SHA-256={text(SHA)}"}, {"md5": MD5, "sha-256": SHA}),
        ({"Repr-Digest": f"sha-256=:{text(SHA)}:"}, {"sha-256": SHA}),
        ({"Content-Digest": f"sha-256=:{text(SHA)}:, adler=:AAAA:"}, {"sha-256": SHA}),
        ({"x-goog-hash": "crc32c=4waSgw=="}, {"crc32c": bytes.fromhex("e3069283")}),
        ({"x-goog-hash": "crc32c=4waSgw==", "x-goog-stored-content-encoding": "gzip"}, {}),
        ({"Digest": "md5=!!!"}, {}),
        ({"Digest": "unixsum=30637"}, {}),
    ],
)
def test_finds_what_the_headers_state(headers, stated):
    assert stated_digests(headers) == stated


@pytest.mark.parametrize("name", ["md5", "sha-1", "sha-256", "sha-512"])
def test_the_right_bytes_pass_and_wrong_ones_do_not(name):
    stated = {name: hashlib.new(name.replace("-", ""), BODY).digest()}

    check_digests(stated, BODY)
    with pytest.raises(Failure, match=f"{name} of the 9 bytes") as failure:
        check_digests(stated, b"123456780")

    assert failure.value.error is DataLossError


def test_small_checksums_pass_too():
    check_digests({"crc32c": bytes.fromhex("e3069283")}, BODY)
    check_digests({"crc32": bytes.fromhex("cbf43926")}, BODY)


def test_the_cheapest_one_is_enough():
    check_digests({"crc32c": bytes.fromhex("e3069283"), "sha-256": b"wrong"}, BODY)


def test_what_is_not_known_is_passed_over():
    check_digests({"crc64nvme": b"12345678"}, BODY)
