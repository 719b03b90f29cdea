"""Operations that are interrupted, and what must be true of them afterwards."""

import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from typing import Any, ClassVar

import numpy as np

import tensorstore_py as ts

OLD = 1
NEW = 2


class Operation:
    """One operation on an array in files.

    Attributes:
        spec: members of the array's spec beside its store.
        shape: of the array.
        options: for `open`.
        resources: of the context.
    """

    shape = (40, 40)
    options: ClassVar[dict[str, Any]] = {
        "dtype": "uint16",
        "chunk_layout": ts.ChunkLayout(chunk_shape=[16, 16]),
    }
    resources: ClassVar[dict[str, Any]] = {}
    driver = "zarr3"

    def __init__(self):
        self.folder = tempfile.mkdtemp()
        self.number = 0
        self.context = ts.Context(
            {
                "file_io_locking": {"mode": "os", "acquire_timeout": "60s"},
                "file_io_sync": False,
                "file_io_concurrency": {"limit": 3},
                "data_copy_concurrency": {"limit": 3},
                **self.resources,
            }
        )

    def spec(self):
        path = f"{self.folder}/{self.number}/"
        return {"driver": self.driver, "kvstore": {"driver": "file", "path": path}}

    def new(self, **more):
        return ts.open(
            self.spec(), create=True, shape=self.shape, context=self.context, **self.options, **more
        ).result()

    def prepare(self):
        """A fresh array, on which the operation is to be run: a copy of the first one's files."""
        self.number += 1
        if self.number == 1:
            store = self.new()
            store.write(OLD).result()
            shutil.copytree(f"{self.folder}/1", f"{self.folder}/0")
            return store
        # Values are replaced, never changed in place.
        shutil.copytree(f"{self.folder}/0", f"{self.folder}/{self.number}", copy_function=os.link)
        return ts.open(self.spec(), context=self.context).result()

    def check(self, store, *, stopped):
        """What was stored is old or new as a whole, and everything goes on."""
        self.settle(store)
        again = ts.open(self.spec(), context=self.context).result()
        self.check_values(again, stopped=stopped)
        again[3:9, :4].write(7).result()
        assert (again[3:9, :4].read().result() == 7).all()
        again.close()

    def settle(self, store):
        """Wait for what goes on in the background."""
        store.close()

    def check_values(self, store, *, stopped):
        assert (store.read().result() == OLD).all()

    def end(self):
        """Another process gets the lock, and all places and bytes are free."""
        code = (
            "import sys, tensorstore_py as ts; "
            "context = ts.Context({'file_io_locking': {'mode': 'os', 'acquire_timeout': '60s'}}); "
            f"store = ts.open({self.spec()!r}, context=context).result(); "
            "store[5:9, 2].write(9).result(); print((store[5:9, 2].read().result() == 9).all())"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=240, check=False
        )
        assert done.stdout == "True\n", done.stderr


class Reading(Operation):
    """An operation that changes nothing: one array is enough."""

    store = None

    def prepare(self):
        if self.store is None:
            self.store = super().prepare()
        return self.store

    def check(self, store, *, stopped):
        assert (store[3:9].read().result() == OLD).all()


class Read(Reading):
    def run(self, store):
        assert (store[2:37, 5:21].read().result() == OLD).all()
        return store


class ReadOne(Reading):
    def run(self, store):
        assert store[3, 5].read().result() == OLD
        return store


class PooledRead(Read):
    resources: ClassVar[dict[str, Any]] = {"cache_pool": {"total_bytes_limit": 1_000_000}}


class ShardedRead(Read):
    options: ClassVar[dict[str, Any]] = {
        "dtype": "uint16",
        "chunk_layout": ts.ChunkLayout(write_chunk_shape=[32, 32], read_chunk_shape=[8, 8]),
    }


class Write(Operation):
    """Of a region that covers one chunk, and parts of others."""

    region: tuple[slice, slice] = np.s_[2:37, 5:40]

    def run(self, store):
        store[self.region].write(NEW).result()
        return store

    def check_values(self, store, *, stopped):
        found = store[self.region].read().result()
        if stopped:
            assert (found == OLD).all() or (found == NEW).all(), found
        else:
            assert (found == NEW).all()


