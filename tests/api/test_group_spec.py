from pathlib import Path

import pytest

import tensorstore_py as ts
from tensorstore_py._api.group_spec import asked_mode, group_model, places


def found(spec, zarr_format=None):
    return places(group_model(spec), ts.Context(), zarr_format)


@pytest.mark.parametrize(
    "spec",
    [
        "memory://data/",
        "memory://data",
        {"driver": "memory", "path": "data"},
        {"driver": "auto", "kvstore": "memory://data/"},
        '{"driver": "memory", "path": "data/"}',
        ts.KvStore.Spec("memory://data"),
        ts.KvStore.open("memory://data/").result(),
        ts.Spec("memory://data/"),
    ],
)
def test_a_place_may_be_of_any_format(spec):
    all_of_them = found(spec)

    versions = [place.form.zarr_format for place in all_of_them if place.form.zarr_format]
    assert versions[:2] == [3, 2]
    assert {place.where.path for place in all_of_them} == {"data/"}
    assert {place.where.driver for place in all_of_them} == {"memory"}


@pytest.mark.parametrize(
    ("spec", "driver"),
    [
        ("memory://data/|zarr2:", "zarr"),
        ({"driver": "zarr3", "kvstore": "memory://data/", "create": True}, "zarr3"),
    ],
)
def test_a_driver_is_a_format(spec, driver):
    (place,) = found(spec)

    assert place.arrays.driver == driver
    assert place.array("a/b").store_spec().path == "data/a/b/"
    assert place.array("").store_spec().path == "data/"
    assert not place.array("a").open_mode().create


def test_a_local_path_is_a_directory(tmp_path: Path):
    assert found(tmp_path / "x")[0].where.path == f"{tmp_path.as_posix()}/x/"


def test_a_version_is_a_format():
    (place,) = found("memory://", 2)

    assert place.form.format_id == "zarr2"


def test_caching_is_for_the_arrays():
    spec = {
        "driver": "auto",
        "kvstore": "memory://",
        "recheck_cached_data": False,
        "cache_pool": {"total_bytes_limit": 1000},
    }

    arrays = found(spec)[0].arrays

    assert arrays.recheck_cached_data is False
    assert arrays.cache_pool.value.limit_bytes == 1000


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ("data/x", ts.SpecError, "pathlib.Path"),
        ({"driver": "zarr3", "kvstore": "memory://", "dtype": "int8"}, ts.SpecError, "dtype: an"),
        ({"driver": "zarr3", "kvstore": "memory://", "rank": 2}, ts.SpecError, "rank: an array"),
        ({"driver": "zarr3"}, ts.SpecError, "kvstore: this member is required"),
        (
            {"driver": "json", "kvstore": "memory://a.json"},
            ts.UnsupportedError,
            '"json" has no groups',
        ),
        ("nowhere://", ts.SpecError, "nowhere"),
        (1, ts.SpecError, "1"),
    ],
)
def test_what_is_no_place_is_refused(spec, error, message):
    with pytest.raises(error, match=message):
        found(spec)


def test_versions_that_are_not():
    with pytest.raises(ts.SpecError, match="zarr_format must be 2 or 3 here, not 4"):
        found("memory://", 4)
    with pytest.raises(ts.SpecError, match="zarr_format must be 3 here, not 2"):
        found("memory://|zarr3:", 2)


CREATE = {"driver": "zarr3", "kvstore": "memory://", "create": True}


@pytest.mark.parametrize(
    ("spec", "flags", "mode"),
    [
        ("memory://", (None, None, None), ts.OpenMode(open=True)),
        ("memory://", (None, True, None), ts.OpenMode(create=True)),
        ("memory://", (True, True, None), ts.OpenMode(open=True, create=True)),
        ("memory://", (None, True, True), ts.OpenMode(create=True, delete_existing=True)),
        (CREATE, (None, None, None), ts.OpenMode(create=True)),
        ({**CREATE, "open": True}, (None, None, None), ts.OpenMode(open=True, create=True)),
        (CREATE, (True, False, None), ts.OpenMode(open=True)),
    ],
)
def test_modes(spec, flags, mode):
    assert asked_mode(group_model(spec), *flags) == mode


@pytest.mark.parametrize("flags", [(None, None, True), (True, True, True), (False, None, None)])
def test_modes_that_exclude_each_other(flags):
    with pytest.raises(ts.SpecError):
        asked_mode(group_model("memory://"), *flags)
