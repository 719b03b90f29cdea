"""`tspy orbax`: what it prints of checkpoints that are sound, damaged, or none."""

import json
import shlex

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


COMMANDS = {
    "orbax": ["ls", "info", "check", "to-safetensors", "from-safetensors"],
    "ocdbt": ["versions", "ls", "check", "diff", "compact", "repair", "name", "dump"],
}


class TestHelp:
    """The examples of the help pages are commands that run."""

    @pytest.fixture
    def prepared(self, tmp_path, moto_s3, monkeypatch):
        monkeypatch.chdir(tmp_path)
        for name, value in {**moto_s3.environment, "AWS_ENDPOINT_URL": moto_s3.endpoint}.items():
            monkeypatch.setenv(name, value)
        bucket = moto_s3.make_bucket()
        tree = {"params": {"w": np.ones((4, 4), "float32")}, "step": 7}
        for root in (f"s3://{bucket}/run/1000/", tmp_path / "run/1000"):
            inner = f"{root}params/" if isinstance(root, str) else root / "params"
            ts.orbax.save(tree, inner).result()
        for root in (f"s3://{bucket}/ckpt/", tmp_path / "ckpt", tmp_path / "copy"):
            ts.orbax.save(tree, root).result()
        ts.orbax.to_safetensors(tmp_path / "ckpt", "model.safetensors").result()
        ts.orbax.to_safetensors(tmp_path / "ckpt", "big.safetensors", shard_bytes=64).result()
        return bucket

    @staticmethod
    def examples(capsys, *command):
        with pytest.raises(SystemExit):
            main([*command, "--help"])
        lines = capsys.readouterr().out.partition("\nexamples:\n")[2].splitlines()
        assert len(lines) >= 2
        return [shlex.split(line)[1:] for line in lines if line]

    @pytest.mark.parametrize(
        ("command", "name"), [(each, name) for each, names in COMMANDS.items() for name in names]
    )
    def test_examples(self, command, name, prepared, tmp_path, capsys):
        for example in self.examples(capsys, command, name):
            words = [word.replace("s3://bucket/", f"s3://{prepared}/") for word in example]
            if name == "to-safetensors":
                (tmp_path / "model.safetensors").unlink(missing_ok=True)
            code = main(words)
            assert code == 0 or name == "diff", capsys.readouterr().err
