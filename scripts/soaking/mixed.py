"""Mixed work on an array, with NumPy doing the same; undisturbed, with faults, with signals.

Each trial makes an array of random form in a random store and does random operations to it. What
an operation that failed has left behind is old or new, element by element; after one that did not
fail, all is new.
"""

from __future__ import annotations

import contextlib
import errno
import os
import random
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import tensorstore_py as ts

OPERATIONS = 40
Values = Any


class Stop(BaseException):
    """What the handler of a signal raises: no class that any code knows of."""


class Mixed:
    """Undisturbed work."""

    name = "mixed"
    expected: tuple[type[BaseException], ...] = ()
    stores: tuple[str, ...] = ("file", "memory", "zip")

    def run(self, number: int, folder: Path) -> None:
        """One trial."""
        rng = random.Random(f"{self.name} {number}")
        work = Work(rng, folder, rng.choice(self.stores))
        for _ in range(OPERATIONS):
            what, do, new = work.operation()
            try:
                with self.trouble(rng):
                    do()
            except self.expected:
                work.settle(what, new)
            else:
                work.values = new
                work.check(what)
        work.array.close()

    @contextlib.contextmanager
    def trouble(self, rng: random.Random) -> Iterator[None]:
        """What disturbs an operation."""
        del rng
        yield


class Signals(Mixed):
    """A signal, whose handler raises, at a random moment of each operation."""

    name = "signals"
    expected = (Stop,)

    @contextlib.contextmanager
    def trouble(self, rng: random.Random) -> Iterator[None]:
        """A timer."""

        def stop(*_: object) -> None:
            raise Stop

        before = signal.signal(signal.SIGALRM, stop)
        try:
            signal.setitimer(
                signal.ITIMER_REAL, rng.choice((0.0003, 0.001, 0.004)) * (0.01 + rng.random())
            )
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)


_ERRORS = (errno.EIO, errno.ENOSPC, errno.EMFILE, errno.EACCES, errno.ESTALE, errno.EINTR)
_CALLS = (
    "open",
    "write",
    "replace",
    "fsync",
    "read",
    "preadv",
    "pread",
    "ftruncate",
    "scandir",
    "mkdir",
)


