"""OCDBT databases that are damaged, mostly so that no checksum tells: errors that name the file."""

import random

import pytest

import tensorstore_py as ts
from tensorstore_py.kvstores.ocdbt.btree import Leaf, encode_node
from tensorstore_py.kvstores.ocdbt.manifest import decode_manifest, encode_manifest
from tensorstore_py.kvstores.ocdbt.references import DataFile, Reference
from tests.fuzz.databases import databases, mutate_database
from tests.fuzz.trial import attempt

SEEDS = databases()
TRIALS = 20


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: seed.name)
def test_what_is_whole_is_read_without_an_error(seed):
    # Of the versions that are asked for, two are not there, neither to read nor to list.
    assert [type(error) for error in attempt(seed)] == [ts.NotFoundError] * 4


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: seed.name)
def test_what_lies_ends_in_typed_errors_that_name_a_file_and_takes_no_memory(seed):
    errors = []
    for number in range(TRIALS):
        rng = random.Random(f"{seed.name} {number}")
        errors += attempt(mutate_database(rng, seed), measure=number < 3)

    assert sum(isinstance(error, ts.DataLossError) for error in errors) > TRIALS


@pytest.fixture
def opened(tmp_path):
    """A database of one leaf, in a folder beside something that is none of its business."""

    def opened(base, name):
        (tmp_path / "secret").write_bytes(b"secret")
        folder = tmp_path / "db"
        spec = {"driver": "ocdbt", "base": f"file://{folder}/", "config": {"compression": None}}
        ts.KvStore.open(spec, context=ts.Context()).result()["a"] = b"1"
        path = folder / "manifest.ocdbt"
        manifest = decode_manifest(path.read_bytes())
        node = encode_node(Leaf([b"a"], [Reference(DataFile(b"", name), 0, 6)]), None)
        (folder / "d" / "x").write_bytes(node)
        root = Reference(DataFile(base, b"d/x"), 0, len(node))
        version = manifest.versions[-1]._replace(root=root)
        path.write_bytes(encode_manifest(manifest._replace(versions=[version])))
        return ts.KvStore.open(spec, context=ts.Context()).result()

    return opened


@pytest.mark.parametrize("name", [b"../secret", b"d/../../secret", b"./../secret", b".."])
def test_no_path_leads_out_of_the_database(opened, name):
    with pytest.raises(ts.DataLossError, match=r"d/x.*leads out of the database"):
        opened(b"", name).read("a").result()


def test_nor_does_one_of_which_the_base_path_is_a_part(opened, tmp_path):
    kv = opened(b".", b"./secret")
    (tmp_path / "db" / "d").rename(tmp_path / "db" / ".d")

    with pytest.raises(ts.DataLossError, match=r"\.d/x.*leads out of the database"):
        kv.read("a").result()


@pytest.mark.parametrize("name", [b"/secret", b"d/", b"a//b", b"a\0b", b"", b"x" * 300])
def test_what_is_no_key_of_the_store_is_named(opened, name):
    with pytest.raises((ts.DataLossError, ts.SpecError), match=r"db/.*bytes 0 to 6"):
        opened(b"", name).read("a").result()
