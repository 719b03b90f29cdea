import asyncio
import zlib
from pathlib import Path

import pytest

from tensorstore_py.errors import DataLossError
from tests.codecs.zarr_python.foreign import CODECS, VALUES, created, read_by_zarr, register


@pytest.fixture(autouse=True)
def _registered() -> None:
    register()


async def test_a_loop_that_runs_is_left_alone(tmp_path: Path) -> None:
    opened = created(tmp_path)
    await opened.write(VALUES)
    loop = asyncio.get_running_loop()

    # On this thread, which has a loop.
    assert opened.read().result().tolist() == VALUES.tolist()
    assert (await opened.read()).tolist() == VALUES.tolist()
    assert asyncio.get_running_loop() is loop


def test_damage_is_data_loss_with_the_key(tmp_path: Path) -> None:
    opened = created(tmp_path)
    opened[...] = VALUES
    (tmp_path / "c/0/0").write_bytes(b"damaged")
    (tmp_path / "c/0/1").write_bytes(zlib.compress(bytes(23)))

    with pytest.raises(DataLossError, match=r'c/0/0": codec "test.press": Error -3'):
        opened[0, 0].read().result()
    with pytest.raises(DataLossError, match=r'c/0/1": decoded to 23 bytes, expected 24'):
        opened[0, 3].read().result()
    assert opened[2].read().result().tolist() == VALUES[2].tolist()


def test_shards_hold_chunks_of_such_codecs(tmp_path: Path) -> None:
    shards = {
        "name": "sharding_indexed",
        "configuration": {"chunk_shape": [1, 3], "codecs": CODECS},
    }
    opened = created(tmp_path, [shards])

    opened[...] = VALUES
    opened[1, 1] = 0

    expected = VALUES.copy()
    expected[1, 1] = 0
    assert opened.read().result().tolist() == expected.tolist()
    assert read_by_zarr(tmp_path) == expected.tolist()
