import pytest
import xarray as xr

from benchmarks.xarray_engine import (
    bulk,
    compare,
    concatenation,
    make_bulk,
    make_many,
    make_tree,
    make_wide,
    many_files,
    opening,
    tree,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore:Consolidated metadata is currently not part in the Zarr"),
]


def same(case, *names):
    found = [case[name]() for name in names]
    for other in found[1:]:
        if isinstance(found[0], xr.DataTree):
            xr.testing.assert_equal(found[0], other)
        else:
            xr.testing.assert_equal(found[0].load(), other.load())


def test_all_engines_open_the_same(tmp_path):
    same(opening(make_wide(tmp_path, 3)), "tensorstore_py", "zarr")
    same(tree(str(make_tree(tmp_path, 11))), "tensorstore_py", "zarr")
    paths = make_many(tmp_path, 3)
    same(concatenation(paths), "tensorstore_py", "zarr")
    same(many_files(paths), "tensorstore_py", "zarr")
    same(bulk(make_bulk(tmp_path, 16)), "tensorstore_py", "zarr", "ours, load()")


def test_a_row_for_each(capsys):
    compare("title", {"tensorstore_py": lambda: 1, "other": lambda: 2}, rounds=2)

    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("| title | tensorstore_py |")
    assert first.endswith("| 1.00 |")
    assert second.startswith("| title | other |")
