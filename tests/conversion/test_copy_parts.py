"""Copies in parts: what is asked, both ends, members, the new form, the plan, and its steps."""

import pathlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensorstore_py as ts
from tensorstore_py import NotFoundError, SpecError
from tensorstore_py._api.blockwise import ArrayCopy
from tensorstore_py._conversion import array_copy
from tensorstore_py._conversion.array_copy import ChunkCopy, copy_blocks, form_digest, way
from tensorstore_py._conversion.copy import CopyArguments, as_chunks
from tensorstore_py._conversion.copy_plan import MemberPaths, PlannedArray, PlannedGroup, Request
from tensorstore_py._conversion.endpoints import (
    SourceArray,
    by_suffix,
    destination,
    is_whole,
    node_attributes,
    open_source,
    source,
)
from tensorstore_py._conversion.target_metadata import (
    RequestedMetadata,
    TargetMetadata,
    target_metadata,
)
from tensorstore_py._hierarchy.formats import format_of
from tensorstore_py._plan.call import call_of
from tensorstore_py._plan.tasks import DamagedTask
from tensorstore_py._runtime.execution import run_inline, start
from tensorstore_py._runtime.progress import Reporter
from tensorstore_py.kvstores.memory import MemoryStore
from tensorstore_py.plugin.kvstore import ServerCopy
from tests.plan.trees import SMALL, check, tree


def asked(**options):
    return CopyArguments.of("memory://a/", "memory://b/", **options)


class TestAsked:
    @pytest.mark.parametrize(
        ("given", "expected"),
        [(None, None), (3, 3), ((1, 2), (1, 2)), ([np.int64(4)], (4,)), ({"x": 5}, {"x": 5})],
    )
    def test_chunks(self, given, expected):
        assert as_chunks(given) == expected

    @pytest.mark.parametrize("wrong", [True, "3", 2.5])
    def test_what_says_no_chunks(self, wrong):
        with pytest.raises(TypeError, match="chunks are a number"):
            as_chunks(wrong)

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"if_exists": "skipp"}, 'did you mean "skip"'),
            ({"zarr_format": 4}, "expected 2 or 3"),
            ({"includes": ""}, "includes"),
        ],
    )
    def test_what_is_wrong_is_named(self, options, said):
        with pytest.raises(ts.SpecError, match=said):
            asked(**options)

    def test_as_json_it_asks_for_the_same(self):
        layout = ts.ChunkLayout(chunk_shape=[2, 3])
        codec = ts.CodecSpec({"driver": "zarr3", "codecs": ["zstd"]})
        one = asked(chunk_layout=layout, codec=codec, dtype=ts.int16, fill_value=np.int16(3),
                    excludes="x/*", if_exists="replace", zarr_format=3)  # fmt: skip

        said = one.to_json()
        source, dest = said.pop("source"), said.pop("dest")
        other = CopyArguments.of(source, dest, **said)

        assert said["dtype"] == "int16"
        assert other.to_json() == one.to_json()
        assert other.request.identity == one.request.identity
        assert other.request.wanted.chunk_layout == layout


