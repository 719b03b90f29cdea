"""Differences of versions and databases: by keys and arrays, reading only what changed."""

import random
import threading

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py.kvstores.file.reading import FileReads
from tensorstore_py.kvstores.ocdbt import database as databases
from tensorstore_py.kvstores.ocdbt.btree import decode_node
from tests.ocdbt.databases import contents, new, random_changes
from tests.ocdbt.rounds import far_away


@pytest.mark.parametrize("config", [
    {"max_decoded_node_bytes": 300, "max_inline_value_bytes": 0},
    {"max_decoded_node_bytes": 700, "max_inline_value_bytes": 20},
    {},
], ids=["small", "middle", "one node"])  # fmt: skip
def test_any_two_versions_differ_in_the_keys_that_differ(tmp_path, config):
    db = new(tmp_path, **config)
    models = random_changes(db, {}, 25)
    source = random.Random(1)
    for _ in range(40):
        one, other = source.choice(list(models)), source.choice(list(models))
        path = source.choice(["", "p/", "p/1"])
        expected = sorted(
            (key.removeprefix(path.encode()), word(models[one].get(key), models[other].get(key)))
            for key in models[one].keys() | models[other].keys()
            if key.startswith(path.encode()) and models[one].get(key) != models[other].get(key)
        )
        sides = (ts.ocdbt.open(db, each).result() / path for each in (one, other))
        found = ts.ocdbt.diff(*sides).result()
        assert [(each.key, each.what) for each in found.keys] == expected
        assert bool(found) == bool(expected)
        assert found.added + found.removed + found.changed == len(expected)


def word(before, after):
    return "added" if before is None else "removed" if after is None else "changed"


def test_subtrees_that_both_have_are_not_read(tmp_path):
    db = new(tmp_path, max_decoded_node_bytes=2000)
    with ts.Transaction() as transaction:
        staged = db.with_transaction(transaction)
        for number in range(5000):
            staged[f"k{number:05}"] = b"%d" % number
    db["k02500"] = b"changed"
    total = ts.ocdbt.check(db).result().nodes

    found = ts.ocdbt.diff(2, db).result()

    assert [each.key for each in found.keys] == [b"k02500"]
    assert found.nodes <= 8 < total / 10


def test_values_that_were_stored_anew_are_compared(tmp_path):
    db = new(tmp_path / "one", max_inline_value_bytes=0)
    other = new(tmp_path / "other", max_inline_value_bytes=100)
    random_changes(db, {}, 5)
    for key, value in contents(tmp_path / "one").items():
        other[key] = value

    assert not ts.ocdbt.diff(db, other).result()
    db["count"] = db["count"]
    assert not ts.ocdbt.diff(6, db).result()
    by_place = ts.ocdbt.diff(6, db, values=False).result()
    assert [each.key for each in by_place.keys] == [b"count"]


def test_counts_are_complete_and_lists_bounded(tmp_path):
    db = new(tmp_path)
    with ts.Transaction() as transaction:
        staged = db.with_transaction(transaction)
        for number in range(50):
            staged[f"k{number}"] = b"1"

    found = ts.ocdbt.diff(1, db, max_keys=3).result()

    assert (found.added, len(found.keys)) == (50, 3)
    assert "and 47 more keys" in str(found)
    assert found.to_json()["added"] == 50


@pytest.mark.parametrize("driver", ["zarr", "zarr3", "n5"])
def test_arrays_tell_their_chunks_and_elements(tmp_path, driver):
    db = new(tmp_path)
    spec = {"driver": driver, "kvstore": db / "g/a/"}
    layout = ts.ChunkLayout(chunk_shape=[2, 3])
    array = ts.open(spec, create=True, dtype="int64", shape=[4, 6], chunk_layout=layout).result()
    array[...] = np.arange(1, 25).reshape(4, 6)
    before = ts.ocdbt.open(db, ts.ocdbt.versions(db).result()[0].generation).result()
    array[0, 5] = -1
    array[3, 5] = -1
    db["readme.txt"] = b"no array's"

    found = ts.ocdbt.diff(before, db).result()

    (change,) = found.arrays
    assert (change.path, change.kind, change.what) == ("g/a", "array", "changed")
    assert (change.metadata, change.changed, change.added) == (False, 2, 0)
    assert set(change.cells) == {(0, 1), (1, 1)}
    assert found.elements("g/a").result().differing_elements == 2
    assert "2 chunks changed" in str(found)


