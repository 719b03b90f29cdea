import pytest

import tensorstore_py as ts
from tensorstore_py.kvstores.s3.listing import directory_query, first_query, next_query, parse_page
from tensorstore_py.plugin import ALL, KeyRange, ListEntry

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
