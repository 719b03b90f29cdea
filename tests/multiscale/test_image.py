"""Images: how they are opened, their levels and regions."""

import dask.array as da
import numpy as np
import pytest
import zarr

import tensorstore_py as ts
from tensorstore_py.multiscale.axes import as_axes
from tensorstore_py.multiscale.metadata import Dataset, ImageMetadata
from tensorstore_py.multiscale.selection import wanted_level
from tests.api.counted_memory import counts
from tests.multiscale.images import PIXELS, image, labelled, plate


class TestImage:
    def test_levels_are_opened_when_they_are_asked_for(self):
        context = ts.Context()
        image({"driver": "counted_memory", "path": "a/"}, context=context)
        group = ts.Group.open({"driver": "counted_memory", "path": "a/"}, context=context).result()
        store = counts(group)

        opened = ts.multiscale.open(
            {"driver": "counted_memory", "path": "a/"}, context=context
        ).result()

        assert set(store.reads) == {"a/zarr.json"}
        assert len(opened.levels) == 2
        store.reset()
        level = opened.levels[1]
        assert opened.levels[-1] is level
        assert dict(store.reads) == {"a/1/zarr.json": 1}

    def test_consolidated_metadata_opens_levels_without_a_request(self):
        context = ts.Context()
        spec = {"driver": "counted_memory", "path": "a/"}
        made = image(spec, context=context)
        made.group.consolidate().result()
        opened = ts.multiscale.open(spec, context=context).result()
        store = counts(made.group)

        assert [level.shape[-1] for level in opened.levels] == [310, 155]
        assert not store.reads

    def test_what_it_is(self):
        made = labelled(ts.KvStore.open("memory://").result())

        assert (made.version, made.name, len(made)) == ("0.5", "cells", 2)
        assert made.units == {"c": None, "z": "micrometer", "y": "micrometer", "x": "micrometer"}
        assert made.dimension_units(1) == (
            None,
            ts.Unit(4, "micrometer"),
            *[ts.Unit(1, "micrometer")] * 2,
        )
        assert made.levels[0].domain.labels == ("c", "z", "y", "x")
        assert [level.shape[1] for level in made.levels[:]] == [20, 10]
        assert made.labels == ["nuclei"]
        assert made.at({"x": 1}).result().shape == (2, 10, 150, 155)
        assert made.at(shape=(1, 1, 151, 1)).result().shape == (2, 20, 300, 310)

    def test_levels_of_version_4_have_the_labels_of_the_axes(self):
        made = image("memory://", "0.4")
        made.group.open("0").result().attrs.put({}).result()

        level = ts.multiscale.open(made.group).result().levels[0]

        assert level.domain.labels == ("c", "z", "y", "x")
        level[0, 0, 0, 0] = 7
        assert level[0, 0, 0, 0].read().result() == 7

    def test_what_is_not_there(self):
        made = image("memory://")
        made.group.delete("1").result()
        opened = ts.multiscale.open(made.group).result()

        with pytest.raises(ts.OutOfRangeError, match="no level 2"):
            opened.level(2)
        with pytest.raises(ts.NotFoundError, match='level 1 of the image, "1"'):
            _ = opened.levels[1]
        made.group.create_array("1", dtype="uint8", shape=[2]).result()
        with pytest.raises(ts.MismatchError, match="1 dimensions"):
            _ = opened.levels[1]
        with pytest.raises(ts.SpecError, match="either"):
            opened.at()

    def test_how_it_looks(self):
        made = image("memory://a<b/")
        page = made._repr_html_()

        assert repr(made) == "Multiscale('memory://a%3Cb/', version='0.5', axes='czyx', levels=2)"
        assert "a<b" not in page
        assert "OME-Zarr 0.5" in page
        assert "not opened" in page
        assert repr(made.levels) == "<2 levels: 0, 1>"
        _ = made.levels[0]
        assert "2 × 20 × 300 × 310" in made._repr_html_()


