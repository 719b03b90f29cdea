"""The engine in xarray: what it opens, from where, and at what cost."""

import asyncio
import importlib.util
import json
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import tensorstore_py as ts
from tensorstore_py.integrations.xarray import TensorStoreBackendEntrypoint, open_zarr
from tensorstore_py.integrations.xarray.source import Source, shared_context
from tests.api.counted_memory import counts
from tests.integrations.xarray.datasets import dataset, kinds
from tests.integrations.xarray.waves import bucket, far_away, make_tree


def opened(given, **options):
    return xr.open_dataset(given, engine="tensorstore", **options)


@pytest.fixture(params=[2, 3])
def zarr_format(request):
    return request.param


@pytest.fixture(params=[False, True], ids=["apart", "consolidated"])
def path(request, tmp_path, zarr_format):
    where = tmp_path / "a.zarr"
    dataset().to_zarr(where, zarr_format=zarr_format, consolidated=request.param)
    return where


@pytest.mark.filterwarnings("ignore:Consolidated metadata is currently not part in the Zarr")
@pytest.mark.filterwarnings("ignore:The data type .* does not have a Zarr V3 specification")
@pytest.mark.filterwarnings("ignore:.*In a future version.*decode_timedelta:FutureWarning")
@pytest.mark.filterwarnings("ignore:Failed to open Zarr store with consolidated metadata")
class TestEngine:
    def test_xarray_finds_the_engine_by_its_name(self):
        found = xr.backends.list_engines()["tensorstore"]

        assert isinstance(found, TensorStoreBackendEntrypoint)

    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"decode_cf": False},
            {"mask_and_scale": False},
            {"decode_times": False},
            {"chunks": {}},
        ],
        ids=str,
    )
    def test_a_dataset_is_what_xarrays_engine_for_zarr_opens(self, path, options):
        theirs = xr.open_dataset(path, engine="zarr", **options)
        ours = opened(path, **options)

        xr.testing.assert_identical(ours, theirs)
        assert ours.encoding == theirs.encoding
        for name in theirs.variables:
            assert ours[name].dtype == theirs[name].dtype
            np.testing.assert_equal(ours[name].encoding, theirs[name].encoding)
            assert ours[name].chunks == theirs[name].chunks

    def test_elements_of_each_kind_are_what_xarrays_engine_for_zarr_opens(
        self, tmp_path, zarr_format
    ):
        kinds(tmp_path / "a.zarr", zarr_format)

        plain: list[dict[str, Any]] = [{}, {"decode_cf": False}]
        for options in plain:
            theirs = xr.open_dataset(
                tmp_path / "a.zarr", engine="zarr", consolidated=False, **options
            )
            ours = opened(tmp_path / "a.zarr", **options)
            xr.testing.assert_identical(ours, theirs)
            for name in theirs.variables:
                assert ours[name].dtype == theirs[name].dtype

    def test_what_was_opened_is_written_by_xarray_and_the_other_way_round(
        self, path, tmp_path, zarr_format
    ):
        with opened(path) as ours:
            ours.to_zarr(tmp_path / "b.zarr", zarr_format=zarr_format, consolidated=False)
            again = opened(tmp_path / "b.zarr")

            xr.testing.assert_identical(again, ours)
            for name in ours.variables:
                for member in (
                    "chunks",
                    "compressors",
                    "filters",
                    "_FillValue",
                    "dtype",
                    "scale_factor",
                ):
                    np.testing.assert_equal(
                        again[name].encoding.get(member), ours[name].encoding.get(member)
                    )

    @pytest.mark.parametrize(
        "given",
        [
            Path,
            os.fspath,
            lambda path: f"{path}/",
            lambda path: path.as_uri() + "/",
            lambda path: {"driver": "auto", "kvstore": path.as_uri() + "/"},
            lambda path: ts.Spec({"driver": "auto", "kvstore": path.as_uri() + "/"}),
            lambda path: ts.KvStore.open(path).result(),
            lambda path: ts.KvStore.open(path).result().spec(),
            lambda path: ts.Group.open(path).result(),
        ],
        ids=["Path", "str", "slash", "URL", "JSON", "Spec", "KvStore", "KvStore.Spec", "Group"],
    )
    def test_what_a_dataset_is_opened_from(self, path, given):
        found = opened(given(path))

        xr.testing.assert_equal(found.load(), dataset())
        assert str(path) in found.encoding["source"] or isinstance(given(path), dict | ts.Spec)

    def test_where_no_engine_is_named_only_what_no_other_engine_takes_is_taken(self, monkeypatch):
        engine = TensorStoreBackendEntrypoint()
        group: Any = ts.Group.open("memory://", create=True).result()

        for mine in (
            group,
            group.kvstore,
            "file:///a/|zarr3:",
            "s3://b/a|zarr2:",
            "a.n5",
            "/a.n5/",
        ):
            assert engine.guess_can_open(mine)
        for others in ("a.zarr", Path("a.zarr"), "a.nc", "file:///a.zarr", b"CDF", 5, None):
            assert not engine.guess_can_open(others)
        monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
        assert engine.guess_can_open("a.zarr/")
        xr.testing.assert_equal(xr.open_dataset(group), xr.Dataset())

    def test_a_group_within_and_variables_that_are_dropped(self, tmp_path, zarr_format):
        dataset().to_zarr(tmp_path, group="a/b", zarr_format=zarr_format, consolidated=False)

        found = opened(tmp_path, group="/a/b/", drop_variables=["t2m", "scaled"])

        assert set(found.data_vars) == {"flag", "name", "scalar"}
        assert set(opened(tmp_path, group="a/b", drop_variables="t2m")) == {*dataset()} - {"t2m"}
        for part in ("x", "a"):
            with opened(tmp_path, group="a") as empty:
                assert len(empty.variables) == 0, part

    def test_trees_and_groups(self, tmp_path, zarr_format):
        tree = xr.DataTree.from_dict(
            {
                "/": dataset(),
                "/fine": xr.Dataset({"v": ("z", [1, 2])}),
                "/fine/er": dataset()[["flag"]],
            }
        )
        tree.to_zarr(tmp_path, zarr_format=zarr_format)

        ours = xr.open_datatree(tmp_path, engine="tensorstore")
        theirs = xr.open_datatree(tmp_path, engine="zarr")
        xr.testing.assert_identical(ours, theirs)
        groups = xr.open_groups(tmp_path, engine="tensorstore")
        assert groups.keys() == xr.open_groups(tmp_path, engine="zarr").keys()
        xr.testing.assert_identical(groups["/fine"], opened(tmp_path, group="fine"))
        below = xr.open_datatree(tmp_path, engine="tensorstore", group="fine")
        xr.testing.assert_identical(below, xr.open_datatree(tmp_path, engine="zarr", group="fine"))
        assert (
            xr.open_groups(tmp_path, engine="tensorstore", group="fine").keys()
            == xr.open_groups(tmp_path, engine="zarr", group="fine").keys()
        )

    def test_many_files_by_dask(self, tmp_path):
        for number in range(3):
            part = dataset().isel(time=[number])
            part.to_zarr(tmp_path / f"{number}.zarr", zarr_format=2)

        found = xr.open_mfdataset(
            [tmp_path / f"{number}.zarr" for number in range(3)],
            engine="tensorstore",
            combine="by_coords",
            data_vars="minimal",
            coords="minimal",
            compat="override",
            join="outer",
        )

        xr.testing.assert_equal(found.load(), dataset().isel(time=slice(0, 3)))

    def test_loading_in_an_event_loop(self, path):
        loaded = asyncio.run(opened(path)[["t2m", "scaled", "flag"]].load_async())

        xr.testing.assert_equal(loaded, dataset()[["t2m", "scaled", "flag"]])

    def test_a_dataset_goes_to_another_process_and_back(self, path):
        lazy = opened(path)

        again = pickle.loads(pickle.dumps(lazy))

        xr.testing.assert_identical(again.load(), lazy.load())
        again.close()
        by_dask = pickle.loads(pickle.dumps(opened(path, chunks={})))
        xr.testing.assert_equal(by_dask.load(), dataset())

    def test_chunks_that_dask_prefers_are_those_within_shards(self, tmp_path):
        data = xr.Dataset({"v": (("y", "x"), np.arange(64).reshape(8, 8))})
        data["v"].encoding = {"chunks": (2, 4), "shards": (4, 8)}
        data.to_zarr(tmp_path, zarr_format=3, consolidated=False)

        found = opened(tmp_path, chunks={})

        assert found["v"].encoding["chunks"] == (2, 4)
        assert found["v"].encoding["shards"] == (4, 8)
        assert found["v"].encoding["preferred_chunks"] == {"y": 2, "x": 4}
        assert found["v"].chunks == ((2,) * 4, (4, 4))
        theirs = xr.open_dataset(tmp_path, engine="zarr", consolidated=False)
        np.testing.assert_equal(found["v"].encoding, theirs["v"].encoding)

    @pytest.mark.parametrize(
        ("options", "times"),
        [
            ({}, 2),
            ({"cache_pool": 1_000_000}, 1),
            ({"context": {"cache_pool": {"total_bytes_limit": 1_000_000}}}, 1),
            ({"context": ts.Context({"cache_pool": {"total_bytes_limit": 1_000_000}})}, 1),
        ],
        ids=["none", "bytes", "JSON", "Context"],
    )
    def test_a_pool_keeps_chunks_of_all_variables(self, options, times):
        root = ts.Group.open({"driver": "counted_memory"}, create=True).result()
        for name in ("a", "b"):
            domain = ts.IndexDomain(shape=[100], labels=["x"])
            root.create_array(name, dtype="int8", domain=domain).result()[...] = 1
        asked = counts(root)

        found = opened(root.kvstore, cache=False, **options)
        for _ in range(2):
            assert found.sum().load()["b"].item() == 100

        read = {key: size for key, size in asked.bytes_read.items() if "/c/" in key}
        assert read == {f"{name}/c/0": times * len(root.kvstore[f"{name}/c/0"]) for name in "ab"}

    def test_a_group_keeps_the_context_that_it_was_opened_with(self):
        group = ts.Group.open("memory://", create=True).result()

        with pytest.raises(TypeError, match=r"pass context= to ts\.Group\.open"):
            opened(group, cache_pool=1000)

    def test_closing_a_tree_closes_all_of_it_and_a_branch_itself(self, tmp_path):
        branch = xr.Dataset({"v": ("z", [1, 2])})
        xr.DataTree.from_dict({"/": branch, "/a": branch}).to_zarr(tmp_path, zarr_format=2)
        options: dict[str, Any] = {"engine": "tensorstore", "cache": False}

        tree = xr.open_datatree(tmp_path, **options)
        tree["a"].close()
        with pytest.raises(ts.FailedPreconditionError, match="closed"):
            tree["a"]["v"].load()
        assert tree["v"].load().size == 2
        tree = xr.open_datatree(tmp_path, **options)
        tree.close()
        for path in ("v", "a/v"):
            with pytest.raises(ts.FailedPreconditionError, match="closed"):
                tree[path].load()

    def test_closing_closes_what_was_opened_and_nothing_else(self, path):
        group = ts.Group.open(path).result()
        ours = opened(group, cache=False)
        ours.close()

        with pytest.raises(ts.FailedPreconditionError, match="closed"):
            _ = ours["t2m"].values
        assert group.contains("t2m").result()
        other = opened(path, cache=False)
        with other:
            pass
        with pytest.raises(ts.FailedPreconditionError, match="closed"):
            _ = other["t2m"].values