class TestSuffix:
    @pytest.mark.parametrize(
        "given",
        [
            "s3://b/a.zarr",
            "s3://b/a",
            "s3://b/a.n5|zarr3:",
            pathlib.Path("a.zarr"),
            pathlib.Path("a"),
            {"driver": "zarr3", "kvstore": "memory://a.n5/"},
            '{"driver": "file", "path": "a.n5"}',
        ],
    )
    def test_what_says_nothing_stays(self, given):
        assert by_suffix(given, None) is given
        assert by_suffix(given, 3) is given

    def test_n5_and_zip_are_chosen(self, tmp_path):
        assert by_suffix(pathlib.Path("a.n5"), None) == {
            "driver": "n5",
            "kvstore": pathlib.Path("a.n5"),
        }
        assert by_suffix("file:///a.N5", None) == {"driver": "n5", "kvstore": "file:///a.N5/"}
        assert by_suffix("file:///a.zip", 2) == "file:///a.zip|zip:"
        assert by_suffix(tmp_path / "a b.zip", None) == f"{(tmp_path / 'a b.zip').as_uri()}|zip:"
        (tmp_path / "a.zip").mkdir()
        assert by_suffix(tmp_path / "a.zip", None) == tmp_path / "a.zip"

    def test_contradictions_are_refused(self, tmp_path):
        with pytest.raises(ts.SpecError, match=r"a\.n5 is named as an array of n5") as caught:
            by_suffix(pathlib.Path("a.n5"), 3)
        assert caught.value.path == ("zarr_format",)
        for name in ("a.h5", "a.nc", "a.tif", "a.npy"):
            with pytest.raises(ts.SpecError, match=r"name it \.zarr, \.n5 or \.zip"):
                ts.copy("memory://", tmp_path / name)


PATHS = ["a", "a/b", "a/b/c", "a/x.y", "b", "b/c", "c", "ab"]


names = st.text("ab.*?[]", min_size=1, max_size=3)


some_paths = st.lists(names, min_size=1, max_size=3).map("/".join)


class TestMemberPaths:
    @pytest.mark.parametrize(
        ("includes", "meant"),
        [
            (None, PATHS),
            ("a", ["a", "a/b", "a/b/c", "a/x.y"]),
            ("/a/b/", ["a/b", "a/b/c"]),
            ("*", PATHS),
            ("*/c", ["b/c"]),
            ("**/c", ["a/b/c", "b/c", "c"]),
            ("a/**", ["a/b", "a/b/c", "a/x.y"]),
            ("a/?.?", ["a/x.y"]),
            ("[!a]", ["b", "b/c", "c"]),
            ("a/x?y", ["a/x.y"]),
            ("[[a]", ["a", "a/b", "a/b/c", "a/x.y"]),
            ("[z-b]", []),
            (["c", "ab"], ["c", "ab"]),
        ],
    )
    def test_patterns_match_whole_paths(self, includes, meant):
        paths = MemberPaths.of(includes, None)

        assert [path for path in PATHS if paths.means(path)] == meant

    def test_what_is_excluded_stays_out(self):
        paths = MemberPaths.of(["a", "b/c"], ["a/b", "**/c"])

        assert [path for path in PATHS if paths.means(path)] == ["a", "a/x.y"]

    def test_groups_above_come_along(self):
        paths = MemberPaths.of("a/b/c", None)

        assert paths.among(["", *PATHS]) == {"", "a", "a/b", "a/b/c"}

    def test_a_pattern_that_means_nothing_is_a_mistake(self):
        with pytest.raises(NotFoundError, match="nothing matches 'd'"):
            MemberPaths.of(["a", "d"], None).among(PATHS)

    def test_refuses_what_is_no_pattern(self):
        with pytest.raises(SpecError, match="empty"):
            MemberPaths.of("", None)
        with pytest.raises(TypeError, match="excludes"):
            MemberPaths.of(None, [1])  # type: ignore[list-item]

    @given(some_paths, st.lists(some_paths, max_size=4))
    def test_a_star_for_each_name_means_what_is_as_deep_or_deeper(self, pattern, paths):
        stars = MemberPaths.of("/".join("*" for _ in pattern.split("/")), None)

        for path in paths:
            assert stars.means(path) == (path.count("/") >= pattern.count("/"))

    @given(st.lists(some_paths, max_size=6), st.lists(some_paths, max_size=2))
    def test_everything_is_either_included_or_excluded(self, paths, patterns):
        excluding = MemberPaths.of(None, patterns)
        including = MemberPaths.of(patterns or None, None)

        for path in paths:
            if patterns:
                assert excluding.means(path) != including.means(path)
            else:
                assert excluding.means(path)


def found_at(end, *form) -> Any:
    return run_inline(end.find(*form))


