"""`to_zarr`, read back by xarray's own zarr engine."""

from __future__ import annotations

import json
import multiprocessing
import zipfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest
import xarray as xr
import zarr
from zarr.codecs import BloscCodec, GzipCodec

import tensorstore_py as ts
from tensorstore_py.integrations.xarray import to_zarr

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*Zarr V3 specification"),
    pytest.mark.filterwarnings("ignore:.*Zarr format 3 specification"),
    pytest.mark.filterwarnings("ignore:.*does not have a Zarr V3"),
]
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


@FORMATS
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("chunked", [False, True])
def test_values_of_all_types_are_what_they_were(kind, zarr_format, chunked, tmp_path) -> None:
    values = np.asarray(KINDS[kind])
    written = xr.Dataset({"v": ([f"d{each}" for each in range(values.ndim)], values, {"a": 1})})
    if chunked and values.dtype != object:
        written = written.chunk({"d0": 4} if values.ndim and values.size else {})

    to_zarr(written, tmp_path / "a.zarr", zarr_format=zarr_format)

    # xarray reads single bytes as the characters of a text, unless it is told not to
    found = read(tmp_path / "a.zarr", decode_timedelta=True, concat_characters=kind != "byte")
    xr.testing.assert_identical(found, written.compute())


@FORMATS
def test_records_are_stored(zarr_format, tmp_path) -> None:
    records = np.array([(1, 2.5), (3, 4.5)], [("a", "i2"), ("b", "f4")])

    to_zarr(xr.Dataset({"v": ("x", records)}), tmp_path / "a", zarr_format=zarr_format)

    # of version 3 they are read by zarr-python from its version 3.2 on
    np.testing.assert_array_equal(ts.zarr.open(tmp_path / "a")["v"][:], records)


@FORMATS
def test_attributes_and_encoding_are_stored_as_xarray_does(zarr_format, tmp_path) -> None:
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
def test_chunks_shards_and_codecs_are_those_of_the_encoding(zarr_format, tmp_path) -> None:
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


def test_what_was_read_with_a_codec_is_written_with_it(tmp_path) -> None:
    codec = BloscCodec(cname="zstd", clevel=3)
    days(0, 3).to_zarr(tmp_path / "a", encoding={"t2m": {"compressors": (codec,)}})

    to_zarr(read(tmp_path / "a"), tmp_path / "b")

    one, other = (zarr.open_array(tmp_path / name / "t2m").compressors for name in "ab")
    assert one == other


@FORMATS
def test_chunks_of_dask_become_chunks_even_if_they_are_uneven(zarr_format, tmp_path) -> None:
    values = np.arange(12.0)
    written = xr.Dataset({"v": ("x", da.from_array(values, chunks=((5, 4, 3),)))})

    to_zarr(written, tmp_path / "a", zarr_format=zarr_format)

    assert zarr.open_array(tmp_path / "a" / "v").chunks == (5,)
    xr.testing.assert_identical(read(tmp_path / "a"), written.compute())


@pytest.fixture(scope="module")
def processes() -> Iterator[ProcessPoolExecutor]:
    """Two processes that know nothing of this one."""
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        yield pool


@pytest.mark.parametrize("where", ["threads", "processes"])
def test_blocks_need_not_fit_the_stored_chunks(where, request, tmp_path) -> None:
    pool = request.getfixturevalue("processes") if where == "processes" else None
    values = np.arange(96.0).reshape(8, 12)
    written = xr.Dataset({"v": (("y", "x"), da.from_array(values, chunks=(3, 5)))})

    with dask.config.set(scheduler=where, pool=pool):
        to_zarr(written, tmp_path / "a", encoding={"v": {"chunks": (4, 4), "shards": (8, 8)}})

    xr.testing.assert_identical(read(tmp_path / "a"), written.compute())


def test_aligned_blocks_store_each_chunk_once() -> None:
    stored: list[str] = []

    class Noting(dict):
        def __setitem__(self, key, value):
            stored.append(key)
            super().__setitem__(key, value)

    written = xr.Dataset({"v": ("x", da.arange(12, chunks=5))})
    to_zarr(written, Noting(), encoding={"v": {"chunks": (4,)}}, align_chunks=True)

    assert sorted(key for key in stored if "/c/" in key) == ["v/c/0", "v/c/1", "v/c/2"]