def source(given, **options):
    asked = {"group": None, "consolidated": None, "zarr_format": None, "context": None}
    return Source(given, **{**asked, "cache_pool": None, "max_depth": 0, **options})


@pytest.fixture
def group_path(tmp_path):
    root = ts.Group.open(tmp_path, create=True).result()
    root.create_array("g/a", dtype="int8", shape=[2]).result()
    return tmp_path


def closed(group):
    try:
        group.contains("a").result()
    except ts.FailedPreconditionError:
        return True
    return False


class TestSource:
    def test_what_is_there_is_reported_with_its_url(self, group_path):
        found = source(group_path, max_depth=None)

        assert list(found.nodes) == ["", "g", "g/a"]
        assert found.url == group_path.as_uri() + "/"
        assert list(source(group_path, group="/g/").nodes) == ["", "a"]
        assert list(source(ts.Group.open(group_path).result(), group="g").nodes) == ["", "a"]
        assert list(source({"driver": "zarr3", "kvstore": group_path.as_uri() + "/"}).nodes) == [
            "",
            "g",
        ]

    def test_a_source_without_a_url(self, group_path, monkeypatch):
        monkeypatch.chdir(group_path)
        found = source({"driver": "zarr3", "kvstore": {"driver": "file", "path": "g/"}})

        assert list(found.nodes) == ["", "a"]
        assert found.url is None

    def test_what_is_no_group_is_said(self, group_path):
        with pytest.raises(ts.MismatchError, match="an array, not a group"):
            source(group_path, group="g/a").look()
        with pytest.raises(ts.MismatchError, match="an array, not a group"):
            source(ts.Group.open(group_path).result(), group="g/a").look()
        with pytest.raises(
            ts.NotFoundError, match=r'at .*nowhere/zarr\.json.* no folder ".*nowhere"'
        ):
            source(group_path / "nowhere").look()
        (group_path / "some").mkdir()
        with pytest.raises(ts.NotFoundError, match=r"some/\.zgroup.*; it is empty"):
            source(group_path, group="some").look()
        for number in range(7):
            (group_path / "some" / f"{number}.nc").touch()
        with pytest.raises(ts.NotFoundError, match=r"there are 0\.nc, .*4\.nc, and 2 more"):
            source(str(group_path / "some")).look()
        with pytest.raises(ts.NotFoundError, match="name the folder"):
            source("memory://nowhere/").look()
        with pytest.raises(ts.NotFoundError, match=r"h/zarr\.json"):
            source(group_path, group="h").look()
        with pytest.raises(ts.NotFoundError, match="no consolidated metadata"):
            source(group_path, consolidated=True).look()
        array = ts.open(group_path / "g" / "a").result()
        for given in (array, ts.open(group_path / "g" / "a")):
            with pytest.raises(TypeError, match=r"no group of arrays; pass the ts.Group"):
                source(given)

    def test_a_group_of_which_consolidated_metadata_does_not_tell_is_found(self, group_path):
        ts.Group.open(group_path).result().consolidate().result()
        ts.Group.open(group_path, path="late/r", create=True, consolidated=False).result()

        assert list(source(group_path, group="late").nodes) == ["", "r"]
        with pytest.raises(ts.NotFoundError):
            source(group_path, group="late", consolidated=True).look()

    def test_closing_is_for_what_was_opened_here(self, group_path):
        group = ts.Group.open(group_path).result()
        context = ts.Context()
        for given, options in ((group, {}), (group_path, {"context": context})):
            found = source(given, **options)
            node = found.nodes["g"].open().result()
            found.close()
            found.close()
            assert bool(given is group) is not closed(node)
        assert not closed(group)
        assert source(group_path, context=context).nodes

    def test_one_context_for_all(self):
        assert shared_context(None, None) is None
        context = ts.Context()
        assert shared_context(context, None) is context
        for found in (
            shared_context(context, 1000),
            shared_context({"cache_pool": {"total_bytes_limit": 1000}}, None),
        ):
            assert found is not None
            assert found["cache_pool"].to_json() == {"total_bytes_limit": 1000}
        with pytest.raises(ts.SpecError):
            shared_context({"no_such_thing": {}}, None)

    @pytest.mark.parametrize(
        ("zarr_format", "consolidated", "tree", "one"),
        [
            (3, False, [1, 2, 6, 24, 6], [1, 2, 4, 2]),
            (3, True, [1, 6], [1, 2]),
            (2, False, None, None),
            (2, True, None, None),
        ],
    )
    def test_a_tree_costs_few_round_trips(self, zarr_format, consolidated, tree, one):
        with bucket() as (spec, server):
            root = make_tree(spec, 3, 4, zarr_format=zarr_format)
            if consolidated:
                root.consolidate().result()
            with far_away(server) as waves:
                found = xr.open_datatree(spec, engine="tensorstore", consolidated=consolidated)
            assert waves.counts == tree or zarr_format == 2
            # Version 2 is looked for after version 3.
            assert len(waves.counts) <= (3 if consolidated else 6)
            assert len(found.groups) == 4
            with far_away(server) as waves:
                opened = xr.open_dataset(
                    spec, engine="tensorstore", consolidated=consolidated, group="g1"
                )
            assert waves.counts == one or zarr_format == 2
            with far_away(server) as waves:
                asyncio.run(opened.load_async())
            assert waves.counts == [2]


