"""`Multiscale`: levels opened when they are asked for, choice of a level, and how it looks."""

import pytest

import tensorstore_py as ts
from tests.api.counted_memory import counts
from tests.multiscale.images import image, labelled


def test_levels_are_opened_when_they_are_asked_for():
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


def test_consolidated_metadata_opens_levels_without_a_request():
    context = ts.Context()
    spec = {"driver": "counted_memory", "path": "a/"}
    made = image(spec, context=context)
    made.group.consolidate().result()
    opened = ts.multiscale.open(spec, context=context).result()
    store = counts(made.group)

    assert [level.shape[-1] for level in opened.levels] == [310, 155]
    assert not store.reads


def test_what_it_is():
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


def test_levels_of_version_4_have_the_labels_of_the_axes():
    made = image("memory://", "0.4")
    made.group.open("0").result().attrs.put({}).result()

    level = ts.multiscale.open(made.group).result().levels[0]

    assert level.domain.labels == ("c", "z", "y", "x")
    level[0, 0, 0, 0] = 7
    assert level[0, 0, 0, 0].read().result() == 7


def test_what_is_not_there():
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


def test_how_it_looks():
    made = image("memory://a<b/")
    page = made._repr_html_()

    assert repr(made) == "Multiscale('memory://a%3Cb/', version='0.5', axes='czyx', levels=2)"
    assert "a<b" not in page
    assert "OME-Zarr 0.5" in page
    assert "not opened" in page
    assert repr(made.levels) == "<2 levels: 0, 1>"
    _ = made.levels[0]
    assert "2 × 20 × 300 × 310" in made._repr_html_()
