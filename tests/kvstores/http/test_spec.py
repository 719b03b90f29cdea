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

    assert repr(ours) == repr(theirs)
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