@pytest.fixture
def context():
    return ts.Context()


def group(context, **options):
    return ts.Group.open("memory://g/", create=True, context=context, **options).result()


class TestEnds:
    @pytest.mark.parametrize("zarr_format", [2, 3])
    def test_whatever_names_a_place(self, context, zarr_format):
        made = group(context, zarr_format=zarr_format)
        array = made.create_array("a", dtype="int8", shape=[2]).result()

        for place in ("memory://g/", {"driver": "memory", "path": "g/"}, made, made.kvstore):
            found = found_at(source(place, context))
            assert found.node.kind == "group"
            assert found.tree.form.zarr_format == zarr_format
        for place in ("memory://g/a/", array, array.spec()):
            found = found_at(source(place, context))
            assert found.node.kind == "array"
            assert found.array.shape == (2,)

    def test_a_group_inside_another(self, context):
        inner = group(context).create_group("a/b").result()

        found = found_at(source(inner, context))

        assert found.path == "a/b"

    def test_an_array_by_itself(self, context):
        found = found_at(source(ts.array([1, 2]), context))
        cast = found_at(source(ts.cast(ts.array([1, 2]), "float64"), context))

        assert (found.tree, found.node) == (None, None)
        assert cast.array.dtype == ts.float64

    def test_a_view_in_a_spec(self, context):
        group(context).create_array("a", dtype="int8", shape=[5]).result()
        spec = {
            "driver": "zarr3",
            "kvstore": "memory://g/a/",
            "transform": {"input_inclusive_min": [1], "input_exclusive_max": [3]},
        }

        assert found_at(source(spec, context)).array.shape == (2,)

    def test_a_destination_gets_the_sources_format(self, context):
        for name, form in (("zarr", format_of("zarr")), ("zarr3", format_of("zarr3"))):
            found = found_at(destination("memory://new/", context, None), form)
            assert found.tree.form.driver == name
        assert found_at(destination("memory://", context, 2), form).tree.form.zarr_format == 2
        assert found_at(destination("memory://", context, None), None).tree.form is form

    def test_a_destination_that_is_there_keeps_its_format(self, context):
        group(context, zarr_format=2)

        found = found_at(destination("memory://g/", context, None), format_of("zarr3"))

        assert found.tree.form.zarr_format == 2
        with pytest.raises(ts.MismatchError, match="of version 2"):
            found_at(destination("memory://g/", context, 3), None)
        with pytest.raises(ts.SpecError, match="zarr_format"):
            destination(group(context, zarr_format=2, open=True), context, 3)

    def test_a_named_driver_wins(self, context):
        found = found_at(destination("memory://g/|zarr2:", context, None), format_of("zarr3"))

        assert found.tree.form.zarr_format == 2

    def test_what_is_wrong_is_said_at_once(self, context):
        for wrong in ({"driver": "memroy"}, "local/path", {"driver": "zarr3", "kvstore": 5}):
            with pytest.raises(ts.SpecError):
                source(wrong, context)
            with pytest.raises(ts.SpecError):
                destination(wrong, context, None)

    @pytest.mark.parametrize("kind", ["array", "group"])
    def test_open_ones_at_relative_paths(self, tmp_path, monkeypatch, kind):
        monkeypatch.chdir(tmp_path)
        given: ts.TensorStore | ts.Group
        if kind == "array":
            spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": "from/"}}
            given = ts.open(spec, create=True, dtype="uint8", shape=[4]).result()
        else:
            given = ts.Group.open({"driver": "file", "path": "from/"}, create=True).result()

        ts.copy(given, {"driver": "file", "path": "to/"}).result()

        assert (tmp_path / "to" / "zarr.json").exists()


def found_in(end) -> Any:
    return run_inline(end.find())


