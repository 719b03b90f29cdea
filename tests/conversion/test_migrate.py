"""What users of `ts.migrate` see, what zarr-python makes of it, and what an interruption leaves."""

import json
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numcodecs
import numpy as np
import pytest
import zarr

import tensorstore_py as ts
from tensorstore_py import Migration, MigrationStep
from tests.conversion.breaking_memory import BrokenError, store_of
from tests.plan.trees import SMALL, processes
from tests.plan.trees import check as check_copy

VARIANTS: dict[str, Any] = {
    "plain": {},
    "columns": {"order": "F"},
    "big": {"dtype": ">f8", "fill_value": np.nan},
    "zlib": {"compressors": numcodecs.Zlib(3)},
    "blosc": {"compressors": numcodecs.Blosc()},
    "delta": {"filters": [numcodecs.Delta("<i4")]},
    "time": {"dtype": "<M8[s]", "fill_value": "NaT"},
    "bool": {"dtype": "bool"},
    "nested/x": {"chunk_key_encoding": {"name": "v2", "separator": "/"}},
    "scalar": {"shape": (), "chunks": ()},
    "record": {"dtype": np.dtype([("a", "<i2"), ("b", "<f4")])},
    "bytes": {"dtype": "S4"},
    "text": {"dtype": "<U3"},
}


def written(where):
    """What is in a hierarchy that zarr-python made."""
    group = zarr.open_group(where, mode="w", zarr_format=2, attributes={"a": 1})
    for name, form in VARIANTS.items():
        array = group.create_array(name, **{"shape": (7, 5), "chunks": (3, 2), "dtype": "<i4",
                                            **form})  # fmt: skip
        numbers = np.arange(1, 1 + array.size).reshape(array.shape)
        if array.dtype.names is None:
            numbers = numbers.astype(array.dtype)
            if array.shape:
                array[:4] = numbers[:4]
            else:
                array[...] = numbers
        else:
            array[:2] = np.array((1, 2.5), array.dtype)
        array.attrs["name"] = name
    words = group.create_array("words", shape=(4,), chunks=(2,), dtype=str)
    words[:] = ["a", "bcd", "", "é"]
    return contents(where)


def contents(where):
    group = zarr.open_group(where, mode="r")
    arrays = {
        path: node for path, node in group.members(max_depth=None) if isinstance(node, zarr.Array)
    }
    return {path: (np.asarray(node[...]), dict(node.attrs)) for path, node in arrays.items()}


def check(found, wanted):
    assert found.keys() == wanted.keys()
    for path, (array, attributes) in found.items():
        np.testing.assert_array_equal(array, wanted[path][0], err_msg=path)
        assert attributes == wanted[path][1]


