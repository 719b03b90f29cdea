import pytest
import tensorstore as reference

import tensorstore_py as ts

PRINTED = [
    "s3://bucket/a/b",
    "s3://bucket",
    "s3://bucket/a%20b",
    "s3://bu_cket/a",
    {"driver": "s3", "bucket": "my-bucket", "path": "a/", "requester_pays": True},
    {"driver": "s3", "bucket": "my-bucket", "aws_region": "us-east-1", "host_header": "x",
     "endpoint": "http://localhost:9000", "use_conditional_write": False},
    {"driver": "s3", "endpoint": "http://localhost"},
    {"driver": "s3", "bucket": "my-bucket", "aws_credentials": {"type": "anonymous"}},
    {"driver": "s3", "bucket": "my-bucket", "s3_request_retries": {"max_retries": 3},
     "experimental_s3_rate_limiter": {"read_rate": 5}},
]  # fmt: skip
REFUSED = [
    ("s3://b/", ("bucket",)),
    ("s3://", ("bucket",)),
    ("s3://192.168.1.1/a", ("bucket",)),
    ("s3://a..b/a", ("bucket",)),
    ("s3://bucket/a?x=1", ()),
    ("s3://bucket/a#x", ()),
    ("s3:bucket", ()),
    ({"driver": "s3"}, ("bucket",)),
    ({"driver": "s3", "bucket": 5}, ("bucket",)),
    ({"driver": "s3", "bucket": "B!"}, ("bucket",)),
    ({"driver": "s3", "bucket": "bucket", "aws_region": 5}, ("aws_region",)),
    ({"driver": "s3", "bucket": "bucket", "requester_pays": "x"}, ("requester_pays",)),
    ({"driver": "s3", "bucket": "bucket", "use_conditional_write": None},
     ("use_conditional_write",)),
    ({"driver": "s3", "bucket": "bucket", "aws_credentials": {"type": "x"}},
     ("aws_credentials", "type")),
    ({"driver": "s3", "bucket": "bucket", "buckets": 5}, ("buckets",)),
]  # fmt: skip


@pytest.mark.parametrize("json", PRINTED, ids=str)
def test_printed_as_by_the_reference(json):
    ours, theirs = ts.KvStore.Spec(json), reference.KvStore.Spec(json)
    for include in (False, True):
        assert ours.to_json(include) == theirs.to_json(include)
    try:
        url = theirs.url
    except NotImplementedError:
        with pytest.raises(NotImplementedError):
            ours.url  # noqa: B018
    else:
        assert ours.url == url
        assert ts.KvStore.Spec(url) == ours or isinstance(json, dict)


@pytest.mark.parametrize(("json", "path"), REFUSED, ids=str)
def test_refused_with_the_path(json, path):
    with pytest.raises(ValueError):
        reference.KvStore.Spec(json)
    with pytest.raises(ts.SpecError) as caught:
        ts.KvStore.Spec(json)
    assert caught.value.path == path


def test_whole_pipelines_are_understood():
    url = "s3://bucket/k.zip|zip:inner/|zarr3:"
    assert ts.Spec(url).to_json() == reference.Spec(url).to_json()
    assert ts.Spec(url).url == url


def test_opening_says_what_is_missing():
    with pytest.raises(ts.UnsupportedError, match='"s3" cannot be opened by this version'):
        ts.KvStore.open("s3://bucket/a/").result()
