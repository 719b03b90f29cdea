"""Checkpoints of every layout that Orbax writes are opened, without Orbax."""

import asyncio
import json
from typing import Any

import msgpack
import numpy as np
import obstore.store
import pytest
import tensorstore as reference

import tensorstore_py as ts
from tensorstore_py.testing import FaultServer, WebValues
from tests.orbax.checkpoints import (
    LAYOUTS,
    TREE,
    Layout,
    assert_same,
    flattened,
    mark,
    write_tree,
)

SMALL = {"w": np.arange(3)}


def opened(where, **options):
    return ts.orbax.open(where, **options).result()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_has_the_same_tree(tmp_path, layout):
    found = opened(write_tree(tmp_path / "ckpt", LAYOUTS[layout]))

    assert_same(found.read().result(), TREE)
    assert found.names() == sorted(".".join(map(str, keys)) for keys, _ in flattened(TREE))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_web_servers_list_nothing_and_are_asked_for_the_names_that_orbax_gives(tmp_path, layout):
    root = tmp_path / "ckpt"
    write_tree(root / "state", LAYOUTS[layout])
    write_tree(root / "mine", LAYOUTS[layout], SMALL)
    files = {
        file.relative_to(tmp_path).as_posix(): file.read_bytes()
        for file in root.rglob("*")
        if file.is_file()
    }
    server = FaultServer(WebValues(files).handle, ())
    with server.running():
        assert_same(opened(f"{server.url}/ckpt/state/").read().result(), TREE)
        assert_same(opened(f"{server.url}/ckpt/", item="state").read().result(), TREE)
        assert_same(opened(f"{server.url}/ckpt/", item="mine").read().result(), SMALL)
        assert_same(opened(f"{server.url}/ckpt/")["state"].read().result(), TREE)
        with pytest.raises(ts.NotFoundError, match="no Orbax checkpoint"):
            opened(f"{server.url}/nothing/")


def test_processes_that_were_not_merged_have_each_but_a_part(tmp_path):
    root = write_tree(tmp_path / "ckpt", LAYOUTS["not merged"])
    (root / "ocdbt.process_1").rename(tmp_path / "away")

    found = opened(root)

    assert found.layout == ["union, zarr3"]
    np.testing.assert_array_equal(
        found["params.dense.kernel"][:2].read().result(), TREE["params"]["dense"]["kernel"][:2]
    )
    with pytest.raises(ts.NotFoundError, match=r"params\.dense\..*/c/1"):
        found.read().result()


@pytest.mark.parametrize("layout", ["zarr", "zarr3", "ocdbt-zarr3"])
@pytest.mark.parametrize("every_chunk", [True, False])
def test_a_chunk_that_is_gone_was_lost_if_orbax_stored_all_of_them(tmp_path, layout, every_chunk):
    root = write_tree(tmp_path / "ckpt", LAYOUTS[layout], SMALL)
    said = json.loads((root / "_METADATA").read_text())
    said["store_array_data_equal_to_fill_value"] = every_chunk
    (root / "_METADATA").write_text(json.dumps(said))
    array = opened(root)["w"]
    store = array.kvstore
    for key in store.list().result():
        if not key.endswith((b"zarr.json", b".zarray")):
            store.delete_range(ts.KvStore.KeyRange(key, key + b"\0")).result()

    if every_chunk:
        with pytest.raises(ts.NotFoundError, match="w/"):
            opened(root).read().result()
    else:
        assert opened(root).read().result()["w"].tolist() == [0, 0, 0]


@pytest.mark.parametrize("layout", ["zarr", "zarr3", "ocdbt-zarr", "ocdbt-zarr3", "not merged"])
def test_without_metadata_the_store_tells_the_tree(tmp_path, layout):
    tree = {"a": {"b": np.arange(3), "c": {"d": np.ones((2, 2))}}, "e": np.zeros(2, "int8")}
    root = write_tree(tmp_path / "ckpt", LAYOUTS[layout]._replace(metadata=False), tree)

    assert_same(opened(root).read().result(), tree)