@pytest.fixture
def quiet():
    """zarr-python warns of types and codecs that have no specification yet."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


META = {
    "zarr_format": 1, "shape": [5, 4], "chunks": [2, 3], "dtype": "<i4", "compression": "zlib",
    "compression_opts": 1, "fill_value": 42, "order": "F",
}  # fmt: skip


@pytest.fixture
def first(tmp_path):
    """An array of version 1, with the first column of chunks stored."""
    where = tmp_path / "first"
    where.mkdir()
    (where / "meta").write_text(json.dumps(META))
    (where / "attrs").write_text('{"a": 1}')
    for row in range(3):
        chunk = np.full((2, 3), row, "<i4", order="F")
        chunk[0, 1] = -row
        (where / f"{row}.0").write_bytes(numcodecs.Zlib(1).encode(chunk.tobytes("F")))
    return where


def check_first(array, attributes):
    wanted = np.full((5, 4), 42)
    for row in range(3):
        wanted[2 * row : 2 * row + 2, :3] = row
        wanted[2 * row, 1] = -row
    np.testing.assert_array_equal(array, wanted)
    assert dict(attributes) == {"a": 1}


@pytest.mark.usefixtures("quiet")
class TestMigrate:
    @pytest.mark.parametrize("consolidated", [False, True])
    def test_zarr_python_reads_what_it_wrote(self, tmp_path, consolidated):
        before = written(tmp_path)
        if consolidated:
            zarr.consolidate_metadata(tmp_path)

        done = ts.migrate(tmp_path).result()

        assert {step.action for step in done.steps} == {"metadata"}
        assert not [*tmp_path.rglob(".z*")]
        check(contents(tmp_path), before)
        group = zarr.open_group(tmp_path, mode="r")
        assert group.metadata.zarr_format == 3
        assert (group.metadata.consolidated_metadata is not None) == consolidated
        assert dict(group.attrs) == {"a": 1}

    def test_somewhere_else(self, tmp_path):
        before = written(tmp_path / "old")

        done = ts.migrate(tmp_path / "old", dest=tmp_path / "new").result()

        assert done.dest is not None
        check(contents(tmp_path / "old"), before)
        check(contents(tmp_path / "new"), before)
        assert zarr.open_group(tmp_path / "new").metadata.zarr_format == 3

    @pytest.mark.parametrize("to", [2, 3])
    def test_version_1(self, first, to):
        done = ts.migrate(first, to).result()

        assert [(step.from_, step.action) for step in done.steps] == [(1, "metadata")]
        found = zarr.open_array(first, mode="r")
        assert found.metadata.zarr_format == to
        check_first(found[...], found.attrs)
        assert not (first / "meta").exists()
        assert not (first / "attrs").exists()

    def test_version_1_by_way_of_version_2(self, first):
        ts.migrate(first, 2, keep=True).result()
        again = ts.migrate(first, 2, dry_run=True).result()
        ts.migrate(first, 3).result()

        assert [step.action for step in again.steps] == ["finish"]
        found = zarr.open_array(first, mode="r")
        check_first(found[...], found.attrs)
        assert sorted(path.name for path in first.iterdir()) == ["0.0", "1.0", "2.0", "zarr.json"]

    @pytest.mark.parametrize("to", [2, 3])
    def test_version_1_somewhere_else(self, first, tmp_path, to):
        ts.migrate(first, to, dest=tmp_path / "new").result()

        found = zarr.open_array(tmp_path / "new", mode="r")
        assert found.metadata.zarr_format == to
        check_first(found[...], found.attrs)
        assert (first / "meta").exists()

    def test_what_is_newer_cannot_become_older_in_place(self):
        group = ts.Group.open("memory://", create=True).result()

        with pytest.raises(ts.UnsupportedError, match="zarr_format=2"):
            ts.migrate(group.kvstore, 2).result()

    def test_refuses(self):
        with pytest.raises(ts.SpecError, match="expected 2 or 3"):
            ts.migrate("memory://", 4)  # type: ignore[arg-type]
        with pytest.raises(ts.SpecError, match="dest"):
            ts.migrate("memory://", in_place=False)
        with pytest.raises(ts.SpecError):
            ts.migrate("some/path")
        with pytest.raises(ts.NotFoundError, match="nothing to migrate"):
            ts.migrate("memory://").result()
        with pytest.raises(ts.NotFoundError, match="nothing to migrate"):
            ts.migrate("memory://", dest="memory://a/").result()

    @pytest.mark.parametrize("by_path", [True, False])
    def test_an_archive(self, tmp_path, by_path):
        where = f"file://{tmp_path}/old.zip|zip:"
        group = ts.Group.open(where, create=True, zarr_format=2).result()
        group.create_array("a", dtype="int8", shape=[3]).result()[...] = 5

        ts.migrate(tmp_path / "old.zip" if by_path else where).result()
        ts.copy(tmp_path / "old.zip", tmp_path / "out").result()

        found = ts.Group.open(tmp_path / "out").result()
        assert found.zarr_format == 3
        assert found["a"].read().result().tolist() == [5, 5, 5]


STEPS = (
    MigrationStep("", "group", 2, "metadata"),
    MigrationStep("a", "array", 3, "nothing"),
    MigrationStep("b", "array", 2, "impossible", "no words"),
    MigrationStep("c", "array", 2, "finish"),
)


class TestMigration:
    def test_is_a_text_to_read(self):
        assert str(Migration(3, "file:///a/", True, STEPS)).split("\n") == [
            "would migrate file:///a/ to version 3: 2 of 4 nodes",
            "  group /: version 2, new metadata, chunks stay",
            "  array /a: version 3, nothing to do",
            "  array /b: version 2, cannot be migrated: no words",
            "  array /c: version 2, was begun: old metadata goes",
        ]

    def test_counts(self):
        migration = Migration(3, "x", False, STEPS, "y")

        assert migration.changes == 2
        assert migration.impossible == STEPS[2:3]
        assert str(migration).startswith("migrated x to version 3 at y")


WHERE = {"driver": "breaking_memory", "path": "h/"}


DATA = np.arange(12, dtype="int16").reshape(3, 4)


def hierarchy(context, *, consolidated=True):
    root = ts.Group.open(
        WHERE, create=True, zarr_format=2, attributes={"a": 1}, context=context
    ).result()
    image = root.create_array(
        "raw/image",
        dtype="int16",
        domain=ts.IndexDomain(shape=[3, 4], labels=["y", "x"]),
        chunk_layout=ts.ChunkLayout(chunk_shape=[2, 2]),
        attributes={"unit": "V"},
    ).result()
    image[...] = DATA
    labels = {"id": "categorize", "labels": ["a", "b"], "dtype": "<U1", "astype": "|u1"}
    text = root.create_array(
        "text",
        metadata={
            "shape": [3], "chunks": [2], "dtype": "<U1", "filters": [labels], "compressor": None,
            "fill_value": None,
        },
    ).result()  # fmt: skip
    text[...] = np.array(["b", "a", "b"])
    if consolidated:
        root.consolidate().result()
    return root


def check_whole(context, zarr_format=None):
    group = ts.Group.open(WHERE, context=context).result()
    if zarr_format is not None:
        assert group.zarr_format == zarr_format
    assert group.attrs.asdict() == {"a": 1}
    assert {path for path, _ in group.members(max_depth=None)} == {"raw", "raw/image", "text"}
    np.testing.assert_array_equal(group["raw/image"].read().result(), DATA)
    assert group["raw/image"].attrs["unit"] == "V"
    assert group["raw/image"].domain.labels == ("y", "x")
    assert group["text"].read().result().tolist() == ["b", "a", "b"]


def keys(context):
    return [
        key.decode() for key in ts.KvStore.open(WHERE, context=context).result().list().result()
    ]


@pytest.fixture
def context():
    return ts.Context()


class TestInPlace:
    def test_what_is_old_goes(self, context):
        hierarchy(context)

        done = ts.migrate(WHERE, context=context).result()

        assert [(step.path, step.action) for step in done.steps] == [
            ("", "metadata"),
            ("raw", "metadata"),
            ("raw/image", "metadata"),
            ("text", "chunks"),
        ]
        check_whole(context, 3)
        assert ts.Group.open(WHERE, context=context).result().consolidated
        assert sorted(keys(context)) == [
            "raw/image/0.0", "raw/image/0.1", "raw/image/1.0", "raw/image/1.1",
            "raw/image/zarr.json", "raw/zarr.json", "text/c/0", "text/c/1",
            "text/zarr.json", "zarr.json",
        ]  # fmt: skip

    @pytest.mark.parametrize("consolidated", [True, False])
    def test_wherever_it_breaks_all_of_it_can_be_read_and_it_is_finished_later(self, consolidated):
        left = 0
        while True:
            context = ts.Context()
            hierarchy(context, consolidated=consolidated)
            store = store_of(context)
            store.left = left
            try:
                ts.migrate(WHERE, context=context).result()
            except BrokenError:
                store.restore()
                check_whole(context)
                ts.migrate(WHERE, context=context).result()
            else:
                break
            check_whole(context, 3)
            assert not [key for key in keys(context) if "/.z" in f"/{key}" or key == "text/0"]
            left += 1
        assert left > 12

    def test_old_documents_may_be_kept(self, context):
        hierarchy(context)
        before = set(keys(context))

        ts.migrate(WHERE, keep=True, context=context).result()

        assert before < set(keys(context))
        check_whole(context, 3)
        old = ts.Group.open({"driver": "zarr2", "kvstore": WHERE}, context=context).result()
        np.testing.assert_array_equal(old["raw/image"].read().result(), DATA)
        again = ts.migrate(WHERE, context=context).result()
        assert {step.action for step in again.steps} == {"finish"}
        assert not [key for key in keys(context) if "/.z" in f"/{key}"]
        check_whole(context, 3)

    def test_a_second_time_there_is_nothing_to_do(self, context):
        hierarchy(context)
        ts.migrate(WHERE, context=context).result()
        store_of(context).restore()

        done = ts.migrate(WHERE, context=context).result()

        assert done.changes == 0
        assert not store_of(context).written

    def test_a_dry_run_changes_nothing(self, context):
        hierarchy(context)
        store_of(context).restore()

        done = ts.migrate(WHERE, dry_run=True, context=context).result()

        assert done.dry_run
        assert done.changes == 4
        assert not store_of(context).written

    def test_documents_that_do_not_agree_are_left_alone(self, context):
        hierarchy(context)
        ts.migrate(WHERE, keep=True, context=context).result()
        store = ts.KvStore.open(WHERE, context=context).result()
        new = json.loads(store["raw/image/zarr.json"])
        store["raw/image/zarr.json"] = json.dumps({**new, "shape": [9, 9]}).encode()

        with pytest.raises(ts.FailedPreconditionError, match=r'"/raw/image" .* shape would be'):
            ts.migrate(WHERE, context=context).result()

        store["raw/image/zarr.json"] = json.dumps(new).encode()
        ts.Group.open(WHERE, context=context, consolidated=False).result().attrs["a"] = 2
        with pytest.raises(ts.FailedPreconditionError, match="attributes differ"):
            ts.migrate(WHERE, context=context).result()

    def test_what_is_impossible_is_refused_before_anything_is_done(self, context):
        root = hierarchy(context, consolidated=False)
        dtype = [["a", "<i2", [3]], ["b", "|u1"]]
        root.create_array(
            "odd", metadata={"shape": [2], "chunks": [2], "dtype": dtype, "compressor": None}
        ).result()
        before = keys(context)

        plan = ts.migrate(WHERE, dry_run=True, context=context).result()
        with pytest.raises(ts.UnsupportedError, match="nothing was changed: /odd"):
            ts.migrate(WHERE, context=context).result()

        assert [step.path for step in plan.impossible] == ["odd"]
        assert keys(context) == before

    def test_a_store_on_the_loop(self):
        context = ts.Context()
        hierarchy(context)

        ts.migrate({**WHERE, "loop": True}, context=context).result()

        check_whole(context, 3)


@pytest.fixture
def old(tmp_path):
    group = ts.Group.open(
        tmp_path / "old", create=True, zarr_format=2, attributes={"a": 1}
    ).result()
    layout = ts.ChunkLayout(chunk_shape=[4, 5])
    image = group.create_array("raw/image", dtype="uint16", shape=[12, 14], chunk_layout=layout)
    image.result()[...] = ts.array([[row * 14 + column for column in range(14)]
                                    for row in range(12)], dtype="uint16")  # fmt: skip
    group.create_array("mask", dtype="int8", shape=[6]).result()[...] = 3
    return tmp_path / "old"


class TestMigrateCall:
    @pytest.mark.parametrize("manifest", [False, True])
    @pytest.mark.parametrize("engine", [ThreadPoolExecutor, processes])
    def test_workers_migrate(self, old, tmp_path, engine, manifest):
        kept = {"manifest": tmp_path / "m.json"} if manifest else {}
        plain = ts.migrate(old, dest=tmp_path / "plain").result()

        with engine(2) as executor:
            done = ts.migrate(
                old, dest=tmp_path / "new", executor=executor, context=ts.Context(SMALL), **kept
            ).result()

        assert done.steps == plain.steps
        assert (done.where, done.to, done.dry_run) == (plain.where, plain.to, plain.dry_run)
        check_copy(tmp_path / "new")
        assert ts.Group.open(tmp_path / "new").result().zarr_format == 3

    def test_a_second_call_goes_on(self, old, tmp_path):
        for _ in range(2):
            ts.migrate(old, dest=tmp_path / "new", manifest=tmp_path / "m.json").result()

        check_copy(tmp_path / "new")

    def test_what_is_going_to_be_done(self, old, tmp_path):
        plan = ts.plan(ts.migrate, old, dest=tmp_path / "new").result()

        assert [step.name for step in plan.steps] == ["mask", "raw/image"]
        assert not (tmp_path / "new").exists()
        again = ts.Plan.from_json(plan.to_json())
        assert again.run().result().to == 3
        check_copy(tmp_path / "new")

    @pytest.mark.parametrize("name", ["executor", "manifest"])
    def test_a_migration_in_place_runs_here(self, old, name, tmp_path):
        with pytest.raises(ts.SpecError, match="pass dest="):
            ts.migrate(old, **{name: tmp_path / "m.json"})
        with pytest.raises(ts.SpecError, match="has no plan; pass dest="):
            ts.plan(ts.migrate, old)

    def test_version_1_stays_in_this_process(self, tmp_path):
        (tmp_path / "old").mkdir()
        (tmp_path / "old/meta").write_text(
            '{"zarr_format": 1, "shape": [4], "chunks": [2], "dtype": "|i1", "compression": null, '
            '"compression_opts": null, "fill_value": 0, "order": "C"}'
        )
        (tmp_path / "old/attrs").write_text("{}")
        (tmp_path / "old/0").write_bytes(b"\x01\x02")

        with (
            processes(1) as executor,
            pytest.raises(ts.UnsupportedError, match="version 1 of Zarr"),
        ):
            ts.migrate(tmp_path / "old", dest=tmp_path / "new", executor=executor).result()
        assert not (tmp_path / "new").exists()
        with ThreadPoolExecutor(1) as executor:
            ts.migrate(tmp_path / "old", dest=tmp_path / "new", executor=executor).result()

        assert ts.open(tmp_path / "new").result().read().result().tolist() == [1, 2, 0, 0]
