"""What metadata says of an image: all versions, nested transformations, and what is wrong."""

import copy
from typing import Any

import pytest

import tensorstore_py as ts
from tensorstore_py.multiscale.metadata import image_attributes, parse_image


def entry(**more: Any) -> dict[str, Any]:
    scale = {"type": "scale", "scale": [2, 3]}
    return {
        "axes": [{"name": "y", "type": "space"}, {"name": "x", "type": "space", "unit": "um"}],
        "datasets": [{"path": "0", "coordinateTransformations": [scale]}],
        **more,
    }


def test_both_versions_say_the_same():
    new = parse_image({"ome": {"version": "0.5", "multiscales": [entry(name="n")]}}, "a")
    old = parse_image({"multiscales": [entry(name="n", version="0.4")]}, "a")

    assert new._replace(version="0.4") == old
    assert list(new.datasets[0].scale) == [2, 3]
    assert new.axes[1].unit == "micrometer"
    for image in (new, old):
        assert parse_image(image_attributes(image), "a") == image


def test_transformations_of_the_image_come_after_those_of_a_level():
    inner = [{"type": "scale", "scale": [2, 2]}, {"type": "translation", "translation": [1, 3]}]
    outer = [{"type": "scale", "scale": [10, 1]}, {"type": "translation", "translation": [0, 5]}]
    json = entry(coordinateTransformations=outer)
    json["datasets"] = [{"path": "0", "coordinateTransformations": inner}]

    (dataset,) = parse_image({"multiscales": [json]}, "a").datasets

    assert list(dataset.scale) == [20, 2]
    assert list(dataset.translation) == [10, 8]


def test_older_versions_are_read():
    third = {"version": "0.3", "axes": ["y", "x"], "datasets": [{"path": "0"}]}
    first = {"version": "0.1", "datasets": [{"path": "0"}]}

    assert [axis.type for axis in parse_image({"multiscales": [third]}, "a").axes] == ["space"] * 2
    found = parse_image({"multiscales": [first]}, "a")
    assert "".join(axis.name for axis in found.axes) == "tczyx"
    assert not found.known_scales


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


@pytest.mark.parametrize(("where", "value", "path", "text"), WRONG)
@pytest.mark.parametrize("version", ["0.4", "0.5"])
def test_what_is_wrong_is_named_by_its_path(where, value, path, text, version):
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
def test_what_is_no_image(attributes, error, text):
    with pytest.raises(error, match=text):
        parse_image(attributes, "here")