# Modes.


def test_a_new_group_is_refused_where_one_is(tmp_path) -> None:
    to_zarr(days(0, 2), tmp_path / "a")
    before = {name: (tmp_path / "a" / name).read_bytes() for name in files(tmp_path / "a")}

    with pytest.raises(FileExistsError, match="mode='a'") as caught:
        to_zarr(days(0, 3), tmp_path / "a")

    assert isinstance(caught.value, ts.AlreadyExistsError)
    after = {name: (tmp_path / "a" / name).read_bytes() for name in files(tmp_path / "a")}
    assert after == before


@FORMATS
def test_replacing_takes_everything_away_that_was_there(zarr_format, tmp_path) -> None:
    to_zarr(days(0, 2, old=("x", np.arange(4))), tmp_path / "a", zarr_format=5 - zarr_format)

    to_zarr(days(5, 3), tmp_path / "a", mode="w", zarr_format=zarr_format)

    xr.testing.assert_identical(read(tmp_path / "a"), days(5, 3))
    assert not any(name.startswith("old") for name in files(tmp_path / "a"))


@FORMATS
def test_variables_are_added_and_overwritten(zarr_format, tmp_path) -> None:
    to_zarr(days(0, 2), tmp_path / "a", zarr_format=zarr_format)
    both = days(0, 2, rain=("x", np.arange(4))).assign_attrs(title="more")
    both["t2m"] = both["t2m"] + 1  # its attributes are those that are stored

    to_zarr(both, tmp_path / "a", mode="a")

    both["t2m"].attrs = {"units": "K"}
    xr.testing.assert_identical(read(tmp_path / "a"), both)
    xr.testing.assert_identical(read(tmp_path / "a", consolidated=False), both)


def test_only_values_are_written_in_place(tmp_path) -> None:
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


# Appends.


@FORMATS
@pytest.mark.parametrize("chunked", [False, True])
def test_appends_go_on_where_the_last_chunk_is_not_full(zarr_format, chunked, tmp_path) -> None:
    first = {"t2m": {"chunks": (4, 3)}, "time": {"chunks": (4,)}}
    to_zarr(days(0, 3), tmp_path / "a", zarr_format=zarr_format, encoding=first)

    for start, count in (3, 2), (5, 1), (6, 7):
        part = days(start, count)
        to_zarr(part.chunk(time=2) if chunked else part, tmp_path / "a", append_dim="time")

    xr.testing.assert_identical(read(tmp_path / "a"), days(0, 13))
    xr.testing.assert_identical(read(tmp_path / "a", consolidated=False), days(0, 13))


def test_what_is_appended_is_encoded_as_what_is_there(tmp_path) -> None:
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


def test_appending_overwrites_what_does_not_grow_unless_it_is_not_to(tmp_path) -> None:
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
def test_what_does_not_fit_is_refused_and_changes_nothing(part, how, message, tmp_path) -> None:
    to_zarr(days(0, 2), tmp_path / "a")

    with pytest.raises(ValueError, match=message):
        to_zarr(part, tmp_path / "a", **how)

    xr.testing.assert_identical(read(tmp_path / "a"), days(0, 2))


@FORMATS
def test_who_is_overtaken_by_another_append_is_told(zarr_format, tmp_path) -> None:
    to_zarr(days(0, 2), tmp_path / "a", zarr_format=zarr_format)
    transaction = ts.Transaction()
    to_zarr(days(2, 1), tmp_path / "a", append_dim="time", transaction=transaction)
    to_zarr(days(2, 3), tmp_path / "a", append_dim="time")

    with pytest.raises(ts.AbortedError, match="changed by somebody else"):
        transaction.commit_sync()

    xr.testing.assert_identical(read(tmp_path / "a"), days(0, 5))


# Regions.


def test_a_region_is_found_by_its_coordinates(tmp_path) -> None:
    to_zarr(days(0, 6), tmp_path / "a", encoding={"t2m": {"chunks": (4, 3)}})
    part = days(0, 6).isel(time=slice(1, 5), x=slice(1, 3)) + 100

    to_zarr(part, tmp_path / "a", region="auto")

    expected = days(0, 6)
    expected["t2m"][1:5, 1:3] += 100
    xr.testing.assert_identical(read(tmp_path / "a"), expected)


