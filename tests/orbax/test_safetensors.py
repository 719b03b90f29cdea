"""Checkpoints as safetensors files and back, by calls and by the command line."""

import json

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy

import tensorstore_py as ts
from tensorstore_py.cli.main import main
from tests.orbax.checkpoints import LAYOUTS, TREE, assert_same, mark, write_tree


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return write_tree(tmp_path_factory.mktemp("orbax") / "ckpt", LAYOUTS["not merged"])


def read(path):
    found = dict(ts.Group.open(path).result().members(None))
    return {
        name: node.read().result()
        for name, node in found.items()
        if isinstance(node, ts.TensorStore)
    }


def test_the_tree_comes_back(root, tmp_path):
    files = ts.orbax.to_safetensors(root, tmp_path / "m.safetensors").result()
    ts.orbax.from_safetensors(files[0], tmp_path / "again").result()

    assert files == [tmp_path / "m.safetensors"]
    assert_same(ts.orbax.open(tmp_path / "again").result().read().result(), TREE)


def test_tensors_are_named_by_their_keys(root, tmp_path):
    names = ["params.dense", "opt"]
    ts.orbax.to_safetensors(root, tmp_path / "m.safetensors", names=names).result()

    found = read(tmp_path / "m.safetensors")

    assert sorted(found) == ["opt.0.mu", "opt.1.mu", "params.dense.bias", "params.dense.kernel"]
    assert found["opt.0.mu"].dtype == np.int8  # there is no int4
    assert_same(found["params.dense.bias"], TREE["params"]["dense"]["bias"])


@pytest.mark.parametrize("limit", [1000, 100_000, 10_000_000])
@pytest.mark.parametrize("chunks", [[7, 11, 3], [1, 1, 5], [64, 64, 64]])
def test_blocks_of_any_shape_make_the_same_file(tmp_path, limit, chunks):
    values = np.arange(20 * 17 * 13, dtype="int32").reshape(20, 17, 13)
    array = ts.open(
        {"driver": "zarr3", "kvstore": "memory://"}, create=True, dtype="int32",
        shape=values.shape, chunk_layout=ts.ChunkLayout(chunk_shape=chunks),
    ).result()  # fmt: skip
    array[...] = values
    where = {"driver": "file", "path": f"{tmp_path}/ckpt/"}
    ts.open(
        {"driver": "zarr3", "kvstore": {**where, "path": f"{tmp_path}/ckpt/a.w/"}}, create=True,
        dtype="int32", shape=values.shape, chunk_layout=ts.ChunkLayout(chunk_shape=chunks),
    ).result()[...] = values  # fmt: skip
    (tmp_path / "ckpt/_sharding").touch()  # which makes it one of Orbax
    context = ts.Context({"memory_limit": {"limit_bytes": limit}})

    ts.orbax.to_safetensors(tmp_path / "ckpt", tmp_path / "m.safetensors", context=context).result()

    np.testing.assert_array_equal(read(tmp_path / "m.safetensors")["a.w"], values)


def test_several_files_and_their_index(root, tmp_path):
    files = ts.orbax.to_safetensors(
        root, tmp_path / "m.safetensors", shard_bytes=30, dtype="float32"
    ).result()
    *shards, index = files

    assert shards[0].name == f"m-00001-of-{len(shards):05}.safetensors"
    assert index.name == "m.safetensors.index.json"
    said = json.loads(index.read_text())
    assert set(said["weight_map"].values()) == {file.name for file in shards}
    assert said["metadata"]["total_size"] == sum(
        array.nbytes for file in shards for array in read(file).values()
    )
    ts.orbax.from_safetensors(index, tmp_path / "again", dtype=ml_dtypes.bfloat16).result()
    again = ts.orbax.open(tmp_path / "again").result().read().result()
    assert again["params"]["dense"]["kernel"].dtype == ml_dtypes.bfloat16
    assert (again["step"], again["name"], again["no_keys"]) == (7, "run é", {})


def test_files_of_others_are_cut_at_dots(tmp_path):
    text = b"".join(
        b'"%s":{"dtype":"U8","shape":[1],"data_offsets":[%d,%d]},' % (name, n, n + 1)
        for n, name in enumerate([b"a.b", b"c", b"c.d", b"e..f"])
    )
    header = b"{" + text[:-1] + b"}"
    path = tmp_path / "m.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"\0\1\2\3")

    ts.orbax.from_safetensors(path, tmp_path / "ckpt").result()

    found = ts.orbax.open(tmp_path / "ckpt").result()
    assert found["a"]["b"].read().result().tolist() == [0]
    assert sorted(found.keys()) == ["a", "c", "c.d", "e..f"]


def test_nothing_is_replaced_unless_it_is_asked_for(root, tmp_path):
    path = tmp_path / "m.safetensors"
    path.write_text("mine")

    with pytest.raises(ts.AlreadyExistsError, match=r"m\.safetensors is there already"):
        ts.orbax.to_safetensors(root, path).result()
    assert path.read_text() == "mine"
    ts.orbax.to_safetensors(root, path, replace=True).result()
    assert "step" in read(path)


def test_what_cannot_be_a_file_is_refused_at_once(root):
    with pytest.raises(ts.SpecError, match="shard_bytes: must be positive"):
        ts.orbax.to_safetensors(root, "m.safetensors", shard_bytes=0)


def test_what_fails_leaves_nothing(tmp_path):
    root = write_tree(tmp_path / "ckpt", LAYOUTS["zarr3"], {"a": np.ones(2), "b": np.arange(400)})
    (root / "b/c/1").write_bytes(b"short")
    (tmp_path / "out").mkdir()

    with pytest.raises(ts.DataLossError):
        ts.orbax.to_safetensors(root, tmp_path / "out/m.safetensors").result()

    assert list((tmp_path / "out").iterdir()) == []


