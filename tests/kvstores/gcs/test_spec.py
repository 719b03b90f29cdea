import pickle

import pytest
import tensorstore as reference

import tensorstore_py as ts

PRINTED = [
    "gs://bucket/a/b",
    "gs://bucket",
    "gs://bucket.example/a%20b",
    {"driver": "gcs", "bucket": "bucket"},
    {"driver": "gcs", "bucket": "bucket", "path": "a/", "gcs_user_project": {"project_id": "p"}},
]
REFUSED = [
    ("gs://Bad/a", ("bucket",)),
    ("gs://", ("bucket",)),
    ("gs://bucket/a?x", ()),
    ({"driver": "gcs"}, ("bucket",)),
    ({"driver": "gcs", "bucket": 5}, ("bucket",)),
    ({"driver": "gcs", "bucket": "B"}, ("bucket",)),
    ({"driver": "gcs", "bucket": "bucket", "path": "a\nb"}, ("path",)),
    ({"driver": "gcs", "bucket": "bucket", "x": 5}, ("x",)),
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


@pytest.mark.parametrize("json", PRINTED, ids=str)
def test_is_open_like_the_reference(json):
    ours, theirs = (module.KvStore.open(json).result() for module in (ts, reference))

    assert repr(ours) == repr(theirs)
    assert (ours.url, ours.path) == (theirs.url, theirs.path)
    assert (ours / "x y").url == (theirs / "x y").url
    assert ours.spec().to_json() == theirs.spec().to_json()


def test_survives_pickling():
    store = ts.KvStore.open("gs://bucket/a%20b/").result()

    again = pickle.loads(pickle.dumps(store))

    assert again.url == store.url
    assert again.spec().to_json() == store.spec().to_json()


def test_opening_sends_nothing(server):
    ts.KvStore.open("gs://bucket/").result()

    assert server.requests == []


def test_an_array_may_stand_behind_a_url():
    ours, theirs = (module.Spec("gs://bucket/a/|zarr3:").to_json() for module in (ts, reference))

    assert ours == theirs


def test_values():
    context = ts.Context(
        {
            "gcs_user_project": {"project_id": "lab"},
            "gcs_request_retries": {"max_retries": 2},
            "gcs_request_concurrency": {"limit": 5},
            "experimental_gcs_rate_limiter": {"read_rate": 7},
        }
    )
    assert context["gcs_user_project"].value.project_id == "lab"
    assert context["gcs_request_retries"].value.max_retries == 2
    assert context["gcs_request_concurrency"].value.limit == 5
    assert context["experimental_gcs_rate_limiter"].value.read.per_second == 7
