"""`ts.pyramid`: what is stored, as published schemas and other readers see it; and bad input."""

import json

import numpy as np
import pytest

import tensorstore_py as ts
from tests.multiscale.images import PIXELS, image, labelled, plate
from tests.multiscale.published import looked_at


@pytest.mark.timeout(600)
def test_schemas_and_other_readers_agree(tmp_path):
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
        assert ngff["translation"] == [made.translation(number) for number in range(len(levels))]
        assert ngff["units"] == {"c": None, **dict.fromkeys("zyx", "micrometer")}
        assert [axis["name"] for axis in ome["axes"]] == list("czyx")
        assert (ome["name"], ome["channels"]) == ("cells", ["a", "b"])


@pytest.mark.parametrize("version", ["0.4", "0.5"])
def test_what_is_stored(version, tmp_path):
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


def test_a_pixel_lies_in_the_middle_of_those_that_it_stands_for():
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


def test_a_view_stays_where_it_is():
    store = ts.array(np.arange(40_000, dtype="uint16").reshape(200, 200))

    made = ts.pyramid(store[50:, 100:150], "memory://", axes="yx", pixel_size=0.5).result()

    assert made.translation() == {"y": 25, "x": 50}
    assert made.levels[0].domain.inclusive_min == (0, 0)


def test_progress_comes_to_its_end():
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
def test_what_is_wrong_is_named(options, path, text):
    with pytest.raises(ts.SpecError, match=text) as raised:
        ts.pyramid(np.zeros((64, 64)), "memory://", **{"axes": "yx", **options}).result()

    assert raised.value.path == path


def test_what_is_there_is_not_replaced_unasked():
    store = ts.KvStore.open("memory://").result()
    image(store)

    with pytest.raises(ts.AlreadyExistsError, match="if_exists"):
        image(store)
    smaller = ts.pyramid(PIXELS[:, :, :100, :100], store, axes="czyx", if_exists="replace").result()

    assert smaller.levels[0].shape == (2, 20, 100, 100)


def test_a_source_that_is_not_there_leaves_nothing(tmp_path):
    with pytest.raises(ts.NotFoundError, match="to make a pyramid of"):
        ts.pyramid(tmp_path / "none", tmp_path / "new", axes="yx").result()

    assert list(tmp_path.iterdir()) == []


def test_an_array_is_no_target():
    store = ts.open("memory://|zarr3:", create=True, dtype="uint8", shape=[4, 4]).result()

    with pytest.raises(ts.MismatchError, match="target is an array"):
        ts.pyramid(np.zeros((64, 64)), store, axes="yx").result()


async def test_it_is_awaited():
    made = await ts.pyramid(PIXELS, "memory://", axes="czyx")
    opened = await ts.multiscale.open(made.group)

    assert (await opened.level(1)).shape == (2, 10, 150, 155)
