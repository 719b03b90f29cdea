"""Modes: what must be there, what may not, and what becomes of it."""

from typing import Any

import pytest
import zarr

import tensorstore_py as ts
from tensorstore_py.zarr.opening import as_format, as_mode, find
from tensorstore_py.zarr.storage import store_of

FORMATS = [2, 3]


def make(path, zarr_format=3, **arguments):
    return ts.zarr.open_array(
        path, mode="w", shape=3, dtype="i4", zarr_format=zarr_format, **arguments
    )


@pytest.mark.parametrize("zarr_format", FORMATS)
class TestModes:
    def test_r_reads_only(self, tmp_path, zarr_format):
        make(tmp_path, zarr_format)[:] = 5
        z = ts.zarr.open_array(tmp_path, mode="r")
        assert (z[0], z.read_only, z.zarr_format) == (5, True, zarr_format)
        for change in (lambda: z.resize(4), lambda: z.append([1]), lambda: z.__setitem__(0, 1)):
            with pytest.raises(ValueError, match="mode='r\\+'"):
                change()

    @pytest.mark.parametrize("mode", ["r", "r+"])
    def test_r_needs_something(self, tmp_path, zarr_format, mode):
        with pytest.raises(ValueError, match=r"no array found at .*; pass mode='a' or 'w'"):
            ts.zarr.open_array(tmp_path / "a", mode=mode, zarr_format=zarr_format, shape=3)
        assert not (tmp_path / "a").exists()

    def test_r_plus_writes(self, tmp_path, zarr_format):
        make(tmp_path, zarr_format)
        ts.zarr.open_array(tmp_path, mode="r+")[:] = 7
        assert ts.zarr.open_array(tmp_path, mode="r")[0] == 7

    def test_a_creates_what_is_not_there(self, tmp_path, zarr_format):
        for count in range(2):
            z = ts.zarr.open_array(tmp_path, mode="a", shape=3, dtype="i4", zarr_format=zarr_format)
            assert z[0] == count
            z[:] = z[:] + 1

    def test_w_deletes_what_is_there(self, tmp_path, zarr_format):
        make(tmp_path, 2)[:] = 5
        z = make(tmp_path, zarr_format)
        assert z[0] == 0
        assert [key for key in z.store if "0" in key] == []

    @pytest.mark.parametrize("mode", ["w-", "x"])
    @pytest.mark.parametrize("there", FORMATS)
    def test_w_minus_refuses_what_is_there(self, tmp_path, zarr_format, mode, there):
        arguments: dict[str, Any] = {"shape": 3, "dtype": "i4"}
        ts.zarr.open_array(tmp_path, mode=mode, zarr_format=there, **arguments)
        with pytest.raises(ValueError, match=r"there is a Zarr array at .*overwrite=True"):
            ts.zarr.open_array(tmp_path, mode=mode, zarr_format=zarr_format, **arguments)


def test_a_new_array_has_a_shape():
    with pytest.raises(ValueError, match="pass shape="):
        ts.zarr.open_array(mode="w")


def test_a_mode_is_one_of_them():
    with pytest.raises(ValueError, match="'r', 'r\\+', 'a', 'w', 'w-', 'x', not 'q'"):
        ts.zarr.open(mode="q")
    assert as_mode(None, store_of(None)) == "a"
    assert as_mode(None, ts.zarr.MemoryStore(read_only=True)) == "r"
    assert as_mode("x", store_of(None)) == "w-"


def test_a_format_is_one_of_them():
    assert [as_format(each) for each in (None, 2, 3)] == [None, 2, 3]
    with pytest.raises(ValueError, match="2 or 3, not 4"):
        ts.zarr.open(zarr_format=4)


def test_what_is_there_is_found():
    store = ts.zarr.MemoryStore()
    ts.zarr.zeros(3, store=store, path="a/b", zarr_format=2)
    ts.zarr.zeros(3, store=store, path="c/d", zarr_format=3)
    assert [find(store, path, None) for path in ("a", "a/b", "c", "c/d", "e")] == [
        ("group", 2),
        ("array", 2),
        ("group", 3),
        ("array", 3),
        None,
    ]
    assert find(store, "a/b", 3) is None
    assert find(store, "c/d", 2) is None


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_groups_above_are_made(tmp_path, zarr_format):
    z = ts.zarr.ones(
        3, store=tmp_path, path="a/b//c/", zarr_format=zarr_format, attributes={"x": 1}
    )
    assert (z.path, z.name, z.basename) == ("a/b/c", "/a/b/c", "c")
    root: Any = zarr.open_group(tmp_path, mode="r")
    assert root["a/b/c"][0] == 1
    assert dict(root["a/b/c"].attrs) == {"x": 1}
    assert [name for name, _ in root["a"].groups()] == ["b"]
    assert ts.zarr.open_array(tmp_path, path="a/b/c")[0] == 1


def test_a_path_leads_nowhere_else():
    with pytest.raises(ValueError, match='the part "\\.\\."'):
        ts.zarr.zeros(3, path="a/../b")


def test_a_group_is_no_array(tmp_path):
    ts.zarr.group(tmp_path)
    with pytest.raises(ValueError, match=r"there is a group, not an array, .*open_group"):
        ts.zarr.open_array(tmp_path, mode="r")


def test_resizes_of_others_show_where_that_is_asked_for(tmp_path):
    z = make(tmp_path)
    fresh = ts.zarr.open_array(tmp_path, cache_metadata=False)
    kept = ts.zarr.open_array(tmp_path)
    z.resize(5)
    assert (fresh.shape, kept.shape) == ((5,), (3,))
    assert fresh[4] == 0
