"""Arrays and groups copied into a group."""

import io
from typing import Any

import numpy as np
import pytest
import zarr

import tensorstore_py as ts

FORMATS = [2, 3]


@pytest.fixture(params=FORMATS)
def source(request):
    root = ts.zarr.group(zarr_format=request.param, attributes={"title": "all"})
    root.array("a/b", np.arange(12).reshape(3, 4), chunks=(2, 3), attributes={"unit": "m"})
    root.array("a/c/d", ["x", "yz"], chunks=1, compressors=ts.zarr.GZip(1))
    root["a"].attrs["depth"] = 1
    root.zeros("e", 3, dtype="i2", fill_value=7)
    return root


@pytest.fixture(params=FORMATS)
def dest(request):
    return ts.zarr.group(zarr_format=request.param)


def test_a_group_is_copied_with_all_that_is_in_it(source, dest):
    lines: list[str] = []
    found = ts.zarr.copy(source["a"], dest, log=lines.append)
    assert found == (4, 0, 12 * 8 + 2 * 8)
    assert [line.split()[:2] for line in lines] == [
        ["copy", "/a"],
        ["copy", "/a/b"],
        ["copy", "/a/c"],
        ["copy", "/a/c/d"],
    ]
    np.testing.assert_array_equal(dest["a/b"][:], source["a/b"][:])
    assert dest["a/c/d"][:].tolist() == ["x", "yz"]
    assert (dest["a/b"].chunks, dest["a/c/d"].compressor) == ((2, 3), ts.zarr.GZip(1))
    assert dest["a"].attrs["depth"] == 1
    assert dest["a/b"].attrs["unit"] == "m"


def test_an_array_is_copied_by_another_name_and_layout(source, dest):
    ts.zarr.copy(source["a/b"], dest, name="new/b", chunks=(1, 4), dtype="f4", without_attrs=True)
    copied = dest["new/b"]
    assert (copied.chunks, copied.dtype.name, copied.attrs.asdict()) == ((1, 4), "float32", {})
    np.testing.assert_array_equal(copied[:], source["a/b"][:])


def test_everything_in_a_group(source, dest):
    assert ts.zarr.copy_all(source, dest).n_copied == 5
    names = [path for path, _ in dest.members(max_depth=None)]
    assert sorted(names) == ["a", "a/b", "a/c", "a/c/d", "e"]
    assert dest.attrs["title"] == "all"
    assert dest["e"].fill_value == 7


def test_shallow(source, dest):
    assert ts.zarr.copy(source["a"], dest, shallow=True).n_copied == 2
    assert list(dest["a"]) == ["b"]


def test_nothing_is_done_in_a_dry_run(source, dest):
    assert ts.zarr.copy_all(source, dest, dry_run=True) == (5, 0, 0)
    assert list(dest) == []
    assert dest.attrs.asdict() == {}


class TestThere:
    @pytest.fixture(autouse=True)
    def _there(self, source, dest):
        dest.zeros("e", 3, dtype="i2", chunks=2)[0] = 1
        self.copy = lambda **options: ts.zarr.copy(source["e"], dest, **options)
        self.dest = dest

    def test_raises(self):
        with pytest.raises(ValueError, match="/e exists already; pass if_exists="):
            self.copy()

    def test_is_replaced(self):
        assert self.copy(if_exists="replace").n_copied == 1
        assert self.dest["e"][:].tolist() == [7, 7, 7]

    def test_is_skipped(self):
        assert self.copy(if_exists="skip") == (0, 1, 0)
        assert self.dest["e"][:].tolist() == [1, 0, 0]

    def test_is_skipped_if_it_is_whole(self):
        assert self.copy(if_exists="skip_initialized").n_copied == 1
        self.dest["e"][:] = 1
        assert self.copy(if_exists="skip_initialized").n_skipped == 1

    def test_must_be_one_of_these(self):
        with pytest.raises(ValueError, match="'skip_initialized'"):
            self.copy(if_exists="no")


def test_what_acts_alike_is_a_source():
    theirs: Any = zarr.open_group({}, mode="w")
    theirs.create_array("a/b", data=np.arange(5), chunks=(2,), attributes={"x": 1})
    theirs.create_array("s", data=np.array(5))
    dest = ts.zarr.group()
    assert ts.zarr.copy_all(theirs, dest).n_copied == 3
    assert dest["a/b"][:].tolist() == [0, 1, 2, 3, 4]
    assert (dest["a/b"].chunks, dest["a/b"].attrs["x"], dest["s"][()]) == ((2,), 1, 5)


def test_lines_go_to_files(tmp_path, source):
    ts.zarr.copy(source["e"], ts.zarr.group(), log=tmp_path / "log")
    assert (tmp_path / "log").read_text() == "copy /e (3,) int16\n"
    text = io.StringIO()
    ts.zarr.copy(source["e"], ts.zarr.group(), log=text)
    assert text.getvalue() == "copy /e (3,) int16\n"


def test_what_cannot_be_copied(source, dest):
    wrong: Any = 3
    with pytest.raises(ValueError, match="pass name="):
        ts.zarr.copy(source, dest)
    with pytest.raises(TypeError, match="dest must be a Group"):
        ts.zarr.copy(source["e"], wrong)
    with pytest.raises(TypeError, match="neither an array nor a group"):
        ts.zarr.copy(wrong, dest, name="x")
