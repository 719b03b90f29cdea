"""Which handles share a resource: the same table, in the reference and here."""

import itertools
import pickle
from typing import Any

import pytest
import tensorstore as reference

import tensorstore_py as ts

LIBRARIES = (ts, reference)

#: A context, its parent, and two keys: which of the four resources are one object?
SHARING: list[tuple[Any, ...]] = [
    ({}, None, "cache_pool", "cache_pool"),
    ({"cache_pool": {}}, None, "cache_pool", "cache_pool"),
    ({"cache_pool#a": {}, "cache_pool#b": {}}, None, "cache_pool#a", "cache_pool#b"),
    ({"cache_pool#a": "cache_pool#b", "cache_pool#b": {}}, None, "cache_pool#a", "cache_pool#b"),
    ({"cache_pool#a": "cache_pool"}, None, "cache_pool#a", "cache_pool"),
    ({"cache_pool#a": None}, None, "cache_pool#a", "cache_pool"),
    ({"cache_pool#a": None, "cache_pool#b": None}, None, "cache_pool#a", "cache_pool#b"),
    ({"cache_pool": None}, {"cache_pool": {}}, "cache_pool", "cache_pool"),
    ({"cache_pool": None}, {}, "cache_pool", "cache_pool"),
    ({"cache_pool#b": None}, {"cache_pool#a": {}}, "cache_pool#b", "cache_pool#a"),
    ({"cache_pool#b": "cache_pool#a"}, {"cache_pool#a": {}}, "cache_pool#b", "cache_pool#a"),
    ({"cache_pool#b": "cache_pool"}, {"cache_pool": {}}, "cache_pool#b", "cache_pool"),
    ({"cache_pool": {}}, {"cache_pool#a": "cache_pool"}, "cache_pool", "cache_pool#a"),
    ({"cache_pool#a": {}}, {"cache_pool#a": {}}, "cache_pool#a", "cache_pool"),
    ({}, {"cache_pool#a": {}}, "cache_pool#a", "cache_pool"),
    ({"file_io_sync": False}, {}, "file_io_sync", "cache_pool"),
    ({"cache_pool#a": "cache_pool#c"}, None, "cache_pool#a", "cache_pool"),
    ({"cache_pool#a": "cache_pool#b", "cache_pool#b": "cache_pool#a"}, None, "cache_pool#a", "x"),
]


def asked(call):
    try:
        return call()
    except ValueError:
        return "refused"


@pytest.mark.parametrize(("spec", "parent", "first", "second"), SHARING, ids=str)
def test_what_is_the_same_object(spec, parent, first, second):
    answers = []
    for library in LIBRARIES:
        above = None if parent is None else library.Context(parent)
        context = library.Context(spec, above)
        there = context if above is None else above
        found = [
            asked(lambda holder=holder, key=key: holder[key])
            for holder, key in itertools.product((context, there), (first, second))
        ]
        answers.append([left is right or left == right for left in found for right in found])
        answers[-1].append([one == "refused" for one in found])
    assert answers[0] == answers[1]


MAP = "memory_key_value_store"
#: The context of the first store, that of the second, and how each names its map. A context is
#: "the" one, one made from JSON, or `(JSON, "the")` for a child of "the" one.
STORES: list[tuple[Any, ...]] = [
    ("the", "the", MAP, MAP),
    ("the", {}, MAP, MAP),
    ("the", None, MAP, MAP),
    (None, None, MAP, MAP),
    ("the", "the", MAP, f"{MAP}#a"),
    ("the", "the", f"{MAP}#a", f"{MAP}#a"),
    ("the", "the", f"{MAP}#a", f"{MAP}#b"),
    ("the", "the", f"{MAP}#a", f"{MAP}#same"),
    ("the", "the", f"{MAP}#null", MAP),
    ("the", "the", f"{MAP}#null", f"{MAP}#null"),
    ("the", "the", {}, {}),
    ("the", "the", {}, MAP),
    ("the", "the", f"{MAP}#none", MAP),
    ("the", ({}, "the"), MAP, MAP),
    ("the", ({}, "the"), f"{MAP}#a", f"{MAP}#a"),
    ("the", ({MAP: {}}, "the"), MAP, MAP),
    ("the", ({MAP: {}}, "the"), f"{MAP}#a", f"{MAP}#a"),
    ("the", ({MAP: {}}, "the"), f"{MAP}#default", f"{MAP}#default"),
    ("the", ({MAP: None}, "the"), MAP, MAP),
    ("the", ({f"{MAP}#a": None}, "the"), f"{MAP}#a", f"{MAP}#a"),
    ("the", ({f"{MAP}#a": None}, "the"), MAP, f"{MAP}#a"),
    ("the", ({f"{MAP}#own": f"{MAP}#b"}, "the"), f"{MAP}#b", f"{MAP}#own"),
    ("the", ({MAP: f"{MAP}#b"}, "the"), f"{MAP}#b", MAP),
    ("the", ({MAP: f"{MAP}#b"}, "the"), MAP, MAP),
]
DEFINED: dict[str, Any] = {
    f"{MAP}#a": {},
    f"{MAP}#b": {},
    f"{MAP}#same": f"{MAP}#a",
    f"{MAP}#null": None,
    f"{MAP}#default": MAP,
}