@pytest.fixture
def array():
    return ts.open(
        {"driver": "zarr3", "kvstore": "memory://", "metadata": {"attributes": {"a": 1}}},
        create=True, dtype="int8", domain=ts.IndexDomain(shape=[4, 3], labels=["y", "x"]),
    ).result()  # fmt: skip


class TestMember:
    def test_a_view_is_whole_or_not(self, array):
        assert is_whole(array)
        for view in (
            array[1:],
            array[::2],
            array[:, ::-1],
            array.T,
            array[ts.d[:].translate_by[1]],
            array[ts.d["x"].label["z"]],
        ):
            assert not is_whole(view)

    def test_an_array_has_its_document_and_attributes(self, array):
        found = found_in(source(array, ts.Context()))

        member: Any = run_inline(open_source(found, found.node, ""))
        view = found_in(source(array[1:], ts.Context()))

        assert member.attributes == {"a": 1}
        assert member.document["shape"] == [4, 3]
        assert (member.shape, member.size) == ((4, 3), 12)
        assert run_inline(open_source(view, view.node, "")).document is None

    @pytest.mark.parametrize("zarr_format", [2, 3])
    def test_attributes_of_groups(self, zarr_format):
        group = ts.Group.open(
            "memory://", create=True, zarr_format=zarr_format, attributes={"a": 1}
        ).result()
        found = found_in(source(group, ts.Context()))

        assert run_inline(node_attributes(found.tree, found.node)) == {"a": 1}


V2, V3 = format_of("zarr"), format_of("zarr3")


def member(driver="zarr3", view: Any = ..., **options: Any):
    given = {"dtype": "int16", "shape": [6, 4], **options}
    array = ts.open({"driver": driver, "kvstore": "memory://"}, create=True, **given).result()
    found: Any = run_inline(source(array[view], ts.Context()).find())
    return run_inline(open_source(found, found.node, ""))


class TestNewForm:
    def test_nothing_changes(self):
        for driver, form in (("zarr", V2), ("zarr3", V3)):
            new: Any = target_metadata(member(driver), form, RequestedMetadata())

            assert new.same_chunks
            assert new.options["metadata"]["shape"] == [6, 4]
            assert "attributes" not in new.options["metadata"]

    def test_names_of_chunks_stay(self):
        metadata = {"chunk_key_encoding": {"name": "v2", "configuration": {"separator": "/"}}}
        spec = {"driver": "zarr3", "kvstore": "memory://", "metadata": metadata}
        opened = ts.open(spec, create=True, dtype="int8", shape=[2]).result()
        found: Any = run_inline(source(opened, ts.Context()).find())
        given = run_inline(open_source(found, found.node, ""))

        new: Any = target_metadata(given, V3, RequestedMetadata(chunks=1))

        assert new.options["metadata"] == metadata
        assert not new.same_chunks

    def test_codecs_are_said_in_the_other_format(self):
        level3 = {"name": "gzip", "configuration": {"level": 3}}
        gzip = ts.CodecSpec({"driver": "zarr3", "codecs": [level3]})
        new: Any = target_metadata(member(codec=gzip), V2, RequestedMetadata())
        old = ts.CodecSpec({"driver": "zarr", "compressor": {"id": "zlib", "level": 2}})
        back: Any = target_metadata(member("zarr", codec=old), V3, RequestedMetadata())

        assert new.options["codec"].to_json()["compressor"] == {"id": "gzip", "level": 3}
        assert back.options["codec"].to_json()["codecs"][1]["name"] == "numcodecs.zlib"
        assert new.how == "zarr3 to zarr2"

    def test_sharding_is_the_layouts_matter(self):
        layout = ts.ChunkLayout(read_chunk_shape=[2, 2], write_chunk_shape=[4, 4])
        sharded = member(chunk_layout=layout)

        flat: Any = target_metadata(sharded, V3, RequestedMetadata(chunks=(3, 2)))
        kept: Any = target_metadata(sharded, V3, RequestedMetadata(codec="gzip"))
        old: Any = target_metadata(sharded, V2, RequestedMetadata())

        assert flat.options["chunk_layout"].write_chunk.shape == (3, 2)
        assert "sharding" not in str(flat.options["codec"])
        assert kept.options["chunk_layout"].read_chunk.shape == (2, 2)
        assert kept.options["chunk_layout"].write_chunk.shape == (4, 4)
        assert old.options["chunk_layout"].write_chunk.shape == (2, 2)

    def test_what_tells_of_the_type_goes_with_it(self):
        options = {"cname": "lz4", "clevel": 1, "shuffle": "shuffle", "typesize": 2, "blocksize": 0}
        blosc = {"name": "blosc", "configuration": options}
        codec = ts.CodecSpec({"driver": "zarr3", "codecs": [blosc]})

        new: Any = target_metadata(member(codec=codec), V3, RequestedMetadata(dtype="int32"))

        assert "typesize" not in str(new.options["codec"])

    def test_a_view_has_no_document(self):
        new: Any = target_metadata(member(view=slice(1, 4)), V3, RequestedMetadata())

        assert not new.same_chunks
        assert new.options["domain"].shape == (3, 4)

    def test_a_layout_and_chunks_exclude_each_other(self):
        with pytest.raises(ts.SpecError, match="one or the other"):
            target_metadata(
                member(), V3, RequestedMetadata(chunks=2, chunk_layout=ts.ChunkLayout(rank=2))
            )