def test_a_type_that_is_not_there_is_named(tmp_path):
    write_tree(tmp_path / "ckpt", tree={"a": np.ones(2), "z": np.ones(2, "complex128")})

    with pytest.raises(ts.UnsupportedError, match='"z" is of type complex128'):
        ts.orbax.to_safetensors(tmp_path / "ckpt", tmp_path / "m.safetensors").result()
    with pytest.raises(ts.NotFoundError, match="no array named x; it has a, z"):
        ts.orbax.to_safetensors(tmp_path / "ckpt", tmp_path / "m", names=["x"]).result()


def test_the_library_itself_reads_what_is_written(root, tmp_path):
    kept = ["params.dense.kernel", "opt", "step", "done"]
    path = tmp_path / "m.safetensors"
    ts.orbax.to_safetensors(root, path, names=kept, metadata={"format": "np"}).result()

    found = safetensors.numpy.load_file(path)

    np.testing.assert_array_equal(found["params.dense.kernel"], TREE["params"]["dense"]["kernel"])
    assert found["step"] == 7


class TestCommand:
    def test_ls(self, root, capsys):
        assert main(["orbax", "ls", str(root)]) == 0
        lines = capsys.readouterr().out.splitlines()

        assert any(line.split() == ["params.dense.kernel", "(3,", "4)", "float32", "48", "B"]
                   for line in lines)  # fmt: skip
        assert lines[-1] == "8 arrays, 79 B"

    def test_ls_as_json(self, root, capsys):
        assert main(["orbax", "ls", str(root), "--json"]) == 0
        found = {each["name"]: each for each in json.loads(capsys.readouterr().out)}

        assert found["params.dense.bias"] == {
            "name": "params.dense.bias", "shape": [4], "dtype": "bfloat16", "bytes": 8,
        }  # fmt: skip
        assert found["name"] == {"name": "name", "value": "run é"}

    def test_info(self, tmp_path, capsys):
        for step in (1, 2):
            write_tree(mark(tmp_path / str(step)) / "default", tree={"w": np.ones(2)})
        mark(tmp_path / "3.orbax-checkpoint-tmp", committed=False)

        assert main(["orbax", "info", str(tmp_path)]) == 0
        assert "layout:" in capsys.readouterr().out
        assert main(["orbax", "info", str(tmp_path), "--json", "--step", "1"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert (found["step"], found["steps"], found["arrays"]) == (1, [1, 2], 1)
        assert found["incomplete_steps"] == ["3.orbax-checkpoint-tmp"]

    def test_there_and_back(self, root, tmp_path, capsys):
        file, again = tmp_path / "m.safetensors", tmp_path / "again"
        command = ["orbax", "to-safetensors", str(root), str(file), "--names", "params.*",
                   "--dtype", "float32", "--memory-limit", "1MiB"]  # fmt: skip
        assert main(command) == 0
        assert capsys.readouterr().out == f"{file}\n"
        assert main(command) == 1
        assert "already" in capsys.readouterr().err
        assert main([*command, "--replace", "--shard-size", "20B"]) == 0
        assert len(capsys.readouterr().out.splitlines()) == 4

        assert main(["orbax", "from-safetensors", str(file), str(again)]) == 0
        kernel = ts.orbax.open(again).result()["params.dense.kernel"]
        assert_same(kernel.read().result(), TREE["params"]["dense"]["kernel"])

    @pytest.mark.parametrize("size", ["0", "x", "5 XB", "-1"])
    def test_a_size_that_is_none(self, root, size, capsys):
        with pytest.raises(SystemExit):
            main(["orbax", "to-safetensors", str(root), "m", "--shard-size", size])
        assert "size such as 5GB" in capsys.readouterr().err

    def test_nothing_is_there(self, tmp_path, capsys):
        assert main(["orbax", "ls", str(tmp_path / "gone")]) == 1
        assert "no Orbax checkpoint" in capsys.readouterr().err


def test_what_is_not_there_is_named_with_what_is(tmp_path, capsys):
    ts.orbax.save({"a": np.ones(2), "b": np.ones(2)}, tmp_path / "run").result()
    file, run = tmp_path / "m.safetensors", str(tmp_path / "run")
    spec = json.dumps({"driver": "file", "path": f"{run}/"})
    assert main(["orbax", "to-safetensors", spec, str(file)]) == 0
    for arguments, problem in (
        (["to-safetensors", run, str(file), "--names", "c"], "no array named c; it has a, b"),
        (["from-safetensors", str(file), run, "--names", "c"], "no tensor named c; it has a, b"),
        (["from-safetensors", str(tmp_path / "gone"), run], "name a safetensors file"),
    ):
        capsys.readouterr()
        assert main(["orbax", *arguments]) == 1
        assert problem in capsys.readouterr().err


def test_a_local_file_opens_as_what_it_is_and_not_as_a_spec_file(root, tmp_path):
    ts.orbax.to_safetensors(root, tmp_path / "m.safetensors").result()
    archive = f"{(tmp_path / 'a.zip').as_uri()}|zip:"
    ts.open({"driver": "zarr3", "kvstore": archive}, create=True, dtype="int8", shape=[2]).result()

    with pytest.raises(ts.MismatchError, match=r"this is a group.*ts\.Group\.open"):
        ts.open(tmp_path / "m.safetensors").result()
    assert ts.open(tmp_path / "a.zip").result().shape == (2,)
