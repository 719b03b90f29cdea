"""New arrays in a group, by all the names."""

from typing import Any

import numpy as np
import pytest
import zarr

import tensorstore_py as ts


@pytest.fixture(params=[2, 3])
def group(request):
    return ts.zarr.group(zarr_format=request.param).create_group("g")


LIKE = np.arange(6, dtype="i2").reshape(2, 3)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda group: group.create("a/b", (2, 3), dtype="i2"), np.zeros((2, 3))),
        (lambda group: group.create_array("a/b", shape=(2, 3), dtype="i2"), np.zeros((2, 3))),
        (lambda group: group.create_array("a/b", data=LIKE), LIKE),
        (lambda group: group.create_dataset("a/b", data=LIKE), LIKE),
        (lambda group: group.array("a/b", LIKE), LIKE),
        (lambda group: group.empty("a/b", (2, 3), dtype="i2"), np.zeros((2, 3))),
        (lambda group: group.zeros("a/b", (2, 3), dtype="i2"), np.zeros((2, 3))),
        (lambda group: group.ones("a/b", (2, 3), dtype="i2"), np.ones((2, 3))),
        (lambda group: group.full("a/b", (2, 3), 7, dtype="i2"), np.full((2, 3), 7)),
        (lambda group: group.empty_like("a/b", LIKE), np.zeros((2, 3))),
        (lambda group: group.zeros_like("a/b", LIKE), np.zeros((2, 3))),
        (lambda group: group.ones_like("a/b", LIKE), np.ones((2, 3))),
        (lambda group: group.full_like("a/b", LIKE, 7), np.full((2, 3), 7)),
    ],
)
def test_each_makes_one(group, make, expected):
    z = make(group)
    assert (z.path, z.zarr_format, z.dtype) == ("g/a/b", group.zarr_format, np.int16)
    np.testing.assert_array_equal(z[:], expected)
    assert group["a/b"] == z
    with pytest.raises(ValueError, match="exists already"):
        make(group)


def test_what_is_there_may_be_replaced(group):
    group.zeros("a/b", 3)
    assert group.ones("a", 4, overwrite=True)[:].tolist() == [1] * 4
    assert "a/b" not in group


def test_attributes_and_names_of_dimensions_are_stored(tmp_path):
    for zarr_format in (2, 3):
        path = tmp_path / str(zarr_format)
        root = ts.zarr.open_group(path, mode="w", zarr_format=zarr_format)
        root.zeros("a", (2, 3), dimension_names=["y", "x"], attributes={"unit": "m"})
        theirs: Any = zarr.open_group(path, mode="r")["a"]
        assert theirs.attrs["unit"] == "m"
        if zarr_format == 2:
            assert theirs.attrs["_ARRAY_DIMENSIONS"] == ["y", "x"]
        else:
            assert theirs.metadata.dimension_names == ("y", "x")


class TestRequire:
    def test_makes_what_is_not_there(self, group):
        assert group.require_array("a", 3, "i4")[:].tolist() == [0, 0, 0]
        assert group.require_dataset("b", (2,), compression="gzip").compressor["id"] == "gzip"

    def test_takes_what_is_there(self, group):
        group.array("a", np.arange(3, dtype="i4"))
        assert group.require_array("a", 3, "i8")[2] == 2
        assert group.require_dataset("a", (3,), "i4", exact=True)[2] == 2

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ((4, "i4"), ValueError, "has shape \\(3,\\), not 4"),
            ((3, "i2"), TypeError, "has dtype int32, not int16"),
            ((3, "i8", True), TypeError, "has dtype int32, not int64"),
        ],
    )
    def test_which_must_agree(self, group, arguments, error, message):
        group.array("a", np.arange(3, dtype="i4"))
        with pytest.raises(error, match=message):
            group.require_array("a", *arguments)

    def test_and_be_no_group(self, group):
        group.create_group("a")
        with pytest.raises(ValueError, match="there is a group, not an array, at /g/a"):
            group.require_array("a", 3)


def test_wrong_arguments_say_what_is_right(group):
    with pytest.raises(TypeError, match='did you mean "chunks"'):
        group.zeros("a", 3, chunk=2)
    with pytest.raises(ValueError, match="either shape"):
        group.create_array("a")
    with pytest.raises(ValueError, match="but the data has"):
        group.create_array("a", data=LIKE, shape=7)


def test_what_is_read_only_makes_none(group):
    seen = ts.zarr.Group(group.ts, read_only=True)
    with pytest.raises(ValueError, match="mode='r\\+'"):
        seen.zeros("a", 3)
