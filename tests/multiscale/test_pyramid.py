"""Pyramids: what is asked, how they are made, and converted."""

import json
import multiprocessing
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import pytest

import tensorstore_py as ts
import tests.api.loop_memory  # noqa: F401  # registers the store
from tensorstore_py.multiscale.pyramid_call import PyramidArguments
from tensorstore_py.multiscale.sources import PyramidSource
from tests.multiscale.images import PIXELS, image, labelled, ome, plate
from tests.multiscale.published import looked_at


class TestPyramid:
    @pytest.mark.timeout(600)
    def test_schemas_and_other_readers_agree(self, tmp_path):
        asked: list[tuple[object, str, list[str]]] = []
        expected: list[ts.multiscale.Multiscale | None] = []
        for version, other in (("0.4", "0.5"), ("0.5", "0.4")):
            for name, options in (
                ("mean", {}),
                ("stride", {"method": "stride"}),
                ("sharded", {"shards": (1, 20, 256, 256), "chunks": (1, 20, 64, 64)}),
            ):
                if version == "0.4" and name == "sharded":
                    continue
                made = image(tmp_path / f"{name}-{version}.zarr", version, **options)
                new = tmp_path / f"{name}-{version}-{other}.zarr"
                ts.multiscale.convert(made, new, version=other).result()
                for path, told in ((made.group.kvstore, version), (new, other)):
                    where = str(getattr(path, "url", path)).removeprefix("file://")
                    asked.append((where, told, ["image", "strict_image"]))
                    expected.append(made)
            labels = labelled(tmp_path / f"labelled-{version}.zarr", version)
            new = tmp_path / f"labelled-{version}-{other}.zarr"
            ts.multiscale.convert(labels, new, version=other).result()
            asked.append((new / "labels/nuclei", other, ["label", "image"]))
            expected.append(None)
            plate(tmp_path / f"plate-{version}.zarr", version)
            new = tmp_path / f"plate-{version}-{other}.zarr"
            ts.multiscale.convert(tmp_path / f"plate-{version}.zarr", new, version=other).result()
            asked += [(new, other, ["plate"]), (new / "A/1", other, ["well"])]
            expected += [None, None]

        found = looked_at(asked)

        for made, seen in zip(expected, found, strict=True):
            if made is None:
                continue
            levels = list(made.levels)
            sums = [int(level.read().result().sum()) for level in levels]
            ngff, ome = seen["ngff_zarr"], seen["ome_zarr"]
            assert ngff["shapes"] == ome["shapes"] == [list(level.shape) for level in levels]
            assert ngff["sums"] == ome["sums"] == sums
            assert ngff["scale"] == [made.scale(number) for number in range(len(levels))]
            assert ngff["translation"] == [
                made.translation(number) for number in range(len(levels))
            ]
            assert ngff["units"] == {"c": None, **dict.fromkeys("zyx", "micrometer")}
            assert [axis["name"] for axis in ome["axes"]] == list("czyx")
            assert (ome["name"], ome["channels"]) == ("cells", ["a", "b"])

    @pytest.mark.parametrize("version", ["0.4", "0.5"])
    def test_what_is_stored(self, version, tmp_path):
        made = image(tmp_path / "a.zarr", version)

        if version == "0.5":
            group = json.loads((tmp_path / "a.zarr/zarr.json").read_text())
            array = json.loads((tmp_path / "a.zarr/1/zarr.json").read_text())
            members = group["attributes"]["ome"]
            assert (group["zarr_format"], members["version"]) == (3, "0.5")
            assert "version" not in members["multiscales"][0]
            assert array["dimension_names"] == list("czyx")
            assert made.levels[1].dimension_units[1:] == (
                ts.Unit(4, "micrometer"), ts.Unit(1, "micrometer"), ts.Unit(1, "micrometer"),
            )  # fmt: skip
        else:
            members = json.loads((tmp_path / "a.zarr/.zattrs").read_text())
            array = json.loads((tmp_path / "a.zarr/1/.zarray").read_text())
            assert members["multiscales"][0]["version"] == "0.4"
            assert (array["zarr_format"], array["dimension_separator"]) == (2, "/")
        entry = members["multiscales"][0]
        assert entry["axes"][0] == {"name": "c", "type": "channel"}
        assert entry["axes"][1] == {"name": "z", "type": "space", "unit": "micrometer"}
        assert entry["datasets"][1] == {
            "path": "1",
            "coordinateTransformations": [
                {"type": "scale", "scale": [1.0, 4.0, 1.0, 1.0]},
                {"type": "translation", "translation": [0.0, 1.0, 0.25, 0.25]},
            ],
        }
        window = members["omero"]["channels"][0]["window"]
        assert window["min"] == 0
        assert window["max"] == 65_535
        assert 0 < window["start"] < window["end"] < 65_535

    def test_a_pixel_lies_in_the_middle_of_those_that_it_stands_for(self):
        pixels, scale = np.zeros((64, 64)), [(2, 2), (3, 3)]
        mean, stride = (
            ts.pyramid(
                pixels,
                "memory://",
                axes="yx",
                scale=scale,
                pixel_size=2,
                translation=(10, 0),
                method=method,
            ).result()
            for method in ("mean", "stride")
        )

        assert [mean.scale(at)["y"] for at in range(3)] == [2, 4, 12]
        # 0, 1 | 0 to 5: in the middle at 0.5 and 2.5 pixels of 2
        assert [mean.translation(at)["y"] for at in range(3)] == [10, 11, 15]
        assert [stride.translation(at)["y"] for at in range(3)] == [10, 10, 10]

    def test_a_view_stays_where_it_is(self):
        store = ts.array(np.arange(40_000, dtype="uint16").reshape(200, 200))

        made = ts.pyramid(store[50:, 100:150], "memory://", axes="yx", pixel_size=0.5).result()

        assert made.translation() == {"y": 25, "x": 50}
        assert made.levels[0].domain.inclusive_min == (0, 0)

    def test_progress_comes_to_its_end(self):
        seen: list[ts.Progress] = []

        ts.pyramid(PIXELS, "memory://", axes="czyx", progress=seen.append).result()

        assert seen[0].bytes_done == 0
        assert seen[-1].fraction == 1

    @pytest.mark.parametrize(
        ("options", "path", "text"),
        [
            ({"axes": "xq"}, ("axes",), "space"),
            ({"axes": "zyx"}, ("axes",), "3 axes"),
            ({"axes": "yy"}, ("axes", 1, "name"), "two axes"),
            ({"method": "meen"}, ("method",), "mean"),
            ({"version": "0.6"}, ("version",), "0.5"),
            ({"version": "0.4", "shards": 64}, ("shards",), "no shards"),
            ({"scale": {"q": 2}}, ("scale",), "no axis"),
            ({"scale": 0}, ("scale",), "positive"),
            ({"levels": 0}, ("levels",), "positive"),
            ({"chunks": 0}, ("chunks",), "positive"),
            ({"chunks": 48, "shards": 64}, ("shards",), "whole chunks"),
            ({"pixel_size": -1}, ("pixel_size",), "positive"),
            ({"pixel_size": "2"}, ("pixel_size",), "number"),
            ({"omero": ["a", "b"]}, ("omero",), "1 names"),
            ({"if_exists": "skip"}, ("if_exists",), "replace"),
            ({"memory": 0}, ("memory",), "bytes"),
        ],
    )
    def test_what_is_wrong_is_named(self, options, path, text):
        with pytest.raises(ts.SpecError, match=text) as raised:
            ts.pyramid(np.zeros((64, 64)), "memory://", **{"axes": "yx", **options}).result()

        assert raised.value.path == path

    def test_what_is_there_is_not_replaced_unasked(self):
        store = ts.KvStore.open("memory://").result()
        image(store)

        with pytest.raises(ts.AlreadyExistsError, match="if_exists"):
            image(store)
        smaller = ts.pyramid(
            PIXELS[:, :, :100, :100], store, axes="czyx", if_exists="replace"
        ).result()

        assert smaller.levels[0].shape == (2, 20, 100, 100)

    def test_a_source_that_is_not_there_leaves_nothing(self, tmp_path):
        with pytest.raises(ts.NotFoundError, match="to make a pyramid of"):
            ts.pyramid(tmp_path / "none", tmp_path / "new", axes="yx").result()

        assert list(tmp_path.iterdir()) == []

    def test_an_array_is_no_target(self):
        store = ts.open("memory://|zarr3:", create=True, dtype="uint8", shape=[4, 4]).result()

        with pytest.raises(ts.MismatchError, match="target is an array"):
            ts.pyramid(np.zeros((64, 64)), store, axes="yx").result()

    async def test_it_is_awaited(self):
        made = await ts.pyramid(PIXELS, "memory://", axes="czyx")
        opened = await ts.multiscale.open(made.group)

        assert (await opened.level(1)).shape == (2, 10, 150, 155)


