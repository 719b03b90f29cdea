"""Datasets that are written: arrays, documents, forms, places, plans, regions."""

from __future__ import annotations

import json
import multiprocessing
import pickle
import zipfile
from collections.abc import Hashable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
import xarray as xr
import zarr
from zarr.codecs import BloscCodec, GzipCodec

import tensorstore_py as ts
from tensorstore_py.integrations.xarray import to_zarr
from tensorstore_py.integrations.xarray.writing_arrays import (
    ArrayTarget,
    Blocks,
    UnderWay,
    aligned,
    open_assumed,
)
from tensorstore_py.integrations.xarray.writing_documents import (
    ABSENT,
    Documents,
    Form,
    Forms,
    as_place,
    below,
    parents,
)
from tensorstore_py.integrations.xarray.writing_plan import Options, Planner, checked_region

FORMATS = pytest.mark.parametrize("zarr_format", [2, 3])


def days(start: int, count: int, **more) -> xr.Dataset:
    """Some days of temperatures."""
    values = np.arange(start, start + count)[:, None] * 10.0 + np.arange(4)
    found = xr.Dataset(
        {"t2m": (("time", "x"), values, {"units": "K"})},
        coords={
            "time": xr.date_range("2024-01-01", periods=start + count)[start:],
            "x": [0, 10, 20, 30],
        },
        attrs={"title": "weather"},
    )
    return found.assign(more)


def read(place, **how) -> xr.Dataset:
    with xr.open_zarr(place, chunks=None, **how) as found:
        return found.load()


def files(place: Path) -> set[str]:
    return {each.relative_to(place).as_posix() for each in place.rglob("*") if each.is_file()}


KINDS = {
    "int": np.arange(6, dtype="i2"),
    "big": np.arange(6, dtype=">f4"),
    "bool": np.arange(6) % 2 == 0,
    "complex": np.arange(6) + 1j,
    "text": np.array(["a", "bb", "ä", "", "e", "f"]),
    "letter": np.array(list("abcdef")),
    "bytes": np.array([b"ab", b"c", b"", b"de", b"f", b"g"]),
    "byte": np.array([b"a", b"c", b"e", b"d", b"f", b"g"]),
    "objects": np.array(["a", "bb", "c", "d", "e", "f"], dtype=object),
    "time": xr.date_range("2024", periods=6).values,
    "delta": np.arange(6).astype("m8[ns]"),
    "scalar": np.float32(3.5),
    "empty": np.empty((0, 3)),
    "rows": np.arange(12.0).reshape(6, 2),
}


@pytest.fixture(scope="module")
def processes() -> Iterator[ProcessPoolExecutor]:
    """Two processes that know nothing of this one."""
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        yield pool


def write_row(place: str, row: int) -> None:
    part = days(0, 12).isel(time=[row]).drop_vars("x") * -1
    to_zarr(part, place, region={"time": slice(row, row + 1)})


def sites() -> xr.DataTree:
    return xr.DataTree.from_dict(
        {
            "/": xr.Dataset(coords={"x": [0, 10, 20, 30]}, attrs={"title": "sites"}),
            "/north": days(0, 2).drop_vars("x"),
            "/north/hill": xr.Dataset({"height": ("x", np.arange(4))}),
            "/south": xr.Dataset(attrs={"empty": True}),
        }
    )


