import json
import pickle

import numpy as np
import pytest
import xarray as xr

import tensorstore_py as ts


def array(group, name, shape, labels, **options):
    domain = ts.IndexDomain(shape=shape, labels=labels)
    return group.create_array(name, dtype="int32", domain=domain, **options).result()


@pytest.fixture(params=[2, 3])
def path(request, tmp_path):
    group = ts.Group.open(tmp_path, create=True, zarr_format=request.param).result()
    array(group, "a", [3], ["x"])
    return tmp_path


def opened(path, **options):
    return xr.open_dataset(path, engine="tensorstore", **options)


def test_a_variable_without_names_of_dimensions_is_named(path):
    group = ts.Group.open(path).result()
    group.create_array("nameless", dtype="int32", shape=[3]).result()

    with pytest.raises(ts.UnsupportedError, match='variable "nameless" has no names for its 1 dim'):
        opened(path)
    assert set(opened(path, drop_variables=["nameless"])) == {"a"}
    group.create_array("scalar", dtype="int32", shape=[]).result()
    with pytest.raises(ts.UnsupportedError, match="nameless"):
        opened(path)
    assert set(opened(path, drop_variables="nameless")) == {"a", "scalar"}


def test_dimensions_of_two_sizes_are_named_with_both_variables(path):
    array(ts.Group.open(path).result(), "b", [4, 2], ["x", "y"])

    with pytest.raises(
        ts.MismatchError,
        match=r'dimension "x" has size 3 in variable "a", but 4 in variable "b", in file:.*drop',
    ):
        opened(path)
    assert set(opened(path, drop_variables={"a"})) == {"b"}


def test_a_codec_that_is_not_there_is_said_of_its_variable(tmp_path):
    group = ts.Group.open(tmp_path, create=True).result()
    array(group, "a", [3], ["x"])
    document = tmp_path / "a" / "zarr.json"
    metadata = json.loads(document.read_text())
    codecs = [*metadata["codecs"], {"name": "unheard_of"}]
    document.write_text(json.dumps({**metadata, "codecs": codecs}))

    with pytest.raises(ts.DataLossError, match=r'variable "a" cannot be opened.*unheard_of.*drop'):
        opened(tmp_path)
    document.write_text(json.dumps({**metadata, "shape": "none"}))
    with pytest.raises(ts.DataLossError, match=r'variable "a".*shape'):
        opened(tmp_path)


def test_what_netcdf_hides_is_hidden(tmp_path):
    group = ts.Group.open(
        tmp_path, create=True, zarr_format=2, attributes={"_NCProperties": "v", "title": "t"}
    ).result()
    array(group, "a", [3], ["x"], attributes={"_nczarr_attr": {}, "unit": "m"})
    array(group, "__values__", [3], ["x"])

    found = opened(tmp_path)

    assert found.attrs == {"title": "t"}
    assert found["a"].attrs == {"unit": "m"}
    assert set(found) == {"a", None}


def test_what_closes_a_dataset_goes_to_another_process(path):
    found = pickle.loads(pickle.dumps(opened(path)))

    found.close()

    np.testing.assert_array_equal(found["a"].values, [0, 0, 0])
