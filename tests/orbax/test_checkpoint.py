"""A checkpoint as users hold it: keys, names, views, pictures."""

import numpy as np
import pytest

import tensorstore_py as ts
from tests.orbax.checkpoints import TREE, assert_same, write_tree


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return ts.orbax.open(write_tree(tmp_path_factory.mktemp("orbax") / "ckpt")).result()


def test_keys_branches_and_leaves(tree):
    assert list(tree) == list(TREE)
    assert (len(tree), len(tree["opt"]), list(tree["opt"])) == (len(TREE), 2, [0, 1])
    assert tree["opt"][1]["mu"].shape == (0,)
    assert tree["opt"][-1].keys() == ["mu"]
    assert (tree["name"], tree["nothing"], tree["no_keys"]) == ("run é", None, {})
    assert tree["step"].read().result() == 7


def test_flat_names(tree):
    assert tree["opt.0.mu"].dtype == ts.int4
    assert tree["params.mlp/~/linear_0.w"].dtype == ts.float8_e4m3fn
    assert tree["params"]["dense.bias"].dtype == ts.bfloat16
    assert tree["params.dense"].names() == ["bias", "kernel"]
    assert "params.dense.bias" in tree
    assert "params" in tree
    assert "params.nothing" not in tree


@pytest.mark.parametrize("key", ["nothing here", "opt.2.mu", "opt.x", "", 3])
def test_a_key_that_is_not_there(tree, key):
    with pytest.raises(KeyError):
        tree[key]


def test_a_number_beyond_a_list(tree):
    with pytest.raises(IndexError):
        tree["opt"][2]


def test_open_says_what_is_not_there(tree):
    with pytest.raises(ts.NotFoundError, match=r'nothing is named "a\.b"'):
        tree.open("a.b")


def test_arrays_are_handles_by_name(tree):
    found = tree.arrays().result()

    assert list(found) == tree.array_names()
    assert "name" not in found
    assert isinstance(found["params.dense.kernel"], ts.TensorStore)
    assert list(tree.arrays(["params.dense", "opt.*"]).result()) == [
        "opt.0.mu", "opt.1.mu", "params.dense.bias", "params.dense.kernel",
    ]  # fmt: skip


def test_a_part_is_read(tree):
    dense = tree.read(["params.dense", "step"]).result()

    assert_same(dense, {"params": {"dense": TREE["params"]["dense"]}, "step": 7})
    assert tree.read(["no.such"]).result() == {}
    assert_same(tree["opt"].read().result(), TREE["opt"])


def test_floats_are_read_as_another_type(tree):
    found = ts.orbax.open(tree.url, dtype="float16").result()

    assert {name: array.dtype.name for name, array in found.arrays().result().items()} == {
        "done": "bool", "opt.0.mu": "int4", "opt.1.mu": "int8", "params.dense.bias": "float16",
        "params.dense.kernel": "float16", "params.mlp/~/linear_0.w": "float16",
        "rate": "float64", "step": "int64",
    }  # fmt: skip
    assert found["params"]["dense"]["bias"].read().result().dtype == np.float16
    with pytest.raises((TypeError, ts.SpecError)):
        ts.orbax.open(tree.url, dtype="float33")


def test_nothing_is_read_before_it_is_asked_for(tmp_path):
    root = write_tree(tmp_path / "ckpt", tree={"w": np.arange(2000), "v": np.ones(2)})
    found = ts.orbax.open(root).result()
    for file in (root / "d").iterdir():
        file.unlink()

    assert found.names() == ["v", "w"]
    assert "arrays=2" in repr(found)
    with pytest.raises(ts.DataLossError, match="missing"):
        found.read().result()


def test_how_it_looks(tree):
    picture = str(tree.tree().result())
    html = tree._repr_html_()

    assert "kernel (3, 4) float32" in picture
    assert "name 'run é'" in picture
    assert "step 7" in picture
    assert repr(tree["params"]["dense"]).endswith("'params.dense', arrays=2)")
    assert "(3, 4)" in html
    assert "kernel" in html
    assert (
        "kernel (3, 4)" in tree.tree()._repr_html_()
        or "(3, 4) float32" in tree.tree()._repr_html_()
    )


def test_it_is_made_by_open_alone():
    with pytest.raises(TypeError, match=r"ts\.orbax\.open"):
        ts.orbax.Checkpoint()
