"""What users of `ts.copy` and `ts.rechunk` see."""

import pathlib
import signal
import subprocess
import sys
import textwrap
from typing import Any

import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorstore_py as ts
from tests.conversion.breaking_memory import BrokenError, store_of

DATA = np.arange(35, dtype="int16").reshape(5, 7)


@pytest.fixture
def context():
    return ts.Context()


def tree(context, where="memory://old/", zarr_format=3):
    """A hierarchy of two groups and two arrays."""
    root = ts.Group.open(
        where, create=True, zarr_format=zarr_format, attributes={"title": "t"}, context=context
    ).result()
    image = root.create_array(
        "raw/image",
        dtype="int16",
        domain=ts.IndexDomain(shape=[5, 7], labels=["y", "x"]),
        chunk_layout=ts.ChunkLayout(chunk_shape=[2, 3]),
        attributes={"unit": "V"},
    ).result()
    image[...] = DATA
    mask = root.create_array("mask", dtype="bool", shape=[3], fill_value=True).result()
    mask[1] = False
    root["raw"].attrs["n"] = 1
    return root


def check(group, *, labels=("y", "x")):
    """That a group holds what `tree` made."""
    assert list(group) == ["mask", "raw"]
    assert group.attrs.asdict() == {"title": "t"}
    assert group["raw"].attrs.asdict() == {"n": 1}
    image = group["raw/image"]
    np.testing.assert_array_equal(image.read().result(), DATA)
    assert image.domain.labels == labels
    assert image.attrs["unit"] == "V"
    assert image.dtype == ts.int16
    assert group["mask"].read().result().tolist() == [True, False, True]
    assert group["mask"].fill_value == True  # noqa: E712 - an array


@pytest.mark.parametrize("old", [2, 3])
@pytest.mark.parametrize("new", [2, 3, None])
@pytest.mark.parametrize("chunks", [None, {"x": 4}])
def test_a_hierarchy_arrives_whole(context, old, new, chunks):
    tree(context, zarr_format=old)

    done = ts.copy(
        "memory://old/", "memory://new/", zarr_format=new, chunks=chunks, context=context
    ).result()

    assert done[:2] == (2, 2)
    assert done.bytes == DATA.nbytes + 3
    group = ts.Group.open("memory://new/", context=context).result()
    assert group.zarr_format == (new or old)
    check(group)
    shape = group["raw/image"].chunk_layout.read_chunk.shape
    assert shape == ((2, 3) if chunks is None else (2, 4))


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_zarr_python_reads_the_copy(tmp_path, context, zarr_format):
    tree(context)

    ts.copy("memory://old/", tmp_path / "new", zarr_format=zarr_format, context=context).result()

    group: Any = zarr.open_group(tmp_path / "new", mode="r")
    np.testing.assert_array_equal(group["raw/image"][...], DATA)
    assert dict(group.attrs) == {"title": "t"}
    assert group["raw/image"].attrs["unit"] == "V"


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_consolidated_metadata_is_written_if_the_source_has_it(context, zarr_format):
    tree(context).consolidate().result()

    ts.copy("memory://old/", "memory://new/", zarr_format=zarr_format, context=context).result()

    group = ts.Group.open("memory://new/", context=context, consolidated=True).result()
    check(group)


def test_without_changes_bytes_are_copied(context):
    root = tree(context)
    key = b"old/raw/image/c/0/0"
    store = ts.KvStore.open("memory://", context=context).result()
    store[key] = b"anything"  # an error if it were decoded

    ts.copy(root, "memory://new/", context=context).result()

    assert store[b"new/raw/image/c/0/0"] == b"anything"
    assert {each.how for each in ts.copy(root, "memory://other/", context=context, dry_run=True)
            .result().members if each.kind == "array"} == {"chunks as they are"}  # fmt: skip