@pytest.fixture
def path_of_version_2(tmp_path):
    dataset().to_zarr(tmp_path / "a.zarr", zarr_format=2)
    return str(tmp_path / "a.zarr")


@pytest.mark.filterwarnings("ignore:.*In a future version.*decode_timedelta:FutureWarning")
class TestOpenZarr:
    def test_fill_values_scales_and_offsets_are_decoded(self, path_of_version_2):
        context = ts.Context({"cache_pool": {"total_bytes_limit": 1000}})
        found = open_zarr(path_of_version_2, context=context, consolidated=True)

        xr.testing.assert_equal(found.load(), dataset())
        raw = open_zarr(path_of_version_2, mask_and_scale=False)
        assert raw["scaled"].dtype == np.int16
        assert (
            open_zarr(path_of_version_2, drop_variables="t2m", chunks={})["flag"].chunks is not None
        )

    def test_what_is_assigned_is_stored_at_once(self, path_of_version_2):
        writing = open_zarr(path_of_version_2, mask_and_scale=False, write=True)

        writing["t2m"][0, 0] = 7
        writing["t2m"][{"x": [1, 3], "y": [2]}] = 9
        writing["flag"].values[:] = False  # of NumPy's copy

        found = open_zarr(path_of_version_2)
        assert found["t2m"].values[0, 0].tolist() == [7] * 5
        assert found["t2m"].values[3, 2].tolist() == [55, 9, 57, 9, 59]
        assert found["flag"].values.any()
        assert writing["t2m"].values[0, 0].tolist() == [7] * 5
        writing.close()
        with pytest.raises(ts.FailedPreconditionError, match="closed"):
            writing["t2m"][0, 0] = 7

    def test_what_is_decoded_is_not_assigned(self, path_of_version_2):
        writing = open_zarr(path_of_version_2, write=True)

        with pytest.raises(
            ts.PermissionDeniedError, match=r'"scaled" is decoded.*mask_and_scale=False'
        ):
            writing["scaled"][0, 0] = 7

    def test_without_being_asked_nothing_is_stored(self, path_of_version_2):
        found = open_zarr(path_of_version_2, mask_and_scale=False)

        found["t2m"][0, 0] = 7

        assert open_zarr(path_of_version_2)["t2m"].values[0, 0].tolist() == [0, 1, 2, 3, 4]