def context_of(library, what, the):
    if what == "the":
        return the
    if isinstance(what, tuple):
        return library.Context(what[0], the)
    return None if what is None else library.Context(what)


@pytest.mark.parametrize(("one", "other", "first", "second"), STORES, ids=str)
@pytest.mark.parametrize("how", ["argument", "member"])
def test_which_read_what_the_other_wrote(one, other, first, second, how):
    answers = []
    for library in LIBRARIES:
        the = library.Context(DEFINED)

        def open_(what, name, library=library, the=the):
            spec = {"driver": "memory", MAP: name}
            if how == "member" and isinstance(what, tuple):
                spec["context"] = what[0]
                return library.KvStore.open(spec, context=the).result()
            return library.KvStore.open(spec, context=context_of(library, what, the)).result()

        def shared(open_=open_):
            writer, reader = open_(one, first), open_(other, second)
            writer.write("key", b"1").result()
            return reader.read("key").result().state

        answers.append(asked(shared))
    assert answers[0] == answers[1]


@pytest.mark.parametrize("name", [MAP, f"{MAP}#a", f"{MAP}#same", f"{MAP}#null", {}], ids=str)
@pytest.mark.parametrize("way", ["spec", "pickle", "unbound", "stripped"])
def test_which_share_after_a_round_trip(name, way):
    answers = []
    for library in LIBRARIES:
        context = library.Context(DEFINED)
        spec = {"driver": "zarr3", "kvstore": {"driver": "memory", "path": "a/", MAP: name}}
        options = {"create": True, "open": True, "dtype": "uint8", "shape": [4]}
        store = library.open(spec, context=context, **options).result()
        store.write(7).result()
        bound = store.spec(retain_context=True)
        if way == "pickle":
            bound, context = pickle.loads(pickle.dumps((bound, context)))
        elif way == "unbound":
            bound = store.spec(unbind_context=True)
        elif way == "stripped":
            bound = store.spec()
        again = library.open(bound, context=context, **options).result()
        answers.append(int(again[0].read().result()))
    if way == "pickle":
        # A pickled map is found again in the same process; the reference's is another, empty one.
        assert dict(zip(LIBRARIES, answers, strict=True)) == {ts: 7, reference: 0}
    else:
        assert answers[0] == answers[1]


@pytest.mark.parametrize("names", [*itertools.product([MAP, f"{MAP}#a", {}], repeat=2)], ids=str)
def test_what_two_stores_of_one_spec_share(names):
    answers = []
    for library in LIBRARIES:
        context = library.Context(DEFINED)
        layers = [
            {
                "driver": "zarr3",
                "kvstore": {"driver": "memory", "path": f"{number}/", MAP: name},
                "metadata": {"shape": [4], "data_type": "uint8"},
            }
            for number, name in enumerate(names)
        ]
        specs = []
        for layer in layers:
            store = library.open(layer, context=context, create=True).result()
            specs.append(store.spec(unbind_context=True).to_json())
        answers.append([(spec.get("context"), spec["kvstore"].get(MAP)) for spec in specs])
    assert answers[0] == answers[1]
