import pickle

import pytest
import tensorstore as reference

import tensorstore_py as ts
from tensorstore_py.errors import SpecError
from tensorstore_py.kvstores.http.store import (
    NO_SIGN,
    check_header,
    etag_of,
    parse_headers,
)
from tensorstore_py.kvstores.http.store import (
    generation_of as generation_of_response,
)
from tensorstore_py.kvstores.http.urls import BaseUrl, check_key, join, split_base
from tensorstore_py.plugin.http import HttpResponse
from tensorstore_py.plugin.kvstore import NO_VALUE, UNKNOWN

SPECS = [
    {"base_url": "http://h"},
    {"base_url": "http://h/"},
    {"base_url": "https://h:8/a/b"},
    {"base_url": "http://h/a", "path": "b/"},
    {"base_url": "http://h/a/", "path": "b"},
    {"base_url": "http://h", "path": "b"},
    {"base_url": "http://h", "path": "/b c"},
    {"base_url": "http://h/a%2Fb/c%20d?q=1&r=%20", "path": "e"},
    {"base_url": "http://h/a?"},
    {"base_url": "http://h/é"},
    {"base_url": "http://u:p@h/x"},
    {"base_url": "http://h", "headers": ["A: b", "C:d", "A: e"]},
    {"base_url": "http://h", "headers": []},
    {"base_url": "http://h", "http_request_retries": {"max_retries": 3, "max_delay": "2s"}},
    {"base_url": "http://h", "http_request_concurrency": {"limit": 7}},
    {"base_url": "http://h", "data_copy_concurrency": {"limit": 7}},
]
BAD_SPECS = [
    {},
    {"base_url": 5},
    {"base_url": ""},
    {"base_url": "h/a"},
    {"base_url": "ftp://h"},
    {"base_url": "HTTP://h"},
    {"base_url": "http://h/a#b"},
    {"base_url": "http://h/a", "path": "/b"},
    {"base_url": "http://h/%zz"},
    {"base_url": "http://h", "headers": "A: b"},
    {"base_url": "http://h", "headers": [1]},
    {"base_url": "http://h", "headers": ["bad"]},
    {"base_url": "http://h", "headers": [":x"]},
    {"base_url": "http://h", "headers": ["A B: c"]},
    {"base_url": "http://h", "headers": ["A: b\nC: d"]},
    {"base_url": "http://h", "header": []},
    {"base_url": "http://h", "http_request_concurrency": {"limit": 0}},
]
URLS = [
    "http://h",
    "https://h/",
    "http://h/a/b",
    "http://h/a%20b/c?q=1",
    "http://h/a%2Fb/c",
    "https://h:80/%C3%A9",
    "http://h/a//b",
    "http://h/a/../b",
    "http://h?x=1",
    "http://h/a%2Fb%20c/d?",
]
BAD_URLS = ["http://h/a#b", "http://h/a?x#f", "http://h/%zz", "http://h/%ff"]


def both(call):
    return call(reference), call(ts)


@pytest.mark.parametrize("members", SPECS, ids=str)
@pytest.mark.parametrize("defaults", [False, True])
def test_reads_like_the_reference(members, defaults):
    theirs, ours = both(
        lambda module: module.KvStore.Spec({"driver": "http", **members}).to_json(
            include_defaults=defaults
        )
    )

    assert ours == theirs


@pytest.mark.parametrize("members", SPECS, ids=str)
def test_is_open_like_the_reference(members):
    theirs, ours = both(lambda module: module.KvStore.open({"driver": "http", **members}).result())

    # Secrets are not shown, which the reference does.
    plain = not members.get("headers") and not set("@=") & set(members["base_url"])
    assert (repr(ours) == repr(theirs)) is plain
    assert (ours.url, ours.path) == (theirs.url, theirs.path)
    assert (ours / "x y").url == (theirs / "x y").url
    assert (ours + "z").url == (theirs + "z").url
    assert ours.spec().to_json() == theirs.spec().to_json()