class TestMembers:
    def test_includes_and_excludes(self, context):
        root = tree(context)

        ts.copy(root, "memory://a/", includes="raw", context=context).result()
        ts.copy(root, "memory://b/", excludes=["**/image"], context=context).result()

        assert list(ts.Group.open("memory://a/", context=context).result()) == ["raw"]
        second = ts.Group.open("memory://b/", context=context).result()
        assert dict(second.members(max_depth=None)).keys() == {"raw", "mask"}

    def test_a_pattern_that_matches_nothing(self, context):
        with pytest.raises(ts.NotFoundError, match="nothing matches"):
            ts.copy(tree(context), "memory://a/", includes="rwa", context=context).result()

    def test_an_array_has_no_members(self, context):
        with pytest.raises(ts.SpecError, match="no members"):
            ts.copy(ts.array([1]), "memory://a/", includes="b", context=context).result()

    @settings(max_examples=20, deadline=None)
    @given(
        st.sets(st.sampled_from(["a", "a/x", "a/y", "b", "b/x", "b/c/x", "*", "**/x", "b/**"])),
        st.sets(st.sampled_from(["a", "a/x", "b/c", "**/x", "*/y"])),
    )
    def test_what_is_copied_is_what_is_meant(self, includes, excludes):
        context = ts.Context()
        root = ts.Group.open("memory://old/", create=True, context=context).result()
        for path in ("a/x", "a/y", "b/x", "b/c/x"):
            root.create_array(path, dtype="int8", shape=[1]).result()

        ts.copy(root, "memory://new/", includes=includes or None, excludes=excludes,
                context=context).result()  # fmt: skip

        copied = ts.Group.open("memory://new/", context=context).result()
        found = {path for path, _ in copied.arrays(max_depth=None)}
        planned = ts.copy(root, "memory://n/", includes=includes or None, excludes=excludes,
                          context=context, dry_run=True).result()  # fmt: skip
        assert found == {each.path for each in planned.members if each.kind == "array"}
        for path in found:
            assert not excludes & {path, "**/x" if path.endswith("x") else "*/y"}


class TestIfExists:
    def test_by_default_nothing_is_touched(self, context):
        root = tree(context)
        other = ts.Group.open("memory://new/", create=True, context=context).result()
        other.create_array("raw/image", dtype="int8", shape=[1]).result()

        with pytest.raises(ts.AlreadyExistsError, match='"/raw/image" exists already'):
            ts.copy(root, other).result()

        assert list(other) == ["raw"]

    def test_skip_leaves_what_is_there(self, context):
        root = tree(context)
        other = ts.Group.open("memory://new/", create=True, context=context).result()
        other.create_array("raw/image", dtype="int8", shape=[1]).result()

        done = ts.copy(root, other, if_exists="skip").result()

        assert (done.arrays, done.skipped) == (1, 1)
        assert other["raw/image"].shape == (1,)
        assert other["mask"].read().result().tolist() == [True, False, True]

    def test_replace(self, context):
        root = tree(context)
        other = ts.Group.open("memory://new/", create=True, context=context).result()
        other.create_array("raw/image", dtype="int8", shape=[1]).result()
        other.create_array("raw/more", dtype="int8", shape=[1]).result()

        ts.copy(root, other, if_exists="replace").result()

        assert "raw/more" in other
        del other["raw/more"]
        check(other)

    def test_an_array_where_a_group_would_be(self, context):
        root = tree(context)
        other = ts.Group.open("memory://new/", create=True, context=context).result()
        other.create_array("raw", dtype="int8", shape=[1]).result()

        for how in ("raise", "skip"):
            with pytest.raises(ts.AlreadyExistsError, match='"/raw" exists already'):
                ts.copy(root, other, if_exists=how).result()
        ts.copy(root, other, if_exists="replace").result()

        check(other)

    def test_refuses_another_word(self):
        with pytest.raises(ts.SpecError, match="did you mean"):
            ts.copy("memory://", "memory://", if_exists="skp")  # type: ignore[arg-type]