@pytest.mark.filterwarnings("ignore:.*Zarr V3 specification")
@pytest.mark.filterwarnings("ignore:.*Zarr format 3 specification")
@pytest.mark.filterwarnings("ignore:.*does not have a Zarr V3")
class TestWriting:
    @FORMATS
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("chunked", [False, True])
    def test_values_of_all_types_are_what_they_were(
        self, kind, zarr_format, chunked, tmp_path
    ) -> None:
        values = np.asarray(KINDS[kind])
        written = xr.Dataset({"v": ([f"d{each}" for each in range(values.ndim)], values, {"a": 1})})
        if chunked and values.dtype != object:
            written = written.chunk({"d0": 4} if values.ndim and values.size else {})

        to_zarr(written, tmp_path / "a.zarr", zarr_format=zarr_format)

        # xarray reads single bytes as the characters of a text, unless an option forbids it
        found = read(tmp_path / "a.zarr", decode_timedelta=True, concat_characters=kind != "byte")
        xr.testing.assert_identical(found, written.compute())

    @FORMATS
    def test_records_are_stored(self, zarr_format, tmp_path) -> None:
        records = np.array([(1, 2.5), (3, 4.5)], [("a", "i2"), ("b", "f4")])

        to_zarr(xr.Dataset({"v": ("x", records)}), tmp_path / "a", zarr_format=zarr_format)

        # of version 3 they are read by zarr-python from its version 3.2 on
        np.testing.assert_array_equal(ts.zarr.open(tmp_path / "a")["v"][:], records)

    @FORMATS
    def test_attributes_and_encoding_are_stored_as_xarray_does(self, zarr_format, tmp_path) -> None:
        written = days(0, 3).assign_attrs(steps=np.array([1, 2]), scale=np.float32(0.5))
        written = written.assign_coords(station=("x", list("abcd")))
        encoding = {
            "t2m": {"dtype": "i2", "scale_factor": 0.1, "add_offset": 5.0, "_FillValue": -9},
            "time": {"units": "hours since 2023-12-31", "dtype": "i4"},
        }
        written["t2m"][0, 0] = np.nan

        to_zarr(written, tmp_path / "ours", zarr_format=zarr_format, encoding=encoding)
        written.to_zarr(tmp_path / "theirs", zarr_format=zarr_format, encoding=encoding)

        ours, theirs = (read(tmp_path / name, decode_cf=False) for name in ("ours", "theirs"))
        xr.testing.assert_identical(ours, theirs)
        xr.testing.assert_allclose(read(tmp_path / "ours"), read(tmp_path / "theirs"))

    @FORMATS
    def test_chunks_shards_and_codecs_are_those_of_the_encoding(
        self, zarr_format, tmp_path
    ) -> None:
        written = xr.Dataset({"v": (("y", "x"), np.arange(64.0).reshape(8, 8))})
        encoding: dict[str, object] = {"chunks": (2, 4), "compressors": None}
        if zarr_format == 3:
            gzip = GzipCodec(level=1)
            encoding = {"chunks": (2, 4), "shards": (4, 8), "compressors": (gzip,)}

        to_zarr(written, tmp_path / "a", encoding={"v": encoding}, zarr_format=zarr_format)

        found = zarr.open_array(tmp_path / "a" / "v")
        assert found.chunks == (2, 4)
        assert found.shards == encoding.get("shards")
        assert found.compressors == (encoding["compressors"] or ())
        xr.testing.assert_identical(read(tmp_path / "a"), written)

    def test_what_was_read_with_a_codec_is_written_with_it(self, tmp_path) -> None:
        codec = BloscCodec(cname="zstd", clevel=3)
        days(0, 3).to_zarr(tmp_path / "a", encoding={"t2m": {"compressors": (codec,)}})

        to_zarr(read(tmp_path / "a"), tmp_path / "b")

        one, other = (zarr.open_array(tmp_path / name / "t2m").compressors for name in "ab")
        assert one == other

    @FORMATS
    def test_chunks_of_dask_become_chunks_even_if_they_are_uneven(
        self, zarr_format, tmp_path
    ) -> None:
        values = np.arange(12.0)
        written = xr.Dataset({"v": ("x", da.from_array(values, chunks=((5, 4, 3),)))})

        to_zarr(written, tmp_path / "a", zarr_format=zarr_format)

        assert zarr.open_array(tmp_path / "a" / "v").chunks == (5,)
        xr.testing.assert_identical(read(tmp_path / "a"), written.compute())

    @pytest.mark.parametrize("where", ["threads", "processes"])
    def test_blocks_need_not_fit_the_stored_chunks(self, where, request, tmp_path) -> None:
        pool = request.getfixturevalue("processes") if where == "processes" else None
        values = np.arange(96.0).reshape(8, 12)
        written = xr.Dataset({"v": (("y", "x"), da.from_array(values, chunks=(3, 5)))})

        with dask.config.set(scheduler=where, pool=pool):
            to_zarr(written, tmp_path / "a", encoding={"v": {"chunks": (4, 4), "shards": (8, 8)}})

        xr.testing.assert_identical(read(tmp_path / "a"), written.compute())

    def test_aligned_blocks_store_each_chunk_once(self) -> None:
        stored: list[str] = []

        class Noting(dict):
            def __setitem__(self, key, value):
                stored.append(key)
                super().__setitem__(key, value)

        written = xr.Dataset({"v": ("x", da.arange(12, chunks=5))})
        to_zarr(written, Noting(), encoding={"v": {"chunks": (4,)}}, align_chunks=True)

        assert sorted(key for key in stored if "/c/" in key) == ["v/c/0", "v/c/1", "v/c/2"]

    def test_a_new_group_is_refused_where_one_is(self, tmp_path) -> None:
        to_zarr(days(0, 2), tmp_path / "a")
        before = {name: (tmp_path / "a" / name).read_bytes() for name in files(tmp_path / "a")}

        with pytest.raises(FileExistsError, match="mode='a'") as caught:
            to_zarr(days(0, 3), tmp_path / "a")

        assert isinstance(caught.value, ts.AlreadyExistsError)
        after = {name: (tmp_path / "a" / name).read_bytes() for name in files(tmp_path / "a")}
        assert after == before

    @FORMATS
    def test_replacing_takes_everything_away_that_was_there(self, zarr_format, tmp_path) -> None:
        to_zarr(days(0, 2, old=("x", np.arange(4))), tmp_path / "a", zarr_format=5 - zarr_format)

        to_zarr(days(5, 3), tmp_path / "a", mode="w", zarr_format=zarr_format)

        xr.testing.assert_identical(read(tmp_path / "a"), days(5, 3))
        assert not any(name.startswith("old") for name in files(tmp_path / "a"))

    @FORMATS
    def test_variables_are_added_and_overwritten(self, zarr_format, tmp_path) -> None:
        to_zarr(days(0, 2), tmp_path / "a", zarr_format=zarr_format)
        both = days(0, 2, rain=("x", np.arange(4))).assign_attrs(title="more")
        both["t2m"] = both["t2m"] + 1  # its attributes are those that are stored

        to_zarr(both, tmp_path / "a", mode="a")

        both["t2m"].attrs = {"units": "K"}
        xr.testing.assert_identical(read(tmp_path / "a"), both)
        xr.testing.assert_identical(read(tmp_path / "a", consolidated=False), both)

    def test_only_values_are_written_in_place(self, tmp_path) -> None:
        to_zarr(days(0, 2), tmp_path / "a")

        to_zarr(days(1, 2).assign_attrs(title="other"), tmp_path / "a", mode="r+")

        xr.testing.assert_identical(read(tmp_path / "a"), days(1, 2))
        with pytest.raises(ValueError, match=r"non-pre-existing.*rain"):
            to_zarr(days(0, 2, rain=("x", np.arange(4))), tmp_path / "a", mode="r+")
        with pytest.raises(FileNotFoundError, match="no group found"):
            to_zarr(days(0, 2), tmp_path / "b", mode="r+")
        to_zarr(days(0, 2), tmp_path / "c", consolidated=False)
        with pytest.raises(ValueError, match="consolidated"):
            to_zarr(days(0, 2), tmp_path / "c", mode="r+", consolidated=True)

    @FORMATS
    @pytest.mark.parametrize("chunked", [False, True])
    def test_appends_go_on_where_the_last_chunk_is_not_full(
        self, zarr_format, chunked, tmp_path
    ) -> None:
        first = {"t2m": {"chunks": (4, 3)}, "time": {"chunks": (4,)}}
        to_zarr(days(0, 3), tmp_path / "a", zarr_format=zarr_format, encoding=first)

        for start, count in (3, 2), (5, 1), (6, 7):
            part = days(start, count)
            to_zarr(part.chunk(time=2) if chunked else part, tmp_path / "a", append_dim="time")

        xr.testing.assert_identical(read(tmp_path / "a"), days(0, 13))
        xr.testing.assert_identical(read(tmp_path / "a", consolidated=False), days(0, 13))

    def test_what_is_appended_is_encoded_as_what_is_there(self, tmp_path) -> None:
        encoding = {
            "time": {"units": "hours since 2024-01-01", "dtype": "i4"},
            "t2m": {"dtype": "i2", "scale_factor": 0.5, "_FillValue": -1},
        }
        to_zarr(days(0, 2), tmp_path / "a", encoding=encoding)
        later = days(2, 2)
        later["time"].encoding = {"units": "days since 1900-01-01"}

        to_zarr(later, tmp_path / "a", append_dim="time")

        raw = read(tmp_path / "a", decode_cf=False)
        assert raw["time"].values.tolist() == [0, 24, 48, 72]
        assert raw["t2m"].dtype == np.int16
        xr.testing.assert_identical(read(tmp_path / "a"), days(0, 4))

    def test_appending_overwrites_what_does_not_grow_unless_it_is_not_to(self, tmp_path) -> None:
        to_zarr(days(0, 2), tmp_path / "a")
        moved = days(2, 2).assign_coords(x=[1, 2, 3, 4])

        to_zarr(moved, tmp_path / "a", mode="a-", append_dim="time")
        assert read(tmp_path / "a")["x"].values.tolist() == [0, 10, 20, 30]

        to_zarr(moved, tmp_path / "a", append_dim="time")
        assert read(tmp_path / "a")["x"].values.tolist() == [1, 2, 3, 4]

    @pytest.mark.parametrize(
        ("part", "how", "message"),
        [
            (days(2, 1).isel(x=[0]), {"append_dim": "time"}, r"'x': 4.*'x': 1"),
            (days(2, 1).rename(x="y"), {"append_dim": "time"}, r"'time', 'x'.*'time', 'y'"),
            (days(2, 1), {"append_dim": "day"}, "does not match any existing.*time"),
            (days(2, 1), {"mode": "a"}, "different dimension sizes.*append_dim"),
            (days(2, 1), {"mode": "w", "append_dim": "time"}, "mode='w'"),
            (
                days(2, 1),
                {"append_dim": "time", "encoding": {"t2m": {"chunks": (1, 1)}}},
                "'t2m' already exists, but encoding was provided",
            ),
        ],
    )
    def test_what_does_not_fit_is_refused_and_changes_nothing(
        self, part, how, message, tmp_path
    ) -> None:
        to_zarr(days(0, 2), tmp_path / "a")

        with pytest.raises(ValueError, match=message):
            to_zarr(part, tmp_path / "a", **how)

        xr.testing.assert_identical(read(tmp_path / "a"), days(0, 2))

    @FORMATS
    def test_an_append_that_is_overtaken_by_another_is_an_error(
        self, zarr_format, tmp_path
    ) -> None:
        to_zarr(days(0, 2), tmp_path / "a", zarr_format=zarr_format)
        transaction = ts.Transaction()
        to_zarr(days(2, 1), tmp_path / "a", append_dim="time", transaction=transaction)
        to_zarr(days(2, 3), tmp_path / "a", append_dim="time")

        with pytest.raises(ts.AbortedError, match="changed by somebody else"):
            transaction.commit_sync()

        xr.testing.assert_identical(read(tmp_path / "a"), days(0, 5))

    def test_a_region_is_found_by_its_coordinates(self, tmp_path) -> None:
        to_zarr(days(0, 6), tmp_path / "a", encoding={"t2m": {"chunks": (4, 3)}})
        part = days(0, 6).isel(time=slice(1, 5), x=slice(1, 3)) + 100

        to_zarr(part, tmp_path / "a", region="auto")

        expected = days(0, 6)
        expected["t2m"][1:5, 1:3] += 100
        xr.testing.assert_identical(read(tmp_path / "a"), expected)

    def test_regions_that_share_chunks_may_be_written_by_many_processes(
        self, processes, tmp_path
    ) -> None:
        place = str(tmp_path / "a")
        shards = {"t2m": {"chunks": (2, 4), "shards": (6, 4)}}
        to_zarr(days(0, 12).chunk(), place, compute=False, encoding=shards)

        for future in [processes.submit(write_row, place, row) for row in range(12)]:
            future.result()

        np.testing.assert_array_equal(read(place)["t2m"], -days(0, 12)["t2m"])

    @pytest.mark.parametrize("mode", ["r+", "a"])
    def test_a_region_changes_no_metadata(self, mode, tmp_path) -> None:
        to_zarr(days(0, 4), tmp_path / "a")
        documents = [tmp_path / "a" / name for name in ("zarr.json", "t2m/zarr.json")]
        before = [(each.read_bytes(), each.stat().st_mtime_ns) for each in documents]

        part = days(0, 4).isel(time=slice(1, 3)).drop_vars("x")
        to_zarr(part, tmp_path / "a", region={"time": slice(1, 3)}, mode=mode)

        assert [(each.read_bytes(), each.stat().st_mtime_ns) for each in documents] == before

    def test_a_new_variable_is_no_region(self, tmp_path) -> None:
        to_zarr(days(0, 4), tmp_path / "a")
        part = days(0, 2)[["t2m"]].rename(t2m="rain").drop_vars(["x", "time"])

        with pytest.raises(ValueError, match="'rain' is not stored yet"):
            to_zarr(part, tmp_path / "a", region={"time": slice(2, 4)}, mode="a")

    @FORMATS
    def test_nothing_is_seen_before_the_commit_and_all_of_it_after(
        self, zarr_format, tmp_path
    ) -> None:
        with ts.Transaction() as transaction:
            to_zarr(days(0, 2), tmp_path / "a", transaction=transaction, zarr_format=zarr_format)
            to_zarr(days(2, 2), tmp_path / "a", append_dim="time", transaction=transaction)
            assert not (tmp_path / "a").exists()

        xr.testing.assert_identical(read(tmp_path / "a"), days(0, 4))

    def test_an_abort_leaves_nothing(self, tmp_path) -> None:
        to_zarr(days(0, 2), tmp_path / "a")

        transaction = ts.Transaction()
        to_zarr(days(2, 2).chunk(), tmp_path / "a", append_dim="time", transaction=transaction)
        to_zarr(days(0, 2), tmp_path / "b", transaction=transaction)
        transaction.abort()

        xr.testing.assert_identical(read(tmp_path / "a"), days(0, 2))
        assert not (tmp_path / "b").exists()

    def test_what_is_computed_later_is_in_no_transaction(self, tmp_path) -> None:
        with pytest.raises(ValueError, match="compute=False"):
            to_zarr(days(0, 2), tmp_path / "a", transaction=ts.Transaction(), compute=False)

    @FORMATS
    def test_blocks_are_written_later_and_all_else_at_once(self, zarr_format, tmp_path) -> None:
        written = days(0, 4).chunk(time=3)

        later = to_zarr(written, tmp_path / "a", compute=False, zarr_format=zarr_format)

        found = read(tmp_path / "a")
        xr.testing.assert_identical(found["time"], days(0, 4)["time"])
        assert np.isnan(found["t2m"]).all()
        assert later.compute() is None
        xr.testing.assert_identical(read(tmp_path / "a"), days(0, 4))

    @FORMATS
    @pytest.mark.parametrize("consolidated", [None, False])
    def test_trees_are_what_they_were(self, zarr_format, consolidated, tmp_path) -> None:
        to_zarr(sites(), tmp_path / "a", zarr_format=zarr_format, consolidated=consolidated)

        asked = consolidated is None
        with xr.open_datatree(tmp_path / "a", engine="zarr", consolidated=asked) as found:
            xr.testing.assert_identical(found, sites())
        assert not (tmp_path / "a" / "north" / "x").exists()

    def test_inherited_coordinates_are_repeated_if_asked(self, tmp_path) -> None:
        to_zarr(sites(), tmp_path / "a", write_inherited_coords=True)

        assert (tmp_path / "a" / "north" / "x" / "zarr.json").exists()

    @FORMATS
    def test_trees_are_added_to_and_overwritten(self, zarr_format, tmp_path) -> None:
        to_zarr(sites(), tmp_path / "a", zarr_format=zarr_format)
        tree = sites()
        tree["/north/t2m"] = tree["/north/t2m"] * 2
        tree["/west"] = xr.DataTree(xr.Dataset({"v": ("n", [1, 2])}))

        to_zarr(tree, tmp_path / "a", mode="a")

        with xr.open_datatree(tmp_path / "a", engine="zarr") as found:
            xr.testing.assert_equal(found, tree)

    def test_trees_say_what_they_cannot_do(self, tmp_path) -> None:
        with pytest.raises(ValueError, match=r"unexpected encoding group.*nowhere"):
            to_zarr(sites(), tmp_path / "a", encoding={"/nowhere": {}})
        with pytest.raises(NotImplementedError, match="append_dim"):
            to_zarr(sites(), tmp_path / "a", append_dim="time")

    @FORMATS
    def test_groups_are_made_with_those_above_them(self, zarr_format, tmp_path) -> None:
        to_zarr(days(0, 2), tmp_path / "a", group="model/run", zarr_format=zarr_format)
        to_zarr(days(0, 3), tmp_path / "a", group="model/other")

        for consolidated in True, False:
            for name, count in ("run", 2), ("other", 3):
                found = read(tmp_path / "a", group=f"model/{name}", consolidated=consolidated)
                xr.testing.assert_identical(found, days(0, count))

    @FORMATS
    def test_consolidated_metadata_that_would_not_be_true_is_deleted(
        self, zarr_format, tmp_path
    ) -> None:
        to_zarr(days(0, 2), tmp_path / "a", zarr_format=zarr_format)

        to_zarr(days(2, 2), tmp_path / "a", append_dim="time", consolidated=False)

        assert not ts.Group.open(tmp_path / "a").result().consolidated
        xr.testing.assert_identical(read(tmp_path / "a", consolidated=False), days(0, 4))

    @pytest.mark.parametrize("kind", ["str", "path", "url", "spec", "kvstore", "store", "group"])
    def test_targets_are_whatever_says_where(self, kind, tmp_path) -> None:
        where = tmp_path / "a.zarr"
        target = {
            "str": lambda: str(where),
            "path": lambda: where,
            "url": lambda: f"file://{where}/",
            "spec": lambda: {"driver": "file", "path": f"{where}/"},
            "kvstore": lambda: ts.KvStore.open(f"file://{where}/").result(),
            "store": lambda: ts.zarr.LocalStore(where),
            "group": lambda: ts.zarr.open_group(where, mode="w"),
        }[kind]()

        to_zarr(days(0, 2), target, mode="a")

        xr.testing.assert_identical(read(where), days(0, 2))

    def test_an_archive_is_written_once(self, tmp_path) -> None:
        to_zarr(sites(), tmp_path / "a.zip")

        with zipfile.ZipFile(tmp_path / "a.zip") as archive:
            names = archive.namelist()
        assert len(names) == len(set(names))
        unpacked = tmp_path / "a"
        zipfile.ZipFile(tmp_path / "a.zip").extractall(unpacked)
        with xr.open_datatree(unpacked, engine="zarr") as found:
            xr.testing.assert_identical(found, sites())

    def test_a_target_names_its_format(self, tmp_path) -> None:
        to_zarr(days(0, 2), f"file://{tmp_path}/a/|zarr2:")

        assert json.loads((tmp_path / "a" / ".zgroup").read_bytes()) == {"zarr_format": 2}

    @pytest.mark.parametrize("name", [None, "v", "x"])
    def test_arrays_have_the_names_that_they_had(self, name, tmp_path) -> None:
        array = xr.DataArray(np.arange(3), dims="x", name=name)

        to_zarr(array, tmp_path / "a")

        with xr.open_dataarray(tmp_path / "a", engine="zarr") as found:
            xr.testing.assert_identical(found.load(), array)

    @pytest.mark.parametrize(
        ("written", "error", "message"),
        [
            (xr.Dataset({5: ("x", [1])}), TypeError, "5"),
            (xr.Dataset({"": ("x", [1])}), ValueError, "length 1"),
            (xr.Dataset({"a/b": ("x", [1])}), ValueError, "a/b"),
            (xr.Dataset({"v": ([4], [1])}), TypeError, "'v'.*dimension 4"),
            (xr.Dataset({"v": ("x", np.array([{}, {1}]))}), ValueError, "'v'|v"),
            (xr.Dataset({"v": ("x", [1], {"bad": object()})}), TypeError, "'v'.*'bad'"),
            (xr.Dataset(attrs={"bad": {1, 2}}), TypeError, "'bad'"),
            (5, TypeError, "DataTree"),
        ],
    )
    def test_what_cannot_be_stored_names_itself(self, written, error, message, tmp_path) -> None:
        with pytest.raises(error, match=message):
            to_zarr(written, tmp_path / "a")

        assert not (tmp_path / "a").exists()

    def test_compute_false_needs_dask(self, monkeypatch, tmp_path) -> None:
        monkeypatch.setitem(__import__("sys").modules, "dask", None)

        with pytest.raises(ModuleNotFoundError, match=r"tensorstore-py\[dask\]"):
            to_zarr(days(0, 1), tmp_path / "a", compute=False)


