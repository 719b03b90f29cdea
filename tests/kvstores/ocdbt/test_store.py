"""The ocdbt store: the promises of a store, over other stores and by both kinds of manifest."""

import pytest

import tensorstore_py as ts
from tensorstore_py.kvstores.memory import MemorySpec
from tensorstore_py.plugin.kvstore import KvStore
from tensorstore_py.testing import KvStoreSuite, LoopStore

SMALL_NODES = {"max_decoded_node_bytes": 400, "max_inline_value_bytes": 3}


def database(base, **members) -> KvStore:
    spec = {"driver": "ocdbt", "base": base, **members}
    return ts.KvStore.open(spec).result().store


class TestOverMemory(KvStoreSuite):
    @pytest.fixture(params=["single", "numbered"])
    def store(self, request):
        return database("memory://db/", config={"manifest_kind": request.param})


class TestOverFiles(KvStoreSuite):
    @pytest.fixture
    def store(self, tmp_path):
        return database(f"file://{tmp_path}/")


class TestOfSmallNodes(KvStoreSuite):
    @pytest.fixture
    def store(self):
        config = {**SMALL_NODES, "version_tree_arity_log2": 1, "compression": None}
        return database("memory://db/", config=config, target_data_file_size=1000)


class TestInAnArchive(KvStoreSuite):
    @pytest.fixture
    def store(self):
        return database("memory://a.zip|zip:db/", assume_config=True)


class TestManifestElsewhere(KvStoreSuite):
    """The manifest in a store of the other execution mode."""

    @pytest.fixture
    def store(self, tmp_path, monkeypatch):
        opened = MemorySpec.open
        monkeypatch.setattr(MemorySpec, "open", lambda spec: LoopStore(opened(spec)))
        return database(f"file://{tmp_path}/", manifest="memory://m/", config=SMALL_NODES)
