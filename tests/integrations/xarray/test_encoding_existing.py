"""Writing to arrays that are there: what must agree."""

import numpy as np
import pytest
import xarray as xr

import tensorstore_py as ts
from tensorstore_py.integrations.xarray.encoding_existing import as_existing, joined
from tensorstore_py.integrations.xarray.writing_documents import Document, Node


def existing(dtype="i2", dims=("y", "x"), attributes=None):
    attributes = attributes or {}
    array = ts.zarr.create(
        (2, 3), chunks=(2, 3), dtype=dtype, dimension_names=dims, attributes=attributes
    )
    document = {"shape": [2, 3], "dimension_names": dims, "attributes": attributes}
    return as_existing("v", Node("v", "array", 3, {"zarr.json": Document(document, b"g")}), array)


def join(variable, stored, region=None, append_dim=None):
    return joined(variable, stored, region=region or {}, append_dim=append_dim)


def test_values_are_encoded_as_those_that_are_stored() -> None:
    stored = existing(attributes={"scale_factor": 0.5, "_FillValue": -1})
    variable = xr.Variable(("y", "x"), [[1.0, np.nan, 2.5], [0, 1, 2]])

    found = join(variable, stored)

    assert found.values.tolist() == [[2, -1, 5], [0, 2, 4]]
    assert found.dtype == np.int16


def test_dimensions_in_another_order_are_put_in_that_of_the_array() -> None:
    found = join(xr.Variable(("x", "y"), np.arange(6).reshape(3, 2)), existing())

    assert found.dims == ("y", "x")
    assert found.values.tolist() == [[0, 2, 4], [1, 3, 5]]


def test_a_region_and_what_grows_have_sizes_of_their_own() -> None:
    assert join(xr.Variable(("y", "x"), [[1]]), existing(), {"x": slice(1, 2), "y": slice(1)})
    assert join(xr.Variable(("y", "x"), [[1, 2, 3]]), existing(), append_dim="y").shape == (1, 3)


@pytest.mark.parametrize(
    ("variable", "message"),
    [
        (xr.Variable(("y", "z"), np.ones((2, 3), "i2")), r"'v'.*'y', 'x'.*'y', 'z'"),
        (
            xr.Variable(("y", "x"), np.ones((2, 4), "i2")),
            r"'v'.*'x': 3.*'x': 4.*append_dim.*region",
        ),
    ],
)
def test_what_differs_is_named_on_both_sides(variable, message) -> None:
    with pytest.raises(ValueError, match=message):
        join(variable, existing())


def test_text_of_another_length_is_not_cut() -> None:
    with pytest.raises(ValueError, match=r"'v'.*U2.*U5"):
        join(xr.Variable(("y", "x"), np.full((2, 3), "abcde")), existing("U2"))


def test_dimensions_must_have_names() -> None:
    with pytest.raises(ValueError, match=r"'v'.*dimension_names"):
        existing(dims=None)