def target(place, dtype, shape=(6,), chunks=(4,), zarr_format=3):
    form = Form(zarr_format)
    asked = {"dtype": dtype, "chunks": chunks}
    metadata = Forms(form).metadata(shape, asked)
    where = as_place(place, zarr_format=None, context=None, transaction=None)
    return ArrayTarget(open_assumed(where, form, "v", metadata), len(shape)), metadata


class TestWritingArrays:
    def test_an_array_is_written_that_no_document_tells_of(self, tmp_path) -> None:
        found, metadata = target(tmp_path, np.dtype("i2"))
        found[(slice(1, 5),)] = np.arange(4)

        assert not (tmp_path / "v" / "zarr.json").exists()
        again = ts.open(
            {"driver": "zarr3", "kvstore": f"file://{tmp_path}/v/", "metadata": metadata},
            create=True,
        ).result()
        assert again.read().result().tolist() == [0, 0, 1, 2, 3, 0]

    @pytest.mark.parametrize("zarr_format", [2, 3])
    @pytest.mark.parametrize("dtype", ["S1", "S3", "U2", "?", ">i4", "M8[s]"])
    def test_types_are_numpys(self, dtype, zarr_format) -> None:
        found, _ = target({}, np.dtype(dtype), zarr_format=zarr_format)

        assert (found.shape, found.dtype) == ((6,), np.dtype(dtype).newbyteorder("="))
        found[...] = np.zeros(6, dtype)

    def test_a_target_travels(self, tmp_path) -> None:
        found, _ = target(tmp_path, np.dtype("S3"), zarr_format=2)

        pickle.loads(pickle.dumps(found))[(slice(0, 2),)] = np.array([b"ab", b"c"])

        assert (tmp_path / "v" / "0").exists()

    def test_values_are_written_together_and_waited_for_one_by_one(self) -> None:
        files: dict[str, bytes] = {}
        found, _ = target(files, np.dtype("f8"))
        under_way = UnderWay()

        under_way.add(found, (slice(0, 6),), xr.Variable("x", np.arange(1.0, 7)))
        under_way.wait(found)

        assert sorted(files) == ["v/c/0", "v/c/1"]
        under_way.wait(found)

    def test_blocks_are_written_now_or_later(self) -> None:
        files: dict[str, bytes] = {}
        found, _ = target(files, np.dtype("f8"))
        variable = xr.Variable("x", da.arange(1.0, 7, chunks=4))
        blocks = Blocks()
        blocks.add(found, (slice(0, 6),), variable)
        later = blocks.write(compute=False, options=None)
        assert blocks.any
        assert not files
        da.compute(later)
        assert sorted(files) == ["v/c/0", "v/c/1"]

    @pytest.mark.parametrize(
        ("blocks", "cell", "start", "expected"),
        [
            ((5, 5, 2), 4, 0, (4, 4, 4)),
            ((5, 5, 2), 4, 3, (1, 4, 4, 3)),
            ((9, 3), 4, 0, (8, 4)),
            ((1, 1), 4, 2, (2,)),
            ((0,), 4, 0, (0,)),
        ],
    )
    def test_aligned_blocks_end_where_cells_do(self, blocks, cell, start, expected) -> None:
        variable = xr.Variable("x", da.zeros(sum(blocks), chunks=(blocks,)))

        found = aligned(variable, (cell,), (slice(start, start + sum(blocks)),))

        assert found.chunks == (expected,)

    def test_there_may_be_no_blocks(self) -> None:
        assert not Blocks().any

    def test_what_has_no_blocks_is_left_alone(self) -> None:
        variable = xr.Variable("x", [1, 2])

        assert aligned(variable, (1,), (slice(0, 2),)) is variable