def plan(from_, to, context, **options):
    ends = source(from_, context), destination(to, context, options.pop("zarr_format", None))
    given = {"if_exists": "raise", "wanted": RequestedMetadata(), **options}
    request = Request(*ends, inline=True, paths=MemberPaths.of(None, None), **given)
    here = run_inline(ends[0].find())
    there = run_inline(ends[1].find(None if here.tree is None else here.tree.form))
    return run_inline(request.plan(here, there))


def nested_group(context, where="memory://old/"):
    made = ts.Group.open(where, create=True, attributes={"a": 1}, context=context).result()
    made.create_array("b/c", dtype="int8", shape=[4]).result()
    return made


class TestCopyPlan:
    def test_members_come_in_order(self):
        context = ts.Context()
        found = plan(nested_group(context), "memory://new/", context)

        assert [(type(each), each.path, each.action) for each in found] == [
            (PlannedGroup, "", "create"),
            (PlannedGroup, "b", "create"),
            (PlannedArray, "b/c", "create"),
        ]
        assert found[0].attributes == {"a": 1}
        assert found[2].size_bytes == 4
        assert found[2].form.same_chunks

    @pytest.mark.parametrize("zarr_format", [2, 3])
    def test_consolidated_groups_are_known(self, zarr_format):
        context = ts.Context()
        made = ts.Group.open(
            "memory://old/", create=True, zarr_format=zarr_format, context=context
        ).result()
        made.create_group("a").result()
        made.consolidate().result()

        found = plan("memory://old/", "memory://new/", context)

        assert [each.consolidated for each in found] == [True, False]

    def test_what_is_there_is_seen(self):
        context = ts.Context()
        old = nested_group(context)
        nested_group(context, "memory://new/")

        found = plan(old, "memory://new/", context, if_exists="skip")

        assert [each.action for each in found] == ["keep", "keep", "skip"]
        with pytest.raises(ts.AlreadyExistsError, match='"/b/c" exists already'):
            plan(old, "memory://new/", context)

    def test_names_that_the_format_does_not_allow(self):
        context = ts.Context()
        made = ts.Group.open("memory://old/", create=True, zarr_format=2, context=context).result()
        made.create_array("__x", dtype="int8", shape=[4]).result()

        with pytest.raises(ts.SpecError, match="__x"):
            plan(made, "memory://new/", context, zarr_format=3)


FORM = TargetMetadata({}, {}, False, "")