class TestSingleArrays:
    def test_to_a_new_one(self, context):
        image = tree(context)["raw/image"]

        done = ts.copy(image, "memory://new/", context=context, codec="gzip").result()

        found = ts.open("memory://new/|zarr3:", context=context).result()
        assert done.arrays == 1
        assert "gzip" in str(found.codec)
        assert found.attrs.asdict() == {"unit": "V"}
        np.testing.assert_array_equal(found.read().result(), DATA)

    def test_a_view_is_an_array_that_begins_at_zero(self, context):
        image = tree(context)["raw/image"]

        ts.copy(image[2:, ::2], "memory://new/", context=context, zarr_format=2).result()

        found = ts.open("memory://new/|zarr2:", context=context).result()
        assert found.domain.origin == (0, 0)
        np.testing.assert_array_equal(found.read().result(), DATA[2:, ::2])

    def test_to_an_open_one(self, context):
        target = ts.open("memory://t/|zarr3:", create=True, dtype="int32", shape=[5, 7],
                         context=context).result()  # fmt: skip

        ts.copy(tree(context)["raw/image"], target).result()

        np.testing.assert_array_equal(target.read().result(), DATA)
        with pytest.raises(ts.SpecError, match="codec: the destination is an open array"):
            ts.copy(tree(context, "memory://o/")["mask"], target, codec="gzip").result()

    def test_from_memory_with_another_type(self, context):
        ts.copy(
            ts.array([1, 2], dtype="int8"), "memory://new/", dtype="float64", context=context
        ).result()

        found = ts.open("memory://new/|zarr3:", context=context).result()
        assert found.dtype == ts.float64
        assert found.read().result().tolist() == [1, 2]

    def test_a_type_that_loses_something_is_refused_before_anything_is_stored(self, context):
        with pytest.raises(ts.MismatchError, match="without loss"):
            ts.copy(ts.array([1.5]), "memory://new/", dtype="int8", context=context).result()

        assert not ts.KvStore.open("memory://", context=context).result().list().result()

    def test_in_a_format_without_groups(self, context):
        spec = {"driver": "json", "kvstore": "memory://x.json", "json_pointer": "/a"}

        ts.copy(ts.array({"b": 1}, dtype="json"), spec, context=context).result()

        assert ts.open(spec, context=context).result().read().result().item() == {"b": 1}

    @pytest.mark.parametrize("if_exists", ["raise", "skip", "replace"])
    def test_to_another_format(self, context, if_exists):
        spec = {"driver": "n5", "kvstore": "memory://n5/"}
        image = tree(context)["raw/image"]

        ts.copy(image, spec, context=context, chunks=3).result()
        if if_exists == "raise":
            with pytest.raises(ts.AlreadyExistsError):
                ts.copy(image, spec, context=context).result()
        else:
            done = ts.copy(image[1:], spec, if_exists=if_exists, context=context).result()
            assert done.skipped == (if_exists == "skip")

        found = ts.open(spec, context=context).result().read().result()
        np.testing.assert_array_equal(found, DATA if if_exists != "replace" else DATA[1:])

    def test_text_of_a_fixed_length(self, tmp_path):
        array = zarr.create_array(
            tmp_path / "old", shape=(3,), chunks=(2,), dtype="S4", zarr_format=2
        )
        array[:] = [b"ab", b"", b"wxyz"]

        ts.copy(tmp_path / "old", tmp_path / "same").result()
        ts.copy(tmp_path / "old", tmp_path / "new", zarr_format=3).result()

        for name in ("same", "new"):
            with zarr.config.set({"threading.max_workers": 1}):
                found = read_quietly(tmp_path / name)
            assert found.tolist() == [b"ab", b"", b"wxyz"]

    def test_a_group_is_no_array(self, context):
        with pytest.raises(ts.MismatchError, match="source is a group"):
            ts.copy(tree(context), ts.array([1])).result()

    def test_nothing_is_there(self, context):
        with pytest.raises(ts.NotFoundError, match="nothing to copy"):
            ts.copy("memory://old/", "memory://new/", context=context).result()


