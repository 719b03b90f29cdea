"""Metadata of images: axes, versions, the forms of their documents."""

import copy
from typing import Any

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py.multiscale.axes import Axis, as_axes, by_axis, full_unit
from tensorstore_py.multiscale.making import level_forms
from tensorstore_py.multiscale.metadata import (
    image_attributes,
    in_version,
    is_ome,
    omero_of,
    parse_image,
    version_of,
    with_windows,
)
from tests.multiscale.images import image


def entry(**more: Any) -> dict[str, Any]:
    scale = {"type": "scale", "scale": [2, 3]}
    return {
        "axes": [{"name": "y", "type": "space"}, {"name": "x", "type": "space", "unit": "um"}],
        "datasets": [{"path": "0", "coordinateTransformations": [scale]}],
        **more,
    }


WRONG = [
    (("axes", 1, "name"), 3, ("axes", 1), "name of an axis"),
    (("axes",), "yx", ("axes",), "list"),
    (("datasets",), [], ("datasets",), "not empty"),
    (("datasets", 0, "path"), None, ("datasets", 0, "path"), "text"),
    (("datasets", 0, "coordinateTransformations"), None,
     ("datasets", 0, "coordinateTransformations"), "list"),
    (("datasets", 0, "coordinateTransformations", 0, "scale"), [1],
     ("datasets", 0, "coordinateTransformations", 0, "scale"), "1 numbers for 2"),
    (("datasets", 0, "coordinateTransformations", 0, "scale", 1), "2",
     ("datasets", 0, "coordinateTransformations", 0, "scale", 1), "number"),
    (("datasets", 0, "coordinateTransformations", 0, "type"), "affine",
     ("datasets", 0, "coordinateTransformations", 0, "type"), "affine"),
]  # fmt: skip


class TestMetadata:
    def test_both_versions_say_the_same(self):
        new = parse_image({"ome": {"version": "0.5", "multiscales": [entry(name="n")]}}, "a")
        old = parse_image({"multiscales": [entry(name="n", version="0.4")]}, "a")

        assert new._replace(version="0.4") == old
        assert list(new.datasets[0].scale) == [2, 3]
        assert new.axes[1].unit == "micrometer"
        for each in (new, old):
            assert parse_image(image_attributes(each), "a") == each

    def test_transformations_of_the_image_come_after_those_of_a_level(self):
        inner = [{"type": "scale", "scale": [2, 2]}, {"type": "translation", "translation": [1, 3]}]
        outer = [
            {"type": "scale", "scale": [10, 1]},
            {"type": "translation", "translation": [0, 5]},
        ]
        json = entry(coordinateTransformations=outer)
        json["datasets"] = [{"path": "0", "coordinateTransformations": inner}]

        (dataset,) = parse_image({"multiscales": [json]}, "a").datasets

        assert list(dataset.scale) == [20, 2]
        assert list(dataset.translation) == [10, 8]

    def test_older_versions_are_read(self):
        third = {"version": "0.3", "axes": ["y", "x"], "datasets": [{"path": "0"}]}
        first = {"version": "0.1", "datasets": [{"path": "0"}]}

        assert [axis.type for axis in parse_image({"multiscales": [third]}, "a").axes] == [
            "space"
        ] * 2
        found = parse_image({"multiscales": [first]}, "a")
        assert "".join(axis.name for axis in found.axes) == "tczyx"
        assert not found.known_scales

    @pytest.mark.parametrize(("where", "value", "path", "text"), WRONG)
    @pytest.mark.parametrize("version", ["0.4", "0.5"])
    def test_what_is_wrong_is_named_by_its_path(self, where, value, path, text, version):
        json = copy.deepcopy(entry())
        inner = json
        for name in where[:-1]:
            inner = inner[name]
        inner[where[-1]] = value
        attributes: dict[str, Any] = {"multiscales": [json]}
        above: tuple[str, ...] = ()
        if version == "0.5":
            attributes, above = {"ome": {"version": "0.5", **attributes}}, ("ome",)

        with pytest.raises(ts.SpecError, match=text) as raised:
            parse_image(attributes, "a")

        assert raised.value.path == (*above, "multiscales", 0, *path)

    @pytest.mark.parametrize(
        ("attributes", "error", "text"),
        [
            ({}, ts.NotFoundError, "no multiscales"),
            ({"plate": {}}, ts.NotFoundError, "plate"),
            ({"ome": {"version": "0.5", "well": {}}}, ts.NotFoundError, "well"),
            ({"bioformats2raw.layout": 3}, ts.NotFoundError, "several images"),
            ({"ome": {"version": "0.5", "labels": ["a"]}}, ts.NotFoundError, "label images"),
            ({"ome": 3}, ts.SpecError, "ome: expected an object"),
            ({"ome": {}}, ts.SpecError, r"ome\.version"),
            ({"multiscales": {}}, ts.SpecError, "multiscales: expected a list"),
            ({"multiscales": [3]}, ts.SpecError, r"multiscales\[0\]"),
            ({"ome": {"version": "9", "multiscales": [{}]}}, ts.UnsupportedError, "version 9"),
        ],
    )
    def test_what_is_no_image(self, attributes, error, text):
        with pytest.raises(error, match=text):
            parse_image(attributes, "here")


