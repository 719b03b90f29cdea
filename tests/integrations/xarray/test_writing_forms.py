"""Documents of new arrays."""

import json
from typing import Any

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py.integrations.xarray.writing_documents import Form
from tensorstore_py.integrations.xarray.writing_forms import Forms


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_documents_are_those_that_ts_zarr_makes(zarr_format) -> None:
    form = Form(zarr_format)
    forms = Forms(form)
    asked: dict[str, Any] = {"dtype": np.dtype("f4"), "chunks": (2, 3), "fill_value": np.nan}

    for shape in (4, 6), (5, 7), (4, 6):
        files: dict[str, bytes] = {}
        ts.zarr.create(shape, store=files, zarr_format=zarr_format, **asked)
        assert forms.metadata(shape, asked) == json.loads(files[form.array_key])


def test_arrays_that_differ_in_anything_are_not_mistaken_for_each_other() -> None:
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


def test_chunks_that_are_chosen_depend_on_the_shape() -> None:
    forms, asked = Forms(Form(3)), {"dtype": np.dtype("f8"), "chunks": None}
    grids = [forms.metadata(shape, asked)["chunk_grid"] for shape in ((5,), (10**7,))]

    assert grids[0]["configuration"]["chunk_shape"] == [5]
    assert grids[0] != grids[1]


def test_mistakes_are_those_of_ts_zarr() -> None:
    with pytest.raises(ValueError, match="shards"):
        Forms(Form(2)).metadata((4,), {"dtype": np.dtype("i2"), "shards": (2,), "chunks": (1,)})