@pytest.mark.parametrize("members", BAD_SPECS, ids=str)
def test_refuses_like_the_reference(members):
    for module in (reference, ts):
        with pytest.raises(ValueError):
            module.KvStore.Spec({"driver": "http", **members})


@pytest.mark.parametrize("url", URLS)
def test_urls_mean_what_they_mean_to_the_reference(url):
    theirs, ours = both(lambda module: module.KvStore.Spec(url).to_json())

    assert ours == theirs
    theirs, ours = both(lambda module: module.KvStore.Spec(url).url)
    assert ours == theirs


@pytest.mark.parametrize("url", BAD_URLS)
def test_bad_urls_are_refused_by_both(url):
    for module in (reference, ts):
        with pytest.raises(ValueError):
            module.KvStore.Spec(url)


@pytest.mark.parametrize(
    ("members", "path"),
    [
        ({"base_url": "ftp://h"}, "base_url"),
        ({"base_url": "http://h/a", "path": "/b"}, "path"),
        ({"base_url": "http://h", "headers": ["A: b", "bad"]}, r"headers\[1\]"),
    ],
)
def test_errors_name_the_member(members, path):
    with pytest.raises(SpecError, match=rf"^{path}"):
        ts.KvStore.Spec({"driver": "http", **members})


def test_survives_pickling():
    store = ts.KvStore.open("https://h/a%2Fb/c?q=1").result()

    again = pickle.loads(pickle.dumps(store))

    assert again.url == store.url
    assert again.spec().to_json() == store.spec().to_json()


def test_an_array_may_stand_behind_a_url():
    theirs, ours = both(lambda module: module.Spec("http://h/data/|zarr3:").to_json())

    assert ours == theirs


def test_secrets_are_in_the_json_and_are_not_shown():
    url = "http://me:swordfish@host/a?token=swordfish&part"
    spec = ts.KvStore.Spec(
        {"driver": "http", "base_url": url, "headers": ["Authorization: swordfish"]}
    )
    shown = (
        "KvStore.Spec({\n  'base_url': 'http://host?token=...&part',\n  'driver': 'http',\n"
        "  'headers': ['Authorization: ...'],\n  'path': '/a',\n})"
    )

    assert repr(spec) == str(spec) == shown
    for found in (spec.model, ts.Spec({"driver": "zarr3", "kvstore": spec.model})):
        assert "swordfish" not in f"{found!r}{found}"
    opened = ts.KvStore.open(spec).result()
    assert "swordfish" not in repr(opened)
    assert ts.KvStore.Spec(spec.to_json()) == spec
    assert spec.to_json()["headers"] == ["Authorization: swordfish"]


@pytest.mark.parametrize(
    "url",
    [
        "htp://me:swordfish@host/",
        "http://me:swordfish@host/|nope:",
        "memory://|http://me:swordfish@host/",
        "http://me:swordfish@host/#x",
        "http://me:swordfish@host/%zz?sig=swordfish",
        "http://me:swordfish@ho st/?sig=swordfish",
        "http://me:swordfish@host:99999/",
        "http://me:swordfish@[::1/",
        "file://me:swordfish@host/a",
        "s3://bucket/a?X-Amz-Signature=swordfish",
        "memory://a|zip:x?sig=swordfish",
    ],
)
def test_what_is_wrong_with_a_url_is_said_without_its_secrets(url):
    with pytest.raises(ts.SpecError) as caught:
        ts.KvStore.Spec(url)

    error = caught.value
    assert "swordfish" not in f"{error!r}{error}{error.problem}{error.__cause__!r}"