def write_row(place: str, row: int) -> None:
    part = days(0, 12).isel(time=[row]).drop_vars("x") * -1
    to_zarr(part, place, region={"time": slice(row, row + 1)})


def test_regions_that_share_chunks_may_be_written_by_many_processes(processes, tmp_path) -> None:
    place = str(tmp_path / "a")
    shards = {"t2m": {"chunks": (2, 4), "shards": (6, 4)}}
    to_zarr(days(0, 12).chunk(), place, compute=False, encoding=shards)

    for future in [processes.submit(write_row, place, row) for row in range(12)]:
        future.result()

    np.testing.assert_array_equal(read(place)["t2m"], -days(0, 12)["t2m"])


@pytest.mark.parametrize("mode", ["r+", "a"])
def test_a_region_changes_no_metadata(mode, tmp_path) -> None:
    to_zarr(days(0, 4), tmp_path / "a")
    documents = [tmp_path / "a" / name for name in ("zarr.json", "t2m/zarr.json")]
    before = [(each.read_bytes(), each.stat().st_mtime_ns) for each in documents]

    part = days(0, 4).isel(time=slice(1, 3)).drop_vars("x")
    to_zarr(part, tmp_path / "a", region={"time": slice(1, 3)}, mode=mode)

    assert [(each.read_bytes(), each.stat().st_mtime_ns) for each in documents] == before


def test_a_new_variable_is_no_region(tmp_path) -> None:
    to_zarr(days(0, 4), tmp_path / "a")
    part = days(0, 2)[["t2m"]].rename(t2m="rain").drop_vars(["x", "time"])

    with pytest.raises(ValueError, match="'rain' is not stored yet"):
        to_zarr(part, tmp_path / "a", region={"time": slice(2, 4)}, mode="a")


# Transactions.


@FORMATS
def test_nothing_is_seen_before_the_commit_and_all_of_it_after(zarr_format, tmp_path) -> None:
    with ts.Transaction() as transaction:
        to_zarr(days(0, 2), tmp_path / "a", transaction=transaction, zarr_format=zarr_format)
        to_zarr(days(2, 2), tmp_path / "a", append_dim="time", transaction=transaction)
        assert not (tmp_path / "a").exists()

    xr.testing.assert_identical(read(tmp_path / "a"), days(0, 4))


def test_an_abort_leaves_nothing(tmp_path) -> None:
    to_zarr(days(0, 2), tmp_path / "a")

    transaction = ts.Transaction()
    to_zarr(days(2, 2).chunk(), tmp_path / "a", append_dim="time", transaction=transaction)
    to_zarr(days(0, 2), tmp_path / "b", transaction=transaction)
    transaction.abort()

    xr.testing.assert_identical(read(tmp_path / "a"), days(0, 2))
    assert not (tmp_path / "b").exists()


def test_what_is_computed_later_is_in_no_transaction(tmp_path) -> None:
    with pytest.raises(ValueError, match="compute=False"):
        to_zarr(days(0, 2), tmp_path / "a", transaction=ts.Transaction(), compute=False)


# Later.


@FORMATS
def test_blocks_are_written_later_and_all_else_at_once(zarr_format, tmp_path) -> None:
    written = days(0, 4).chunk(time=3)

    later = to_zarr(written, tmp_path / "a", compute=False, zarr_format=zarr_format)

    found = read(tmp_path / "a")
    xr.testing.assert_identical(found["time"], days(0, 4)["time"])
    assert np.isnan(found["t2m"]).all()
    assert later.compute() is None
    xr.testing.assert_identical(read(tmp_path / "a"), days(0, 4))


# Trees.


def sites() -> xr.DataTree:
    return xr.DataTree.from_dict(
        {
            "/": xr.Dataset(coords={"x": [0, 10, 20, 30]}, attrs={"title": "sites"}),
            "/north": days(0, 2).drop_vars("x"),
            "/north/hill": xr.Dataset({"height": ("x", np.arange(4))}),
            "/south": xr.Dataset(attrs={"empty": True}),
        }
    )