def documents(files):
    return Documents(as_place(files, zarr_format=None, context=None, transaction=None))


def files_of(zarr_format):
    files: dict[str, bytes] = {}
    group = ts.zarr.group(store=files, zarr_format=zarr_format)
    group.attrs["title"] = "a"
    array = group.create("v", (2, 3), dtype="i2", dimension_names=("y", "x"))
    array.attrs["_ARRAY_DIMENSIONS"] = ["y", "x"]
    return files


class TestWritingDocuments:
    @pytest.mark.parametrize("zarr_format", [2, 3])
    def test_nodes_are_what_is_stored(self, zarr_format) -> None:
        if zarr_format == 2:
            files: dict[str, bytes] = {}
            ts.zarr.group(store=files, zarr_format=2).attrs["title"] = "a"
            made = ts.zarr.open_group(files).create("v", (2, 3), dtype="i2")
            made.attrs["_ARRAY_DIMENSIONS"] = ["y", "x"]
        else:
            files = files_of(3)
        form = Form(zarr_format)

        nodes = documents(files).look(["", "v", "w"], None)

        assert [(each.kind, each.zarr_format) for each in nodes.values()] == [
            ("group", zarr_format), ("array", zarr_format), (None, None)
        ]  # fmt: skip
        assert nodes[""].attributes == {"title": "a"}
        assert form.dims(nodes["v"]) == ("y", "x")
        assert not nodes[""].consolidated
        ts.Group.open(ts.zarr.MemoryStore(files).kvstore).result().consolidate().result()
        assert documents(files).look([""], zarr_format)[""].consolidated

    @pytest.mark.parametrize("zarr_format", [2, 3])
    def test_documents_of_new_nodes_are_those_of_other_writers(self, zarr_format) -> None:
        form, files = Form(zarr_format), {}
        for key, value in form.group({"title": "a"}).items():
            files[key] = json.dumps(value).encode()

        assert ts.zarr.open_group(files, mode="r").attrs["title"] == "a"
        assert list(form.array({"a": 1}, ["x"], {"b": 2}))[-1] == form.array_key

    def test_conditions_hold_or_say_so(self) -> None:
        found = documents({})
        found.store_all({"a": ({"n": 1}, ABSENT)})

        with pytest.raises(ts.AbortedError, match=r"a.*changed by somebody else"):
            found.store_all({"a": ({"n": 2}, ABSENT)})
        found.take_back("a", b"another")
        assert json.loads(found.read("a").result().value) == {"n": 1}

    def test_all_below_is_deleted_and_nothing_beside(self) -> None:
        files = {"a/x": b"1", "a/y/z": b"1", "ab": b"1", "a": b"1", "b": b"1"}
        found = documents(files)

        found.delete_below("a")
        assert sorted(files) == ["a", "ab", "b"]
        found.delete("a", "b")
        found.delete_below("")
        assert files == {}

    def test_what_is_no_json_is_named(self) -> None:
        with pytest.raises(ts.DataLossError, match=r"zarr\.json"):
            documents({"v/zarr.json": b"{"}).look(["v"], 3)


