"""Plans: what is to be written, before anything is."""

import numpy as np
import pytest
import xarray as xr

import tensorstore_py as ts
from tensorstore_py.integrations.xarray.writing_documents import Documents, Form
from tensorstore_py.integrations.xarray.writing_place import as_place
from tensorstore_py.integrations.xarray.writing_plan import Options, Planner

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


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_plan_changes_nothing(zarr_format) -> None:
    files = stored(zarr_format)
    before = dict(files)

    plan(files, DATASET, zarr_format, mode="a", append_dim="x")
    plan(files, DATASET.rename(v="w"), zarr_format, mode="a")

    assert files == before


def test_new_arrays_have_documents_without_conditions() -> None:
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
def test_arrays_that_grow_have_documents_that_rest_on_those_that_were_read(zarr_format) -> None:
    files = stored(zarr_format)
    found = plan(files, DATASET, zarr_format, mode="a", append_dim="x")

    (array,) = found.arrays
    assert (array.new, array.region) == (False, (slice(3, 6),))
    ((document, condition),) = array.documents.values()
    assert document["shape"] == [6]
    assert condition


def test_arrays_of_which_values_are_written_have_none() -> None:
    (array,) = plan(stored(), DATASET, mode="r+").arrays

    assert (array.documents, array.region) == ({}, (slice(0, 3),))


def test_a_group_of_that_name_is_in_the_way() -> None:
    files = stored()
    ts.zarr.open_group(files).create_group("w")

    with pytest.raises(ValueError, match=r"'w'.*a group is at"):
        plan(files, DATASET.rename(v="w"), mode="a")


def test_an_array_is_in_the_way_of_a_group() -> None:
    files: dict[str, bytes] = {}
    ts.zarr.create((3,), store=files, dtype="f8")

    with pytest.raises(ts.MismatchError, match="an array, not a group"):
        plan(files, DATASET, mode="a")


def test_encoding_of_what_is_not_written_is_a_mistake() -> None:
    with pytest.raises(KeyError, match=r"'w'.*\['v'\]"):
        plan({}, DATASET, encoding={"w": {}}, mode="w")


def test_dimensions_of_a_group_are_looked_for_in_all_its_arrays() -> None:
    new = xr.Dataset({"w": ("x", np.arange(3.0))})

    assert plan(stored(), new, mode="a", append_dim="x").arrays[0].new
    with pytest.raises(ValueError, match=r"'day'.*'x': 3"):
        plan(stored(), new, mode="a", append_dim="day")
