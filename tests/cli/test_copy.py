import pytest

import tensorstore_py as ts
from tensorstore_py.cli.main import main


@pytest.fixture
def old(tmp_path):
    root = ts.Group.open(tmp_path / "old", create=True).result()
    array = root.create_array("a/b", dtype="int16", shape=[6]).result()
    array[...] = 3
    root.create_array("c", dtype="int8", shape=[2]).result()
    return tmp_path / "old"


def test_copies(old, tmp_path, capsys):
    new = tmp_path / "new"

    code = main(["copy", str(old), str(new), "--chunks", "4", "--zarr-format", "2", "--dtype",
                 "int32", "--include", "a", "--codec", '{"id": "zlib", "level": 1}',
                 "--manifest", str(tmp_path / "m.json")])  # fmt: skip

    assert code == 0
    assert capsys.readouterr().out.startswith("copied 1 array")
    found = ts.Group.open(new).result()
    assert (found.zarr_format, list(found)) == (2, ["a"])
    assert found["a/b"].read().result().tolist() == [3] * 6
    assert found["a/b"].dtype == ts.int32
    assert found["a/b"].chunk_layout.read_chunk.shape == (4,)
    assert (tmp_path / "m.json").exists()


def test_says_what_would_be_copied(old, tmp_path, capsys):
    assert main(["copy", str(old), str(tmp_path / "new"), "--dry-run", "--exclude", "c"]) == 0
    assert "create array /a/b" in capsys.readouterr().out
    assert not (tmp_path / "new").exists()


def test_says_why_not(old, capsys):
    assert main(["copy", str(old / "nowhere"), str(old)]) == 1
    assert "nothing to copy" in capsys.readouterr().err


def test_nothing_is_copied_to_memory(old, capsys):
    for command in (["copy", str(old)], ["rechunk", str(old), "--chunks", "2"]):
        with pytest.raises(SystemExit):
            main([*command, "memory://x/"])
        assert "memory is gone when the command ends" in capsys.readouterr().err


def test_a_dimension_that_is_not_there_is_refused_by_name(tmp_path, capsys):
    spec = {"driver": "zarr3", "kvstore": tmp_path / "image"}
    domain = ts.IndexDomain(shape=[4, 6], labels=["y", "x"])
    ts.open(spec, create=True, dtype="uint8", domain=domain).result()

    code = main(["copy", str(tmp_path / "image"), str(tmp_path / "new"), "--chunks", "w=3"])

    assert code == 1
    told = capsys.readouterr().err
    assert told == 'chunks: no dimension is named "w"; there are "x", "y"\n'
    assert not (tmp_path / "new").exists()


def test_the_suffix_chooses_the_format(old, tmp_path, capsys):
    array = str(old / "c")

    assert main(["copy", array, str(tmp_path / "img.n5"), "--codec", "gzip"]) == 0
    assert main(["copy", array, str(tmp_path / "img.zip")]) == 0
    assert main(["copy", array, str(tmp_path / "img.h5")]) == 1

    n5 = ts.open({"driver": "n5", "kvstore": tmp_path / "img.n5"}).result()
    assert n5.shape == (2,)
    assert n5.codec is not None
    compression = n5.codec.to_json()["compression"]
    assert isinstance(compression, dict)
    assert compression["type"] == "gzip"
    archive = ts.open((tmp_path / "img.zip").as_uri()).result()
    kvstore = archive.spec().kvstore
    assert kvstore is not None
    assert kvstore.to_json()["driver"] == "zip"
    assert "name it .zarr, .n5 or .zip" in capsys.readouterr().err