class TestWritingForms:
    @pytest.mark.parametrize("zarr_format", [2, 3])
    def test_documents_are_those_that_ts_zarr_makes(self, zarr_format) -> None:
        form = Form(zarr_format)
        forms = Forms(form)
        asked: dict[str, Any] = {"dtype": np.dtype("f4"), "chunks": (2, 3), "fill_value": np.nan}

        for shape in (4, 6), (5, 7), (4, 6):
            files: dict[str, bytes] = {}
            ts.zarr.create(shape, store=files, zarr_format=zarr_format, **asked)
            assert forms.metadata(shape, asked) == json.loads(files[form.array_key])

    def test_arrays_that_differ_in_anything_are_not_mistaken_for_each_other(self) -> None:
        forms = Forms(Form(3))
        usual: dict[str, Any] = {"dtype": np.dtype("f4"), "chunks": (2,), "fill_value": 0.0}
        others: list[dict[str, Any]] = [
            {"dtype": np.dtype(">f4")},
            {"chunks": (3,)},
            {"fill_value": 1.0},
            {"chunks": None},
        ]

        found = [forms.metadata((9,), {**usual, **other}) for other in ({}, *others)]

        assert len({json.dumps(each) for each in found}) == len(found)

    def test_chunks_that_are_chosen_depend_on_the_shape(self) -> None:
        forms, asked = Forms(Form(3)), {"dtype": np.dtype("f8"), "chunks": None}
        grids = [forms.metadata(shape, asked)["chunk_grid"] for shape in ((5,), (10**7,))]

        assert grids[0]["configuration"]["chunk_shape"] == [5]
        assert grids[0] != grids[1]

    def test_mistakes_are_those_of_ts_zarr(self) -> None:
        with pytest.raises(ValueError, match="shards"):
            Forms(Form(2)).metadata((4,), {"dtype": np.dtype("i2"), "shards": (2,), "chunks": (1,)})