@pytest.mark.parametrize("key", ["..", "../a", "a/../../b", "./a", "a/.", "..\\a"])
def test_no_key_leads_out_of_the_base_url(key):
    store = ts.KvStore.open("http://127.0.0.1:9/data/").result()

    with pytest.raises(ts.SpecError, match=r'"\." and "\.\."'):
        store.read(key).result()
    assert (store / key).url.startswith("http://127.0.0.1:9/data/")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("bad", "no colon"),
        (":x", "header name"),
        ("A B: c", "'A B'"),
        ("Ä: b", "header name"),
        ("A: b\r\nC: d", '"A" has control'),
        ("A: \0", "control"),
    ],
)
def test_refuses_what_cannot_be_sent(line, problem):
    with pytest.raises(SpecError, match=problem):
        check_header(line)


@pytest.mark.parametrize("line", ["a:b", "A:", "A: é", "X-Y_z: a: b", "A: \t1"])
def test_accepts_the_rest_as_it_is(line):
    assert check_header(line) == line


def test_an_error_does_not_repeat_the_value():
    with pytest.raises(SpecError) as error:
        check_header("Authorization: s3cret\n")

    assert "s3cret" not in str(error.value)


def test_the_last_one_of_a_name_counts_and_empty_ones_do_not():
    lines = ["X-A: 1", "B:", "x-a:  2 ", "Authorization: Bearer a:b"]

    assert parse_headers(lines) == {"x-a": "2", "Authorization": "Bearer a:b"}


def test_shared_limits_are_one_for_the_process():
    first, second = ts.Context(), ts.Context()
    name = "http_request_concurrency"
    assert first[name].value is second[name].value
    assert first[name].value.limit == 32
    assert ts.Context({name: {"limit": 3}})[name].value.limit == 3
    assert ts.Context()["http_request_retries"].value.max_retries == 32


@pytest.mark.parametrize(
    ("url", "base", "path"),
    [
        ("http://h", "http://h", ""),
        ("https://h/", "https://h", "/"),
        ("http://h/a//b/", "http://h", "/a//b/"),
        ("http://h/a%20b?q=%20&r", "http://h?q=%20&r", "/a b"),
        ("http://h/a%2Fb/c%20d", "http://h/a%2Fb", "/c d"),
        ("http://h/a%2fb%2Fc", "http://h/a%2fb%2Fc", ""),
        ("http://h/x?", "http://h", "/x"),
        ("http://h?q=/a%2F", "http://h?q=/a%2F", ""),
        ("http://u:p@h:8/%C3%A9", "http://u:p@h:8", "/é"),
        ("http://h/é", "http://h", "/é"),
    ],
)
def test_takes_apart_what_a_key_can_say(url, base, path):
    assert split_base(url) == (base, path)
    assert split_base(base) == (base, "")


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("", "scheme"),
        ("h/a", "scheme"),
        ("ftp://h/a", '"ftp"'),
        ("HTTP://h/a", '"HTTP"'),
        ("http://h/a#b", "Fragment"),
        ("http://h/%zz", "percent"),
        ("http://h/%ff", "UTF-8"),
        ("http://h h/a", "blanks"),
        ("http://h/a?b c", "blanks"),
        ("http://h\r\nX: y/a", "blanks"),
        ("http://[::1/a", "write IPv6 like"),
        ("http://h:99999/a", "port"),
        ("http://h:x/a", "port"),
        ("http://:80/a", "no host"),
        ("http:///a", "no host"),
    ],
)
def test_refuses_what_is_no_url_of_the_web(url, problem):
    with pytest.raises(SpecError, match=problem):
        split_base(url)


@pytest.mark.parametrize(
    ("base", "key", "url"),
    [
        ("http://h", "", "http://h/"),
        ("http://h", "a", "http://h/a"),
        ("http://h", "/a", "http://h/a"),
        ("http://h", "//a", "http://h//a"),
        ("http://h?q=1", "/a b?c#d%é", "http://h/a%20b%3Fc%23d%25%C3%A9?q=1"),
        ("http://h/x%2Fy", "/c", "http://h/x%2Fy/c"),
        ("http://h", "/\udcff", "http://h/%FF"),
    ],
)
def test_puts_a_key_in(base, key, url):
    assert BaseUrl.of(base).url(key) == url


