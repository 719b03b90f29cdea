"""The HTTP store against nginx, which serves most of what there is to read."""

import os

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py.errors import PermissionDeniedError
from tensorstore_py.plugin.kvstore import KvStore
from tensorstore_py.testing import KvStoreReadSuite


class TestSuite(KvStoreReadSuite):
    """The promises of reading, of nginx as it comes."""

    way = ""

    @pytest.fixture
    def store(self, nginx_http, open_store):
        self.files = nginx_http.files
        return open_store(nginx_http.site).store

    @pytest.fixture
    def prefix(self, nginx_http):
        return f"{self.way}{nginx_http.name}/"

    async def put(self, _: KvStore, key: str, value: bytes) -> None:
        path = self.files.parent / key.removeprefix(self.way)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(value)
        # Of long ago: a change within the last second might not be the last one.
        os.utime(path, (1e9, 1e9))


class TestSuiteWithoutRanges(TestSuite):
    way = "no-ranges/"


class TestSuiteWithoutEtags(TestSuite):
    way = "no-etags/"


class TestSuitePacked(TestSuite):
    """Where values are packed for clients that ask for it, which the store does not."""

    way = "gzip/"


@pytest.fixture
def array(nginx_http):
    data = np.arange(64 * 64, dtype="<u2").reshape(64, 64)
    made = ts.open(
        f"file://{nginx_http.files}/a/|zarr3:", create=True, dtype="uint16", shape=[64, 64],
        chunk_layout=ts.ChunkLayout(write_chunk_shape=[32, 32], read_chunk_shape=[8, 8]),
    ).result()  # fmt: skip
    made[...] = data
    return data


@pytest.mark.parametrize("way", ["", "no-ranges/", "no-etags/", "gzip/", "kept/", "moved/"])
def test_a_sharded_array(nginx_http, array, way):
    url = f"{nginx_http.site}/{way}{nginx_http.name}/a/"

    store = ts.open(url).result()

    np.testing.assert_array_equal(store.read().result(), array)
    np.testing.assert_array_equal(store[5:60:11, 33].read().result(), array[5:60:11, 33])


def test_what_is_refused_is_an_error(nginx_http):
    with pytest.raises(PermissionDeniedError, match=r"cannot read .*/refused/a.*403 Forbidden"):
        ts.KvStore.open(f"{nginx_http.site}/refused/").result().read("a").result()