class PartialWrite(Write):
    region = np.s_[2:9, 5:11]


class WriteOfMany(Write):
    """Chunks that are stored several at a time."""

    shape = (12, 12)
    options: ClassVar[dict[str, Any]] = {
        "dtype": "uint16",
        "chunk_layout": ts.ChunkLayout(chunk_shape=[4, 4]),
    }
    region = np.s_[:, :]


class WriteOfShard(Write):
    options = ShardedRead.options
    region = np.s_[0:32, 0:32]


class PartialWriteOfShard(Write):
    options = ShardedRead.options
    region = np.s_[3:20, 4:12]


class PooledWrite(Write):
    resources = PooledRead.resources


class Open(Reading):
    def run(self, store):
        ts.open(self.spec(), context=self.context).result()
        return store


class Create(Operation):
    def prepare(self):
        self.number += 1
        return self.number

    def run(self, number):
        self.new()
        return number

    def check(self, number, *, stopped):
        # The array was made in the end, or it was not begun.
        store = self.new(open=True)
        assert store.shape == self.shape
        super().check(store, stopped=stopped)

    def check_values(self, store, *, stopped):
        assert (store.read().result() == 0).all()


class Resize(Operation):
    def run(self, store):
        store.resize(exclusive_max=[24, 40]).result()
        return store

    def check_values(self, store, *, stopped):
        if stopped and store.shape == self.shape:
            assert (store.read().result() == OLD).all()
        else:
            assert store.shape == (24, 40)
            grown = store.resize(exclusive_max=self.shape).result()
            assert (grown[32:].read().result() == 0).all(), "chunks outside the bounds are left"


class Append(Operation):
    def run(self, store):
        store.append(np.full((5, 40), NEW, "uint16"), 0).result()
        return store

    def check_values(self, store, *, stopped):
        if stopped and store.shape == self.shape:
            return
        assert store.shape == (45, 40)
        assert (store[40:].read().result() == NEW).all()


class Commit(Write):
    transaction: ts.Transaction

    def run(self, store):
        self.transaction = ts.Transaction()
        with self.transaction as transaction:
            store.with_transaction(transaction)[self.region].write(NEW).result()
        return store

    def settle(self, store):
        # A commit that was begun goes on; a write that was left fails if it was aborted.
        if self.transaction.open:
            self.transaction.abort()
        with suppress(ts.AbortedError):
            self.transaction.future.result()
        with suppress(ts.FailedPreconditionError):
            store.close()


class Attributes(Operation):
    def run(self, store):
        store.attrs.update({"a": 1}).result()
        return store

    def check_values(self, store, *, stopped):
        found = store.attrs.read().result()
        assert found == {"a": 1} or (stopped and found == {})


class KvWrite(Operation):
    def run(self, store):
        store.kvstore.write("k", b"new" * 1000).result()
        return store

    def check_values(self, store, *, stopped):
        found = store.kvstore.read("k").result()
        assert found.value == b"new" * 1000 or (stopped and found.state == "missing")


class KvList(Reading):
    def run(self, store):
        assert len(store.kvstore.list().result()) >= 9
        return store


class InMemory(Write):
    def spec(self):
        return {"driver": "zarr3", "kvstore": {"driver": "memory", "path": f"{self.number}/"}}

    def prepare(self):
        self.number += 1
        store = self.new()
        store.write(OLD).result()
        return store

    def end(self):
        pass


class Virtual(Reading):
    """A function of the user is interrupted like any other code of theirs."""

    def run(self, store):
        def read(domain, out, _):
            out[...] = store[domain].read().result()

        virtual = ts.virtual_chunked(read, shape=self.shape, dtype="uint16", context=self.context)
        assert (virtual[3:9].read().result() == OLD).all()
        return store


class Close(Operation):
    def run(self, store):
        store[3:5].write(OLD)
        store.close()
        return store


OPERATIONS = {
    each.__name__: each
    for each in (
        Read, ReadOne, PooledRead, ShardedRead, Write, PartialWrite, WriteOfMany, WriteOfShard,
        PartialWriteOfShard, PooledWrite, Open, Create, Resize, Append, Commit, Attributes, KvWrite,
        KvList, InMemory, Virtual, Close,
    )
}  # fmt: skip
