"""The S3 servers serve, and differ from each other in what the tests of the store rely on."""

from dataclasses import replace

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


# ----------------------------------------------------- what the store's tests must know of servers

#: What each server answers to a write: that there is something already, with the current ETag as it
#: was given, with the current ETag bare, and with one that was never current.
CONDITIONAL_WRITES = {
    "moto": {"none": 412, "quoted": 200, "bare": 200, "stale": 412},
    "rgw": {"none": 412, "quoted": 412, "bare": 200, "stale": 412},
    "swift": {"none": 501, "quoted": 501, "bare": 501, "stale": 501},
}


def test_conditional_writes(endpoint):
    bucket = endpoint.make_bucket()
    endpoint.put(bucket, "a", b"1")

    def etag():
        return endpoint.call("HEAD", f"/{bucket}/a").headers["etag"]

    def write(**headers):
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return endpoint.call("PUT", f"/{bucket}/a", b"2", named).status

    found = {
        "none": write(if_none_match="*"),
        "quoted": write(if_match=etag()),
        "bare": write(if_match=etag().strip('"')),
        "stale": write(if_match='"00000000000000000000000000000000"'),
    }

    assert found == CONDITIONAL_WRITES[endpoint.name]


#: The answer to a wrong key, which is what shows that a server looks at signatures at all.
WRONG_KEYS = {"moto": 200, "rgw": 403, "swift": 403}


def test_signatures(endpoint):
    bucket = endpoint.make_bucket()
    endpoint.put(bucket, "a", b"1")

    wrong = replace(endpoint, secret_key="wrong").call("GET", f"/{bucket}/a")

    assert wrong.status == WRONG_KEYS[endpoint.name]
    if wrong.status == 403:
        assert b"<Code>SignatureDoesNotMatch</Code>" in wrong.body


def test_ranges(endpoint):
    bucket = endpoint.make_bucket()
    endpoint.put(bucket, "a", b"0123456789")

    def part(asked):
        answer = endpoint.call("GET", f"/{bucket}/a", headers={"Range": f"bytes={asked}"})
        return answer.status, answer.headers.get("content-range", ""), answer.body

    assert part("2-4") == (206, "bytes 2-4/10", b"234")
    assert part("7-99") == (206, "bytes 7-9/10", b"789")
    assert part("-3") == (206, "bytes 7-9/10", b"789")
    assert part("10-")[0] == 416
