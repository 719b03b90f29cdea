import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py._conversion.stored_chunks import ChunkCopy
from tensorstore_py._runtime.inline import run_inline
from tensorstore_py.kvstores.memory import MemoryStore


def pair(shape, chunks, **options):
    context = ts.Context()
    layout = ts.ChunkLayout(chunk_shape=chunks)
    old, new = (
        ts.open(
            {"driver": "zarr3", "kvstore": f"memory://{name}/", "metadata": metadata},
            create=True, dtype="int16", shape=shape, chunk_layout=layout, context=context, **options
        ).result()
        for name, metadata in (("old", {}), ("new", {"chunk_key_encoding": {"name": "v2"}}))
    )  # fmt: skip
    return old, new


@pytest.mark.parametrize(
    ("shape", "chunks"), [([5, 7], [2, 3]), ([4], [4]), ([], []), ([0, 3], [2, 2]), ([7], [2])]
)
def test_copies_what_is_stored_whatever_its_name(shape, chunks):
    old, new = pair(shape, chunks)
    data = np.arange(1, 1 + old.size, dtype="int16").reshape(shape)
    old[...] = data
    copy = ChunkCopy.of(old._driver, new._driver)

    for block in copy.blocks:
        run_inline(copy.run(block))

    np.testing.assert_array_equal(new.read().result(), data)


def test_what_is_not_stored_is_not_copied():
    old, new = pair([6], [2])
    old[2] = 1
    copy = ChunkCopy.of(old._driver, new._driver)

    for block in copy.blocks:
        run_inline(copy.run(block))

    assert sorted(new.kvstore.list().result()) == [b"1", b"zarr.json"]
    assert (copy.item_bytes, copy.told_bytes) == (2, 2)


def test_a_store_that_copies_by_itself_is_asked_to(monkeypatch):
    old, new = pair([6], [2])
    old[...] = 1
    copied = []

    async def copy_to(_store, key, _target, target_key):
        copied.append((key, target_key))
        return True

    monkeypatch.setattr(MemoryStore, "copy_to", copy_to)
    copy = ChunkCopy.of(old._driver, new._driver)

    for block in copy.blocks:
        run_inline(copy.run(block))

    assert sorted(copied) == [(f"old/c/{cell}", f"new/{cell}") for cell in range(3)]
    assert new.kvstore.list().result() == [b"zarr.json"]