Options = dict[str, Any]


@pytest.fixture(scope="module")
def pool():
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as made:
        yield made


def stored(where):
    """An array in files."""
    group = ts.Group.open(where, create=True).result()
    layout = ts.ChunkLayout(chunk_shape=[1, 10, 100, 100])
    array = group.create_array(
        "a", dtype="uint16", shape=PIXELS.shape, chunk_layout=layout
    ).result()
    array[...] = PIXELS
    return array


class TestPyramidCall:
    def test_a_process_pool_makes_the_same_levels(self, tmp_path, pool):
        source = stored(tmp_path / "raw")
        options: Options = {"axes": "czyx", "levels": 3, "chunks": 50}

        here = ts.pyramid(source, tmp_path / "here", **options).result()
        there = ts.pyramid(source, tmp_path / "there", executor=pool, **options).result()

        for one, other in zip(here.levels, there.levels, strict=True):
            np.testing.assert_array_equal(one.read().result(), other.read().result())
        assert here.metadata == there.metadata

    def test_a_plan_tells_and_changes_nothing(self, tmp_path):
        source = stored(tmp_path / "raw")

        plan = ts.plan(
            ts.pyramid, source, tmp_path / "new", axes="czyx", levels=3, chunks=50
        ).result()

        assert (plan.operation, plan.bytes >= PIXELS.nbytes) == ("pyramid", True)
        assert plan.tasks > 1
        assert "levels 0 to" in str(plan)
        assert not (tmp_path / "new").exists()

    def test_a_plan_goes_through_json(self, tmp_path):
        source = stored(tmp_path / "raw")
        plan = ts.plan(
            ts.pyramid, source, tmp_path / "new", ["c", "z", "y", ts.multiscale.Axis("x", "space")],
            levels=2, omero=["a", "b"], pixel_size=np.float64(2), codec="zstd", dtype="uint32",
        ).result()  # fmt: skip

        made = ts.Plan.from_json(plan.to_json()).run().result()

        assert made.levels[1].dtype.name == "uint32"
        assert [channel["label"] for channel in made.omero["channels"]] == ["a", "b"]
        assert made.scale(1) == {"c": 1, "z": 4, "y": 4, "x": 4}

    def test_an_array_in_memory_does_not_travel(self, tmp_path, pool):
        with pytest.raises(ts.UnsupportedError, match="in this process"):
            ts.pyramid(PIXELS, tmp_path / "new", axes="czyx", executor=pool).result()

        assert not (tmp_path / "new").exists()

    def test_more_memory_is_for_chunks_of_source_and_target_together(self):
        seen = []

        def read(domain, out, _):
            seen.append(domain.inclusive_min)
            out[...] = 1

        layout = ts.ChunkLayout(read_chunk_shape=[1, 2048, 2048])
        planes = ts.virtual_chunked(
            read, dtype="uint16", shape=[32, 2048, 2048], chunk_layout=layout
        )
        options: Options = {"axes": "zyx", "levels": 2, "chunks": (32, 64, 64)}

        little = ts.plan(ts.pyramid, planes, "memory://", memory=2**24, **options).result()
        much = ts.plan(ts.pyramid, planes, "memory://", memory=2**31, **options).result()
        much.run().result()

        assert little.task_memory <= 2**24
        assert little.task_memory < much.task_memory <= 2**31
        assert sorted(seen) == [(z, 0, 0) for z in range(32)]

    def test_a_pyramid_that_was_cut_short_goes_on(self, tmp_path):
        done: Counter[tuple[int, ...]] = Counter()
        failing = True

        def read(domain, out, _):
            if failing and domain.inclusive_min == (0, 512, 512):
                raise ValueError("no such plane")
            done[domain.inclusive_min] += 1
            out[...] = domain.inclusive_min[1]

        layout = ts.ChunkLayout(read_chunk_shape=[1, 256, 256])
        source = ts.virtual_chunked(
            read, dtype="uint16", shape=[8, 1024, 1024], chunk_layout=layout
        )
        options: Options = {"axes": "zyx", "levels": 3, "chunks": (1, 256, 256), "scale": (1, 2, 2)}
        options["manifest"] = tmp_path / "manifest.json"
        with pytest.raises(ValueError, match="no such plane"):
            ts.pyramid(source, tmp_path / "image", **options).result()
        before = sum(done.values())

        failing = False
        image = ts.pyramid(source, tmp_path / "image", **options).result()
        after = sum(done.values())
        ts.pyramid(source, tmp_path / "image", **options).result()

        assert 0 < before < after < before + 8 * 16
        assert sum(done.values()) == after  # a finished one is a no-op
        assert set(np.unique(image.levels[2].read().result())) == {0, 256, 512, 768}
        (tmp_path / "image/1/zarr.json").unlink()
        with pytest.raises(ts.FailedPreconditionError, match='level "1" was deleted'):
            ts.pyramid(source, tmp_path / "image", **options).result()


