"""The arguments of whatever creates an array, as editors and consoles see them."""

import inspect

import pytest

import tensorstore_py as ts
from tensorstore_py.zarr.arguments import ArrayArguments, named


def test_only_what_is_given_is_said():
    assert named(dtype="f4", compressors=None) == {"dtype": "f4", "compressors": None}


def test_every_argument_is_named():
    parameters = inspect.signature(named).parameters

    assert [*parameters][:-1] == [*ArrayArguments.__annotations__]


@pytest.mark.parametrize("function", ["create", "open_array", "zeros", "ones", "empty"])
def test_signatures_name_them_all(function):
    parameters = inspect.signature(getattr(ts.zarr, function)).parameters

    assert {*ArrayArguments.__annotations__, "shape"} <= {*parameters}


def test_an_unknown_one_is_still_refused():
    with pytest.raises(TypeError, match="compressors"):
        ts.zarr.create(5, compression="gzip")  # type: ignore[call-arg]
