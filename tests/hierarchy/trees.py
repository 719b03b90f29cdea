"""Hierarchies in memory for the tests of this folder; what is asked of their stores is counted."""

from tensorstore_py._hierarchy.formats import format_of
from tensorstore_py._hierarchy.node import Hierarchy
from tensorstore_py._runtime.execution import run_inline
from tensorstore_py.kvstores.memory import MemoryStore, SharedMap
from tensorstore_py.testing import CountingStore

#: Documents of a group and of an array, by driver.
GROUPS = {
    "zarr": {".zgroup": b'{"zarr_format":2}'},
    "zarr3": {"zarr.json": b'{"zarr_format":3,"node_type":"group","attributes":{}}'},
}
ARRAYS = {
    "zarr": {".zarray": b'{"zarr_format":2,"shape":[3]}'},
    "zarr3": {"zarr.json": b'{"zarr_format":3,"node_type":"array","shape":[3]}'},
}


def tree(driver="zarr3", prefix="", groups=(), arrays=()):
    """A hierarchy with groups and arrays at some paths; nothing is counted so far."""
    form = format_of(driver)
    assert form is not None
    store = CountingStore(MemoryStore(SharedMap()))
    found = Hierarchy(store, prefix, form)
    for paths, documents in ((groups, GROUPS), (arrays, ARRAYS)):
        for path in paths:
            for key, value in documents[driver].items():
                put(found, found.below(path) + key, value)
    store.reset()
    return found


def run(coroutine):
    """What a coroutine returns."""
    return run_inline(coroutine)


def put(found, key, value):
    """Store a value."""
    run_inline(found.store.write(key, value))


def get(found, key):
    """What is stored; None if nothing is."""
    result = run_inline(found.store.base.read(key))
    return bytes(result.value) if result.state == "value" else None


def keys(found):
    """All keys, sorted."""

    async def collect():
        return sorted([entry.key async for entry in found.store.base.list()])

    return run_inline(collect())
