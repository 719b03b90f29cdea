import copy
import pickle

import pytest
import tensorstore as reference

import tensorstore_py as ts
from tensorstore_py._api.kvstore_spec import Spec, join_path
from tensorstore_py._spec.context import Context
from tensorstore_py.errors import SpecError

EITHER = pytest.mark.parametrize("cls", [Spec, reference.KvStore.Spec])
BOTH = pytest.mark.parametrize(
    ("cls", "context"), [(Spec, Context), (reference.KvStore.Spec, reference.Context)]
)

JSON = [
    "memory://",
    "memory://a/b",
    "memory:///a",
    "memory://a%20b/%C3%A9",
    "file:///",
    "file:///a/b/",
    "file:///a%20b",
    {"driver": "memory"},
    {"driver": "memory", "path": "a b", "atomic": False},
    {"driver": "memory", "path": "a", "atomic": True},
    {"driver": "memory", "memory_key_value_store": "memory_key_value_store#a"},
    {"driver": "memory", "memory_key_value_store": {}},
    {"driver": "memory", "context": {"memory_key_value_store#a": {}}},
    {"driver": "file", "path": "/a"},
    {"driver": "file", "path": ""},
    {"driver": "file", "path": "/a", "file_io_sync": False, "context": {"file_io_mode": {}}},
]


@pytest.mark.parametrize("json", JSON, ids=str)
def test_prints_as_the_reference_does(json):
    ours, theirs = Spec(json), reference.KvStore.Spec(json)

    assert repr(ours) == repr(theirs)
    assert ours.path == theirs.path
    assert ours.to_json() == theirs.to_json()
    assert ours.to_json(include_defaults=True) == theirs.to_json(include_defaults=True)
    assert ours.base is None
    assert repr(Spec(ours.to_json())) == repr(theirs)


@pytest.mark.parametrize("json", [json for json in JSON if json != {"driver": "file", "path": ""}])
def test_has_the_urls_of_the_reference(json):
    assert Spec(json).url == reference.KvStore.Spec(json).url


@pytest.mark.parametrize(
    "json",
    ["", "nothing", "memory:", "memory://a?b", "memory://a#b", "memory://%FF", "other://a",
     "file://host/a", "memory://a|memory://b", {}, None, 5, {"driver": "other"}, {"driver": 5},
     {"driver": "memory", "path": 5}, {"driver": "memory", "other": 1},
     {"driver": "memory", "memory_key_value_store": None}, {"driver": "file", "path": "/a//b"}],
    ids=str,
)  # fmt: skip
def test_refuses_what_the_reference_refuses(json):
    with pytest.raises(ValueError):
        reference.KvStore.Spec(json)
    with pytest.raises(SpecError):
        Spec(json)


@EITHER
def test_a_spec_of_a_spec_is_a_copy(cls):
    spec = cls("memory://a")
    copies = [cls(spec.to_json()), spec.copy(), copy.copy(spec), copy.deepcopy(spec),
              pickle.loads(pickle.dumps(spec))]  # fmt: skip
    spec.path = "b"

    assert [each.path for each in copies] == ["a"] * 5
    assert all(each == copies[0] for each in copies)
    assert spec != copies[0]
    with pytest.raises(TypeError):
        hash(spec)


@EITHER
@pytest.mark.parametrize("base", ["", "a", "a/", "a/b"])
@pytest.mark.parametrize("component", ["x", "/x", "x/", "", b"x"])
def test_paths_are_added_and_joined(cls, base, component):
    spec = cls({"driver": "memory", "path": base})
    text = component.decode() if isinstance(component, bytes) else component

    assert (spec + component).path == base + text
    assert (spec / component).path == join_path(base, text)
    assert spec.path == base


@BOTH
def test_can_be_bound_unbound_and_stripped(cls, context):
    spec = cls({"driver": "memory", "path": "a", "context": {"memory_key_value_store": {}}})

    spec.update(context=context())
    assert "['memory_key_value_store']" in repr(spec)
    spec.update(unbind_context=True)
    assert spec.to_json() == {
        "driver": "memory",
        "path": "a",
        "context": {"memory_key_value_store": {}},
    }
    spec.update(strip_context=True)
    assert spec.to_json() == {"driver": "memory", "path": "a"}


@EITHER
def test_a_context_is_no_json(cls):
    with pytest.raises(TypeError):
        cls("memory://").update(context={"memory_key_value_store": {}})


@BOTH
def test_a_pickled_spec_keeps_its_binding(cls, context):
    spec = cls("memory://a")
    spec.update(context=context())

    assert repr(pickle.loads(pickle.dumps(spec))) == repr(spec)


def test_an_unknown_driver_is_named_with_the_nearest():
    with pytest.raises(SpecError, match=r'driver: .*"memry".*did you mean "memory"'):
        Spec({"driver": "memry"})


def test_an_unknown_member_is_named_with_the_nearest():
    with pytest.raises(SpecError, match=r'atomik.*did you mean "atomic"'):
        Spec({"driver": "memory", "atomik": True})


def test_is_unequal_to_anything_else():
    assert Spec("memory://") != "memory://"


def test_what_belongs_to_a_store_says_so():
    for name in ("KeyRange", "ReadResult", "Spec", "TimestampedStorageGeneration"):
        ours, theirs = getattr(ts.KvStore, name), getattr(reference.KvStore, name)
        assert ours.__qualname__ == theirs.__qualname__
        assert ours.__module__ == ts.__name__
    key_range = ts.KvStore.KeyRange("a", "b")
    assert pickle.loads(pickle.dumps(key_range)) == key_range
