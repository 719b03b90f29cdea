"""`ts.multiscale.convert`: everything that is in an image, a plate or a collection comes along."""

import numpy as np
import pytest

import tensorstore_py as ts
import tests.api.loop_memory  # noqa: F401  # registers the store
from tests.multiscale.images import PIXELS, image, labelled, ome, plate

BOTH = [("0.4", "0.5"), ("0.5", "0.4")]


def same(one, other):
    """Both images have the same elements and say the same."""
    assert one.metadata._replace(version="") == other.metadata._replace(version="")
    for a, b in zip(one.levels, other.levels, strict=True):
        np.testing.assert_array_equal(a.read().result(), b.read().result())


@pytest.mark.parametrize(("version", "other"), BOTH)
def test_there_and_back(version, other):
    made = labelled(ts.KvStore.open("memory://").result(), version)
    seen: list[ts.Progress] = []

    there = ts.multiscale.convert(made, "memory://", version=other, progress=seen.append).result()
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
def test_plates_and_collections(version, other):
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
        ts.multiscale.open(root, path="0").result(), ts.multiscale.open(several, path="0").result()
    )


def test_consolidated_stays_consolidated():
    made = image("memory://", "0.4")
    group = made.group.consolidate().result()

    new = ts.multiscale.convert(group, "memory://", version="0.5").result()

    assert ts.Group.open(new.kvstore).result().consolidated


def test_what_cannot_be_converted():
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


def test_what_is_there_is_not_replaced_unasked():
    made = image("memory://", "0.4")
    target = ts.KvStore.open("memory://").result()
    ts.multiscale.convert(made, target).result()

    with pytest.raises(ts.AlreadyExistsError, match='"/0" exists'):
        ts.multiscale.convert(made, target).result()
    again = ts.multiscale.convert(made, target, if_exists="replace").result()

    same(made, ts.multiscale.open(again).result())


def test_until_it_is_whole_it_is_no_image():
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


@pytest.mark.parametrize(("here", "there"), [("loop_memory", "memory"), ("memory", "loop_memory")])
@pytest.mark.parametrize("options", [{}, {"shards": (1, 20, 256, 256)}])
def test_from_any_store_to_any(here, there, options):
    made = image({"driver": here, "path": "a/"}, "0.5", chunks=(1, 20, 64, 64), **options)

    new = ts.multiscale.convert(made, {"driver": there, "path": "b/"}, version="0.4").result()

    same(made, ts.multiscale.open(new).result())


def test_pixels_are_those():
    assert image("memory://").levels[0].read().result().sum() == PIXELS.sum()