def place(target, zarr_format=None, context=None, transaction=None):
    return as_place(target, zarr_format=zarr_format, context=context, transaction=transaction)


class TestWritingPlace:
    def test_targets_say_formats(self, tmp_path) -> None:
        spec = {"driver": "zarr", "kvstore": "memory://a"}

        assert place(spec).zarr_format == 2
        assert place(ts.Spec(spec)).zarr_format == 2
        assert place("memory://a/|zarr3:").zarr_format == 3
        assert place("memory://a/|zarr2:", 3).zarr_format == 3
        assert place(ts.zarr.group(zarr_format=2)).zarr_format == 2
        assert place(tmp_path).zarr_format is None

    @pytest.mark.parametrize("target", ["memory://a", {"driver": "memory", "path": "a"}])
    def test_places_are_directories(self, target) -> None:
        assert place(target).kvstore.path == "a/"

    def test_a_dictionary_of_bytes_is_written_into(self) -> None:
        files: dict[str, bytes] = {}

        place(files).kvstore.write("a", b"1").result()

        assert files == {"a": b"1"}

    def test_an_archive_is_rewritten(self, tmp_path) -> None:
        assert place(tmp_path / "a.zip").rewritten
        assert not place(tmp_path / "a").rewritten

    def test_transactions_are_those_of_the_target_if_none_is_said(self) -> None:
        own, other = ts.Transaction(), ts.Transaction()
        kvstore = ts.KvStore.open("memory://", transaction=own).result()

        assert place(kvstore).transaction is own
        assert place(kvstore).kvstore.transaction is own
        assert place(kvstore, transaction=other).kvstore.transaction is other
        assert place("memory://").transaction is None

    def test_a_context_is_shared(self) -> None:
        context = ts.Context()
        place("memory://", context=context).kvstore.write("a", b"1").result()

        assert place("memory://", context=context).kvstore.read("a").result().value == b"1"

    def test_no_places(self) -> None:
        with pytest.raises((TypeError, ts.SpecError)):
            place(5)
        with pytest.raises((TypeError, ts.SpecError)):
            place({"driver": "zarr3"})

    def test_paths(self) -> None:
        assert below("a", "b/c") == "a/b/c"
        assert parents("a") == [""]
        assert '"/a"' in place(ts.zarr.MemoryStore({}).kvstore).describe("a") or place(
            ts.zarr.MemoryStore({}).kvstore
        ).describe("a").endswith("a")