@pytest.fixture
def path_of_n5(tmp_path):
    root = tmp_path / "a.n5"
    for name, axes in (("v", ["x", "y"]), ("inner/w", ["z"]), ("x", ["x"])):
        shape = [4, 3][: len(axes)]
        metadata = {
            "dimensions": shape,
            "blockSize": [2] * len(shape),
            "dataType": "int16",
            "axes": axes,
            "compression": {"type": "gzip"},
        }
        spec = {"driver": "n5", "kvstore": root / name, "metadata": metadata}
        store = ts.open(spec, create=True).result()
        store[...] = np.arange(np.prod(shape), dtype="i2").reshape(shape)
    (root / "attributes.json").write_text('{"n5": "2.0.0", "title": "t"}')
    document = json.loads((root / "v" / "attributes.json").read_text())
    (root / "v" / "attributes.json").write_text(json.dumps({**document, "unit": "K"}))
    return root


class TestN5:
    def test_names_of_dimensions_are_axes(self, path_of_n5):
        found = xr.open_dataset(path_of_n5, engine="tensorstore")

        expected = xr.Dataset(
            {"v": (("x", "y"), np.arange(12, dtype="i2").reshape(4, 3), {"unit": "K"})},
            {"x": np.arange(4, dtype="i2")},
            {"n5": "2.0.0", "title": "t"},
        )
        xr.testing.assert_identical(found.load(), expected)
        assert found["v"].encoding["preferred_chunks"] == {"x": 2, "y": 2}

    @pytest.mark.parametrize(
        "given",
        [
            lambda path_of_n5: f"{path_of_n5.as_uri()}/|n5:",
            lambda path_of_n5: {"driver": "n5", "kvstore": path_of_n5.as_uri() + "/"},
            lambda path_of_n5: f"{path_of_n5}/",
        ],
        ids=["URL", "JSON", "str"],
    )
    def test_trees_and_what_they_are_opened_from(self, path_of_n5, given):
        tree = xr.open_datatree(given(path_of_n5), engine="tensorstore")

        assert list(tree.groups) == ["/", "/inner"]
        assert tree["inner/w"].sum() == 6
        inner = xr.open_dataset(given(path_of_n5), engine="tensorstore", group="inner")
        assert list(inner) == ["w"]

    def test_what_is_no_group_is_said(self, path_of_n5, tmp_path):
        with pytest.raises(ts.MismatchError, match="an array, not a group"):
            xr.open_dataset(path_of_n5, engine="tensorstore", group="v")
        with pytest.raises(ts.NotFoundError, match=r"no attributes\.json"):
            xr.open_dataset(tmp_path / "b.n5", engine="tensorstore")
        (path_of_n5 / "x" / "attributes.json").write_text("[]")
        with pytest.raises(ts.DataLossError, match="no object"):
            xr.open_dataset(path_of_n5, engine="tensorstore")
        (path_of_n5 / "x" / "attributes.json").write_text("{")
        with pytest.raises(ts.DataLossError, match="no JSON"):
            xr.open_dataset(path_of_n5, engine="tensorstore")