def test_a_leaf_above_another_one_keeps_its_whole_name(tmp_path):
    tree = {"a": np.arange(2), "a.b": np.ones(1)}
    root = write_tree(tmp_path / "ckpt", Layout(metadata=False), tree)

    assert_same(opened(root).read().result(), tree)


def test_a_placeholder_of_what_was_empty_gives_way_to_what_is_below(tmp_path):
    root = write_tree(tmp_path / "ckpt", tree={"a": {}, **SMALL})
    said = json.loads((root / "_METADATA").read_text())
    entry = said["tree_metadata"]["('w',)"]
    below = {**entry, "key_metadata": [{"key": "w", "key_type": 2}, {"key": "x", "key_type": 2}]}
    said["tree_metadata"]["('w', 'x')"] = below
    (root / "_METADATA").write_text(json.dumps(said))

    assert opened(root).names() == ["a", "w.x"]


class TestPlaces:
    def test_forms(self, tmp_path):
        root = write_tree(tmp_path / "ckpt", tree=SMALL)
        url = root.as_uri()
        spec = {"driver": "file", "path": f"{root}/"}

        for where in (
            root,
            url,
            f"{url}/",
            spec,
            ts.KvStore.Spec(spec),
            ts.KvStore.open(spec).result(),
        ):
            assert opened(where).names() == ["w"]

    def test_memory_and_await(self):
        context = ts.Context()

        async def body():
            await ts.orbax.save(SMALL, "memory://a/", context=context)
            found = await ts.orbax.open("memory://a/", context=context)
            return await found.read(), await found.open("w")

        tree, array = asyncio.run(body())
        assert_same(tree, SMALL)
        assert array.shape == (3,)

    def test_a_store_that_runs_on_the_loop(self):
        bucket = ts.KvStore.open(obstore.store.MemoryStore()).result()
        assert not bucket.store.inline
        ts.orbax.save(TREE, bucket / "run/3/default/").result()

        assert opened(bucket / "run").step == 3
        assert_same(opened(bucket / "run").read().result(), TREE)

    def test_a_string_is_no_path(self):
        with pytest.raises(ts.SpecError, match=r"pathlib\.Path\('ckpt'\)"):
            ts.orbax.open("ckpt")

    def test_nothing_is_there(self, tmp_path):
        with pytest.raises(ts.NotFoundError, match=r"no Orbax checkpoint found at .*gone"):
            opened(tmp_path / "gone")
        (tmp_path / "text").mkdir()
        (tmp_path / "text/a.txt").write_text("x")
        with pytest.raises(ts.NotFoundError, match="neither _METADATA nor manifest"):
            opened(tmp_path)

    def test_a_handle_of_an_array_says_where_it_is_to_the_reference(self, tmp_path):
        root = write_tree(tmp_path / "ckpt")
        array = opened(root)["params.dense.kernel"]
        json_spec: dict[str, Any] = array.spec().to_json()
        json_spec["kvstore"].pop("cache_pool", None)

        other = reference.open(
            {"driver": "zarr3", "kvstore": json_spec["kvstore"]}, read=True
        ).result()

        np.testing.assert_array_equal(other.read().result(), TREE["params"]["dense"]["kernel"])


