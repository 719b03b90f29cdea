import pytest

import tensorstore_py as ts
from tensorstore_py.kvstores.s3.address import (
    aws_address,
    encode,
    endpoint_address,
)


@pytest.mark.parametrize(
    ("bucket", "region", "base"),
    [
        ("data", "us-east-1", "https://data.s3.us-east-1.amazonaws.com"),
        ("my.data", "eu-west-1", "https://s3.eu-west-1.amazonaws.com/my.data"),
        ("Old_Name", "us-east-1", "https://s3.us-east-1.amazonaws.com/Old_Name"),
        ("data", "cn-north-1", "https://data.s3.cn-north-1.amazonaws.com.cn"),
    ],
)
def test_a_bucket_at_aws_is_part_of_the_host_where_it_can_be(bucket, region, base):
    address = aws_address(bucket, region)

    assert (address.base, address.region, address.is_aws) == (base, region, True)


@pytest.mark.parametrize(
    ("endpoint", "bucket", "base"),
    [
        ("http://localhost:9000", "data", "http://localhost:9000/data"),
        ("http://localhost:9000/", "data", "http://localhost:9000/data"),
        ("http://localhost:9000/s3/", "data", "http://localhost:9000/s3/data"),
        ("http://data.localhost:9000", "", "http://data.localhost:9000"),
        ("https://Host:443", "data", "https://host/data"),
        ("http://host:80/x", "", "http://host/x"),
        ("http://[::1]:9000", "data", "http://[::1]:9000/data"),
    ],
)
def test_a_bucket_at_an_endpoint_is_part_of_the_path(endpoint, bucket, base):
    address = endpoint_address(endpoint, bucket, "", None)

    assert (address.base, address.region, address.is_aws) == (base, "us-east-1", False)


def test_an_endpoint_of_aws_is_aws_and_says_the_region():
    address = endpoint_address("https://s3.eu-north-1.amazonaws.com", "data", "", "x")

    assert (address.region, address.is_aws, address.host) == ("eu-north-1", True, "x")
    assert endpoint_address("https://data.s3.amazonaws.com", "", "", None).region == "us-east-1"
    assert not endpoint_address("https://amazonaws.com.evil.example", "data", "", None).is_aws


@pytest.mark.parametrize(
    "endpoint",
    ["ftp://x", "localhost:9000", "http://", "http://me:secret@host", "http://h?a=b", "http://h#a"],
)
def test_what_is_no_endpoint_is_refused_by_name(endpoint):
    with pytest.raises(ts.SpecError) as caught:
        endpoint_address(endpoint, "data", "", None)

    assert caught.value.path == ("endpoint",)
    assert "secret" not in str(caught.value)


def test_a_key_is_encoded_as_the_signature_wants_it():
    url = aws_address("data", "us-east-1").url("a b/ü+~'(*)//../x")

    assert url.endswith("/a%20b/%C3%BC%2B~%27%28%2A%29//../x")
    assert encode("a/b", "") == "a%2Fb"
