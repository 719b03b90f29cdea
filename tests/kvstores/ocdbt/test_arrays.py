"""Arrays in an OCDBT database: what writing many chunks at once costs."""

import numpy as np
import pytest

import tensorstore_py as ts


@pytest.mark.parametrize("driver", ["zarr", "zarr3"])
def test_the_chunks_of_a_write_are_one_version(tmp_path, driver):
    database = {"driver": "ocdbt", "base": {"driver": "file", "path": f"{tmp_path}/"}}
    array = ts.open(
        {"driver": driver, "kvstore": {**database, "path": "a/"}},
        create=True,
        dtype="uint16",
        shape=[200, 30],
        chunk_layout=ts.ChunkLayout(chunk_shape=[1, 10]),
    ).result()
    before = len(list((tmp_path / "d").iterdir()))
    values = np.arange(6000, dtype="uint16").reshape(200, 30)

    array.write(values).result()
    array[3:150, 5:25].write(values[3:150, 5:25] + 1).result()

    after = len(list((tmp_path / "d").iterdir()))
    assert after - before == 2
    values[3:150, 5:25] += 1
    assert np.array_equal(array.read().result(), values)
    assert len(ts.KvStore.open(database).result().list().result()) == 601
