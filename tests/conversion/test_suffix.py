import pathlib

import pytest

import tensorstore_py as ts
from tensorstore_py._conversion.suffix import by_suffix


@pytest.mark.parametrize(
    "given",
    [
        "s3://b/a.zarr",
        "s3://b/a",
        "s3://b/a.n5|zarr3:",
        pathlib.Path("a.zarr"),
        pathlib.Path("a"),
        {"driver": "zarr3", "kvstore": "memory://a.n5/"},
        '{"driver": "file", "path": "a.n5"}',
    ],
)
def test_what_says_nothing_stays(given):
    assert by_suffix(given, None) is given
    assert by_suffix(given, 3) is given


def test_n5_and_zip_are_chosen(tmp_path):
    assert by_suffix(pathlib.Path("a.n5"), None) == {
        "driver": "n5",
        "kvstore": pathlib.Path("a.n5"),
    }
    assert by_suffix("file:///a.N5", None) == {"driver": "n5", "kvstore": "file:///a.N5/"}
    assert by_suffix("file:///a.zip", 2) == "file:///a.zip|zip:"
    assert by_suffix(tmp_path / "a b.zip", None) == f"{(tmp_path / 'a b.zip').as_uri()}|zip:"
    (tmp_path / "a.zip").mkdir()
    assert by_suffix(tmp_path / "a.zip", None) == tmp_path / "a.zip"


def test_contradictions_are_refused(tmp_path):
    with pytest.raises(ts.SpecError, match=r"a\.n5 is named as an array of n5") as caught:
        by_suffix(pathlib.Path("a.n5"), 3)
    assert caught.value.path == ("zarr_format",)
    for name in ("a.h5", "a.nc", "a.tif", "a.npy"):
        with pytest.raises(ts.SpecError, match=r"name it \.zarr, \.n5 or \.zip"):
            ts.copy("memory://", tmp_path / name)
