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
