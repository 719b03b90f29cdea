"""Store objects of zarr-python as stores of this package, held to the promises of all stores."""

import pytest
from zarr.storage import LocalStore, MemoryStore

from tensorstore_py.kvstores.zarr_store import ZarrStore
from tensorstore_py.plugin import UNKNOWN, ByteRange
from tensorstore_py.testing import KvStoreSuite

VALUE = b"0123456789"


class ZarrStoreSuite(KvStoreSuite):
    bad_keys = ("", "/a", "a/", "a//b", ".", "a/..", "a/./b", "a\0")

    @pytest.mark.parametrize(
        ("start", "stop"),
        [(0, None), (0, 10), (2, 5), (3, None), (0, 0), (4, 4), (10, 10), (10, None), (9, 10),
         (-1, None), (-3, None), (-10, None)],
    )  # fmt: skip
    def test_reads_a_range(self, store, prefix, start, stop):
        """The generation of a part is not known, since such stores have no versions."""
        self.filled(store, prefix, ["a"], VALUE)

        result = self.get(store, prefix + "a", ByteRange(start, stop))

        assert (result.state, bytes(result.value)) == ("value", VALUE[start:stop])
        whole = ByteRange(start, stop).is_whole
        assert (result.stamp.generation == UNKNOWN) is not whole


class TestMemory(ZarrStoreSuite):
    @pytest.fixture
    def store(self):
        return ZarrStore(MemoryStore())


class TestLocal(ZarrStoreSuite):
    @pytest.fixture
    def store(self, tmp_path):
        return ZarrStore(LocalStore(tmp_path / "data"))