class TestMaking:
    def test_other_attributes_and_members_stay(self):
        group = ts.Group.open("memory://", create=True, attributes={"mine": 1}).result()
        group.create_array("other", dtype="uint8", shape=[2]).result()

        ts.pyramid(np.zeros((64, 64)), group, axes="yx").result()

        assert set(group.attrs.asdict()) == {"mine", "ome"}
        assert sorted(group) == ["0", "other"]

    def test_fill_value_and_type_are_those_of_the_source(self):
        source = ts.open(
            "memory://|zarr3:", create=True, dtype="int16", shape=[300, 300], fill_value=-3
        ).result()

        made = ts.pyramid(source, "memory://", axes="yx", levels=2).result()

        assert [level.fill_value for level in made.levels] == [-3, -3]
        assert not any(
            "/c/" in key for key in map(bytes.decode, made.group.kvstore.list().result())
        )

    def test_a_codec_that_is_asked_for(self):
        made = ts.pyramid(np.zeros((64, 64)), "memory://", axes="yx", codec="gzip").result()

        assert "gzip" in str(made.levels[0].codec)


class TestAsked:
    def test_it_goes_through_json(self):
        asked = PyramidArguments(
            axes=[ts.multiscale.Axis("y", "space", "um"), "x"], dtype=np.uint32, scale=(2, 3),
            pixel_size=np.float32(0.5), codec=ts.CodecSpec({"driver": "zarr3", "codecs": ["gzip"]}),
        )  # fmt: skip

        said = json.loads(json.dumps(asked.to_json()))

        assert said["dtype"] == "uint32"
        assert said["axes"][0] == {"name": "y", "type": "space", "unit": "um"}
        assert PyramidArguments(**said).to_json() == asked.to_json()

    def test_axes_are_the_last_ones_unless_they_are_named(self):
        store = ts.array(np.zeros((4, 5, 6)))

        image = PyramidArguments().image(PyramidSource(store))

        assert [axis.name for axis in image.metadata.axes] == ["z", "y", "x"]

    def test_a_method_that_the_type_does_not_have(self):
        store = ts.array(np.zeros((4, 5), dtype="complex64"))

        with pytest.raises(ts.SpecError, match="median is not for complex64"):
            PyramidArguments(method="median").image(PyramidSource(store))
        with pytest.raises(ts.MismatchError, match="without loss"):
            PyramidArguments(dtype="uint8").image(PyramidSource(store))


