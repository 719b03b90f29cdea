from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from tensorstore_py.errors import SpecError
from tensorstore_py.kvstores.gcs.urls import Bucket, Service, check_key

GOOD = ["a", "a/", "/a", "a/./b", "a/..", "a\\b", "#[]*?", "\x80", "\ufeff", "x" * 1024, "é" * 512]
BAD = [
    ("", "empty"),
    (".", "reserved"),
    ("..", "reserved"),
    ("a\rb", "control"),
    ("a\nb", "control"),
    ("\t", "control"),
    ("a\x7f", "control"),
    ("x" * 1025, "1025 bytes"),
    ("é" * 513, "1026 bytes"),
    (".well-known/acme-challenge", "reserved"),
    (".well-known/acme-challenge/x", "reserved"),
    ("\udcff", "UTF-8"),
]


@pytest.mark.parametrize("key", GOOD)
def test_most_text_is_a_name(key):
    assert check_key(key) == key.encode()


@pytest.mark.parametrize(("key", "why"), BAD)
def test_the_rest_is_refused_with_the_reason(key, why):
    with pytest.raises(SpecError, match=f"key .* bucket: .*{why}"):
        check_key(key)


ODD = "a/ü?x=1&y#z%2F+../.".encode()


@pytest.mark.parametrize(
    ("environment", "service"),
    [
        ({}, Service("https://storage.googleapis.com", is_open=False)),
        ({"TENSORSTORE_GCS_HTTP_URL": "http://h:1/"}, Service("http://h:1", is_open=False)),
        ({"TENSORSTORE_GCS_HTTP_URL": "https://h/x"}, Service("https://h/x", is_open=False)),
        ({"STORAGE_EMULATOR_HOST": "http://h:1"}, Service("http://h:1", is_open=True)),
        ({"STORAGE_EMULATOR_HOST": "h:1"}, Service("http://h:1", is_open=True)),
        ({"STORAGE_EMULATOR_HOST": ""}, Service("https://storage.googleapis.com", is_open=False)),
        (
            {"STORAGE_EMULATOR_HOST": "h:1", "TENSORSTORE_GCS_HTTP_URL": "http://g"},
            Service("http://g", is_open=False),
        ),
    ],
)
def test_the_environment_names_the_service(environment, service):
    assert Service.named(environment) == service


@pytest.mark.parametrize("address", ["h:1", "ftp://h", "http://", "http://h?x", "http://u:p@h"])
def test_what_is_no_address_is_refused_by_its_variable(address):
    with pytest.raises(SpecError, match="TENSORSTORE_GCS_HTTP_URL") as error:
        Service.named({"TENSORSTORE_GCS_HTTP_URL": address})

    assert "u:p" not in str(error.value)


@pytest.mark.parametrize(
    ("address", "is_local"),
    [
        ("http://127.0.0.1:80", True),
        ("http://localhost", True),
        ("http://[::1]:5/x", True),
        ("http://localhost.example", False),
        ("http://10.0.0.1", False),
        ("https://storage.googleapis.com", False),
    ],
)
def test_knows_what_is_on_this_machine(address, is_local):
    assert Service(address).is_local is is_local


@pytest.fixture
def bucket():
    return Bucket(Service("http://h"), "b")


def test_a_key_stays_in_its_place(bucket):
    for url in (
        bucket.value(ODD),
        bucket.description(ODD, "size"),
        bucket.object(ODD),
        bucket.rewrite(ODD, bucket, ODD),
    ):
        parts = urlsplit(url)
        name = parts.path.split("/")[6]
        assert parts.path.startswith("/storage/v1/b/b/o/")
        assert unquote(name).encode() == ODD
        assert parts.fragment == ""


def test_conditions_and_payers_are_in_the_query():
    bucket = Bucket(Service("http://h"), "b", "my project&x")
    urls = [
        bucket.value(b"a", "&ifGenerationMatch=5"),
        bucket.description(b"a", "size", "&ifGenerationMatch=5"),
        bucket.object(b"a", "&ifGenerationMatch=5"),
        bucket.upload("multipart", "&ifGenerationMatch=5"),
        bucket.listing({"ifGenerationMatch": "5", "prefix": "a&b=c"}),
        bucket.rewrite(b"a", bucket, b"b", "t&x") + "&ifGenerationMatch=5",
    ]

    for url in urls:
        query = parse_qs(urlsplit(url).query)
        assert query["userProject"] == ["my project&x"]
        assert query["ifGenerationMatch"] == ["5"]
    assert parse_qs(urlsplit(urls[4]).query)["prefix"] == ["a&b=c"]
    assert parse_qs(urlsplit(urls[5]).query)["rewriteToken"] == ["t&x"]


def test_without_a_query_there_is_no_mark_of_one(bucket):
    assert bucket.object(b"a") == "http://h/storage/v1/b/b/o/a"


def test_no_cache_has_seen_a_read(bucket):
    urls = [bucket.value(b"a") for _ in range(3)] + [bucket.description(b"a", "size")]

    assert len({parse_qs(urlsplit(url).query)["tensorstore"][0] for url in urls}) == 4
