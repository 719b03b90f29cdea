import pytest
import tensorstore as reference

from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._spec.context import Context
from tensorstore_py.errors import SpecError
from tensorstore_py.kvstores.file import FileStore


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