def read_quietly(where):
    """What zarr-python reads; it warns of types that have no specification yet."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return zarr.open_array(where, mode="r")[...]


def test_into_itself_is_refused(context):
    root = tree(context)

    for where in (root, root["raw"]):
        with pytest.raises(ts.SpecError, match="into itself"):
            ts.copy(root, where).result()


class TestChunks:
    @pytest.mark.parametrize(
        ("chunks", "shape"), [(4, (4, 4)), ((1, -1), (1, 7)), ({"y": -1}, (5, 3))]
    )
    def test_forms(self, context, chunks, shape):
        image = tree(context)["raw/image"]

        ts.rechunk(image, "memory://new/", chunks, context=context).result()

        found = ts.open("memory://new/|zarr3:", context=context).result()
        assert found.chunk_layout.read_chunk.shape == shape
        np.testing.assert_array_equal(found.read().result(), DATA)

    def test_shards(self, context):
        image = tree(context)["raw/image"]

        ts.rechunk(image, "memory://new/", shards=(4, 6), context=context).result()
        ts.rechunk("memory://new/", "memory://plain/", chunks=5, context=context).result()

        found = ts.open("memory://new/|zarr3:", context=context).result()
        assert found.chunk_layout.read_chunk.shape == (2, 3)
        assert found.chunk_layout.write_chunk.shape == (4, 6)
        np.testing.assert_array_equal(found.read().result(), DATA)
        plain = ts.open("memory://plain/|zarr3:", context=context).result()
        assert plain.chunk_layout.write_chunk.shape == (5, 5)
        np.testing.assert_array_equal(plain.read().result(), DATA)

    def test_of_another_rank(self, context):
        with pytest.raises(ts.MismatchError, match='"/mask" has 1'):
            ts.rechunk(tree(context), "memory://new/", (2, 2), context=context).result()

    @pytest.mark.parametrize("chunks", [0, -2, (0, 1)])
    def test_wrong_extents(self, context, chunks):
        with pytest.raises(ts.SpecError, match="positive extents"):
            ts.rechunk(tree(context)["raw/image"], "memory://n/", chunks, context=context).result()

    def test_rechunk_needs_chunk_shapes(self):
        with pytest.raises(ts.SpecError, match="pass chunks"):
            ts.rechunk("memory://", "memory://")

    def test_refuses_what_is_no_extent(self):
        with pytest.raises(TypeError, match="chunks are"):
            ts.copy("memory://", "memory://", chunks="a")  # type: ignore[arg-type]


def test_progress_tells_of_bytes_chunks_and_arrays(context):
    seen: list[ts.Progress] = []

    ts.copy(tree(context), "memory://new/", progress=seen.append, context=context).result()

    assert seen[0] == ts.Progress(0, DATA.nbytes + 3, 0, 0, 0, 2)
    assert seen[-1] == ts.Progress(DATA.nbytes + 3, DATA.nbytes + 3, 10, 10, 2, 2)
    assert sorted(seen, key=lambda each: each.bytes_done) == seen


async def test_is_awaited_like_everything(context):
    root = tree(context)

    done = await ts.copy(root, "memory://new/", context=context)

    assert done.arrays == 2


@pytest.mark.parametrize("loops", [(False, True), (True, False), (True, True)])
def test_stores_of_either_execution_mode(loops):
    context = ts.Context()
    old, new = (
        {"driver": "breaking_memory", "path": f"{name}/", "loop": loop}
        for name, loop in zip(("old", "new"), loops, strict=True)
    )
    tree(context, {**old, "loop": False})
    manifest = {"driver": "breaking_memory", "path": "m.json"}

    ts.copy(old, new, manifest=manifest, context=context).result()
    done = ts.copy(old, new, chunks=2, if_exists="replace", context=context).result()

    assert done.arrays == 2
    check(ts.Group.open(new, context=context).result())


class TestResuming:
    OLD = {"driver": "breaking_memory", "path": "old/"}  # noqa: RUF012 - a constant
    NEW = {"driver": "breaking_memory", "path": "new/"}  # noqa: RUF012
    MANIFEST = {"driver": "breaking_memory", "path": "copy.json"}  # noqa: RUF012

    def copy(self, context, **options):
        return ts.copy(
            self.OLD, self.NEW, manifest=self.MANIFEST, if_exists="skip", context=context, **options
        ).result()

    @settings(max_examples=30, deadline=None)
    @given(st.lists(st.integers(0, 25), max_size=4), st.sampled_from([None, 1]))
    def test_goes_on_wherever_it_broke(self, breaks, chunks):
        # blocks of one chunk, so that there is something between the first and the last
        context = ts.Context({"memory_limit": {"limit_bytes": 64}})
        tree(context, self.OLD)
        store = store_of(context)
        keys = set()
        for left in breaks:
            store.restore()
            store.left = left
            try:
                self.copy(context, chunks=chunks)
            except BrokenError:
                keys |= {key for key, times in store.written.items() if "/c/" in key}
        store.restore()

        done = self.copy(context, chunks=chunks)

        check(ts.Group.open(self.NEW, context=context).result())
        again = self.copy(context, chunks=chunks)
        assert (again.arrays, again.skipped) == (0, 2)
        assert done.arrays + done.skipped == 2

    @pytest.mark.parametrize("chunks", [None, (1, 1)])
    def test_blocks_that_are_done_are_not_copied_again(self, chunks):
        context = ts.Context({"memory_limit": {"limit_bytes": 64}})
        root = tree(context, self.OLD)
        del root["mask"]
        store = store_of(context)
        store.restore()
        store.left = 30
        with pytest.raises(BrokenError):
            self.copy(context, chunks=chunks)
        store.restore()
        records = {**self.MANIFEST, "path": "copy.json.parts/"}
        kept = ts.KvStore.open(records, context=context).result()
        done_keys = [key for key in kept.list().result() if key.endswith(b".done")]
        finished = len(done_keys)  # since each part is of one task
        assert finished >= 1

        done = self.copy(context, chunks=chunks)

        written = [key for key in store.written if "/c/" in key]
        assert len(written) == done.chunks <= (9 if chunks is None else 35) - finished
        assert [each.action for each in done.members if each.kind == "array"] == ["resume"]
        assert done.bytes < DATA.nbytes

    def test_progress_counts_what_was_done_before(self):
        context = ts.Context({"memory_limit": {"limit_bytes": 64}})
        root = tree(context, self.OLD)
        del root["mask"]
        store = store_of(context)
        store.left = 30
        with pytest.raises(BrokenError):
            self.copy(context)
        store.restore()
        seen: list[ts.Progress] = []

        self.copy(context, progress=seen.append)

        assert [each.chunks_done for each in seen] == sorted(each.chunks_done for each in seen)
        assert seen[-1] == ts.Progress(DATA.nbytes, DATA.nbytes, 9, 9, 1, 1)

    def test_another_request_is_refused(self):
        context = ts.Context()
        tree(context, self.OLD)
        self.copy(context)

        with pytest.raises(ts.FailedPreconditionError, match="chunks was null"):
            self.copy(context, chunks=1)

    def test_a_source_that_changed_is_refused(self):
        context = ts.Context()
        root = tree(context, self.OLD)
        self.copy(context)
        root["raw/image"].resize(exclusive_max=[6, 7]).result()

        with pytest.raises(ts.FailedPreconditionError, match='"/raw/image" is not as it was'):
            self.copy(context)

    def test_what_was_there_before_is_no_part_of_it(self):
        context = ts.Context()
        tree(context, self.OLD)
        other = ts.Group.open(self.NEW, create=True, context=context).result()
        other.create_array("mask", dtype="int8", shape=[1]).result()

        for _ in range(2):
            self.copy(context)

        assert other["mask"].shape == (1,)

    def test_what_was_deleted_since_is_reported(self):
        context = ts.Context()
        tree(context, self.OLD)
        self.copy(context)
        group = ts.Group.open(self.NEW, context=context).result()
        del group["mask"]

        with pytest.raises(ts.FailedPreconditionError, match='"/mask" was deleted'):
            self.copy(context)

    @pytest.mark.parametrize("where", ["copy.json", "memory://", "memory://a/"])
    def test_a_manifest_is_one_document(self, where):
        with pytest.raises(ts.SpecError, match="manifest"):
            ts.copy("memory://", "memory://", manifest=where)


def test_a_killed_process_goes_on(tmp_path):
    context = ts.Context()
    root = tree(context, tmp_path / "old")
    del root["mask"]
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent(
            f"""
            import os, pathlib, signal
            import tensorstore_py as ts

            here = pathlib.Path({str(tmp_path)!r})

            def see(progress):
                if progress.chunks_done >= 4:
                    os.kill(os.getpid(), signal.SIGKILL)

            ts.copy(here / "old", here / "new", manifest=here / "copy.json", chunks=(1, 7),
                    if_exists="skip", progress=see,
                    context=ts.Context({{"memory_limit": {{"limit_bytes": 64}}}})).result()
            """
        )
    )
    killed = subprocess.run(
        [sys.executable, str(program)], cwd=pathlib.Path(ts.__file__).parents[1], check=False,
        timeout=240,
    )  # fmt: skip
    assert killed.returncode == -signal.SIGKILL

    done = ts.copy(
        tmp_path / "old", tmp_path / "new", manifest=tmp_path / "copy.json", chunks=(1, 7),
        if_exists="skip", context=ts.Context({"memory_limit": {"limit_bytes": 64}}),
    ).result()  # fmt: skip

    assert [each.action for each in done.members if each.kind == "array"] == ["resume"]
    assert done.chunks <= 4
    found = ts.open(tmp_path / "new" / "raw" / "image").result()
    np.testing.assert_array_equal(found.read().result(), DATA)


def test_a_transaction_at_the_destination(context):
    root = tree(context)
    with ts.Transaction() as transaction:
        new = ts.KvStore.open("memory://new/", context=context, transaction=transaction).result()
        ts.copy(root, new, context=context).result()
        assert not ts.KvStore.open("memory://new/", context=context).result().list().result()

    check(ts.Group.open("memory://new/", context=context).result())
