import pytest

from tensorstore_py._runtime.start import start
from tensorstore_py.errors import AlreadyExistsError, MismatchError, NotFoundError, SpecError
from tests.chunked.arrays import WatchedStore
from tests.chunked.specs import DOCUMENT, spec_over


@pytest.fixture(params=[True, False], ids=["inline", "loop"])
def store(request):
    return WatchedStore(inline=request.param)


def open_(store, **members):
    spec = spec_over(store, "o", **members)
    return start(store.inline, spec.open).result()


def test_creating_writes_one_document_on_condition(store):
    open_(store, create=True)
    assert store.counts == {"write": 1}
    assert list(store.entries) == ["o/zarr.json"]


def test_opening_reads_one_document(store):
    open_(store, create=True)
    store.counts.clear()
    assert open_(store).domain.shape == (6,)
    assert store.counts == {"read": 1}


def test_nothing_there(store):
    with pytest.raises(NotFoundError, match=r'"o/zarr\.json".*create=True'):
        open_(store)
    assert not store.entries


def test_something_there(store):
    open_(store, create=True)
    with pytest.raises(AlreadyExistsError, match=r'"o/zarr\.json".*open=True'):
        open_(store, create=True)


def test_open_or_create_either_way(store):
    first = open_(store, open=True, create=True)
    store.counts.clear()
    second = open_(store, open=True, create=True)
    assert first.spec().to_json() == second.spec().to_json()
    assert store.counts == {"read": 1}


def test_who_loses_the_race_to_create_opens_what_won(store):
    open_(store, create=True)
    document = store.entries["o/zarr.json"]
    store.poke("o/zarr.json", None)

    def win(operation, key):
        if operation == "write":
            store.poke(key, document)
            store.before = lambda _operation, _key: None

    store.before = win
    assert open_(store, open=True, create=True).domain.shape == (6,)


def test_who_loses_the_race_to_create_only_fails(store):
    open_(store, create=True)
    document = store.entries["o/zarr.json"]
    store.poke("o/zarr.json", None)
    store.before = lambda operation, key: operation == "write" and store.poke(key, document)
    with pytest.raises(AlreadyExistsError):
        open_(store, create=True)


def test_what_is_there_must_be_what_was_asked(store):
    open_(store, create=True)
    for mode in ({}, {"open": True, "create": True}):
        with pytest.raises(MismatchError, match=r'"o/zarr\.json".*shape'):
            open_(store, metadata={**DOCUMENT, "shape": [7]}, **mode)


def test_deleting_first_takes_everything_below_the_path(store):
    for key in ("o/zarr.json", "o/c/0", "o/other", "ox/c/0"):
        store.poke(key, b"old")
    open_(store, create=True, delete_existing=True)
    assert sorted(store.entries) == ["o/zarr.json", "ox/c/0"]
    assert store.entries["o/zarr.json"] != b"old"


@pytest.mark.parametrize("name", ["assume_metadata", "assume_cached_metadata"])
def test_assuming_touches_nothing(store, name):
    driver = open_(store, open=True, **{name: True})
    assert driver.domain.shape == (6,)
    assert not store.counts


@pytest.mark.parametrize(
    "mode",
    [
        {"delete_existing": True},
        {"delete_existing": True, "open": True, "create": True},
        {"assume_metadata": True, "create": True},
    ],
)
def test_flags_that_exclude_each_other(store, mode):
    with pytest.raises(SpecError, match=r"need|\"delete_existing\" makes place"):
        open_(store, **mode)
    assert not store.counts


def test_what_cannot_be_created_stores_nothing(store):
    with pytest.raises(SpecError):
        open_(store, create=True, metadata={"shape": [6]})
    assert not store.entries
