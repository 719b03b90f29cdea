import json

import numpy as np
import pytest
import xarray as xr

import tensorstore_py as ts


@pytest.fixture
def path(tmp_path):
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


def test_names_of_dimensions_are_axes(path):
    found = xr.open_dataset(path, engine="tensorstore")

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
        lambda path: f"{path.as_uri()}/|n5:",
        lambda path: {"driver": "n5", "kvstore": path.as_uri() + "/"},
        lambda path: f"{path}/",
    ],
    ids=["URL", "JSON", "str"],
)
def test_trees_and_what_they_are_opened_from(path, given):
    tree = xr.open_datatree(given(path), engine="tensorstore")

    assert list(tree.groups) == ["/", "/inner"]
    assert tree["inner/w"].sum() == 6
    inner = xr.open_dataset(given(path), engine="tensorstore", group="inner")
    assert list(inner) == ["w"]


def test_what_is_no_group_is_said(path, tmp_path):
    with pytest.raises(ts.MismatchError, match="an array, not a group"):
        xr.open_dataset(path, engine="tensorstore", group="v")
    with pytest.raises(ts.NotFoundError, match=r"no attributes\.json"):
        xr.open_dataset(tmp_path / "b.n5", engine="tensorstore")
    (path / "x" / "attributes.json").write_text("[]")
    with pytest.raises(ts.DataLossError, match="no object"):
        xr.open_dataset(path, engine="tensorstore")
    (path / "x" / "attributes.json").write_text("{")
    with pytest.raises(ts.DataLossError, match="no JSON"):
        xr.open_dataset(path, engine="tensorstore")
