import pytest

import tensorstore_py as ts
from tensorstore_py.kvstores.s3.listing import directory_query, first_query, next_query, parse_page
from tensorstore_py.plugin.kvstore import ALL, KeyRange, ListEntry
from tensorstore_py.testing.fault_server import status
from tests.kvstores.s3.fake_s3 import FakeS3

HEAD = b'<?xml version="1.0"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'


def page(*parts):
    return HEAD + b"".join(parts) + b"</ListBucketResult>"


@pytest.mark.parametrize(
    ("key_range", "more"),
    [
        (ALL, "prefix="),
        (KeyRange.prefix("a/b "), "prefix=a%2Fb%20"),
        (KeyRange(b"a/5", b"a/7"), "prefix=a%2F&start-after=a%2F4~"),
        (KeyRange(b"a/5", b""), "prefix=&start-after=a%2F4~"),
        (KeyRange(b"a\0", b""), "prefix=&start-after=a"),
        (KeyRange("aé".encode(), b""), "prefix=&start-after=a"),
    ],
)
def test_a_listing_begins_where_the_range_does(key_range, more):
    assert first_query(key_range) == f"encoding-type=url&list-type=2&{more}"


def test_a_listing_goes_on_with_the_token():
    first = first_query(KeyRange(b"a/5", b"a/7"))

    assert next_query(first, "x/=") == (
        "continuation-token=x%2F%3D&encoding-type=url&list-type=2&prefix=a%2F"
    )


def test_a_page():
    body = page(
        b"<EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>",
        b"<NextContinuationToken>a&amp;b</NextContinuationToken>",
        b"<Contents><Key>a%20b/%26+%2B</Key><Size>12</Size></Contents>",
        b"<Contents><Key>c</Key></Contents>",
    )

    found = parse_page(body)

    assert found.entries == [ListEntry("a b/& +", 12), ListEntry("c", -1)]
    assert found.token == "a&b"


def test_a_page_of_a_server_that_does_not_encode():
    found = parse_page(page(b"<Contents><Key>a+b&amp;c%20</Key><Size>1</Size></Contents>"))

    assert found == ([ListEntry("a+b&c%20", 1)], None, ())


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>hello</html>",
        page(b"<Contents><Size>1</Size></Contents>"),
        page(b"<IsTruncated>true</IsTruncated>"),
        page(b"<CommonPrefixes></CommonPrefixes>"),
        page(b"<Contents><Key>a</Key></Contents>")[:-1],
        page(b"<Contents><Key>a</Key></Contents>")[: -len("</ListBucketResult>")],
        page(b"<Contents><Key>a</Key></Contents>", b"<Contents><Key>b</K")[: -len("</List>")],
    ],
)
def test_what_is_no_page_is_not_taken_for_an_empty_one(body):
    with pytest.raises(ts.DataLossError):
        parse_page(body)


def test_a_page_of_one_level():
    assert directory_query("a b/") == "delimiter=%2F&encoding-type=url&list-type=2&prefix=a%20b%2F"

    body = page(
        b"<EncodingType>url</EncodingType><IsTruncated>false</IsTruncated><Prefix>a</Prefix>",
        b"<Contents><Key>a%20b/x</Key></Contents>",
        b"<CommonPrefixes><Prefix>a%20b/c/</Prefix></CommonPrefixes>",
        b"<CommonPrefixes>\n  <Prefix>a%20b/%C3%A9/</Prefix>\n</CommonPrefixes>",
    )

    assert parse_page(body) == ([ListEntry("a b/x", -1)], None, ("a b/c/", "a b/é/"))


EVERYTHING = ts.KvStore.KeyRange()


@pytest.fixture
def start(serve, open_store):
    def start(keys, **options):
        fake = FakeS3(**options)
        for key in keys:
            fake.put(key, b"1")
        server = serve(fake.handle)
        return fake, server, open_store(server.url)

    return start


def methods(server):
    return sorted(request.method for request in server.requests)


def test_many_keys_are_deleted_by_one_request(start):
    fake, server, store = start([f"{number}&<é>" for number in range(50)], page=20)

    store.delete_range(EVERYTHING).result()

    assert fake.values == {}
    assert methods(server) == 3 * ["GET"] + 3 * ["POST"]


def test_keys_that_xml_cannot_say_are_deleted_one_by_one(start):
    fake, server, store = start(["a\x01b", "a\nb", "c", "d"])

    store.delete_range(EVERYTHING).result()

    assert fake.values == {}
    assert methods(server) == ["DELETE", "DELETE", "GET", "POST"]


def test_a_single_key_is_deleted_plainly(start):
    _, server, store = start(["a"])

    store.delete_range(EVERYTHING).result()

    assert methods(server) == ["DELETE", "GET"]


def test_a_server_that_cannot_is_asked_once(start):
    fake, server, store = start([f"{number}" for number in range(10)], page=5, batches=False)

    store.delete_range(EVERYTHING).result()

    assert fake.values == {}
    assert methods(server) == 10 * ["DELETE"] + 2 * ["GET"] + ["POST"]


def test_a_key_that_was_not_deleted_is_tried_by_itself(start):
    fake, server, store = start(["a", "b-locked", "c"])

    store.delete_range(EVERYTHING).result()

    assert fake.values == {}
    assert methods(server) == ["DELETE", "GET", "POST"]


def test_a_key_that_cannot_be_deleted_is_named(start):
    _, server, store = start(["a", "b-locked", "c"])
    server.plan = lambda request: status(403) if request.method == "DELETE" else None

    with pytest.raises(ts.PermissionDeniedError, match=r'cannot delete ".*/bucket/b-locked"'):
        store.delete_range(EVERYTHING).result()


def test_only_the_range_is_deleted(start):
    fake, _, store = start([f"{number}" for number in range(10)], page=3)

    store.delete_range(ts.KvStore.KeyRange("3", "7")).result()

    assert sorted(fake.values) == ["0", "1", "2", "7", "8", "9"]
