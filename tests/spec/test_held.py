"""Objects that stand for stores, in specs."""

import pickle
import sys
from types import ModuleType

import pytest

import tensorstore_py as ts
from tensorstore_py._spec.held import Held, is_store, json_of_object, kvstore_object


class Shelf:
    """Somebody's store."""

    def __init__(self, path):
        self.path = path


class Better(Shelf):
    pass


@pytest.fixture
def shelves(monkeypatch):
    """A library of somebody's, and a plug-in that knows it."""
    library = ModuleType("shelves")
    vars(library).update(Shelf=Shelf, Better=Better)
    monkeypatch.setitem(sys.modules, "shelves", library)
    monkeypatch.setattr("tensorstore_py._spec.held._makers", {})
    kvstore_object("shelves", "Shelf")(lambda shelf: {"driver": "memory", "path": shelf.path})
    kvstore_object("shelves", "Better")(lambda shelf: f"memory://better/{shelf.path}")


@pytest.mark.usefixtures("shelves")
def test_an_object_stands_wherever_the_spec_of_a_store_may():
    shelf = Shelf("a/")

    assert ts.KvStore.open(shelf).result().url == "memory://a/"
    assert ts.KvStore.Spec(shelf).url == "memory://a/"
    inner = {"driver": "memory", "path": "a/"}
    assert ts.Spec({"driver": "zarr3", "kvstore": shelf}).to_json()["kvstore"] == inner
    assert ts.Spec({"driver": "zarr3"}, kvstore=shelf).to_json()["kvstore"] == inner
    assert ts.Spec(shelf).to_json() == {"driver": "auto", "kvstore": inner}
    with pytest.raises(ts.errors.NotFoundError):
        ts.open(shelf).result()
    group = ts.Group.open(shelf, create=True).result()
    assert group.kvstore.url == "memory://a/"


@pytest.mark.usefixtures("shelves")
def test_who_knows_an_object_best_is_asked():
    assert json_of_object(Better("x")) == "memory://better/x"
    assert ts.KvStore.open(Better("x")).result().url == "memory://better/x"


@pytest.mark.usefixtures("shelves")
def test_a_library_that_is_not_imported_has_no_objects(monkeypatch):
    monkeypatch.delitem(sys.modules, "shelves")

    assert not is_store(Shelf("a"))
    with pytest.raises(TypeError, match="Shelf"):
        ts.KvStore.open(Shelf("a"))


@pytest.mark.usefixtures("shelves")
def test_an_object_is_no_element_of_a_json_array():
    array = ts.array([None], dtype="json")

    with pytest.raises(TypeError, match="Shelf"):
        array[0] = Shelf("a")


def test_an_object_is_itself_alone():
    value = {"a": 1}

    assert Held(value) == Held(value)
    assert hash(Held(value)) == hash(Held(value))
    assert Held(value) != Held({"a": 1})
    assert pickle.loads(pickle.dumps(Held(value))).value == value
    assert Held(value).spec_json(False) == "<dict>"


def test_open_stores_stand_for_themselves():
    kvstore = ts.KvStore.open("memory://a/").result()
    kvstore["x"] = b"1"

    for given in (kvstore, ts.zarr.MemoryStore(context=None)):
        ts.open({"driver": "zarr3", "kvstore": given}, create=True, dtype="u1", shape=[2]).result()
        assert ts.open(given).result().dtype == ts.uint8
    assert kvstore["zarr.json"]
    assert ts.KvStore.open(kvstore).result()["x"] == b"1"


def test_what_no_spec_can_say_is_refused():
    kvstore = ts.KvStore.open("memory://a/").result()

    with pytest.raises(ts.errors.SpecError, match="transaction"):
        ts.KvStore.open(kvstore.with_transaction(ts.Transaction()))
    with pytest.raises(ts.errors.SpecError, match="read only"):
        ts.KvStore.open(ts.zarr.MemoryStore(read_only=True))