def arrays():
    context = ts.Context({"memory_limit": {"limit_bytes": 8}})
    return [
        ts.open(
            {"driver": "zarr3", "kvstore": f"memory://{name}/"}, create=True, dtype="int8",
            shape=[7], chunk_layout=ts.ChunkLayout(chunk_shape=[2]), context=context,
        ).result()
        for name in "ab"
    ]  # fmt: skip


class TestArrayCopy:
    @pytest.mark.parametrize(("same", "kind"), [(True, ChunkCopy), (False, ArrayCopy)])
    def test_chunks_stay_as_they_are_where_they_may(self, same, kind):
        old, new = arrays()

        found = way(SourceArray("", old, None, None, {}), new, FORM._replace(same_chunks=same))

        assert isinstance(found, kind)

    def test_all_blocks_are_copied_and_reported(self):
        old, new = arrays()
        old[...] = 5
        seen: list[ts.Progress] = []
        reporter = Reporter(seen.append)
        reporter.begin(7, 0, 1)

        damaged: list[DamagedTask] = []
        copied = run_inline(
            copy_blocks(SourceArray("", old, None, None, {}), new, FORM, reporter, damaged)
        )

        assert copied == (7, 4)
        assert damaged == []
        assert new.read().result().tolist() == [5] * 7
        assert (seen[-1].bytes_done, seen[-1].chunks_done, seen[-1].chunks_total) == (7, 4, 4)

    def test_a_digest_is_of_the_source_and_what_is_asked(self):
        old = SourceArray("", arrays()[0], {"a": 1}, None, {})

        same = form_digest(SourceArray("b", arrays()[0], {"a": 1}, None, {"x": 1}), FORM)

        assert form_digest(old, FORM) == same
        assert form_digest(old._replace(document={"a": 2}), FORM) != same
        assert form_digest(old, FORM._replace(options={"dtype": ts.int8})) != same


def pair(shape, chunks, **options):
    context = ts.Context()
    layout = ts.ChunkLayout(chunk_shape=chunks)
    old, new = (
        ts.open(
            {"driver": "zarr3", "kvstore": f"memory://{name}/", "metadata": metadata},
            create=True, dtype="int16", shape=shape, chunk_layout=layout, context=context, **options
        ).result()
        for name, metadata in (("old", {}), ("new", {"chunk_key_encoding": {"name": "v2"}}))
    )  # fmt: skip
    return old, new


class TestStoredChunks:
    @pytest.mark.parametrize(
        ("shape", "chunks"), [([5, 7], [2, 3]), ([4], [4]), ([], []), ([0, 3], [2, 2]), ([7], [2])]
    )
    def test_copies_what_is_stored_whatever_its_name(self, shape, chunks):
        old, new = pair(shape, chunks)
        data = np.arange(1, 1 + old.size, dtype="int16").reshape(shape)
        old[...] = data
        copy = ChunkCopy.of(old._driver, new._driver)

        for block in copy.blocks:
            run_inline(copy.run(block))

        np.testing.assert_array_equal(new.read().result(), data)

    def test_what_is_not_stored_is_not_copied(self):
        old, new = pair([6], [2])
        old[2] = 1
        copy = ChunkCopy.of(old._driver, new._driver)

        for block in copy.blocks:
            run_inline(copy.run(block))

        assert sorted(new.kvstore.list().result()) == [b"1", b"zarr.json"]
        assert (copy.item_bytes, copy.progress_bytes) == (2, 2)

    def test_a_store_that_copies_by_itself_is_asked_to(self, monkeypatch):
        old, new = pair([6], [2])
        old[...] = 1
        copied = []

        class Copying(ServerCopy, MemoryStore):
            async def copy_to(self, key, target, target_key):
                del target
                copied.append((key, target_key))
                return True

        copy = ChunkCopy.of(old._driver, new._driver)
        monkeypatch.setattr(old._driver.kvstore[1], "__class__", Copying)

        for block in copy.blocks:
            run_inline(copy.run(block))

        assert sorted(copied) == [(f"old/c/{cell}", f"new/{cell}") for cell in range(3)]
        assert new.kvstore.list().result() == [b"zarr.json"]

    def test_bytes_that_were_copied(self, monkeypatch):
        async def copy_key(source, key, target, target_key):
            result = await source.read(key)
            await target.write(target_key, bytes(result.value)[::-1])

        monkeypatch.setattr(array_copy, "copy_key", copy_key)
        tree = ts.Group.open("memory://old/", create=True).result()
        array = tree.create_array("a/b", dtype="uint8", shape=[8, 8]).result()
        array[...] = np.arange(64, dtype="uint8").reshape(8, 8)
        where = ts.KvStore.open("memory://new/").result()

        with pytest.raises(
            ts.DataLossError, match=r'"old/a/b/c/.*" to "new/a/b/c/.*" is not the same'
        ):
            ts.copy(tree, where, verify=True).result()