class TestOpening:
    @pytest.mark.parametrize("version", ["0.4", "0.5"])
    def test_from_every_form(self, tmp_path, version):
        made = image(tmp_path / "a.zarr", version)
        url = (tmp_path / "a.zarr").as_uri()

        for form in (tmp_path / "a.zarr", url, made, made.group, made.group.kvstore):
            opened = ts.multiscale.open(form).result()
            assert opened.metadata == made.metadata

    def test_below(self, tmp_path):
        labelled(tmp_path / "a.zarr")
        plate(tmp_path / "p.zarr", "0.4")

        labels = ts.multiscale.open(tmp_path / "a.zarr", path="labels/nuclei").result()
        field = ts.multiscale.open(tmp_path / "p.zarr", path="A/1/0").result()

        assert labels.levels[1].dtype.name == "uint32"
        assert field.version == "0.4"
        with pytest.raises(ts.NotFoundError, match="plate"):
            ts.multiscale.open(tmp_path / "p.zarr").result()
        with pytest.raises(ts.NotFoundError, match="A/2"):
            ts.multiscale.open(tmp_path / "p.zarr", path="A/2").result()

    def test_older_versions_have_their_scales_from_their_shapes(self):
        group = ts.Group.open("memory://", create=True, zarr_format=2, attributes={
            "multiscales": [{"version": "0.2", "datasets": [{"path": "a"}, {"path": "b"}]}],
        }).result()  # fmt: skip
        group.create_array("a", dtype="uint8", shape=[1, 1, 5, 101, 100]).result()
        group.create_array("b", dtype="uint8", shape=[1, 1, 5, 51, 50]).result()

        opened = ts.multiscale.open(group).result()

        assert opened.scale(1) == {"t": 1, "c": 1, "z": 1, "y": 2, "x": 2}
        assert opened.levels[1].domain.labels == tuple("tczyx")

    def test_what_is_no_image(self, tmp_path):
        group = ts.Group.open(tmp_path / "g", create=True).result()
        group.create_array("a", dtype="uint8", shape=[2]).result()

        with pytest.raises(ts.NotFoundError, match="no multiscales"):
            ts.multiscale.open(group).result()
        with pytest.raises(ts.MismatchError, match="open the group"):
            ts.multiscale.open(tmp_path / "g", path="a").result()
        with pytest.raises(ts.MismatchError, match="open the group"):
            ts.multiscale.open(tmp_path / "g" / "a").result()
        with pytest.raises(ts.NotFoundError, match="there is no image"):
            ts.multiscale.open(tmp_path / "none").result()
        with pytest.raises(ts.MismatchError, match="open the group"):
            ts.multiscale.open(ts.array(np.zeros(3))).result()


class TestSources:
    def test_arrays_of_every_kind(self, tmp_path):
        group = ts.Group.open(tmp_path / "g", create=True).result()
        stored = group.create_array("a", dtype="uint16", shape=PIXELS.shape).result()
        stored[...] = PIXELS
        sources = {
            "numpy": PIXELS,
            "dask": da.from_array(PIXELS, chunks=(1, 10, 100, 100)),
            "zarr": zarr.open(tmp_path / "g/a"),
            "path": tmp_path / "g/a",
            "url": (tmp_path / "g/a").as_uri() + "/|zarr3:",
            "store": stored,
            "ts.zarr": ts.zarr.open_array(tmp_path / "g/a"),
        }

        for source in sources.values():
            made = ts.pyramid(source, "memory://", axes="czyx").result()
            np.testing.assert_array_equal(made.levels[0].read().result(), PIXELS)
            assert [level.shape for level in made.levels] == [PIXELS.shape, (2, 10, 150, 155)]

    def test_chunks_of_dask_are_made_once(self):
        seen = []

        def block(block_info):
            seen.append(block_info[None]["chunk-location"])
            return np.ones(block_info[None]["chunk-shape"], "uint8")

        array = da.map_blocks(
            block, chunks=((32,) * 4, (50, 50)), dtype="uint8", meta=np.empty((0, 0))
        )

        ts.pyramid(array, "memory://", axes="yx", levels=3).result()

        assert sorted(seen) == [(y, x) for y in range(4) for x in range(2)]

    def test_an_image_passes_on_what_it_says(self, tmp_path):
        old = image(tmp_path / "a.zarr", "0.4")

        new = ts.pyramid(tmp_path / "a.zarr", tmp_path / "b.zarr", levels=3, scale=3).result()

        assert (new.axes, new.name, new.omero) == (old.axes, old.name, old.omero)
        assert new.scale(1) == {"c": 1, "z": 6, "y": 1.5, "x": 1.5}
        assert (new.version, len(new)) == ("0.5", 3)

    def test_an_array_without_dimensions(self):
        with pytest.raises(ts.SpecError, match="without dimensions"):
            ts.pyramid(np.float32(1), "memory://").result()

    def test_units_and_labels_of_a_stored_array(self):
        store = ts.open(
            "memory://|zarr3:", create=True, dtype="uint8", dimension_units=["4 nm", "2 nm"],
            domain=ts.IndexDomain(shape=[30, 40], labels=["y", "x"]),
        ).result()  # fmt: skip

        made = ts.pyramid(store, "memory://").result()

        assert made.scale() == {"y": 4, "x": 2}
        assert made.units == {"y": "nanometer", "x": "nanometer"}


