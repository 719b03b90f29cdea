"""In which order a tree is stored, and what is left of one that could not be."""

from __future__ import annotations

import json
import re

import dask.array as da
import numpy as np
import pytest
import xarray as xr

import tensorstore_py as ts
from tensorstore_py.integrations.xarray import to_zarr

FORMATS = pytest.mark.parametrize("zarr_format", [2, 3])
ARRAYS = ("zarr.json", ".zarray")


class BrokenError(OSError):
    """What a store says that has had enough."""


class Noting(dict):
    """A store that notes what is stored, and breaks at a key."""

    def __init__(self, *, good: int | None = None, mends: bool = False) -> None:
        super().__init__()
        self.order: list[str] = []
        self.good = good
        self.mends = mends

    def __setitem__(self, key: str, value: bytes) -> None:
        self._count(key)
        super().__setitem__(key, value)

    def __delitem__(self, key: str) -> None:
        self._count(key)
        super().__delitem__(key)

    def _count(self, key: str) -> None:
        if self.good is not None and len(self.order) >= self.good:
            if self.mends:
                self.good = None
            raise BrokenError(key)
        self.order.append(key)


def sites() -> xr.DataTree:
    values = np.arange(1.0, 9.0)
    return xr.DataTree.from_dict(
        {
            "/": xr.Dataset({"v": ("x", values)}, attrs={"title": "sites"}),
            "/a": xr.Dataset({"w": ("y", da.from_array(values, chunks=3))}, attrs={"n": 1}),
            "/a/b": xr.Dataset({"u": ("z", values, {"units": "K"})}),
        }
    )


def first(pattern: str, order: list[str]) -> int:
    return min(at for at, key in enumerate(order) if re.fullmatch(pattern, key))


def last(pattern: str, order: list[str]) -> int:
    return max(at for at, key in enumerate(order) if re.fullmatch(pattern, key))


@FORMATS
@pytest.mark.parametrize("mode", ["w", "w-", "a"])
def test_chunks_come_before_arrays_and_arrays_before_their_groups(mode, zarr_format) -> None:
    store = Noting()
    to_zarr(sites(), store, zarr_format=zarr_format, mode=mode)
    chunk = {2: r"{}/\d+", 3: r"{}/c/\d+"}[zarr_format]
    array = {2: r"{}/\.zarray", 3: r"{}/zarr\.json"}[zarr_format]
    group = {2: r"{}/\.zgroup", 3: r"{}/zarr\.json"}[zarr_format]

    order = store.order
    for path in "v", "a/w", "a/b/u":
        assert last(chunk.format(path), order) < first(array.format(path), order)
    assert first(array.format("a/w"), order) < first(group.format("a"), order)
    assert first(array.format("a/b/u"), order) < first(group.format("a/b"), order)
    assert order[-1] == {2: ".zmetadata", 3: "zarr.json"}[zarr_format]


@FORMATS
def test_no_array_is_longer_before_all_is_stored(zarr_format) -> None:
    store = Noting()
    parts = [xr.Dataset({n: ("x", np.arange(3.0) + 1) for n in "vw"}) for _ in range(2)]
    to_zarr(parts[0], store, zarr_format=zarr_format)
    store.order.clear()

    to_zarr(parts[1], store, append_dim="x")

    order = store.order
    document = {2: r"[vw]/\.zarray", 3: r"[vw]/zarr\.json"}[zarr_format]
    assert last(r"[vw]/(c/)?\d+", order) < first(document, order)
    assert order[-1] == {2: ".zmetadata", 3: "zarr.json"}[zarr_format]


def promised(store: dict) -> set[str]:
    """The arrays that documents say to be there."""
    found = set()
    for key, value in store.items():
        path, _, name = key.rpartition("/")
        document = json.loads(value) if name in ARRAYS else {}
        if name == ".zarray" or document.get("node_type") == "array":
            found.add(path)
    root = json.loads(store.get("zarr.json", b"{}"))
    found |= {
        path
        for path, each in root.get("consolidated_metadata", {}).get("metadata", {}).items()
        if each["node_type"] == "array"
    }
    consolidated = json.loads(store.get(".zmetadata", b'{"metadata": {}}'))["metadata"]
    found |= {key.removesuffix("/.zarray") for key in consolidated if key.endswith("/.zarray")}
    return found


def check(store: dict, zarr_format: int) -> None:
    """Whatever is said to be there is whole."""
    expected = dict(sites().subtree_with_keys)
    copy = ts.zarr.MemoryStore(dict(store)).kvstore
    driver = {2: "zarr", 3: "zarr3"}[zarr_format]
    for path in promised(store):
        group, _, name = path.rpartition("/")
        array = ts.open({"driver": driver}, kvstore=(copy / path) / "").result()
        stored = np.asarray(array.read().result())
        np.testing.assert_array_equal(stored, expected[group or "."][name].values)


