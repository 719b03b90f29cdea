"""Opening whatever is there."""

from typing import Any

import pytest
import zarr

import tensorstore_py as ts

FORMATS = [2, 3]


@pytest.mark.parametrize("zarr_format", FORMATS)
class TestOpen:
    def test_gives_what_is_there(self, tmp_path, zarr_format):
        root = ts.zarr.open(tmp_path, mode="w", zarr_format=zarr_format)
        root.zeros("a", 3)
        for mode in (None, "r", "r+", "a"):
            assert isinstance(ts.zarr.open(tmp_path, mode), ts.zarr.Group)
            found = ts.zarr.open(tmp_path, mode, path="a")
            assert isinstance(found, ts.zarr.Array)
            assert (found.path, found.read_only) == ("a", mode == "r")

    def test_creates_what_is_asked_for(self, tmp_path, zarr_format):
        made = ts.zarr.open(
            tmp_path / "a", zarr_format=zarr_format, shape=3, dtype="i4", attributes={"x": 1}
        )
        assert (made.shape, made.attrs["x"], made.zarr_format) == ((3,), 1, zarr_format)
        group = ts.zarr.open(tmp_path / "b", zarr_format=zarr_format, attributes={"x": 1})
        assert (list(group), group.attrs["x"], group.zarr_format) == ([], 1, zarr_format)

    @pytest.mark.parametrize("mode", ["r", "r+"])
    def test_nothing_is_there(self, tmp_path, zarr_format, mode):
        with pytest.raises(ValueError, match="no array or group found"):
            ts.zarr.open(tmp_path, mode, zarr_format=zarr_format)

    def test_something_is_there(self, tmp_path, zarr_format):
        ts.zarr.open(tmp_path, mode="w-", zarr_format=zarr_format)
        with pytest.raises(ValueError, match="replace it with mode='w'"):
            ts.zarr.open(tmp_path, mode="w-", zarr_format=zarr_format)
        with pytest.raises(ValueError, match="there is a Zarr group"):
            ts.zarr.open(tmp_path, mode="w-", zarr_format=zarr_format, shape=3)
        assert len(ts.zarr.open(tmp_path, mode="w", zarr_format=zarr_format)) == 0


def test_an_array_is_asked_for_where_a_group_is(tmp_path):
    ts.zarr.group(tmp_path)
    for mode in ("a", "r"):
        with pytest.raises(ValueError, match="there is a group, not an array"):
            ts.zarr.open(tmp_path, mode, shape=3)


def test_what_only_arrays_have_needs_a_shape():
    with pytest.raises(TypeError, match="'dtype' is for a new array: pass shape=, too"):
        ts.zarr.open(dtype="i4")


def test_a_read_only_store_is_opened_for_reading():
    files: dict[str, bytes] = {}
    ts.zarr.array([1, 2], store=files)
    z = ts.zarr.open(ts.zarr.MemoryStore(files, read_only=True))
    assert (z.read_only, z[1]) == (True, 2)


class TestGroup:
    def test_is_not_there(self):
        with pytest.raises(ValueError, match=r"no group found at .*; pass mode='a'"):
            ts.zarr.open_group({}, mode="r")

    def test_is_created_or_opened(self, tmp_path):
        assert ts.zarr.group(tmp_path, path="a/b") == ts.zarr.group(tmp_path, path="a/b")
        ts.zarr.group(tmp_path).zeros("c", 3)
        assert sorted(ts.zarr.group(tmp_path)) == ["a", "c"]
        assert list(ts.zarr.group(tmp_path, overwrite=True)) == []

    def test_has_memory_of_its_own(self):
        assert ts.zarr.group() != ts.zarr.group()

    def test_is_created_once(self, tmp_path):
        made = ts.zarr.create_group(tmp_path, path="a", attributes={"x": 1}, zarr_format=2)
        assert (made.zarr_format, made.attrs["x"]) == (2, 1)
        with pytest.raises(ValueError, match="replace it with mode='w'"):
            ts.zarr.create_group(tmp_path, path="a")
        assert ts.zarr.create_group(tmp_path, path="a", overwrite=True).attrs.asdict() == {}

    def test_arrays_are_none(self, tmp_path):
        ts.zarr.zeros(3, store=tmp_path)
        with pytest.raises(ValueError, match="is an array, not a group"):
            ts.zarr.open_group(tmp_path)


@pytest.mark.parametrize("zarr_format", FORMATS)
class TestConsolidated:
    def test_is_read_and_written_as_by_zarr_python(self, tmp_path, zarr_format):
        root = ts.zarr.open_group(tmp_path, mode="w", zarr_format=zarr_format)
        root.array("a/b", [1, 2, 3])
        with pytest.raises(ValueError, match="no consolidated metadata"):
            ts.zarr.open_consolidated(tmp_path)

        opened = ts.zarr.consolidate_metadata(tmp_path)

        assert opened.ts.consolidated
        assert ts.zarr.open_consolidated(tmp_path)["a/b"][:].tolist() == [1, 2, 3]
        theirs: Any = zarr.open_consolidated(str(tmp_path))
        assert theirs["a/b"][:].tolist() == [1, 2, 3]

    def test_need_not_be_used(self, tmp_path, zarr_format):
        ts.zarr.open_group(tmp_path, mode="w", zarr_format=zarr_format)
        ts.zarr.consolidate_metadata(tmp_path)
        ts.zarr.zeros(3, store=tmp_path, path="new", zarr_format=zarr_format)
        assert list(ts.zarr.open_group(tmp_path)) == []
        assert list(ts.zarr.open_group(tmp_path, use_consolidated=False)) == ["new"]


def test_consolidated_metadata_create_nothing():
    with pytest.raises(ValueError, match="mode 'r' or 'r\\+', not 'w'"):
        ts.zarr.open_consolidated({}, mode="w")


def test_tree():
    root = ts.zarr.group()
    root.zeros("a/b", 3, dtype="i4")
    assert str(ts.zarr.tree(root)) == "/\n└── a\n    └── b (3,) int32"
    assert str(ts.zarr.tree(root.ts, level=1)) == "/\n└── a"
