"""The kvstack store: the promises over several layers, and the same answers as the reference's."""

import pytest
import tensorstore as reference

import tensorstore_py as ts
from tensorstore_py.kvstores.kvstack import KvStack, Segment, StackLayer
from tensorstore_py.kvstores.memory import MemoryStore, SharedMap
from tensorstore_py.plugin.kvstore import ALL
from tensorstore_py.testing import KvStoreSuite, LoopStore

LAYERS = [
    {"base": "memory://base/"},
    {"base": "memory://up/", "prefix": "u/", "strip_prefix": 1},
    {"base": "memory://one/file", "exact": "one"},
    {"base": "memory://r/", "inclusive_min": "m", "exclusive_max": "o"},
]


class TestLayers(KvStoreSuite):
    """Keys of the suite are in several layers: before, in and behind `k`."""

    @pytest.fixture
    def store(self):
        layers = [
            {"base": "memory://a/"},
            {"base": "memory://b/", "inclusive_min": "a", "exclusive_max": "b"},
            {"base": "memory://c/", "prefix": "k", "strip_prefix": 0},
        ]
        return ts.KvStore.open({"driver": "kvstack", "layers": layers}).result().store


class TestLayersOfBothModes(KvStoreSuite):
    """One layer runs on the loop, the other one does not."""

    @pytest.fixture
    def store(self):
        shared = SharedMap()
        middle = StackLayer.parse({"base": "memory://", "inclusive_min": "b", "exclusive_max": "x"})
        return KvStack(
            [
                Segment(ALL, LoopStore(MemoryStore(shared)), "loop/", b""),
                Segment(middle.keys, MemoryStore(shared), "inline/", middle.stripped),
            ]
        )


def opened(library, layers=LAYERS):
    context = library.Context()
    kv = library.KvStore.open({"driver": "kvstack", "layers": layers}, context=context).result()
    return kv, library.KvStore.open("memory://", context=context).result()


def test_keys_are_where_the_reference_has_them():
    seen = []
    for library in (ts, reference):
        kv, memory = opened(library)
        for key in ("a", "u/x", "one", "n", "m", "p", "u0", "oneself"):
            kv[key] = key.encode()
        seen.append((kv.list().result(), memory.list().result(), kv["u/x"], kv["one"]))
        kv.delete_range(library.KvStore.KeyRange("n", "u/y")).result()
        seen.append(memory.list().result())
        with library.Transaction() as transaction:
            staged = kv.with_transaction(transaction)
            staged["b"], staged["u/q"] = b"1", b"2"
        seen.append(memory.list().result())
        seen.append(kv.list(library.KvStore.KeyRange("n")).result())

    half = len(seen) // 2
    assert seen[:half] == seen[half:]


def test_keys_of_no_layer():
    for library in (ts, reference):
        kv, _ = opened(library, [{"base": "memory://up/", "prefix": "u/"}])

        assert kv.read("a").result().state == "missing"
        with pytest.raises(ValueError, match="layer"):
            kv.write("a", b"1").result()
        kv.delete_range(library.KvStore.KeyRange()).result()
        assert kv.list().result() == []


@pytest.mark.parametrize(
    "layer",
    [{}, {"prefix": "a/"}, {"prefix": "a/", "strip_prefix": 2}, {"prefix": "a/", "strip_prefix": 1},
     {"exact": "k"}, {"exact": "key", "strip_prefix": 2}, {"strip_prefix": 0}, {"prefix": ""},
     {"inclusive_min": "a", "exclusive_max": "b"}, {"inclusive_min": "b"}, {"exclusive_max": "b"},
     {"inclusive_min": "aa", "exclusive_max": "ab", "strip_prefix": 1},
     {"inclusive_min": "a1", "exclusive_max": "a3"}],
)  # fmt: skip
def test_specs_are_printed_like_the_references(layer):
    spec = {"driver": "kvstack", "layers": [{"base": "memory://", **layer}]}
    ours, theirs = (library.KvStore.Spec(spec) for library in (ts, reference))

    assert ours.to_json() == theirs.to_json()


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        ({"prefix": "a/", "strip_prefix": 3}, r"layers\[0\].strip_prefix.*2 bytes in common"),
        ({"exact": "k", "prefix": "k"}, r"layers\[0\].*at most one"),
        ({"exact": "k", "exclusive_max": "z"}, r"layers\[0\].*at most one"),
        ({"inclusive_min": "b", "exclusive_max": "a"}, r'layers\[0\].*from "b" to before "a"'),
        ({"prefx": "a"}, r"layers\[0\].prefx"),
    ],
)
def test_what_is_not_possible_is_refused(layer, message):
    spec = {"driver": "kvstack", "layers": [{"base": "memory://", **layer}]}

    with pytest.raises(ts.SpecError, match=message):
        ts.KvStore.Spec(spec)
    with pytest.raises(ValueError, match="layers"):
        reference.KvStore.Spec(spec)


def test_an_array_of_two_layers(tmp_path):
    layers = [{"base": f"file://{tmp_path}/"}, {"base": "memory://", "exact": "zarr.json"}]
    spec = {"driver": "zarr3", "kvstore": {"driver": "kvstack", "layers": layers}}
    array = ts.open(spec, create=True, dtype="int16", shape=[4]).result()

    array[:] = 7

    assert array.read().result().tolist() == [7] * 4
    assert not (tmp_path / "zarr.json").exists()
    assert (tmp_path / "c" / "0").exists()