class Faults(Mixed):
    """Calls of the operating system fail at random; a write may take a part of the bytes."""

    name = "faults"
    expected = (ts.TensorStoreError,)
    stores = ("file", "zip")

    @contextlib.contextmanager
    def trouble(self, rng: random.Random) -> Iterator[None]:
        """Calls that fail."""
        share = rng.choice((0.0, 0.02, 0.1, 0.3))
        own = {name: getattr(os, name) for name in _CALLS}

        def failing(name: str) -> Callable[..., Any]:
            def call(*arguments: Any, **more: Any) -> Any:
                if rng.random() < share:
                    code = rng.choice(_ERRORS)
                    raise OSError(code, os.strerror(code))
                if name == "write" and rng.random() < share:
                    fd, data = arguments
                    return own["write"](fd, memoryview(data)[: max(1, len(data) // 2)])
                return own[name](*arguments, **more)

            return call

        try:
            for name in _CALLS:
                setattr(os, name, failing(name))
            yield
        finally:
            for name, call in own.items():
                setattr(os, name, call)


class Work:
    """An array, and what it should hold.

    Args:
        rng: chance.
        folder: where it lies, if it lies in files.
        store: `"file"`, `"memory"` or `"zip"`.

    Attributes:
        array: the array.
        values: what it should hold.
    """

    def __init__(self, rng: random.Random, folder: Path, store: str) -> None:
        self._rng = rng
        self._driver = rng.choice(("zarr3", "zarr3", "zarr", "n5"))
        base: dict[str, Any] = {"driver": "file", "path": f"{folder}/array/"}
        if store == "memory":
            base = {"driver": "memory"}
        elif store == "zip":
            base = {"driver": "zip", "base": {"driver": "file", "path": f"{folder}/array.zip"}}
        self._context = ts.Context(
            {
                "cache_pool": {"total_bytes_limit": rng.choice((0, 0, 3000, 10**6))},
                "file_io_sync": rng.random() < 0.2,
                "file_io_locking": {"mode": rng.choice(("os", "os", "lockfile"))},
            }
        )
        self._spec = {"driver": self._driver, "kvstore": base}
        shape = (rng.randrange(1, 40), rng.randrange(1, 40))
        self.array = ts.open(
            self._spec, create=True, shape=shape, context=self._context, dtype="uint16",
            chunk_layout=self._layout(),
        ).result()  # fmt: skip
        self.values = np.zeros(shape, "uint16")
        self._shrunk = False
        self._transaction = ts.Transaction()

    def _layout(self) -> ts.ChunkLayout:
        rng = self._rng
        inner = (rng.randrange(1, 9), rng.randrange(1, 9))
        if self._driver == "zarr3" and rng.random() < 0.5:
            outer = [each * rng.randrange(1, 5) for each in inner]
            return ts.ChunkLayout(write_chunk_shape=outer, read_chunk_shape=inner)
        return ts.ChunkLayout(chunk_shape=[2 * each for each in inner])

    def check(self, what: str) -> None:
        """Read something, and compare.

        Raises:
            AssertionError: it is something else.
        """
        region = self._region(self.values.shape) if self._rng.random() < 0.7 else (slice(None),) * 2
        found = self.array[region].read().result()
        if not np.array_equal(found, self.values[region]):
            raise AssertionError(f"after {what}: {region} holds {found.tolist()}")

    def settle(self, what: str, new: Values) -> None:
        """Find out what an operation that failed has left.

        Raises:
            AssertionError: neither what was there nor what was to be written.
        """
        # These wait for what goes on in the background, a commit whose wait was interrupted among
        # it, and tell what of it failed.
        with contextlib.suppress(ts.TensorStoreError):
            self._transaction.commit_async().result()
        with contextlib.suppress(ts.TensorStoreError):
            self.array.close()
        self.array = ts.open(self._spec, context=self._context).result()
        found: Values = self.array.read().result()
        old = self.values
        candidates: list[Values] = [each for each in (old, new) if each.shape == found.shape]
        if len(new) > len(old) and found.shape == new.shape:
            # an append grows the array first, and it reads as the fill value meanwhile
            # or, within the chunks at the end, as what a resize to fewer rows has left there
            rows = found[len(old) :] if self._shrunk else np.zeros_like(new[len(old) :])
            candidates.append(np.concatenate([old, rows]))
        if not candidates:
            raise AssertionError(f"after {what}, which failed: shape {found.shape}")
        right = np.zeros(found.shape, bool)
        for each in candidates:
            right |= found == each
        if not right.all():
            raise AssertionError(f"after {what}, which failed: {found[~right].tolist()[:20]}")
        self.values = found

    def operation(self) -> tuple[str, Callable[[], object], Values]:
        """Something to do: its name, how it is done, and what the array holds then."""
        kinds = [self._write, self._write, self._write_many, self._commit, self._reopen, self._read]
        kinds += [self._resize, self._append, self._copy]
        if self._driver != "n5":
            kinds.append(self._attributes)
        return self._rng.choice(kinds)()

    def _region(self, shape: tuple[int, ...]) -> tuple[slice, ...]:
        bounds = []
        for extent in shape:
            start = self._rng.randrange(extent)
            step = self._rng.choice((1, 1, 1, 2, 3))
            bounds.append(slice(start, self._rng.randrange(start, extent) + 1, step))
        return tuple(bounds)

    def _noise(self, shape: tuple[int, ...]) -> Values:
        if self._rng.random() < 0.3:
            return np.full(shape, self._rng.randrange(3), "uint16")
        chance = np.random.default_rng(self._rng.randrange(2**32))
        return chance.integers(0, 2**16, shape).astype("uint16")

    def _write(self) -> tuple[str, Callable[[], object], Values]:
        region = self._region(self.values.shape)
        new = self.values.copy()
        new[region] = values = self._noise(new[region].shape)
        return f"write {region}", lambda: self.array[region].write(values).result(), new

    def _write_many(self) -> tuple[str, Callable[[], object], Values]:
        """Rows by themselves, all at once."""
        new = self._noise(self.values.shape)

        def do() -> None:
            for write in [self.array[row].write(new[row]) for row in range(len(new))]:
                write.result()

        return "write of all rows", do, new

    def _commit(self) -> tuple[str, Callable[[], object], Values]:
        regions = [self._region(self.values.shape) for _ in range(self._rng.randrange(1, 4))]
        abort = self._rng.random() < 0.3
        new = self.values.copy()
        parts = []
        for region in regions:
            part = self._noise(new[region].shape)
            new[region] = part
            parts.append((region, part))

        def do() -> None:
            transaction = self._transaction = ts.Transaction()
            try:
                staged = self.array.with_transaction(transaction)
                for region, part in parts:
                    staged[region].write(part).result()
                if not np.array_equal(staged.read().result(), new):
                    raise AssertionError("a transaction does not see its own writes")
            except BaseException:
                transaction.abort()
                raise
            if abort:
                transaction.abort()
            else:
                transaction.commit_sync()

        # two writes of one element: an interrupted commit has the last one, or nothing
        return f"transaction {regions}, abort={abort}", do, self.values if abort else new

    def _reopen(self) -> tuple[str, Callable[[], object], Values]:
        def do() -> None:
            self.array = ts.open(self._spec, context=self._context).result()

        return "open", do, self.values

    def _read(self) -> tuple[str, Callable[[], object], Values]:
        region = self._region(self.values.shape)
        values = self.values

        def do() -> None:
            if not np.array_equal(self.array[region].read().result(), values[region]):
                raise AssertionError(f"a read of {region}")

        return "read", do, values

    def _resize(self) -> tuple[str, Callable[[], object], Values]:
        """Fewer rows; how many there are grows by appends."""
        rows = self._rng.randrange(1, len(self.values) + 1)
        self._shrunk = True
        shape = [rows, self.values.shape[1]]

        def do() -> None:
            self.array = self.array.resize(exclusive_max=shape).result()

        return f"resize to {shape}", do, self.values[:rows]

    def _append(self) -> tuple[str, Callable[[], object], Values]:
        rows = self._noise((self._rng.randrange(1, 10), self.values.shape[1]))

        def do() -> None:
            self.array.append(rows, 0).result()
            self.array = ts.open(self._spec, context=self._context).result()

        return "append", do, np.concatenate([self.values, rows])

    def _attributes(self) -> tuple[str, Callable[[], object], Values]:
        text = "x" * self._rng.randrange(50)

        def do() -> None:
            self.array.attrs.update({"text": text}).result()
            if self.array.attrs.read().result()["text"] != text:
                raise AssertionError("an attribute")

        return "attributes", do, self.values

    def _copy(self) -> tuple[str, Callable[[], object], Values]:
        """To an array of other chunks in memory."""
        values = self.values

        def do() -> None:
            spec = {"driver": "zarr3", "kvstore": {"driver": "memory"}}
            other = ts.open(
                spec, create=True, dtype="uint16", shape=values.shape,
                chunk_layout=ts.ChunkLayout(chunk_shape=[7, 5]), context=ts.Context(),
            ).result()  # fmt: skip
            ts.copy(self.array, other).result()
            if not np.array_equal(other.read().result(), values):
                raise AssertionError("a copy")

        return "copy", do, values
