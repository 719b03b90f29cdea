"""The S3 servers serve, and differ from each other in what the tests of the store rely on."""

import pytest

SERVERS = ["moto_s3", "rgw_s3", "swift_s3"]


@pytest.fixture(params=SERVERS)
def endpoint(request):
    return request.getfixturevalue(request.param)


def test_what_is_put_is_got(endpoint):
    bucket = endpoint.make_bucket()
    values = {key: key.encode() for key in ("a", "b/ü c", "d/e?f=1&g", "h%2Fi")}

    for key, value in values.items():
        endpoint.put(bucket, key, value)
    endpoint.delete(bucket, "a")

    assert endpoint.get(bucket, "a") is None
    assert {key: endpoint.get(bucket, key) for key in endpoint.keys(bucket)} == {
        key: value for key, value in values.items() if key != "a"
    }


def test_buckets_are_strangers(endpoint):
    one, other = endpoint.make_bucket(), endpoint.make_bucket()
    endpoint.put(one, "a", b"")

    assert endpoint.keys(one) == ["a"]
    assert endpoint.keys(other) == []


def test_connections_are_kept(endpoint):
    answer = endpoint.call("GET", f"/{endpoint.make_bucket()}?list-type=2")

    assert answer.headers.get("connection", "keep-alive").lower() != "close"


def test_secrets_are_not_shown(endpoint):
    assert endpoint.secret_key not in repr(endpoint)
