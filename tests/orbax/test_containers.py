"""Which containers a tree has: dicts, lists, tuples, named tuples."""

import copy
import json
import pickle
from typing import Any, NamedTuple

import numpy as np
import pytest

import tensorstore_py as ts
from tests.orbax.checkpoints import write_tree


class State(NamedTuple):
    mu: Any
    nu: Any


def tree() -> dict[str, Any]:
    return {
        "pair": (np.arange(2), [np.ones(1), (np.zeros(1), "text")]),
        "adam": State(np.full(3, 2), {"inner": (1, 2)}),
        "list": [np.ones(2)],
        "empty": ((), {"none": None}),
    }


def shape(node: Any) -> Any:
    """Containers only."""
    if isinstance(node, dict):
        return {key: shape(each) for key, each in node.items()}
    if isinstance(node, list | tuple):
        name = type(node).__name__
        return [name, getattr(node, "_fields", None), *map(shape, node)]
    return "leaf"


@pytest.fixture
def found(tmp_path):
    ts.orbax.save(tree(), tmp_path / "ckpt").result()
    return ts.orbax.open(tmp_path / "ckpt").result()


def test_tuples_are_saved_and_read(found):
    assert shape(found.read().result()) == shape(tree())


def test_keys_of_tuples_are_numbers_and_of_named_ones_their_fields(found):
    assert (found["pair"].keys(), found["adam"].keys()) == ([0, 1], ["mu", "nu"])
    assert found["adam"]["mu"].read().result().tolist() == [2, 2, 2]
    assert found["adam"][0].read().result().tolist() == [2, 2, 2]
    assert found["adam.nu.inner.1"].read().result() == 2
    assert found["pair"][-1][1][1] == "text"
    assert found.names()[:4] == ["adam.mu", "adam.nu.inner.0", "adam.nu.inner.1", "empty.0"]
    for key in (2, "mv"):
        with pytest.raises((KeyError, IndexError)):
            found["adam"][key]


def test_a_part_of_a_tuple_is_a_tuple(found):
    part = found.read(["pair.1.1", "adam.mu"]).result()

    assert part["pair"] == ([(np.zeros(1), "text")],)
    assert part["adam"]._fields == ("mu",)


def test_named_tuples_can_be_pickled_and_copied(found):
    adam = found.read(["adam.nu"]).result()["adam"]

    assert pickle.loads(pickle.dumps(adam)) == adam
    assert copy.deepcopy(adam) == adam
    assert repr(adam) == "State(nu={'inner': (1, 2)})"


def test_an_open_checkpoint_is_saved_with_its_tuples(found, tmp_path):
    ts.orbax.save({"inner": found}, tmp_path / "again").result()

    again = ts.orbax.open(tmp_path / "again").result()
    assert shape(again["inner"].read().result()) == shape(tree())


def test_safetensors_files_keep_tuples(found, tmp_path):
    ts.orbax.to_safetensors(found, tmp_path / "m.safetensors").result()
    ts.orbax.from_safetensors(tmp_path / "m.safetensors", tmp_path / "again").result()

    assert shape(ts.orbax.open(tmp_path / "again").result().read().result()) == shape(tree())


def test_json_with_several_leaves_is_saved_whole(tmp_path):
    root = tmp_path / "ckpt"
    write_tree(root / "state", tree={"w": np.ones(1)})
    (root / "extra").mkdir()
    (root / "extra/metadata").write_text('{"a": [1, "b"], "c": null}')

    ts.orbax.save(ts.orbax.open(root).result(), tmp_path / "again").result()

    again = ts.orbax.open(tmp_path / "again").result().read().result()
    assert again["extra"] == {"a": [1, "b"], "c": None}


class TestWhatIsSaid:
    @staticmethod
    def opened(tmp_path, said):
        root = write_tree(tmp_path / "ckpt", tree={"a": [np.ones(1), 2]})
        document = json.loads((root / "_METADATA").read_text())
        document["value_metadata_tree"] = said if isinstance(said, str) else json.dumps(said)
        (root / "_METADATA").write_text(json.dumps(document))
        return ts.orbax.open(root).result()

    @pytest.mark.parametrize(
        "said",
        [{}, [], {"a": 1}, {"a": {"category": "custom", "clazz": "tuple", "entries": [1]}},
         {"a": {"category": "namedtuple", "clazz": "A", "entries": [{"key": "x"}, {"key": "y"}]}}],
    )  # fmt: skip
    def test_what_does_not_fit_the_leaves_is_passed_over(self, tmp_path, said):
        assert shape(self.opened(tmp_path, said).read().result()) == {
            "a": ["list", None, "leaf", "leaf"]
        }

    def test_fields_that_python_has_not_are_keys(self, tmp_path):
        entries = [{"key": "class"}, {"key": "class"}]
        said = {"a": {"category": "namedtuple", "clazz": "f.<locals>.A", "entries": entries}}

        assert self.opened(tmp_path, said)["a"].keys() == [0, 1]

    def test_damage_is_named(self, tmp_path):
        with pytest.raises(ts.DataLossError, match=r'"value_metadata_tree" of .*_METADATA'):
            self.opened(tmp_path, "{")