BOTH = [("0.4", "0.5"), ("0.5", "0.4")]


def same(one, other):
    """Both images have the same elements and say the same."""
    assert one.metadata._replace(version="") == other.metadata._replace(version="")
    for a, b in zip(one.levels, other.levels, strict=True):
        np.testing.assert_array_equal(a.read().result(), b.read().result())


class TestConversion:
    @pytest.mark.parametrize(("version", "other"), BOTH)
    def test_there_and_back(self, version, other):
        made = labelled(ts.KvStore.open("memory://").result(), version)
        seen: list[ts.Progress] = []

        there = ts.multiscale.convert(
            made, "memory://", version=other, progress=seen.append
        ).result()
        back = ts.multiscale.convert(there, "memory://", version=version).result()

        for path in ("", "labels/nuclei"):
            first, second, third = (
                ts.multiscale.open(group, path=path).result() for group in (made.group, there, back)
            )
            same(first, second)
            same(first, third)
            assert (second.version, third.version) == (other, version)
        assert back.attrs.asdict() == made.group.attrs.asdict()
        assert seen[-1].fraction == 1
        assert seen[-1].arrays_done == seen[-1].arrays_total == 4

    @pytest.mark.parametrize(("version", "other"), BOTH)
    def test_plates_and_collections(self, version, other):
        store = ts.KvStore.open("memory://").result()
        made = plate(store / "plate/", version)
        root = ts.Group.open(
            store / "all/", create=True, zarr_format=made.zarr_format,
            attributes=ome(version, **{"bioformats2raw.layout": 3}),
        ).result()  # fmt: skip
        image(store / "all/0/", version)
        (store / "all/OME/")["METADATA.ome.xml"] = b"<OME/>"

        new = ts.multiscale.convert(made, "memory://", version=other).result()
        several = ts.multiscale.convert(root, "memory://", version=other).result()

        attributes = new.attrs.asdict()
        assert attributes.get("ome", attributes)["plate"]["name"] == "p"
        well = new["A/1"].attrs.asdict()
        assert well.get("ome", well)["well"]["images"] == [{"path": "0"}, {"path": "1"}]
        same(
            ts.multiscale.open(made, path="A/1/1").result(),
            ts.multiscale.open(new, path="A/1/1").result(),
        )
        found = several.attrs.asdict()
        assert found.get("ome", found)["bioformats2raw.layout"] == 3
        same(
            ts.multiscale.open(root, path="0").result(),
            ts.multiscale.open(several, path="0").result(),
        )

    def test_consolidated_stays_consolidated(self):
        made = image("memory://", "0.4")
        group = made.group.consolidate().result()

        new = ts.multiscale.convert(group, "memory://", version="0.5").result()

        assert ts.Group.open(new.kvstore).result().consolidated

    def test_what_cannot_be_converted(self):
        made = image("memory://", "0.4")
        empty = ts.Group.open("memory://", create=True).result()
        old = ts.Group.open("memory://", create=True, zarr_format=2, attributes={
            "multiscales": [{"version": "0.1", "datasets": [{"path": "0"}]}],
        }).result()  # fmt: skip

        with pytest.raises(ts.SpecError, match=r"0\.5"):
            ts.multiscale.convert(made, "memory://", version="0.6")
        with pytest.raises(ts.SpecError, match="replace"):
            ts.multiscale.convert(made, "memory://", if_exists="skip")  # type: ignore[arg-type]
        with pytest.raises(ts.MismatchError, match=r"0\.4 already"):
            ts.multiscale.convert(made, "memory://", version="0.4").result()
        with pytest.raises(ts.NotFoundError, match="no OME-Zarr metadata"):
            ts.multiscale.convert(empty, "memory://").result()
        with pytest.raises(ts.UnsupportedError, match=r"0\.1"):
            ts.multiscale.convert(old, "memory://").result()
        with pytest.raises(ts.NotFoundError, match="convert the group"):
            ts.multiscale.convert(made.levels[0], "memory://").result()

    def test_what_is_there_is_not_replaced_unasked(self):
        made = image("memory://", "0.4")
        target = ts.KvStore.open("memory://").result()
        ts.multiscale.convert(made, target).result()

        with pytest.raises(ts.AlreadyExistsError, match='"/0" exists'):
            ts.multiscale.convert(made, target).result()
        again = ts.multiscale.convert(made, target, if_exists="replace").result()

        same(made, ts.multiscale.open(again).result())

    def test_until_it_is_whole_it_is_no_image(self):
        made = image("memory://", "0.4")
        made.group.kvstore["0/1/0/0/0"] = b"broken"
        target = ts.KvStore.open("memory://").result()
        level = made.group.open("0").result()
        with pytest.raises(ts.DataLossError):
            level.read().result()
        made.group.delete("1").result()
        made.group.create_array("1", dtype="uint16", shape=[2, 2, 2, 2]).result()
        made.group.kvstore["1/.zarray"] = b"{}"

        with pytest.raises(ts.DataLossError):
            ts.multiscale.convert(made, target).result()

        with pytest.raises(ts.NotFoundError):
            ts.multiscale.open(target).result()

    @pytest.mark.parametrize(
        ("here", "there"), [("loop_memory", "memory"), ("memory", "loop_memory")]
    )
    @pytest.mark.parametrize("options", [{}, {"shards": (1, 20, 256, 256)}])
    def test_from_any_store_to_any(self, here, there, options):
        made = image({"driver": here, "path": "a/"}, "0.5", chunks=(1, 20, 64, 64), **options)

        new = ts.multiscale.convert(made, {"driver": there, "path": "b/"}, version="0.4").result()

        same(made, ts.multiscale.open(new).result())

    def test_pixels_are_those(self):
        assert image("memory://").levels[0].read().result().sum() == PIXELS.sum()
