import hashlib

import pytest

from tensorstore_py.kvstores.s3 import AwsCredentials
from tensorstore_py.kvstores.s3.signer import S3Signer, checksum_header
from tensorstore_py.plugin import HttpRequest, HttpResponse
from tests.kvstores.s3.conftest import KEYS
from tests.kvstores.s3.fake_s3 import error

LARGE = bytes(2**20)


def refusal(code, more="", time=0.0):
    reply = error(400, code, more)
    return HttpResponse(400, reply.headers, reply.body, time=time)


@pytest.fixture
def signer():
    return S3Signer(AwsCredentials.parse(KEYS), "us-east-1")


@pytest.mark.parametrize("body", [b"abc", LARGE], ids=len)
async def test_bodies_are_signed_over_plain_http(signer, body):
    for sent in (body, (body[:2], body[2:])):
        request = HttpRequest("PUT", "http://h/b/a", {}, sent)

        headers = await signer.sign(request, 0)

        assert headers["x-amz-content-sha256"] == hashlib.sha256(body).hexdigest()


async def test_bodies_over_tls_are_not_hashed(signer):
    headers = await signer.sign(HttpRequest("PUT", "https://h/b/a", {}, b"abc"), 0)

    assert headers["x-amz-content-sha256"] == "UNSIGNED-PAYLOAD"


async def test_anonymous_requests_stay_as_they_are():
    request = HttpRequest("GET", "http://h/b/a", {"Range": "bytes=0-1"})

    assert await S3Signer(AwsCredentials(type="anonymous"), "x").sign(request, 0) == request.headers


async def test_the_region_is_corrected_by_what_the_service_says(signer):
    malformed = refusal("AuthorizationHeaderMalformed", "<Region>eu-west-1</Region>")

    assert await signer.refresh(malformed)
    assert signer.region == "eu-west-1"
    headers = await signer.sign(HttpRequest("GET", "http://h/b/a", {}), 0)
    assert "/eu-west-1/s3/" in headers["Authorization"]
    assert not await signer.refresh(malformed), "that was it already"


async def test_damage_on_the_way_is_no_fault_of_the_keys(signer):
    assert await signer.refresh(refusal("BadDigest"))


async def test_keys_that_expired_are_looked_for_once_for_all(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIA")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    signer = S3Signer(AwsCredentials(type="environment"), "x")
    request = HttpRequest("GET", "http://h/b/a", {})
    await signer.sign(request, 0)
    assert not await signer.refresh(refusal("ExpiredToken", time=1.0))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIB")

    assert await signer.refresh(refusal("ExpiredToken", time=1.0))
    assert "Credential=AKIB/" in (await signer.sign(request, 0))["Authorization"]
    assert await signer.refresh(refusal("ExpiredToken", time=1.0)), "asked before that"
    assert not await signer.refresh(refusal("ExpiredToken", time=2e12))


async def test_large_bodies_are_summed_up_off_the_loop():
    assert await checksum_header(b"123456789") == {"x-amz-checksum-crc32c": "4waSgw=="}
    assert (await checksum_header(LARGE)).keys() == {"x-amz-checksum-crc32c"}
