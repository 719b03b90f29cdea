"""`ts.multiscale.open`: wherever an image is, and of whichever version."""

import numpy as np
import pytest

import tensorstore_py as ts
from tests.multiscale.images import image, labelled, plate


@pytest.mark.parametrize("version", ["0.4", "0.5"])
def test_from_every_form(tmp_path, version):
    made = image(tmp_path / "a.zarr", version)
    url = (tmp_path / "a.zarr").as_uri()

    for form in (tmp_path / "a.zarr", url, made, made.group, made.group.kvstore):
        opened = ts.multiscale.open(form).result()
        assert opened.metadata == made.metadata


def test_below(tmp_path):
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


def test_older_versions_have_their_scales_from_their_shapes():
    group = ts.Group.open("memory://", create=True, zarr_format=2, attributes={
        "multiscales": [{"version": "0.2", "datasets": [{"path": "a"}, {"path": "b"}]}],
    }).result()  # fmt: skip
    group.create_array("a", dtype="uint8", shape=[1, 1, 5, 101, 100]).result()
    group.create_array("b", dtype="uint8", shape=[1, 1, 5, 51, 50]).result()

    opened = ts.multiscale.open(group).result()

    assert opened.scale(1) == {"t": 1, "c": 1, "z": 1, "y": 2, "x": 2}
    assert opened.levels[1].domain.labels == tuple("tczyx")


def test_what_is_no_image(tmp_path):
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