class TestAxes:
    def test_types_and_units_are_filled_in(self):
        found = as_axes(
            ["t", {"name": "c"}, Axis("y", "space", "um"), {"name": "x", "unit": "nm"}], 4
        )

        assert [axis.type for axis in found] == ["time", "channel", "space", "space"]
        assert [axis.unit for axis in found] == [None, None, "micrometer", "nanometer"]

    def test_other_names_are_axes_if_their_type_is_said(self):
        found = as_axes([{"name": "v", "type": "space"}, {"name": "u", "type": "space"}], 2)

        assert [axis.to_json() for axis in found] == [
            {"name": "v", "type": "space"}, {"name": "u", "type": "space"},
        ]  # fmt: skip

    @pytest.mark.parametrize(
        ("given", "path", "text"),
        [
            ("x", ("axes",), "2 to 5"),
            ("ctyx", ("axes", 1), "time first"),
            ("yxc", ("axes", 2), "space last"),
            (["y", "x", 3], ("axes", 2), "name of an axis"),
            ("abyx"[:2] + "y", ("axes",), "2 or 3"),
            (3, ("axes",), "one name"),
        ],
    )
    def test_what_the_format_does_not_allow(self, given, path, text):
        rank = len(given) if hasattr(given, "__len__") else 1

        with pytest.raises(ts.SpecError, match=text) as raised:
            as_axes(given, rank)

        assert raised.value.path == path

    def test_values_by_axis(self):
        axes = as_axes("cyx", 3)

        assert by_axis(4, axes, "n", (1, 1, 1)) == (1, 4, 4)
        assert by_axis((5, 6, 7), axes, "n", (1, 1, 1)) == (5, 6, 7)
        assert by_axis({"x": 4}, axes, "n", (1, 2, 3)) == (1, 2, 4)
        assert by_axis(None, axes, "n", (1, 2, 3)) == (1, 2, 3)
        with pytest.raises(ts.SpecError, match="2 values for 3 axes"):
            by_axis((1, 2), axes, "n", (1, 1, 1))

    def test_unknown_units_stay(self):
        assert full_unit("parsec") == "parsec"


def forms(shape, axes, present=None, item_bytes=2, **options):
    asked = {"levels": None, "scale": 2, "chunks": None, "shards": None, **options}
    return level_forms(shape, as_axes(axes, len(shape)), item_bytes, present, **asked)