@FORMATS
@pytest.mark.parametrize("consolidated", [None, False])
def test_trees_are_what_they_were(zarr_format, consolidated, tmp_path) -> None:
    to_zarr(sites(), tmp_path / "a", zarr_format=zarr_format, consolidated=consolidated)

    asked = consolidated is None
    with xr.open_datatree(tmp_path / "a", engine="zarr", consolidated=asked) as found:
        xr.testing.assert_identical(found, sites())
    assert not (tmp_path / "a" / "north" / "x").exists()


def test_inherited_coordinates_are_repeated_if_asked(tmp_path) -> None:
    to_zarr(sites(), tmp_path / "a", write_inherited_coords=True)

    assert (tmp_path / "a" / "north" / "x" / "zarr.json").exists()


@FORMATS
def test_trees_are_added_to_and_overwritten(zarr_format, tmp_path) -> None:
    to_zarr(sites(), tmp_path / "a", zarr_format=zarr_format)
    tree = sites()
    tree["/north/t2m"] = tree["/north/t2m"] * 2
    tree["/west"] = xr.DataTree(xr.Dataset({"v": ("n", [1, 2])}))

    to_zarr(tree, tmp_path / "a", mode="a")

    with xr.open_datatree(tmp_path / "a", engine="zarr") as found:
        xr.testing.assert_equal(found, tree)


def test_trees_say_what_they_cannot_do(tmp_path) -> None:
    with pytest.raises(ValueError, match=r"unexpected encoding group.*nowhere"):
        to_zarr(sites(), tmp_path / "a", encoding={"/nowhere": {}})
    with pytest.raises(NotImplementedError, match="append_dim"):
        to_zarr(sites(), tmp_path / "a", append_dim="time")


# Groups and consolidated metadata.


@FORMATS
def test_groups_are_made_with_those_above_them(zarr_format, tmp_path) -> None:
    to_zarr(days(0, 2), tmp_path / "a", group="model/run", zarr_format=zarr_format)
    to_zarr(days(0, 3), tmp_path / "a", group="model/other")

    for consolidated in True, False:
        for name, count in ("run", 2), ("other", 3):
            found = read(tmp_path / "a", group=f"model/{name}", consolidated=consolidated)
            xr.testing.assert_identical(found, days(0, count))


@FORMATS
def test_consolidated_metadata_that_would_not_be_true_is_deleted(zarr_format, tmp_path) -> None:
    to_zarr(days(0, 2), tmp_path / "a", zarr_format=zarr_format)

    to_zarr(days(2, 2), tmp_path / "a", append_dim="time", consolidated=False)

    assert not ts.Group.open(tmp_path / "a").result().consolidated
    xr.testing.assert_identical(read(tmp_path / "a", consolidated=False), days(0, 4))


# Targets.


@pytest.mark.parametrize("kind", ["str", "path", "url", "spec", "kvstore", "store", "group"])
def test_targets_are_whatever_says_where(kind, tmp_path) -> None:
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


def test_an_archive_is_written_once(tmp_path) -> None:
    to_zarr(sites(), tmp_path / "a.zip")

    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        names = archive.namelist()
    assert len(names) == len(set(names))
    unpacked = tmp_path / "a"
    zipfile.ZipFile(tmp_path / "a.zip").extractall(unpacked)
    with xr.open_datatree(unpacked, engine="zarr") as found:
        xr.testing.assert_identical(found, sites())


def test_a_target_names_its_format(tmp_path) -> None:
    to_zarr(days(0, 2), f"file://{tmp_path}/a/|zarr2:")

    assert json.loads((tmp_path / "a" / ".zgroup").read_bytes()) == {"zarr_format": 2}


# Names.


@pytest.mark.parametrize("name", [None, "v", "x"])
def test_arrays_have_the_names_that_they_had(name, tmp_path) -> None:
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
def test_what_cannot_be_stored_names_itself(written, error, message, tmp_path) -> None:
    with pytest.raises(error, match=message):
        to_zarr(written, tmp_path / "a")

    assert not (tmp_path / "a").exists()


def test_compute_false_needs_dask(monkeypatch, tmp_path) -> None:
    monkeypatch.setitem(__import__("sys").modules, "dask", None)

    with pytest.raises(ModuleNotFoundError, match=r"tensorstore-py\[dask\]"):
        to_zarr(days(0, 1), tmp_path / "a", compute=False)
