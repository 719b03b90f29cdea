"""Store objects of zarr-python as stores of this package, held to the promises of all stores."""

import asyncio
import os
import subprocess
import sys

import numpy as np
import pytest
import zarr
from zarr.storage import LocalStore, MemoryStore

import tensorstore_py as ts
from tensorstore_py import errors
from tensorstore_py.kvstores.zarr_store import ZarrStore
from tensorstore_py.kvstores.zarr_store.store import zarr_loop
from tensorstore_py.plugin.kvstore import UNKNOWN, ByteRange
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


def raised(error):
    """What a read raises where the object's `get` raises an error."""

    class Failing(MemoryStore):
        async def get(self, *_arguments, **_options):
            raise error

    store = ZarrStore(Failing())
    with pytest.raises(errors.TensorStoreError) as caught:
        asyncio.run(store.read("a/b"))
    return caught.value


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (PermissionError("no"), errors.PermissionDeniedError),
        (FileNotFoundError("no"), errors.NotFoundError),
        (ValueError("no"), errors.FailedPreconditionError),
        (RuntimeError("no\nand why"), errors.UnavailableError),
    ],
)
def test_errors_say_what_was_tried_and_why_not(error, kind):
    found = raised(error)

    assert type(found) is kind
    text = str(found)
    assert text.startswith('cannot read "memory://')
    assert text.endswith('/a/b": no')


def test_errors_without_words_have_a_name():
    assert str(raised(OSError())).endswith(": OSError")


def test_our_own_errors_are_as_they_are():
    error = errors.DataLossError("gone")

    assert raised(error) is error


class Noting(MemoryStore):
    """A store that notes in which loops it is used."""

    def __init__(self):
        super().__init__()
        self.loops = set()

    async def get(self, *arguments, **options):
        self.loops.add(asyncio.get_running_loop())
        return await super().get(*arguments, **options)


def test_an_object_is_used_in_the_loop_of_zarr_python_only():
    store = Noting()
    zarr.create_array(store, shape=4, dtype="i4")[:] = 7

    async def read():
        return (await (await ts.open(store)).read()).tolist()

    assert ts.open(store).result().read().result().tolist() == [7] * 4
    assert asyncio.run(read()) == [7] * 4
    assert np.asarray(zarr.open_array(store)[:]).tolist() == [7] * 4
    assert len(store.loops) == 1


async def test_the_loop_is_asked_for_once():
    assert await zarr_loop() is await zarr_loop()


def test_a_forked_child_has_a_loop_of_its_own():
    code = (
        "import os, sys, numpy, zarr, tensorstore_py as ts\n"
        "store = zarr.storage.MemoryStore()\n"
        "zarr.create_array(store, shape=4, dtype='i4')[:] = 7\n"
        "assert ts.open(store).result().read().result().sum() == 28\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    os._exit(int(ts.open(store).result().read().result().sum()))\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )

    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ},
        timeout=240,
    )

    assert ran.stdout.strip() == "28"
