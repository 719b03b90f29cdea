import pytest
import tensorstore as reference

import tensorstore_py as ts

PRINTED = [
    "http://host/a/b?x=1",
    "https://host:80/a",
    "http://host",
    "http://host/a%20b",
    "https://user:pw@host/a",
    {"driver": "http", "base_url": "http://host/a"},
    {"driver": "http", "base_url": "http://host/a?x=1", "path": "b"},
    {"driver": "http", "base_url": "http://host", "path": "/b/c d"},
]
REFUSED = [
    ("http://host/a#f", ()),
    ({"driver": "http"}, ("base_url",)),
    ({"driver": "http", "base_url": 5}, ("base_url",)),
    ({"driver": "http", "base_url": "ftp://host"}, ("base_url",)),
    ({"driver": "http", "base_url": "http://host/a#f"}, ("base_url",)),
    ({"driver": "http", "base_url": "http://host/a", "path": "/b"}, ("path",)),
    ({"driver": "http", "base_url": "http://host", "headers": "a"}, ("headers",)),
    ({"driver": "http", "base_url": "http://host", "headers": ["ab"]}, ("headers", 0)),
    ({"driver": "http", "base_url": "http://host", "headers": [5]}, ("headers", 0)),
]


@pytest.mark.parametrize("json", PRINTED, ids=str)
def test_printed_as_by_the_reference(json):
    ours, theirs = ts.KvStore.Spec(json), reference.KvStore.Spec(json)
    for include in (False, True):
        assert ours.to_json(include) == theirs.to_json(include)
    assert ours.url == theirs.url


@pytest.mark.parametrize(("json", "path"), REFUSED, ids=str)
def test_refused_with_the_path(json, path):
    with pytest.raises(ValueError):
        reference.KvStore.Spec(json)
    with pytest.raises(ts.SpecError) as caught:
        ts.KvStore.Spec(json)
    assert caught.value.path == path


def test_a_wrong_header_is_not_printed():
    with pytest.raises(ts.SpecError) as caught:
        ts.KvStore.Spec({"driver": "http", "base_url": "http://h", "headers": ["a: se\ncret"]})
    assert "cret" not in str(caught.value)


def test_headers_have_no_url_form():
    spec = ts.KvStore.Spec({"driver": "http", "base_url": "http://h", "headers": ["a: b"]})
    with pytest.raises(ts.UnsupportedError):
        spec.url  # noqa: B018


def test_opening_says_what_is_missing():
    with pytest.raises(ts.UnsupportedError, match='"http" cannot be opened by this version'):
        ts.KvStore.open("http://host/a/").result()