@FORMATS
@pytest.mark.parametrize("mode", ["w", "w-"])
@pytest.mark.filterwarnings("ignore:.*consolidated metadata")
def test_wherever_it_breaks_nothing_half_written_says_that_it_is_whole(mode, zarr_format) -> None:
    whole = Noting()
    to_zarr(sites(), whole, mode=mode, zarr_format=zarr_format)

    for good in range(len(whole.order)):
        store = Noting(good=good)
        with pytest.raises(BrokenError):
            to_zarr(sites(), store, mode=mode, zarr_format=zarr_format)
        check(store, zarr_format)


@FORMATS
def test_a_failure_removes_what_was_made(zarr_format) -> None:
    whole = Noting()
    to_zarr(sites(), whole, zarr_format=zarr_format)

    for good in range(len(whole.order)):
        store = Noting(good=good, mends=True)
        with pytest.raises(BrokenError):
            to_zarr(sites(), store, zarr_format=zarr_format)
        assert promised(store) == set()
        if not store:  # the way is free
            to_zarr(sites(), store, zarr_format=zarr_format)
            assert dict(store) == dict(whole)


@FORMATS
def test_an_append_that_breaks_leaves_what_was_there(zarr_format) -> None:
    parts = [xr.Dataset({n: ("x", np.arange(3.0) + 1 + i) for n in "vw"}) for i in (0, 3)]
    whole = Noting()
    to_zarr(parts[0], whole, zarr_format=zarr_format)
    before = len(whole.order)
    to_zarr(parts[1], whole, append_dim="x")
    count = len(whole.order) - before
    driver = {2: "zarr", 3: "zarr3"}[zarr_format]

    for good in range(count):
        store = Noting()
        to_zarr(parts[0], store, zarr_format=zarr_format)
        store.good = len(store.order) + good
        with pytest.raises(BrokenError):
            to_zarr(parts[1], store, append_dim="x")
        kvstore = ts.zarr.MemoryStore(dict(store)).kvstore
        for name in "vw":
            array = ts.open({"driver": driver}, kvstore=(kvstore / name) / "").result()
            stored = array.read().result().tolist()
            assert stored in ([1, 2, 3], [1, 2, 3, 4, 5, 6])


def test_a_block_that_cannot_be_computed_leaves_nothing(tmp_path) -> None:
    bad = da.from_array(np.arange(6.0), chunks=3).map_blocks(lambda _: 1 / 0, dtype=float)
    written = xr.Dataset({"v": ("x", bad), "w": ("x", np.arange(6.0))})

    with pytest.raises(ZeroDivisionError):
        to_zarr(written, tmp_path / "a")

    assert not [each for each in (tmp_path / "a").rglob("*") if each.is_file()]


def test_a_reader_finds_a_group_that_is_being_written() -> None:
    store, refused = Noting(), []

    def meanwhile(block: np.ndarray) -> np.ndarray:
        with pytest.raises(FileExistsError) as caught:
            to_zarr(sites(), store)
        refused.append(str(caught.value))
        return block

    block = da.from_array(np.arange(3.0)).map_blocks(meanwhile, meta=np.empty(0))
    to_zarr(xr.Dataset({"v": ("x", block)}), store)

    assert refused
    assert promised(store) == {"v"}


def test_an_append_that_is_overtaken_writes_nothing() -> None:
    class Late(Noting):
        """Another process makes the group right after this one has looked."""

        looks = 0

        def __getitem__(self, key: str) -> bytes:
            self.looks += key == "zarr.json"
            if self.looks == 2:
                self.setdefault("zarr.json", b'{"zarr_format":3,"node_type":"group"}')
            return super().__getitem__(key)

    store = Late()
    with pytest.raises(FileExistsError, match="somebody else"):
        to_zarr(sites(), store)

    assert set(store) == {"zarr.json"}


def test_requests_do_not_grow_with_groups_but_for_what_is_stored(gcs_server, monkeypatch) -> None:
    monkeypatch.setenv("TENSORSTORE_GCS_HTTP_URL", gcs_server.url)
    spec = {"driver": "gcs", "bucket": "bucket"}
    asked = {}
    for nodes in 3, 12:
        groups = {f"/g{each}": xr.Dataset({"v": ("x", [1.0, 2.0])}) for each in range(nodes)}
        before = len(gcs_server.requests)
        to_zarr(xr.DataTree.from_dict(groups), {**spec, "path": f"tree{nodes}/"})
        methods = [each.method for each in gcs_server.requests[before:]]
        asked[nodes] = (methods.count("GET"), methods.count("POST"))

    reads, writes = asked[3]
    assert asked[12] == (reads, writes + 9 * 3)  # a chunk, an array and a group more for each
    assert writes == 3 * 3 + 2  # the tree's own group, first alone and then with everything
    assert reads == 5  # whatever may be there already