DATASET = xr.Dataset({"v": ("x", np.arange(3.0), {"units": "K"})}, attrs={"title": "a"})


def plan(files, dataset, zarr_format=3, encoding=None, **options):
    place = as_place(files, zarr_format=None, context=None, transaction=None)
    documents = Documents(place)
    nodes = documents.look(["", *dataset.variables], zarr_format)
    planner = Planner(documents, Form(zarr_format), Options(**options))
    return planner.plan("", dataset, encoding or {}, nodes)


def stored(zarr_format=3):
    files: dict[str, bytes] = {}
    names = ("x",) if zarr_format == 3 else None
    group = ts.zarr.group(store=files, zarr_format=zarr_format)
    array = group.create("v", (3,), chunks=(2,), dtype="f8", dimension_names=names)
    array.attrs["_ARRAY_DIMENSIONS"] = ["x"]
    return files


class TestWritingPlan:
    @pytest.mark.parametrize("zarr_format", [2, 3])
    def test_a_plan_changes_nothing(self, zarr_format) -> None:
        files = stored(zarr_format)
        before = dict(files)

        plan(files, DATASET, zarr_format, mode="a", append_dim="x")
        plan(files, DATASET.rename(v="w"), zarr_format, mode="a")

        assert files == before

    def test_new_arrays_have_documents_without_conditions(self) -> None:
        found = plan({}, DATASET, mode="w")

        (array,) = found.arrays
        assert (array.path, array.new, array.region) == ("v", True, (slice(0, 3),))
        document, condition = array.documents["v/zarr.json"]
        assert condition is None
        assert document["shape"] == [3]
        assert document["dimension_names"] == ["x"]
        assert document["attributes"] == {"units": "K", "_FillValue": "AAAAAAAA+H8="}
        assert (found.attributes, found.found) == ({"title": "a"}, None)

    @pytest.mark.parametrize("zarr_format", [2, 3])
    def test_arrays_that_grow_have_documents_that_rest_on_those_that_were_read(
        self, zarr_format
    ) -> None:
        files = stored(zarr_format)
        found = plan(files, DATASET, zarr_format, mode="a", append_dim="x")

        (array,) = found.arrays
        assert (array.new, array.region) == (False, (slice(3, 6),))
        ((document, condition),) = array.documents.values()
        assert document["shape"] == [6]
        assert condition

    def test_arrays_of_which_values_are_written_have_none(self) -> None:
        (array,) = plan(stored(), DATASET, mode="r+").arrays

        assert (array.documents, array.region) == ({}, (slice(0, 3),))

    def test_a_group_of_that_name_is_in_the_way(self) -> None:
        files = stored()
        ts.zarr.open_group(files).create_group("w")

        with pytest.raises(ValueError, match=r"'w'.*a group is at"):
            plan(files, DATASET.rename(v="w"), mode="a")

    def test_an_array_is_in_the_way_of_a_group(self) -> None:
        files: dict[str, bytes] = {}
        ts.zarr.create((3,), store=files, dtype="f8")

        with pytest.raises(ts.MismatchError, match="an array, not a group"):
            plan(files, DATASET, mode="a")

    def test_encoding_of_what_is_not_written_is_a_mistake(self) -> None:
        with pytest.raises(KeyError, match=r"'w'.*\['v'\]"):
            plan({}, DATASET, encoding={"w": {}}, mode="w")

    def test_dimensions_of_a_group_are_looked_for_in_all_its_arrays(self) -> None:
        new = xr.Dataset({"w": ("x", np.arange(3.0))})

        assert plan(stored(), new, mode="a", append_dim="x").arrays[0].new
        with pytest.raises(ValueError, match=r"'day'.*'x': 3"):
            plan(stored(), new, mode="a", append_dim="day")


