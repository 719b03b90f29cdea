import pickle

import pytest
import tensorstore as reference

import tensorstore_py as ts
from tensorstore_py.kvstores.s3 import S3Spec
from tensorstore_py.kvstores.s3.address import (
    aws_address,
    encode,
    endpoint_address,
)
from tests.kvstores.s3.fake_s3 import FakeS3

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


@pytest.mark.parametrize(
    ("members", "member"),
    [
        ({"endpoint": "ftp://x"}, "endpoint"),
        ({"endpoint": "localhost:9000"}, "endpoint"),
        ({"endpoint": "http://localhost?a=b"}, "endpoint"),
        ({"endpoint": "http://localhost#a"}, "endpoint"),
        ({"host_header": "x"}, "host_header"),
    ],
)
def test_opening_refuses_what_the_reference_refuses(members, member):
    spec = {"driver": "s3", "bucket": "bucket", "aws_region": "us-east-1", **members}
    with pytest.raises(ValueError):
        reference.KvStore.open(spec).result()
    with pytest.raises(ts.SpecError) as caught:
        ts.KvStore.open(spec).result()
    assert caught.value.path == (member,)


@pytest.mark.parametrize(
    ("members", "base"),
    [
        ({"bucket": "data", "aws_region": "eu-west-1"}, "https://data.s3.eu-west-1.amazonaws.com"),
        ({"bucket": "Old_Name"}, "https://s3.us-east-1.amazonaws.com/Old_Name"),
        ({"bucket": "data", "endpoint": "http://h:9000"}, "http://h:9000/data"),
        ({"endpoint": "http://data.h:9000"}, "http://data.h:9000"),
    ],
)
def test_where_the_bucket_is(members, base):
    model = ts.KvStore.Spec({"driver": "s3", **members}).model
    assert isinstance(model, S3Spec)
    address = model.address()
    assert address is not None
    assert address.base == base


def test_where_a_bucket_of_aws_is_may_have_to_be_asked():
    model = ts.KvStore.Spec("s3://data/").model
    assert isinstance(model, S3Spec)
    assert model.address() is None


def test_opening_sends_nothing():
    store = ts.KvStore.open("s3://bucket/a/").result()
    assert store.url == "s3://bucket/a/"
    assert store.store.describe_key("a/b") == '"s3://bucket/a/b"'


NAMES = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")


@pytest.mark.parametrize("name", NAMES)
def test_the_environment_may_name_the_endpoint(serve, monkeypatch, name):
    fake = FakeS3()
    fake.put("a", b"1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv(name, serve(fake.handle).url)

    store = ts.KvStore.open(
        {"driver": "s3", "bucket": "bucket", "aws_credentials": {"type": "anonymous"}}
    ).result()

    assert store["a"] == b"1"
    assert store.url == "s3://bucket/"


def test_the_spec_says_more_than_the_environment(serve, monkeypatch, open_store):
    fake = FakeS3()
    fake.put("a", b"1")
    for name in NAMES:
        monkeypatch.setenv(name, "http://127.0.0.1:9")

    assert open_store(serve(fake.handle).url)["a"] == b"1"


def test_the_environment_may_be_ignored(monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true")

    address = S3Spec.parse(
        {"driver": "s3", "bucket": "bucket", "aws_region": "us-west-2"}
    ).address()

    assert address is not None
    assert address.is_aws


def test_an_endpoint_of_the_environment_that_is_none_is_named(monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "ftp://somewhere")

    with pytest.raises(ts.SpecError, match="AWS_ENDPOINT_URL: Endpoint ftp"):
        ts.KvStore.open({"driver": "s3", "bucket": "bucket"}).result()


SECRET = "do-not-print-me"
STATIC = {
    "type": "static",
    "access_key_id": "AKIA",
    "secret_access_key": SECRET,
    "session_token": f"{SECRET}-2",
}


def test_values():
    context = ts.Context({"aws_credentials": STATIC, "s3_request_concurrency": {"limit": 5}})
    found = context["aws_credentials"].value
    assert (found.access_key_id, found.secret_access_key) == ("AKIA", SECRET)
    assert context["s3_request_concurrency"].value.limit == 5
    assert ts.Context()["aws_credentials"].value.type == "default"


def test_secrets_are_never_printed():
    context = ts.Context({"aws_credentials": STATIC})
    resource = context["aws_credentials"]
    assert context.spec is not None
    for text in (
        repr(resource),
        str(resource.to_json()),
        str(resource.to_json(include_defaults=True)),
        repr(resource.value),
        f"{resource.value}",
        repr(context.spec),
        str(context.spec.to_json(include_defaults=True)),
        str(pickle.dumps(context)),
        str(pickle.dumps(resource)),
        str(pickle.dumps(context.spec)),
    ):
        assert SECRET not in text


def test_a_pickle_of_static_credentials_asks_the_environment():
    resource = ts.Context({"aws_credentials": STATIC})["aws_credentials"]
    assert pickle.loads(pickle.dumps(resource)).value.type == "environment"
    plain = ts.Context({"aws_credentials": {"type": "profile", "profile": "p"}})["aws_credentials"]
    assert pickle.loads(pickle.dumps(plain)).value.profile == "p"


@pytest.mark.parametrize(
    ("json", "member"),
    [
        ({**STATIC, "secret_access_key": [SECRET]}, "secret_access_key"),
        ({**STATIC, "type": "profile"}, "access_key_id"),
        ({**STATIC, "secret_acces_key": SECRET}, "secret_acces_key"),
        ({"type": "static", "access_key_id": "A"}, "secret_access_key"),
        ({"type": "anonymous", "profile": SECRET}, "profile"),
        ({"type": "unheard"}, "type"),
        ({"type": 3}, "type"),
        ({}, "type"),
    ],
)
def test_errors_name_the_member_and_show_no_value(json, member):
    with pytest.raises(ts.SpecError) as caught:
        ts.Context({"aws_credentials": json})
    assert caught.value.path == ("aws_credentials", member)
    assert SECRET not in str(caught.value)


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
