"""Hierarchies made by zarr-python, opened by us, and the reverse."""

import warnings
from typing import Any

import numpy as np
import pytest
import zarr

from tests.parity.libraries import ours

ATTRIBUTES: Any = {
    "text": "ä",
    "number": 1.5,
    "none": None,
    "list": [1, [True, {"a": "b"}]],
    "nan": float("nan"),
    "infinite": [float("inf"), -float("inf")],
}
VALUES = np.arange(24, dtype="int32").reshape(4, 6)
EVERY = [(version, together) for version in (2, 3) for together in (False, True)]

pytestmark = pytest.mark.filterwarnings(
    "ignore:Consolidated metadata is currently not part:UserWarning",
    "ignore:Object at:UserWarning",
)


def by_zarr(path, version, *, consolidated):
    root = zarr.open_group(path, mode="w", zarr_format=version, attributes=ATTRIBUTES)
    names: Any = {"dimension_names": ["y", None]} if version == 3 else {}
    for inner in ("a", "g/b", "g/h/c"):
        array = root.create_array(
            inner,
            shape=(4, 6),
            chunks=(2, 3),
            dtype="int32",
            attributes={"at": inner, "nan": [float("nan")]},
            **names,
        )
        array[...] = VALUES
    root.create_group("empty")
    root.require_group("g/h").attrs["deep"] = True
    if consolidated:
        zarr.consolidate_metadata(path)


def by_us(path, version, *, consolidated):
    root = ours.Group.open(path, create=True, zarr_format=version, attributes=ATTRIBUTES).result()
    labels = ["y", ""] if version == 3 else None
    for inner in ("a", "g/b", "g/h/c"):
        array = root.create_array(
            inner,
            dtype="int32",
            domain=ours.IndexDomain(shape=[4, 6], labels=labels),
            chunk_layout=ours.ChunkLayout(chunk_shape=[2, 3]),
            attributes={"at": inner, "nan": [float("nan")]},
        ).result()
        array[...] = VALUES
    root.create_group("empty").result()
    root["g/h"].attrs["deep"] = True
    if consolidated:
        root.consolidate().result()


def told_by_us(path, *, consolidated=None):
    root = ours.Group.open(path, consolidated=consolidated).result()
    arrays = {
        inner: (
            array.shape,
            repr(dict(array.attrs)),
            array.domain.labels,
            array.read().result().tolist(),
        )
        for inner, array in root.arrays(None)
    }
    groups = {inner: dict(group.attrs) for inner, group in root.groups(None)}
    return root.zarr_format, repr(dict(root.attrs)), arrays, groups


def told_by_zarr(path, *, consolidated=None):
    root = zarr.open_group(path, mode="r", use_consolidated=consolidated)
    assert (root.metadata.consolidated_metadata is not None) == bool(consolidated)
    arrays, groups = {}, {}
    node: Any
    for inner, node in root.members(None):
        if isinstance(node, zarr.Group):
            groups[inner] = dict(node.attrs)
        else:
            names = getattr(node.metadata, "dimension_names", None) or ("",) * node.ndim
            labels = tuple(name or "" for name in names)
            arrays[inner] = (node.shape, repr(dict(node.attrs)), labels, node[...].tolist())
    return root.metadata.zarr_format, repr(dict(root.attrs)), arrays, groups


@pytest.mark.parametrize("make", [by_zarr, by_us])
@pytest.mark.parametrize(("version", "together"), EVERY)
def test_both_find_the_same_tree(tmp_path, make, version, together):
    make(tmp_path, version, consolidated=together)

    ours_told = told_by_us(tmp_path, consolidated=together)

    assert ours_told == told_by_zarr(tmp_path, consolidated=together)
    assert told_by_us(tmp_path, consolidated=False) == ours_told
    _, _, arrays, groups = ours_told
    assert {inner: array[1] for inner, array in arrays.items()} == {
        inner: repr({"at": inner, "nan": [float("nan")]}) for inner in ("a", "g/b", "g/h/c")
    }
    assert groups == {"empty": {}, "g": {}, "g/h": {"deep": True}}


@pytest.mark.parametrize("version", [2, 3])
def test_both_draw_the_same_tree(tmp_path, version):
    by_zarr(tmp_path, version, consolidated=False)

    ours_drawn = str(ours.Group.open(tmp_path).result().tree().result())

    assert ours_drawn == str(zarr.open_group(tmp_path).tree()).rstrip()


@pytest.mark.parametrize(("version", "together"), EVERY)
def test_what_zarr_changes_shows_here_and_the_reverse(tmp_path, version, together):
    by_us(tmp_path, version, consolidated=together)
    zarrs = zarr.open_group(tmp_path, mode="r+", use_consolidated=False)
    zarrs["a"].attrs["more"] = 1
    zarrs.create_array("g/new", shape=(2,), dtype="int8")
    zarrs.attrs["by"] = "zarr"
    found = ours.Group.open(tmp_path, consolidated=False).result()

    assert found["a"].attrs["more"] == 1
    assert found["g/new"].shape == (2,)
    assert found.attrs["by"] == "zarr"
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing of this was opened from consolidated metadata
        found["a"].attrs["more"] = 2
        found.attrs.update(by="us").result()
        found.move("g/new", "g/newer").result()
        found.delete("g/b").result()
    again: Any = zarr.open_group(tmp_path, mode="r", use_consolidated=False)
    assert again["a"].attrs["more"] == 2
    assert again.attrs["by"] == "us"
    assert sorted(name for name, _ in again["g"].members()) == ["h", "newer"]


def test_labels_are_what_xarray_looks_for(tmp_path):
    root = ours.Group.open(tmp_path, create=True, zarr_format=2).result()
    domain = ours.IndexDomain(shape=[4, 6], labels=["y", "x"])
    root.create_array("a", dtype="int32", domain=domain).result()

    assert dict(zarr.open_array(tmp_path / "a").attrs) == {"_ARRAY_DIMENSIONS": ["y", "x"]}


@pytest.mark.parametrize("version", [2, 3])
def test_names_that_are_odd(tmp_path, version):
    root = ours.Group.open(tmp_path, create=True, zarr_format=version).result()
    names = ["a b", "ä", "...", "x.y", "c", "0", "UPPER"]
    for name in names:
        root.create_array(f"{name}/inner", dtype="int8", shape=[1]).result()

    found = zarr.open_group(tmp_path, mode="r", use_consolidated=False)

    assert sorted(found.keys()) == sorted(root) == sorted(names)
    assert {inner for inner, _ in found.members(None)} == {*dict(root.members(None))}