class TestForms:
    def test_levels_go_on_until_the_last_is_small(self):
        found = forms((5, 3, 100, 1000, 1001), "tczyx")

        assert [form.shape[2:] for form in found.levels] == [
            (100, 1000, 1001), (50, 500, 501), (25, 250, 251),
        ]  # fmt: skip
        assert {form.shape[:2] for form in found.levels} == {(5, 3)}
        assert found.factors[-1] == (1, 1, 4, 4, 4)

    def test_an_axis_of_one_pixel_stays_as_it_is(self):
        found = forms((3, 64, 64), "zyx", levels=5)

        assert [form.shape[0] for form in found.levels] == [3, 2, 1, 1, 1]
        assert found.factors[-1] == (4, 16, 16)

    @pytest.mark.parametrize(
        ("shape", "axes", "present", "chunk"),
        [
            ((30, 3000, 3000), "zyx", (1, 3000, 3000), (1, 500, 500)),
            ((512, 512, 512), "zyx", (128, 128, 128), (128, 128, 128)),
            ((512, 512, 512), "zyx", (32, 32, 32), (64, 64, 128)),
            ((4, 20, 3000, 3000), "tzyx", None, (1, 20, 128, 256)),
            ((10, 10), "yx", None, (10, 10)),
            ((0, 10), "yx", None, (1, 10)),
        ],
    )
    def test_chunks_go_by_those_of_the_source(self, shape, axes, present, chunk):
        assert forms(shape, axes, present).chunks[0] == chunk

    def test_small_levels_have_small_chunks_and_shards(self):
        found = forms((100, 300), "yx", levels=3, chunks=64, shards=128)

        assert found.chunks == ((64, 64), (50, 64), (25, 64))
        assert [form.chunk for form in found.levels] == [(128, 128), (50, 128), (25, 128)]

    def test_a_scale_for_each_level(self):
        found = forms((60, 100, 100), "zyx", scale=[{"y": 2, "x": 2}, (3, 2, 2)])

        assert [form.shape for form in found.levels] == [(60, 100, 100), (60, 50, 50), (20, 25, 25)]

    @pytest.mark.parametrize(
        ("options", "path"),
        [
            ({"levels": True}, ("levels",)),
            ({"levels": 99, "chunks": 2}, ("levels",)),
            ({"scale": 1.5}, ("scale",)),
            ({"scale": [{"x": 2}], "levels": 5}, ("scale",)),
            ({"chunks": {"x": -2}}, ("chunks",)),
            ({"chunks": "big"}, ("chunks",)),
            ({"chunks": (2, 2), "shards": (3, 2)}, ("shards",)),
        ],
    )
    def test_what_does_not_go_together(self, options, path):
        with pytest.raises(ts.SpecError) as raised:
            forms((64, 64), "yx", **options)

        assert raised.value.path == path


AXES = as_axes("cyx", 3)


class TestOmero:
    def test_windows_are_those_of_each_channel(self):
        level = np.stack([np.arange(100.0).reshape(10, 10), np.full((10, 10), 7.0)])
        level[0, 0, 0] = np.nan

        found = with_windows(omero_of(["a", "b"], AXES, level.shape), AXES, level)

        first, second = (channel["window"] for channel in found["channels"])
        assert (first["min"], first["max"]) == (1, 99)
        assert 1 <= first["start"] < 2
        assert second == {"min": 7, "max": 7, "start": 7, "end": 8}

    def test_metadata_is_stored_as_it_is_given(self):
        given = {"channels": [{"label": "a", "window": {"min": 0, "max": 1, "start": 0, "end": 1}}]}

        assert with_windows(omero_of(given, AXES, (1, 2, 2)), AXES, np.zeros((1, 2, 2))) == given

    def test_an_image_without_channels_has_one(self):
        axes = as_axes("yx", 2)

        found = omero_of(True, axes, (2, 2))

        assert [channel["label"] for channel in found["channels"]] == ["Channel 0"]
        assert with_windows(found, axes, np.zeros((0, 2)))["channels"][0]["window"]["end"] == 1

    @pytest.mark.parametrize("given", [["a"], "ab", {"rdefs": {}}, [1, 2], 3])
    def test_what_are_no_channels(self, given):
        with pytest.raises(ts.SpecError, match="omero"):
            omero_of(given, AXES, (2, 2, 2))