class TestComposite:
    @pytest.fixture
    def root(self, tmp_path):
        root = mark(tmp_path / "ckpt", custom_metadata={"by": "hand"})
        write_tree(root / "state", tree=SMALL)
        write_tree(root / "params", LAYOUTS["zarr"], {"k": np.ones(2)})
        for name in ("metadata", "extra"):
            (root / name).mkdir()
            (root / name / "metadata").write_text('{"a": [1, null]}')
        (root / "state.orbax-checkpoint-tmp-7").mkdir()
        (root / "rngs/jax_random_key").mkdir(parents=True)
        write_tree(root / "rngs/jax_random_key", LAYOUTS["zarr"], {"checkpoint": np.arange(2)})
        return root

    def test_items_are_keys(self, root):
        found = opened(root)

        assert found.keys() == ["extra", "metadata", "params", "rngs", "state"]
        assert found["metadata"] == {"a": [1, None]}
        assert_same(found["rngs"].read().result(), {"jax_random_key": {"checkpoint": np.arange(2)}})
        assert found.metadata["custom_metadata"] == {"by": "hand"}
        assert found.layout == ["file, zarr", "ocdbt, zarr3"]

    def test_one_item(self, root):
        (root / "params/_METADATA").write_text("damaged")

        assert opened(root, item="state").names() == ["w"]
        assert opened(root, item="extra").read().result() == {"extra": {"a": [1, None]}}
        with pytest.raises(ts.DataLossError, match=r"params/_METADATA.* is no JSON"):
            opened(root, item="params")

    def test_what_is_damaged_does_not_hide_the_others(self, root):
        (root / "params/_METADATA").write_text("damaged")
        (root / "extra/metadata").write_text("{")

        found = opened(root)

        assert sorted(found.damaged) == ["extra", "params"]
        assert found["state"]["w"].read().result().tolist() == [0, 1, 2]
        assert_same(found.read(["state"]).result(), {"state": SMALL})
        assert list(found.arrays(["state"]).result()) == ["state.w"]
        for _ in range(2):
            with pytest.raises(ts.DataLossError, match=r"params/_METADATA.* is no JSON"):
                found["params"]
        for refused in (found.read, found.arrays):
            with pytest.raises(ts.DataLossError, match="is no JSON"):
                refused().result()
        with pytest.raises(ts.DataLossError, match="is no JSON"):
            ts.orbax.save(found, "memory://copy/")
        assert "params damaged: " in str(found.tree().result())
        assert "damaged: " in found._repr_html_()

    def test_nothing_is_sound(self, tmp_path):
        root = mark(tmp_path / "ckpt")
        write_tree(root / "state", tree=SMALL)
        (root / "state/_METADATA").write_text("damaged")

        with pytest.raises(ts.DataLossError, match=r"state/_METADATA"):
            opened(root)

    def test_an_array_that_is_gone_is_named_in_the_picture(self, tmp_path):
        root = write_tree(tmp_path / "ckpt", LAYOUTS["zarr3"], {**SMALL, "v": np.ones(2)})
        (root / "w/zarr.json").unlink()

        picture = str(opened(root).tree().result())

        assert "v (2,) float64" in picture
        assert "w damaged: " in picture

    def test_an_item_that_is_not_there(self, root):
        with pytest.raises(ts.NotFoundError, match='no item "weights"; it has extra, metadata'):
            opened(root, item="weights")

    def test_what_orbax_calls_default_is_the_tree_itself(self, tmp_path):
        root = mark(tmp_path / "ckpt")
        write_tree(root / "default", tree=SMALL)
        (root / "metrics").mkdir()
        (root / "metrics/metrics").write_text('{"loss": 1.5}')

        assert opened(root).names() == ["w"]
        assert opened(root, item="metrics").read().result() == {"metrics": {"loss": 1.5}}

    def test_the_only_tree_of_version_1_is_the_tree_itself(self, tmp_path):
        root = mark(tmp_path / "ckpt")
        write_tree(root / "state", tree=SMALL)
        assert opened(root).keys() == ["state"]

        (root / "orbax.checkpoint").write_text("")

        assert opened(root).keys() == ["w"]


