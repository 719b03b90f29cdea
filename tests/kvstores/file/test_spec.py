import pytest
import tensorstore as reference

from tensorstore_py import Context, KvStore
from tensorstore_py.errors import SpecError
from tensorstore_py.kvstores.file import FileSpec, FileStore


def test_opens_with_what_its_context_says():
    context = Context(
        {
            "file_io_sync": False,
            "file_io_locking": {"mode": "none"},
            "file_io_concurrency": {"limit": 3},
        }
    )

    store = KvStore.open("file:///a/", context=context).result().store

    assert isinstance(store, FileStore)
    assert (store._sync, store._mode, store.width) == (False, "none", 3)


def test_opening_touches_no_file(tmp_path):
    KvStore.open(f"file://{tmp_path}/nothing/here/").result()

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "json",
    [
        {"driver": "file", "path": "/a"},
        {"driver": "file", "path": "/a", "context": {"file_io_sync": False}},
        {"driver": "file", "path": "/a", "file_io_concurrency": {"limit": 3}},
        {"driver": "file", "path": "/a", "file_io_locking": {"mode": "none"}},
    ],
)
def test_prints_as_the_reference_does(json):
    ours, theirs = (cls.open(json).result() for cls in (KvStore, reference.KvStore))

    assert repr(ours) == repr(theirs)
    assert repr(ours.spec()) == repr(theirs.spec())
    assert repr(ours.spec(retain_context=True)) == repr(theirs.spec(retain_context=True))
    assert repr(ours.spec(unbind_context=True)) == repr(theirs.spec(unbind_context=True))


def test_an_unknown_member_is_named_with_the_nearest_one():
    with pytest.raises(SpecError, match=r'file_io_synk.*"file_io_sync"'):
        KvStore.Spec({"driver": "file", "path": "/a", "file_io_synk": True})


def test_a_bad_path_is_named():
    with pytest.raises(SpecError, match="path: Invalid file path"):
        KvStore.Spec({"driver": "file", "path": "/a/../b"})


MEMBERS = [
    ("file_io_sync", True),
    ("file_io_sync", False),
    ("file_io_sync", 1),
    ("file_io_sync", None),
    ("file_io_sync", "file_io_sync#x"),
    ("file_io_concurrency", {}),
    ("file_io_concurrency", {"limit": "shared"}),
    ("file_io_concurrency", {"limit": 3}),
    ("file_io_concurrency", {"limit": 0}),
    ("file_io_concurrency", {"limit": -1}),
    ("file_io_concurrency", {"limit": "many"}),
    ("file_io_locking", {}),
    ("file_io_locking", {"mode": "os"}),
    ("file_io_locking", {"mode": "lockfile"}),
    ("file_io_locking", {"mode": "none"}),
    ("file_io_locking", {"mode": "non_atomic", "acquire_timeout": "5s"}),
    ("file_io_locking", {"mode": "lockfile", "acquire_timeout": "60s"}),
    ("file_io_locking", {"acquire_timeout": "90s"}),
    ("file_io_locking", {"acquire_timeout": 5}),
    ("file_io_locking", {"acquire_timeout": None}),
    ("file_io_locking", {"mode": "flock"}),
    ("file_io_locking", {"mode": None}),
    ("file_io_locking", True),
    ("file_io_locking", "os"),
    ("file_io_locking", {"timeout": 1}),
    ("file_io_mode", {}),
    ("file_io_mode", {"mode": "default"}),
    ("file_io_mode", {"mode": "memmap"}),
    ("file_io_mode", {"mode": "direct"}),
    ("file_io_mode", {"mode": "other"}),
    ("file_io_mode", "memmap"),
    ("file_io_retries", {}),
    ("file_io_retries", {"max_retries": 0}),
    ("file_io_retries", {"max_retries": 3, "initial_delay": "2s", "max_delay": "100ms"}),
    ("file_io_retries", {"max_retries": -1}),
    ("file_io_retries", {"max_retries": 1.5}),
    ("file_io_retries", {"initial_delay": "soon"}),
]


@pytest.mark.parametrize("include_defaults", [False, True])
@pytest.mark.parametrize(("member", "json"), MEMBERS)
def test_takes_and_prints_what_the_reference_does(member, json, include_defaults):
    spec = {"driver": "file", "path": "/a", member: json}
    try:
        theirs = reference.KvStore.Spec(spec).to_json(include_defaults=include_defaults)
    except ValueError:
        with pytest.raises(SpecError) as caught:
            FileSpec.parse(spec)
        assert caught.value.path[0] == member
    else:
        assert FileSpec.parse(spec).to_json(include_defaults) == theirs


@pytest.mark.parametrize(
    "name",
    ["file_io_concurrency", "file_io_locking", "file_io_mode", "file_io_retries", "file_io_sync"],
)
def test_the_defaults_of_a_context_are_those_of_the_reference(name):
    ours, theirs = Context()[name], reference.Context()[name]

    assert repr(ours) == repr(theirs)
    for include_defaults in (False, True):
        assert ours.to_json(include_defaults) == theirs.to_json(include_defaults)
