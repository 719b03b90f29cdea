"""Images, labels and plates that tests convert and open."""

import numpy as np

import tensorstore_py as ts

PIXELS = np.random.default_rng(7).integers(0, 60_000, (2, 20, 300, 310), dtype="uint16")


def image(where, version="0.5", **options):
    """A small image of two channels and two levels."""
    said = {"pixel_size": (1, 2, 0.5, 0.5), "units": "um", "omero": ["a", "b"], "name": "cells"}
    return ts.pyramid(PIXELS, where, axes="czyx", version=version, **{**said, **options}).result()


def ome(version, **members):
    """Attributes of a group."""
    return {"ome": {"version": "0.5", **members}} if version == "0.5" else members


def versioned(version, **member):
    """A member that has a version of its own in version 0.4."""
    return member if version == "0.5" else {**member, "version": "0.4"}


def labelled(where, version="0.5"):
    """An image with a label image."""
    made = image(where, version)
    labels = made.group.create_group("labels", attributes=ome(version, labels=["nuclei"])).result()
    mask = (PIXELS[0] > 30_000).astype("uint32")
    inner = ts.pyramid(
        mask, labels.kvstore / "nuclei/", axes="zyx", version=version, method="mode", units="um"
    ).result()
    colors = [{"label-value": 1, "rgba": [255, 0, 0, 255]}]
    shown = versioned(version, colors=colors)
    inner.group.attrs.change(
        lambda found: (
            {**found, "ome": {**found["ome"], "image-label": shown}}
            if version == "0.5"
            else {**found, "image-label": shown}
        )
    ).result()
    return made


def plate(where, version="0.5"):
    """A plate of one well with two fields."""
    root = ts.Group.open(where, create=True, zarr_format=3 if version == "0.5" else 2).result()
    said = versioned(
        version, columns=[{"name": "1"}], rows=[{"name": "A"}], name="p",
        wells=[{"path": "A/1", "rowIndex": 0, "columnIndex": 0}],
    )  # fmt: skip
    root.attrs.update(ome(version, plate=said)).result()
    well = root.create_group("A/1").result()
    images = [{"path": "0"}, {"path": "1"}]
    well.attrs.update(ome(version, well=versioned(version, images=images))).result()
    for path in "01":
        image(well.kvstore / f"{path}/", version)
    return root
