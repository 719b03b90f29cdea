import re

import pytest

import tensorstore_py as ts
from tensorstore_py.kvstores.s3 import AwsCredentials, S3RequestRetries, bucket
from tensorstore_py.kvstores.s3.address import Address
from tensorstore_py.kvstores.s3.bucket import S3Bucket
from tensorstore_py.plugin.kvstore import Semaphore
from tensorstore_py.testing import Reply
from tensorstore_py.testing.fault_server import redirect as redirection
from tests.kvstores.s3.conftest import KEYS, QUICK
from tests.kvstores.s3.fake_s3 import FakeS3, error
from tests.runtime.processes import start


@pytest.fixture
def make(monkeypatch):
    """Make a bucket; what AWS would be is at `aws`."""
    monkeypatch.setattr(bucket, "_regions", {})

    def make(address, aws=None, **options):
        if aws is not None:
            monkeypatch.setattr(
                bucket,
                "aws_address",
                lambda name, region: Address(f"{aws}/{name}-{region}", region, is_aws=True),
            )
        return S3Bucket(
            "bucket",
            address,
            AwsCredentials.parse(KEYS),
            slots=Semaphore(4),
            retries=S3RequestRetries.parse(QUICK),
            **options,
        )

    return make


def get(bucket, key="a", expected=(200,)):
    body = bucket.send
    return start(False, lambda: body("GET", key, {}, frozenset(expected), action="read")).result(
        timeout=60
    )


def regions(server):
    """What the requests were signed for."""
    found = [re.search(r"/\d{8}/([^/]+)/s3/", request.headers.get("authorization", ""))
             for request in server.requests]  # fmt: skip
    return [None if one is None else one[1] for one in found]


def test_aws_is_asked_for_the_region_once_and_without_keys(serve, make):
    def handle(request):
        if request.method == "HEAD":
            return Reply(403, headers={"x-amz-bucket-region": "eu-west-1"})
        return Reply(200, request.target.encode(), {"ETag": '"1"'})

    server = serve(handle)
    first = make(None, server.url)

    assert get(first).body == b"/bucket-eu-west-1/a"
    assert get(make(None, server.url), "b").body == b"/bucket-eu-west-1/b"
    assert [request.method for request in server.requests] == ["HEAD", "GET", "GET"]
    assert regions(server) == [None, "eu-west-1", "eu-west-1"]


def test_a_bucket_that_is_not_there(serve, make):
    server = serve(lambda _: Reply(404))
    with pytest.raises(ts.NotFoundError, match='no bucket "bucket" at AWS'):
        get(make(None, server.url))

    server = serve(FakeS3("another").handle)
    with pytest.raises(ts.NotFoundError, match=r'cannot read ".*/bucket/a": there is no bucket'):
        get(make(Address(f"{server.url}/bucket", "us-east-1")), expected=(200, 404))


def test_a_wrong_region_at_aws_is_put_right(serve, make):
    def handle(request):
        if "us-east-1" in request.target:
            return Reply(301, headers={"x-amz-bucket-region": "eu-west-1"})
        return Reply(200, b"here", {"ETag": '"1"'})

    server = serve(handle)
    wrong = make(Address(f"{server.url}/bucket-us-east-1", "us-east-1", is_aws=True), server.url)

    assert (get(wrong).body, get(wrong).body) == (b"here", b"here")
    assert [request.target for request in server.requests] == [
        "/bucket-us-east-1/a", "/bucket-eu-west-1/a", "/bucket-eu-west-1/a"
    ]  # fmt: skip
    assert regions(server) == ["us-east-1", "eu-west-1", "eu-west-1"]


def test_a_region_that_the_signature_should_have_is_used(serve, make):
    def handle(request):
        if "/eu-west-1/" not in request.headers["authorization"]:
            return error(400, "AuthorizationHeaderMalformed", "<Region>eu-west-1</Region>")
        return Reply(200, b"here", {"ETag": '"1"'})

    server = serve(handle)
    wrong = make(Address(f"{server.url}/bucket", "us-east-1"))

    assert (get(wrong).body, get(wrong).body) == (b"here", b"here")
    assert regions(server) == ["us-east-1", "eu-west-1", "eu-west-1"]


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_followed_and_signed_anew(serve, make, status):
    there = serve(FakeS3(values={}).handle)
    here = serve(FakeS3().handle, [redirection(status, f"{there.url}/bucket/a%20b")])
    send = make(Address(f"{here.url}/bucket", "us-east-1")).send
    fine = frozenset({200})
    start(False, lambda: send("PUT", "a b", {}, fine, action="write", body=b"1")).result(timeout=60)

    assert [request.body for request in there.requests] == [b"1"]
    assert there.requests[0].headers["authorization"] != here.requests[0].headers["authorization"]
    assert there.requests[0].headers["host"] == there.url.removeprefix("http://")


def test_redirects_that_lead_nowhere_end(serve, make):
    server = serve(FakeS3().handle)
    server.plan = lambda request: redirection(307, request.target)

    with pytest.raises(ts.FailedPreconditionError, match="leads on and on"):
        get(make(Address(f"{server.url}/bucket", "us-east-1")))

    server.plan = lambda _: redirection(301, "")
    with pytest.raises(ts.FailedPreconditionError, match='"aws_region" or "endpoint"'):
        get(make(Address(f"{server.url}/bucket", "us-east-1")))


def test_the_paying_project_and_the_host_are_sent(serve, make):
    server = serve(FakeS3().handle)
    address = Address(f"{server.url}/bucket", "us-east-1", "bucket.example")

    get(make(address, requester_pays=True), expected=(200, 404))

    headers = server.requests[0].headers
    assert headers["x-amz-request-payer"] == "requester"
    assert headers["host"] == "bucket.example"
    assert "host;x-amz-content-sha256;x-amz-date;x-amz-request-payer" in headers["authorization"]