class TestOwnFiles:
    """What is stored of an item that is no tree: the files that Orbax's handlers give it."""

    @staticmethod
    def stored(root, files, **handlers):
        mark(
            root, item_handlers={name: f"orbax.handlers.{each}" for name, each in handlers.items()}
        )
        write_tree(root / "state", tree=SMALL)
        for name, text in files.items():
            (root / name).parent.mkdir(exist_ok=True)
            (root / name).write_text(text)
        return root

    @pytest.mark.parametrize("name", ["data.json", "metadata", "metrics"])
    def test_json(self, tmp_path, name):
        root = self.stored(tmp_path / "ckpt", {f"metadata/{name}": '{"a": 1}'})
        (root / "metadata/commit_success.txt").write_text("ok")

        assert opened(root)["metadata"] == {"a": 1}
        assert opened(root, item="metadata").read().result() == {"metadata": {"a": 1}}

    def test_data_goes_before_older_names(self, tmp_path):
        files = {"a/metadata": "1", "a/data.json": "2"}

        assert opened(self.stored(tmp_path / "ckpt", files))["a"] == 2

    def test_json_of_another_name(self, tmp_path):
        files = {"a/mine.json": "[1]", "b/metrics.txt": "[2]", "c/notes.json": "[3]"}
        root = self.stored(
            tmp_path / "ckpt", files, a="JsonHandler", b="JsonCheckpointHandler", c="Notes"
        )

        found = opened(root)

        assert (found.keys(), found["a"], found["b"]) == (["a", "b", "state"], [1], [2])
        assert opened(root, item="a")["a"] == [1]

    def test_json_alone(self, tmp_path):
        mark(tmp_path / "ckpt", item_handlers="orbax.JsonCheckpointHandler")
        (tmp_path / "ckpt/mine.json").write_text("[1]")

        assert opened(tmp_path / "ckpt").read().result() == {"ckpt": [1]}

    def test_a_text(self, tmp_path):
        root = self.stored(tmp_path / "ckpt", {"config/proto.pbtxt": "rate: 0.5"})

        assert opened(root)["config"] == "rate: 0.5"

    def test_a_tree_whose_only_key_is_that_of_an_item(self, tmp_path):
        root = write_tree(tmp_path / "ckpt", tree={"default": SMALL})

        assert opened(root).names() == ["default.w"]


class TestNoCheckpoints:
    def test_arrays_and_groups_of_zarr(self, tmp_path):
        group = ts.Group.open(tmp_path / "image", create=True).result()
        for level in range(2):
            group.create_array(f"{level}", dtype="int8", shape=[4]).result()
        names = {"image": "zarr.json", "image/0": "zarr.json"}

        for name, document in names.items():
            with pytest.raises(ts.NotFoundError, match=rf"no Orbax checkpoint: it has {document}"):
                opened(tmp_path / name)
        with pytest.raises(ts.NotFoundError, match="no Orbax checkpoint found"):
            opened(tmp_path)

    def test_older_zarr(self, tmp_path):
        ts.open(
            {"driver": "zarr", "kvstore": (tmp_path / "a").as_uri()},
            create=True, dtype="int8", shape=[4],
        ).result()  # fmt: skip

        with pytest.raises(ts.NotFoundError, match=r"it has \.zarray.*tspy info"):
            opened(tmp_path / "a")


class TestSteps:
    @pytest.fixture
    def root(self, tmp_path):
        for step in (0, 5, 10):
            write_tree(mark(tmp_path / f"run/{step}") / "default", tree={"w": np.full(2, step)})
        mark(tmp_path / "run/15.orbax-checkpoint-tmp-1700", committed=False)
        mark(tmp_path / "run/20", committed=False)
        write_tree(tmp_path / "run/20/default", tree={"w": np.full(2, 20)})
        (tmp_path / "run/notes").mkdir()
        return tmp_path / "run"

    def test_steps_say_which_are_complete(self, root):
        found = ts.orbax.steps(root).result()

        assert [(step.number, step.complete) for step in found] == [
            (0, True), (5, True), (10, True), (15, False), (20, False),
        ]  # fmt: skip
        (root / "20/commit_success.txt").write_text("ok")
        assert ts.orbax.steps(root).result()[-1].complete

    def test_a_step_whose_own_document_is_damaged_is_incomplete(self, root):
        (root / "10/_CHECKPOINT_METADATA").write_text("{")

        assert opened(root).step == 5
        assert not ts.orbax.steps(root).result()[2].complete

    def test_the_last_complete_one_is_opened(self, root):
        found = opened(root)

        assert found.step == 10
        assert_same(found.read().result(), {"w": np.full(2, 10)})

    def test_a_step_is_opened_by_its_number(self, root):
        assert opened(root, step=5)["w"].read().result().tolist() == [5, 5]
        with pytest.raises(ts.NotFoundError, match="has no step 6; it has 0, 5, 10, 15, 20"):
            opened(root, step=6)
        for step in (15, 20):
            with pytest.raises(ts.FailedPreconditionError, match="not written to its end"):
                opened(root, step=step)
        with pytest.raises(ts.NotFoundError, match="leave out step=5"):
            opened(root / "5", step=5)

    def test_a_directory_of_a_step_is_one_by_itself(self, root):
        assert opened(root / "20").keys() == ["w"]
        with pytest.raises(ts.FailedPreconditionError, match="rename it"):
            opened(root / "15.orbax-checkpoint-tmp-1700")

    def test_names_with_prefixes_and_zeros(self, tmp_path):
        for step in (3, 12):
            write_tree(mark(tmp_path / f"ckpt_{step:06}") / "state", tree=SMALL)

        found = ts.orbax.steps(tmp_path).result()

        assert [(step.number, step.name) for step in found] == [
            (3, "ckpt_000003"), (12, "ckpt_000012"),
        ]  # fmt: skip
        assert opened(tmp_path).step == 12