IMAGE = ImageMetadata(
    "0.5",
    as_axes("zyx", 3),
    tuple(Dataset(str(n), (2.0, 0.5 * 2**n, 0.5 * 2**n), (0.0,) * 3) for n in range(4)),
)


class TestChoice:
    @pytest.mark.parametrize(
        ("size", "level"),
        [(0.1, 0), (2, 2), (2.5, 2), (100, 3), ({"x": 1}, 1), ({"z": 0.5}, 0), ((2, 1, 4), 1)],
    )
    def test_by_pixel_size(self, size, level):
        assert wanted_level(IMAGE, size, None, None) == level

    @pytest.mark.parametrize(
        ("shape", "level"),
        [((1, 100, 100), 3), ((1, 101, 1), 2), ((1, 800, 800), 0), ((11, 1, 1), 0)],
    )
    def test_by_shape(self, shape, level):
        assert wanted_level(IMAGE, None, shape, (10, 800, 800)) == level

    def test_bad_wishes(self):
        with pytest.raises(ts.SpecError, match="no axis 'q'"):
            wanted_level(IMAGE, {"q": 1}, None, None)
        with pytest.raises(ts.SpecError, match="2 extents for 3"):
            wanted_level(IMAGE, None, (1, 2), (1, 1, 1))
        with pytest.raises(ts.SpecError, match="number"):
            wanted_level(IMAGE, "1", None, None)


@pytest.fixture(scope="module")
def pyramid():
    pixels = np.arange(600 * 400).reshape(600, 400)
    return ts.pyramid(
        pixels, "memory://", axes="yx", pixel_size=0.5, units="um", translation=(10, 0)
    ).result()


class TestRegion:
    def test_centres_that_lie_within_are_taken(self, pyramid):
        # y is at 10, 10.5, 11, ...
        part = pyramid.sel(y=slice(10.2, 12), x=slice(None, 0.9)).result()

        assert part.domain.inclusive_min == (1, 0)
        assert part.shape == (4, 2)
        np.testing.assert_array_equal(part.read().result()[0], [400, 401])

    def test_a_number_is_the_nearest_pixel(self, pyramid):
        row = pyramid.sel(y=10.6).result()

        assert row.domain.labels == ("x",)
        assert row[0].read().result() == 400

    def test_the_same_place_in_two_levels(self, pyramid):
        fine, coarse = (pyramid.sel(level, y=slice(50, 60)).result() for level in (0, 1))

        assert fine.shape[0] == 21
        assert coarse.shape[0] == 10

    def test_what_lies_outside(self, pyramid):
        with pytest.raises(ts.OutOfRangeError, match="y="):
            pyramid.sel(y=slice(0, 5)).result()
        with pytest.raises(ts.OutOfRangeError, match="x="):
            pyramid.sel(x=1000).result()
        with pytest.raises(ts.SpecError, match="no axis 'z'"):
            pyramid.sel(z=1)
