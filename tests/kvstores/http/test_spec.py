import pickle

import pytest
import tensorstore as reference

import tensorstore_py as ts
from tensorstore_py.errors import SpecError

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