class TestAggregate:
    """The msgpack file of checkpoints before `_METADATA`."""

    @staticmethod
    def packed(value):
        def default(found):
            array = np.asarray(found)
            inner = msgpack.packb((array.shape, array.dtype.name, array.tobytes()))
            return msgpack.ExtType(3 if isinstance(found, np.generic) else 1, inner)

        return msgpack.packb(value, default=default)

    def test_values_and_names_of_arrays(self, tmp_path):
        root = write_tree(
            tmp_path, LAYOUTS["zarr"]._replace(metadata=False), {"p": {"w": np.ones(3)}}
        )
        tree = {
            "p": {"w": "PLACEHOLDER://p.w", "small": np.arange(4, dtype="int16")},
            "count": np.int32(3), "n": 7, "none": None, "list": ["a", {}],
            "big": {"__msgpack_chunked_array__": True, "shape": {"0": 2, "1": 2},
                    "chunks": {"0": np.arange(3), "1": np.arange(3, 4)}},
        }  # fmt: skip
        (root / "checkpoint").write_bytes(self.packed(tree))

        found = opened(root)

        assert found["p.small"].read().result().dtype == np.int16
        assert_same(
            found["p"].read().result(), {"w": np.ones(3), "small": np.arange(4, dtype="int16")}
        )
        assert found["big"].read().result().tolist() == [[0, 1], [2, 3]]
        assert (found["n"], found["none"], found["list"][0], found["list.1"]) == (7, None, "a", {})

    def test_values_go_before_what_the_metadata_says(self, tmp_path):
        root = write_tree(tmp_path, LAYOUTS["zarr"], SMALL)
        (root / "checkpoint").write_bytes(self.packed({"w": np.full(2, 9)}))

        assert opened(root).read().result()["w"].tolist() == [9, 9]

    def test_a_damaged_file_is_named(self, tmp_path):
        (tmp_path / "checkpoint").write_bytes(b"\xc1")

        with pytest.raises(ts.DataLossError, match=r"checkpoint.* is damaged"):
            opened(tmp_path)


class TestDamage:
    @pytest.mark.parametrize(
        "text",
        ["", "{", "[]", '{"tree_metadata": []}', '{"tree_metadata": {"a": {}}}',
         '{"tree_metadata": {"a": {"key_metadata": [1], "value_metadata": {"value_type": "x"}}}}'],
    )  # fmt: skip
    def test_metadata(self, tmp_path, text):
        root = write_tree(tmp_path / "ckpt", tree=SMALL)
        (root / "_METADATA").write_text(text)

        with pytest.raises(ts.DataLossError, match="_METADATA"):
            opened(root)

    def test_the_database_is_gone(self, tmp_path):
        root = write_tree(tmp_path / "ckpt", tree=SMALL)
        (root / "manifest.ocdbt").unlink()

        with pytest.raises(ts.DataLossError, match=r"manifest\.ocdbt.* is not there; copy"):
            opened(root)

    def test_an_array_is_gone(self, tmp_path):
        root = write_tree(tmp_path / "ckpt", LAYOUTS["zarr3"], SMALL)
        (root / "w/zarr.json").unlink()

        with pytest.raises(ts.NotFoundError, match=r"w/zarr\.json"):
            opened(root)["w"]
