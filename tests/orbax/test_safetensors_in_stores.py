"""safetensors files that are written into stores: the same bytes, in parts, whole or not there."""

import json

import ml_dtypes
import numpy as np
import obstore.store
import pytest

import tensorstore_py as ts
from tensorstore_py.cli.main import main
from tensorstore_py.testing import FaultServer
from tests.kvstores.s3.fake_s3 import FakeS3
from tests.orbax.checkpoints import LAYOUTS, write_tree

TREE = {
    "cube": np.arange(9 * 7 * 11, dtype="int32").reshape(9, 7, 11),
    "half": np.arange(1001).astype(ml_dtypes.bfloat16),
    "layers": [{"w": np.arange(35.0).reshape(5, 7)}, {"w": np.zeros((0, 3))}],
    "flag": np.array([True, False, True]),
    "step": 7,
}
CONTEXT = {"memory_limit": {"limit_bytes": 60_000}}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return write_tree(tmp_path_factory.mktemp("stores") / "ckpt", LAYOUTS["zarr3"], TREE)


@pytest.fixture(scope="module")
def wanted(root):
    file = root.parent / "m.safetensors"
    ts.orbax.to_safetensors(root, file).result()
    return file.read_bytes()


@pytest.fixture
def fake():
    return FakeS3()


@pytest.fixture
def bucket(fake):
    server = FaultServer(fake.handle, ())
    with server.running():
        yield {
            "driver": "s3", "bucket": "bucket", "endpoint": server.url, "aws_region": "us-east-1",
            "aws_credentials": {"type": "anonymous"}, "path": "run/m.safetensors",
        }  # fmt: skip


def written(root, store, **options):
    """What is stored there."""
    where = ts.orbax.to_safetensors(root, store, **options).result()
    return where, bytes(store.read("").result().value)


@pytest.mark.parametrize("place", ["memory://a/m.safetensors", "memory://a.zip|zip:m.safetensors"])
@pytest.mark.parametrize("limit", [None, 60_000, 30_000])
def test_stores_that_take_values_whole(root, wanted, place, limit):
    context = ts.Context({} if limit is None else {"memory_limit": {"limit_bytes": limit}})
    store = ts.KvStore.open(place, context=context).result()

    where, found = written(root, store, context=context)

    assert (where, found) == ([place], wanted)
    with pytest.raises(ts.AlreadyExistsError, match=r"m\.safetensors.* is there already"):
        ts.orbax.to_safetensors(root, store, context=context).result()
    ts.orbax.to_safetensors(root, store, context=context, replace=True).result()


def test_a_store_that_runs_on_the_loop(root, wanted):
    store = ts.KvStore.open(obstore.store.MemoryStore()).result() / "m.safetensors"

    assert written(root, store, context=ts.Context(CONTEXT))[1] == wanted


def test_several_files_and_their_index(root):
    context = ts.Context()
    store = ts.KvStore.open("memory://run/", context=context).result()

    names = ts.orbax.to_safetensors(
        root, store / "m.safetensors", shard_bytes=2000, context=context
    ).result()

    assert names[-1] == "memory://run/m.safetensors.index.json"
    index = json.loads(store["m.safetensors.index.json"])
    assert [f"memory://run/{file}" for file in sorted(set(index["weight_map"].values()))] == names[
        :-1
    ]
    group = ts.Group.open(f"{names[-1]}|safetensors:", context=context).result()
    np.testing.assert_array_equal(group["cube"].read().result(), TREE["cube"])


def test_a_file_larger_than_memory_is_refused_where_it_must_be_whole(root):
    context = ts.Context({"memory_limit": {"limit_bytes": 3000}})
    store = ts.KvStore.open("memory://run/", context=context).result()
    with pytest.raises(ts.ResourceExhaustedError, match=r"takes a value as a whole.*memory_limit"):
        ts.orbax.to_safetensors(root, store / "m.safetensors", context=context).result()
    assert store.list().result() == []


class TestParts:
    SIZE = 3_000_000

    @pytest.fixture
    def large(self, tmp_path):
        values = np.arange(self.SIZE, dtype="float32").reshape(1000, -1)
        return write_tree(tmp_path / "ckpt", LAYOUTS["zarr3"], {"a": values, "b": np.ones(3)})

    def test_of_a_file_that_never_is_in_memory(self, large, bucket, fake, tmp_path):
        context = ts.Context({"memory_limit": {"limit_bytes": 8 * 2**20}})
        ts.orbax.to_safetensors(large, tmp_path / "m.safetensors").result()

        ts.orbax.to_safetensors(large, bucket, context=context).result()

        stored = fake.values["run/m.safetensors"]
        assert stored.body == (tmp_path / "m.safetensors").read_bytes()
        assert stored.etag.endswith('-3"')

    def test_what_fails_leaves_nothing(self, large, bucket, fake):
        (large / "a/c/1/1").write_bytes(b"short")
        context = ts.Context({"memory_limit": {"limit_bytes": 8 * 2**20}})

        with pytest.raises(ts.DataLossError):
            ts.orbax.to_safetensors(large, bucket, context=context).result()

        assert (fake.values, fake.uploads) == ({}, {})

    def test_a_real_server(self, large, moto_s3, monkeypatch):
        for name, value in moto_s3.environment.items():
            monkeypatch.setenv(name, value)
        context = ts.Context({"memory_limit": {"limit_bytes": 8 * 2**20}})
        where = {
            "driver": "s3", "bucket": moto_s3.make_bucket(), "endpoint": moto_s3.endpoint,
            "aws_region": moto_s3.region, "path": "m.safetensors",
        }  # fmt: skip

        ts.orbax.to_safetensors(large, where, context=context).result()

        file = ts.Group.open({"driver": "safetensors", "base": where}).result()
        assert sorted(file) == ["a", "b"]
        assert file["a"][999, 2999].read().result() == self.SIZE - 1


class TestDirectories:
    @pytest.mark.parametrize("replace", [True, False])
    def test_of_this_machine(self, root, tmp_path, replace):
        with pytest.raises(
            ts.FailedPreconditionError, match=r"is a directory; name a file in it.*m.*safetensors"
        ):
            ts.orbax.to_safetensors(root, tmp_path, replace=replace).result()

    def test_of_stores(self, root):
        for where in ("memory://a/", "memory://"):
            with pytest.raises(ts.SpecError, match=r"dest: .*is a directory; name a file in it"):
                ts.orbax.to_safetensors(root, where)

    def test_the_command_says_so(self, root, tmp_path, capsys):
        assert main(["orbax", "to-safetensors", str(root), str(tmp_path), "--replace"]) == 1
        said = capsys.readouterr().err
        assert "is a directory; name a file" in said
        assert "Errno" not in said


def test_a_url_of_this_machine_is_a_local_file(root, tmp_path, wanted):
    file = tmp_path / "m.safetensors"

    assert ts.orbax.to_safetensors(root, file.as_uri()).result() == [file]
    assert file.read_bytes() == wanted