OLD: list[dict[str, Any]] = [
    {"multiscales": [{"version": "0.4", "axes": [], "datasets": []}], "omero": {"id": 1}},
    {"plate": {"version": "0.4", "wells": []}, "mine": {"version": 3}},
    {"well": {"version": "0.4", "images": []}},
    {"labels": ["a", "b"]},
    {"bioformats2raw.layout": 3},
    {"image-label": {"version": "0.4", "colors": []}, "multiscales": [{"version": "0.4"}]},
]


class TestVersions:
    @pytest.mark.parametrize("old", OLD)
    def test_there_and_back(self, old):
        new = in_version(old, "0.5")

        assert version_of(new) == "0.5"
        assert set(new) <= {"ome", "mine"}
        assert in_version(new, "0.4") == old
        assert in_version(new, "0.5") == new

    def test_what_is_not_omes_stays(self):
        assert in_version({"unit": "nm"}, "0.5") == {"unit": "nm"}
        assert not is_ome({"unit": "nm"})

    def test_unknown_versions_are_refused(self):
        with pytest.raises(ts.UnsupportedError, match=r"0\.3"):
            in_version({"multiscales": [{"version": "0.3"}]}, "0.5")
        assert version_of({"ome": {"version": "0.6"}}) == "0.6"


def chunks(store, prefix):
    """The stored chunks of a level, by their cell."""
    keys = [key.decode() for key in store.list().result()]
    found = {
        key[len(prefix) :].removeprefix("c/"): store[key] for key in keys if key.startswith(prefix)
    }
    return {key: value for key, value in found.items() if key[0].isdigit()}


class TestStoredForm:
    @pytest.mark.parametrize("codec", ["zstd", "gzip", "blosc"])
    @pytest.mark.parametrize(("version", "other"), [("0.4", "0.5"), ("0.5", "0.4")])
    def test_chunks_stay_what_they_are(self, version, other, codec):
        made = image("memory://", version, codec=codec)
        new = ts.KvStore.open("memory://").result()

        ts.multiscale.convert(made, new, version=other).result()

        old = chunks(made.group.kvstore, "0/")
        assert len(old) > 4
        assert chunks(new, "0/") == old

    @pytest.mark.parametrize(
        "options",
        [
            {"shards": (1, 20, 128, 128), "chunks": (1, 20, 64, 64)},
            {
                "codec": {
                    "driver": "zarr3",
                    "codecs": [{"name": "bytes", "configuration": {"endian": "big"}}],
                }
            },
            {"codec": {"driver": "zarr3", "codecs": ["zstd", "crc32c"]}},
        ],
    )
    def test_what_version_2_has_no_words_for_is_encoded_anew(self, options):
        made = image("memory://", "0.5", **options)

        new = ts.multiscale.convert(made, "memory://", version="0.4").result()

        opened = ts.multiscale.open(new).result()
        for one, other in zip(made.levels, opened.levels, strict=True):
            np.testing.assert_array_equal(one.read().result(), other.read().result())
            assert one.chunk_layout.read_chunk.shape == other.chunk_layout.read_chunk.shape
        assert b'"dimension_separator":"/"' in new.kvstore["0/.zarray"]

    def test_what_version_3_has_no_words_for_is_encoded_anew(self):
        made = image("memory://", "0.4")
        group = made.group
        group.delete("0").result()
        array = group.create_array(
            "0", dtype="uint16", shape=[2, 20, 300, 310],
            metadata={"filters": [
                {"id": "fixedscaleoffset", "offset": 0, "scale": 1, "dtype": "<u2"},
            ]},
        ).result()  # fmt: skip
        array[...] = 7

        new = ts.multiscale.convert(made, "memory://", version="0.5").result()

        level = ts.multiscale.open(new).result().levels[0]
        assert (level.read().result() == 7).all()
        assert b'"dimension_names":["c","z","y","x"]' in new.kvstore["0/zarr.json"]
