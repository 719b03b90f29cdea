import pytest

import tensorstore_py as ts
from tensorstore_py.cli.main import main


def test_rechunks(tmp_path, capsys):
    old, new = tmp_path / "old", tmp_path / "new"
    domain = ts.IndexDomain(shape=[6, 6], labels=["y", "x"])
    spec = {"driver": "zarr3", "kvstore": f"file://{old}/"}
    array = ts.open(spec, create=True, dtype="int16", domain=domain).result()
    array[...] = 3

    assert main(["rechunk", str(old), str(new), "--chunks", "x=2,y=-1", "--shards", "6"]) == 0

    found = ts.open(new).result()
    assert found.chunk_layout.read_chunk.shape == (6, 2)
    assert found.chunk_layout.write_chunk.shape == (6, 6)
    assert (found.read().result() == 3).all()
    assert "copied 1 array" in capsys.readouterr().out


def test_needs_to_be_told(capsys):
    with pytest.raises(SystemExit):
        main(["rechunk", "a", "b"])
    assert "--chunks" in capsys.readouterr().err