def call(context, **options):
    return call_of(
        ts.copy, ("memory://old/", "memory://new/"), {"context": context, **options}
    )  # fmt: skip


def run(body):
    return start(False, body).result()


class TestCopyCall:
    @pytest.mark.parametrize("chunks", [None, 3])
    def test_stage_by_stage(self, chunks):
        context = ts.Context(SMALL)
        tree("memory://old/", context)
        asked = call(context, chunks=chunks)

        (stage,) = run(asked.stages)
        run(lambda: asked.begin(False))
        for step in stage.steps:
            for block in step.blocks:
                run(lambda step=step, block=block: step.live.run(block))
        run(asked.end)

        check("memory://new/", context)
        assert [step.name for step in stage.steps] == ["mask", "raw/image"]

    def test_what_is_there_is_skipped_and_no_step(self):
        context = ts.Context()
        tree("memory://old/", context)
        there = ts.Group.open("memory://new/", create=True, context=context).result()
        there.create_array("mask", dtype="int8", shape=[6]).result()

        (stage,) = run(call(context, if_exists="skip").stages)

        assert [step.name for step in stage.steps] == ["raw/image"]

    def test_begun_again_it_makes_anew_what_is_its_own(self):
        context = ts.Context()
        tree("memory://old/", context)
        first = call(context)
        (stage,) = run(first.stages)
        run(lambda: first.begin(False))
        forms = {step.name: step.form for step in stage.steps}

        again = call(context)
        again.resume(forms)
        assert len(run(again.stages)[0].steps) == 2
        run(lambda: again.begin(True))

        not_again = call(context)
        not_again.resume(forms)
        with pytest.raises(ts.FailedPreconditionError, match="made at the destination by somebody"):
            run(lambda: not_again.begin(False))

    def test_a_source_of_another_form_is_reported(self):
        context = ts.Context()
        tree("memory://old/", context)
        asked = call(context)
        asked.resume({"mask": "another"})

        with pytest.raises(ts.FailedPreconditionError, match='"/mask" is not as it was'):
            run(asked.stages)

    def test_what_was_deleted_since_is_reported(self):
        context = ts.Context()
        tree("memory://old/", context)
        first = call(context)
        (stage,) = run(first.stages)
        asked = call(context)
        asked.resume({step.name: step.form for step in stage.steps})

        with pytest.raises(ts.FailedPreconditionError, match="was deleted at the destination"):
            run(asked.check_begun)

    @pytest.mark.parametrize("driver", ["zarr3", "zarr"])
    def test_consolidated_metadata_comes_last(self, driver):
        context = ts.Context()
        group = tree("memory://old/", context)
        group.consolidate().result()
        dest = {"driver": driver, "kvstore": "memory://new/"}

        plan = ts.plan(ts.copy, "memory://old/", dest, chunks=3, context=context).result()
        plan.run().result()

        found = ts.Group.open("memory://new/", context=context).result()
        assert sorted(found) == ["mask", "raw"]
        assert found.consolidated is not None