def test_new_removed_and_resized_nodes(tmp_path):
    db = new(tmp_path)
    group = ts.Group.open(db, create=True).result()
    stays = group.create_array("stays", dtype="int8", shape=[4]).result()
    group.create_array("goes", dtype="int8", shape=[4]).result()
    before = ts.ocdbt.versions(db).result()[0].generation
    stays.resize(exclusive_max=[8]).result()
    group.create_array("new", dtype="int8", shape=[4]).result()[...] = 1
    db.delete_range(ts.KvStore.KeyRange("goes/", "goes0")).result()

    found = ts.ocdbt.diff(before, db).result()

    assert [(each.path, each.kind, each.what, each.metadata) for each in found.arrays] == [
        ("goes", "array", "removed", True),
        ("new", "array", "added", True),
        ("stays", "array", "changed", True),
    ]
    assert found.arrays[1].chunks == ("c/0",)


@pytest.mark.parametrize("attributes", [b'{"n5":"2.0.0"}', b"{}", b'{"axes":["x"],"a":1}'])
def test_groups_of_n5_are_groups_and_keys_beside_their_arrays_are_of_none(tmp_path, attributes):
    db = new(tmp_path)
    db["g/attributes.json"] = attributes
    spec = {"driver": "n5", "kvstore": db / "g/a/"}
    ts.open(spec, create=True, dtype="int8", shape=[4]).result()[...] = 1
    before = ts.ocdbt.versions(db).result()[0].generation
    db["g/attributes.json"] = b'{"n5":"2.5.1"}'
    db["g/0/0"] = b"no chunk"
    db["broken/attributes.json"] = b'{"dimensions":'

    found = ts.ocdbt.diff(before, db).result()

    assert [(each.path, each.kind, each.what) for each in found.arrays] == [
        ("broken", "array", "added"),
        ("g", "group", "changed"),
    ]
    assert found.others == 1
    assert str(found.arrays[1]) == "changed group /g: metadata"


def test_two_versions_need_a_database():
    with pytest.raises(ts.SpecError, match="of which database"):
        ts.ocdbt.diff(1, 2)


def deep(path, count=3000):
    """A database whose tree has some hundred nodes."""
    db = new(path, max_decoded_node_bytes=2000, max_inline_value_bytes=4)
    store_all(db, {f"k{number:05}": b"value %d" % number for number in range(count)})
    return db


def store_all(db, values):
    with ts.Transaction() as transaction:
        staged = db.with_transaction(transaction)
        for key, value in values.items():
            staged[key] = value


class TestFarAway:
    def test_nodes_and_values_are_asked_for_many_at_a_time(self, tmp_path, monkeypatch):
        db = deep(tmp_path)
        changed = {f"k{number:05}": b"value %d" % (number & ~1) for number in range(0, 3000, 3)}
        store_all(db, changed)
        stores = far_away(monkeypatch)

        found = ts.ocdbt.diff(2, tmp_path).result()

        assert found.changed == 500
        assert found.nodes > 300
        assert sum(store.rounds for store in stores) < found.nodes / 6

    @pytest.mark.parametrize("grown", [0, 6000])
    @pytest.mark.parametrize("count", [1, 50])
    def test_nothing_is_read_ahead_in_vain(self, tmp_path, monkeypatch, count, grown):
        db = deep(tmp_path)
        with ts.Transaction() as transaction:
            staged = db.with_transaction(transaction)
            for number in range(count):
                staged[f"k{number * 7:05}"] = b"new"
            for number in range(grown):  # by another level
                staged[f"l{number:05}"] = b"value %d" % number
        far_away(monkeypatch)
        decoded = []

        def counted(data, base, most):
            decoded.append(data)
            return decode_node(data, base, most)

        monkeypatch.setattr(databases, "decode_node", counted)

        found = ts.ocdbt.diff(2, tmp_path).result()

        assert (found.changed, found.added) == (count, grown)
        # Beside these, what is looked up to tell that there is no array.
        assert len(decoded) <= found.nodes + 8

    def test_a_side_that_is_near_does_not_hold_up_the_loop(self, tmp_path, monkeypatch):
        deep(tmp_path / "near", 1000)
        db = deep(tmp_path / "far", 1000)
        db["k00500"] = b"value 5oo"
        group = ts.Group.open(db / "g/", create=True).result()
        group.create_array("a", dtype="int8", shape=[4]).result()[...] = 1
        far_away(monkeypatch, "/far/")
        threads = set()
        read = FileReads.read

        async def noted(self, key, *arguments, **options):
            if "/near/" in key:
                threads.add(threading.current_thread().name)
            return await read(self, key, *arguments, **options)

        monkeypatch.setattr(FileReads, "read", noted)

        found = ts.ocdbt.diff(tmp_path / "near", tmp_path / "far").result()

        assert (found.changed, [each.path for each in found.arrays]) == (1, ["g", "g/a"])
        assert threads
        assert not [name for name in threads if "loop" in name]
