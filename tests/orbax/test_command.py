"""`tspy orbax`: what it prints of checkpoints that are sound, damaged, or none."""

import json

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py.cli.main import main
from tests.orbax.checkpoints import LAYOUTS, mark, write_tree


@pytest.fixture
def root(tmp_path):
    root = mark(tmp_path / "ckpt")
    write_tree(root / "good", LAYOUTS["zarr3"], {"v": np.ones(2), "w": np.arange(3)})
    write_tree(root / "params", tree={"k": np.ones(2)})
    return root


@pytest.fixture
def damaged(root):
    (root / "params/_METADATA").write_text("{")
    (root / "good/v/zarr.json").unlink()
    return root


def test_sound(root, capsys):
    assert main(["orbax", "check", str(root)]) == 0
    assert capsys.readouterr().out == "nothing is damaged\n"
    assert main(["orbax", "info", str(root)]) == 0
    assert "damaged" not in capsys.readouterr().out


def test_what_is_damaged_is_named_and_the_rest_is_told(damaged, capsys):
    assert main(["orbax", "info", str(damaged)]) == 0
    told = capsys.readouterr().out
    assert "arrays:  1\n" in told
    assert "damaged: " in told
    assert "good.v: " in told
    assert "params: " in told

    assert main(["orbax", "ls", str(damaged)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["good.v", "damaged"]
    assert lines[1].split() == ["good.w", "(3,)", "int64", "24", "B"]

    assert main(["orbax", "check", "--json", str(damaged)]) == 1
    assert sorted(json.loads(capsys.readouterr().out)) == ["good.v", "params"]


def test_check_reads_what_opens(tmp_path, capsys):
    root = write_tree(tmp_path / "ckpt", LAYOUTS["zarr3"], {"w": np.arange(1000)})
    (root / "w/c/0").write_bytes(b"no zstd")

    assert main(["orbax", "check", "--memory-limit", "1KiB", str(root)]) == 1
    assert capsys.readouterr().out.startswith("w: ")


def test_an_array_of_zarr_is_no_checkpoint(tmp_path, capsys):
    ts.open(
        {"driver": "zarr3", "kvstore": (tmp_path / "a").as_uri()},
        create=True, dtype="int8", shape=[4],
    ).result()  # fmt: skip

    assert main(["orbax", "info", str(tmp_path / "a")]) == 1
    said = capsys.readouterr()
    assert "is no Orbax checkpoint: it has zarr.json" in said.err
    assert said.out == ""