@pytest.mark.parametrize(
    ("above", "path", "joined"),
    [
        ("", "a", "a"),
        ("", "/a", "/a"),
        ("/a", "", "/a"),
        ("/a", "b/", "/a/b/"),
        ("/a/", "b", "/a/b"),
    ],
)
def test_joins_what_stands_in_two_places(above, path, joined):
    assert join(above, path) == joined


def test_two_beginnings_contradict_each_other():
    with pytest.raises(SpecError, match="absolute"):
        join("/a", "/b")


@pytest.mark.parametrize("key", ["a", "a/b", ".a", "a/..b", "a./b", "...", "", "/a", "a//b"])
def test_most_keys_stay_below(key):
    check_key(key)


@pytest.mark.parametrize("key", [".", "..", "a/..", "../a", "a/./b", "a\\..\\b"])
def test_some_keys_lead_out(key):
    with pytest.raises(SpecError, match="servers read"):
        check_key(key)


MONDAY = "Mon, 19 Oct 2015 07:28:00 GMT"
TUESDAY = "Tue, 20 Oct 2015 07:28:00 GMT"
WEDNESDAY = "Wed, 21 Oct 2015 07:28:00 GMT"


def generation_of(headers, size):
    return generation_of_response(HttpResponse(200, headers, size=size))


@pytest.mark.parametrize(
    ("etag", "generation"),
    [
        ('"abc"', b"\0abc"),
        (' "a b" ', b"\0a b"),
        ('"é"', b"\0\xc3\xa9"),
        ('W/"abc"', NO_SIGN),
        ("abc", NO_SIGN),
        ('""', NO_SIGN),
        ("", NO_SIGN),
    ],
)
def test_a_strong_etag_is_the_generation(etag, generation):
    assert generation_of({"ETag": etag}, 3) == generation


def test_without_one_the_date_of_the_last_change_will_do():
    first = generation_of({"Last-Modified": MONDAY, "Date": TUESDAY}, 3)

    assert first not in (NO_SIGN, UNKNOWN, NO_VALUE)
    assert generation_of({"Last-Modified": MONDAY, "Date": TUESDAY}, 3) == first
    assert generation_of({"Last-Modified": MONDAY, "Date": TUESDAY}, 4) != first
    assert generation_of({"Last-Modified": TUESDAY, "Date": WEDNESDAY}, 3) != first
    assert generation_of({"Last-Modified": MONDAY, "Date": TUESDAY, "ETag": 'W/"x"'}, 3) == first


@pytest.mark.parametrize(
    ("headers", "size"),
    [
        ({"Last-Modified": MONDAY}, 3),
        ({"Last-Modified": MONDAY, "Date": MONDAY}, 3),
        ({"Last-Modified": TUESDAY, "Date": MONDAY}, 3),
        ({"Last-Modified": "lately", "Date": MONDAY}, 3),
        ({"Last-Modified": MONDAY, "Date": TUESDAY}, None),
        ({"Date": TUESDAY}, 3),
    ],
)
def test_unless_the_date_proves_nothing(headers, size):
    assert generation_of(headers, size) == NO_SIGN


@pytest.mark.parametrize(
    ("generation", "etag"),
    [
        (b"\0abc", '"abc"'),
        (b"\0a b", '"a b"'),
        (b'\0a"b', None),
        (b"\0a\r\nX: y", None),
        (b"\0\xff", None),
        (b"\0", None),
        (b"abc", None),
        (b"\x01123:4", None),
        (NO_SIGN, None),
        (NO_VALUE, None),
        (UNKNOWN, None),
    ],
)
def test_only_etags_are_sent_as_conditions(generation, etag):
    assert etag_of(generation) == etag