WITH_REGIONS = xr.Dataset({"v": (("x", "y"), np.ones((2, 3)))}, coords={"x": [20, 30]})


STORED: dict[Hashable, xr.Variable] = {"x": xr.Variable("x", [10, 20, 30, 40])}


def with_regions(dim: Hashable) -> xr.Variable | None:
    return STORED.get(dim)


def region(said, dataset=WITH_REGIONS, mode="r+", append_dim=None):
    return checked_region(dataset, said, mode=mode, append_dim=append_dim, stored=with_regions)


class TestRegion:
    def test_slices_are_what_they_are(self) -> None:
        said = {"x": slice(2), "y": slice(1, None, 1)}

        assert region(said) == said

    @pytest.mark.parametrize("said", ["auto", {"x": "auto", "y": slice(0, 3)}])
    def test_coordinates_say_where(self, said) -> None:
        assert region(said) == {"x": slice(1, 3), "y": slice(0, 3)}

    def test_nothing_is_nowhere(self) -> None:
        assert region({"x": "auto"}, WITH_REGIONS.isel(x=slice(0, 0))) == {"x": slice(0, 0)}

    @pytest.mark.parametrize(
        ("said", "more", "error", "message"),
        [
            (5, {}, TypeError, "must be a dict"),
            ({"x": [0, 1]}, {}, TypeError, "slice objects.*'x'"),
            ({"x": slice(0, 4, 2)}, {}, ValueError, "step.*'x'"),
            ({"z": slice(2)}, {}, ValueError, "'z'.*'x', 'y'"),
            ({"x": slice(2)}, {"append_dim": "x"}, ValueError, "both append_dim and region"),
            ("auto", {"mode": "a-"}, ValueError, "mode='a-'"),
            ("auto", {"dataset": WITH_REGIONS.assign_coords(x=[20, 35])}, KeyError, "'x'.*35"),
            (
                "auto",
                {"dataset": WITH_REGIONS.assign_coords(x=[40, 10])},
                ValueError,
                "non-contiguous",
            ),
            (
                "auto",
                {"dataset": WITH_REGIONS.assign_coords(y=[1, 2, 3])},
                KeyError,
                "'y'.*not stored",
            ),
            (
                {"x": slice(2)},
                {"dataset": WITH_REGIONS.assign(z=1)},
                ValueError,
                r"drop_vars\(\['z'\]\)",
            ),
        ],
    )
    def test_mistakes_say_what_is_right(self, said, more, error, message) -> None:
        with pytest.raises(error, match=message):
            region(said, **more)
