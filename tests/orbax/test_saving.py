"""Checkpoints that are written: the same tree again, and nothing half-written."""

import json

import numpy as np
import pytest
import tensorstore as reference

import tensorstore_py as ts
from tests.orbax.checkpoints import TREE, assert_same, tree_metadata


def test_what_is_saved_is_read(tmp_path):
    ts.orbax.save(TREE, tmp_path / "ckpt").result()

    assert_same(ts.orbax.open(tmp_path / "ckpt").result().read().result(), TREE)


def test_the_documents_are_those_of_orbax(tmp_path):
    tree = {"a": {"b": [np.ones(2), 3]}, "s": "text", "none": None}
    ts.orbax.save(tree, tmp_path / "ckpt").result()

    stored = json.loads((tmp_path / "ckpt/_METADATA").read_text())
    wanted = tree_metadata(tree, ocdbt=True, zarr3=True)
    entry = wanted["tree_metadata"]["('a', 'b', '0')"]["value_metadata"]
    entry.pop("write_shape")
    entry["value_type"] = "np.ndarray"  # which is restored without a mesh of devices

    assert stored == wanted
    assert json.loads((tmp_path / "ckpt/_strings.json").read_text()) == {"s": "text"}
    assert (tmp_path / "ckpt/commit_success.txt").exists()


def test_the_reference_reads_the_arrays_and_finds_every_chunk(tmp_path):
    zeros = np.zeros((700, 4000), "float32")
    ts.orbax.save({"a": {"w": zeros}}, tmp_path / "ckpt").result()
    kvstore = {"driver": "ocdbt", "base": f"file://{tmp_path}/ckpt/", "path": "a.w/"}

    array = reference.open(
        {"driver": "zarr3", "kvstore": kvstore, "fill_missing_data_reads": False}
    ).result()

    np.testing.assert_array_equal(array.read().result(), zeros)


def test_a_checkpoint_is_saved_as_another_one(tmp_path):
    context = ts.Context()
    ts.orbax.save(TREE, "memory://a/", context=context).result()
    first = ts.orbax.open("memory://a/", context=context, dtype="float32").result()

    ts.orbax.save({"inner": first}, tmp_path / "b", compress=False).result()

    found = ts.orbax.open(tmp_path / "b").result().read().result()["inner"]
    bias = found["params"]["dense"].pop("bias")
    assert bias.dtype == np.float32
    assert (found["step"], found["name"], found["no_items"]) == (7, "run é", [])


def test_large_arrays_are_stored_by_themselves(tmp_path):
    context = ts.Context({"memory_limit": {"limit_bytes": 80_000}})
    tree = {"large": np.arange(40_000), "small": [np.full(1000, n) for n in range(20)]}

    ts.orbax.save(tree, tmp_path / "ckpt", context=context).result()

    assert_same(ts.orbax.open(tmp_path / "ckpt").result().read().result(), tree)


def test_nothing_is_replaced(tmp_path):
    ts.orbax.save({"w": np.ones(1)}, tmp_path / "ckpt").result()

    with pytest.raises(ts.AlreadyExistsError, match="is there already"):
        ts.orbax.save({"w": np.ones(2)}, tmp_path / "ckpt").result()


def test_what_fails_leaves_nothing(tmp_path):
    def fail(*_):
        raise OSError("no such luck")

    bad = ts.virtual_chunked(fail, dtype=ts.int8, shape=[4])

    with pytest.raises(Exception, match="no such luck"):
        ts.orbax.save({"a": np.ones(3), "w": bad}, tmp_path / "ckpt").result()

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("tree", "problem"),
    [
        ({"a": object()}, "a is of type object"),
        ({"a": np.array(["x"], object)}, "a is of type ndarray"),
        ({"a.b": np.ones(1), "a": {"b": np.ones(1)}}, "have the same name"),
        ({"": np.ones(1)}, "keys of a checkpoint"),
        ({(1, 2): np.ones(1)}, "keys of a checkpoint"),
        ({"a/../b": np.ones(1)}, "cannot be named"),
        (np.ones(3), "pass a dict"),
    ],
)
def test_what_cannot_be_saved_is_refused_at_once(tmp_path, tree, problem):
    with pytest.raises(ts.SpecError, match=problem):
        ts.orbax.save(tree, tmp_path / "ckpt")


def test_many_small_arrays_are_one_version_in_few_files(tmp_path):
    files = {}
    for count in (3, 120):
        tree = {f"{number}": np.full(4, number, "int16") for number in range(count)}
        where = tmp_path / f"of {count}"
        ts.orbax.save(tree, where).result()

        files[count] = sum(1 for each in where.rglob("*") if each.is_file())
        assert len(list(ts.ocdbt.versions(where).result())) == 1
        assert_same(ts.orbax.open(where).result().read().result(), tree)
    assert files[3] == files[120]
