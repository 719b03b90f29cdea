"""Checks of a store as such: its service, reading, how fast it is, writing under conditions.

Times are wall times of single operations, one after the other, so they are those of a program that
waits for each. A store that is slow is no failure; what cannot be done that was asked for is one.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from tensorstore_py._api.kvstore import KvStore
from tensorstore_py._display.info import human_size
from tensorstore_py._interface.generation import NO_VALUE, UNKNOWN
from tensorstore_py._interface.kvstore import KvStoreSpec
from tensorstore_py._interface.store_abilities import service_state
from tensorstore_py._runtime.execution import start
from tensorstore_py.cli.keys import Keys, counted_keys, entries_in
from tensorstore_py.errors import PermissionDeniedError, TensorStoreError, UnsupportedError

if TYPE_CHECKING:
    from tensorstore_py._interface.kvstore import ListEntry

__all__ = ["CheckedStore", "Result", "check_service", "check_speed", "check_writes", "look_inside"]

#: Clocks may differ by so much; services refuse signatures from five or fifteen minutes on.
_CLOCK_S: Final = 60.0
_READS: Final = 20
_WRITES: Final = 10
#: No value that is larger is read to measure the throughput.
_LARGEST: Final = 2**26
#: From so long on a median is told as slow: of stores in this machine, and of others.
_SLOW_S: Final = {True: 0.02, False: 0.25}
_SLOW_BYTES_PER_S: Final = 2**23
#: What is smaller says nothing of throughput.
_MEASURABLE: Final = 2**18


class Result(NamedTuple):
    """What a check found.

    Attributes:
        check: its name.
        status: of it; `"warn"`: it works, and could be better.
        found: what was found.
        remedy: what to do; "": nothing.
    """

    check: str
    status: Literal["ok", "warn", "fail"]
    found: str
    remedy: str = ""


class CheckedStore:
    """The store that is looked at, and what earlier checks have learnt.

    Attributes:
        name: how to name it.
        store: at the directory.
        writes: whether it may be written to.
        keys: some that are there.
        lost: whether nothing more can be found out.
        unfinished: keys of writes that were not ended, as the service tells; None: it does not.
    """

    def __init__(self, name: str, store: KvStore, *, writes: bool) -> None:
        self.name = name
        self.store = store
        self.writes = writes
        self.keys: list[ListEntry] = []
        self.lost = False
        self.unfinished: list[str] | None = None

    @property
    def services(self) -> Iterator[KvStore]:
        """The store, and those underneath."""
        here: KvStore | None = self.store
        while here is not None:
            yield here
            here = here.base


def check_service(checked: CheckedStore) -> Iterator[Result]:
    """Credentials, clocks, and whether anything is to be had."""
    for each in checked.services:
        promise, path = each.store, each.path
        try:
            state = start(promise.inline, partial(service_state, promise, path)).result()
        except PermissionDeniedError as error:
            checked.lost = True
            yield Result("credentials", "fail", str(error))
            return
        except TensorStoreError as error:
            checked.lost = True
            yield Result("reach", "fail", str(error), "is the address right, and the network up?")
            return
        if state is None:
            continue
        told = state.credentials or "none: requests are made without"
        yield Result("credentials", "ok", told)
        checked.unfinished = None if state.unfinished is None else list(state.unfinished)
        if state.clock_ahead_s is not None:
            yield _clock(state.clock_ahead_s)
    yield from _listing(checked)


def look_inside(checked: CheckedStore) -> Iterator[Result]:
    """Go on with the database, where the directory is that of one."""
    store = checked.store
    for kind, key in KvStoreSpec.in_directories():
        if any(each.key == store.path + key for each in checked.keys):
            base = KvStore.Spec.of(store.spec().model)
            checked.store = KvStore.open({"driver": kind.driver, "base": base}).result()
            yield Result("spec", "ok", f"a database of the driver {kind.driver} is there")
            yield from _listing(checked)


def _clock(ahead_s: float) -> Result:
    if abs(ahead_s) < _CLOCK_S:
        return Result("clock", "ok", "agrees with the service's")
    side = "behind" if ahead_s > 0 else "ahead of"
    return Result(
        "clock", "fail", f"is {abs(ahead_s):.0f} s {side} the service's",
        "set this machine's clock (NTP): signatures that are too old or new are refused",
    )  # fmt: skip


def _listing(checked: CheckedStore) -> Iterator[Result]:
    store = checked.store
    began = time.perf_counter()
    try:
        listing = entries_in(store, Keys("", store, tree=True).range)
        checked.keys = next(listing, [])
        listing.close()  # type: ignore[attr-defined]  # a generator
    except UnsupportedError:
        yield Result("list", "warn", "this store cannot list",
                     "trees are found by consolidated metadata; name arrays by path")  # fmt: skip
        return
    except TensorStoreError as error:
        checked.lost = True
        yield Result("list", "fail", str(error))
        return
    took = time.perf_counter() - began
    if checked.keys:
        many = "at least " * (len(checked.keys) >= 1000)
        told = f"{many}{counted_keys(len(checked.keys))} in {_duration(took)}"
        yield Result("list", "ok", told)
    else:
        yield Result(
            "list", "warn" if checked.writes else "fail", f"nothing is at {checked.name}",
            "is the place right? If it is new, --write tests whether it can be written to",
        )  # fmt: skip


def check_speed(checked: CheckedStore) -> Iterator[Result]:
    """Latency of small reads, throughput of a large one."""
    if not checked.keys:
        return
    store, below = checked.store, len(checked.store.path)
    some = [entry.key[below:] for entry in checked.keys[:_READS]]
    wanted = [some[at % len(some)] for at in range(_READS)]
    try:
        times = _timed(lambda at: store.read(wanted[at], byte_range=slice(0, 0)).result(), _READS)
    except TensorStoreError as error:
        checked.lost = True
        yield Result("read", "fail", str(error))
        return
    yield _latency(store, "read", times)
    fitting = [entry for entry in checked.keys if _MEASURABLE <= entry.size <= _LARGEST]
    if not fitting:
        return
    largest = max(fitting, key=lambda entry: entry.size)
    began = time.perf_counter()
    size = len(store.read(largest.key[below:]).result().value)
    rate = size / max(1e-9, time.perf_counter() - began)
    slow = rate < _SLOW_BYTES_PER_S
    yield Result(
        "throughput", "warn" if slow else "ok",
        f"{human_size(int(rate))}/s for one value of {human_size(size)}",
        "read several chunks at a time, or run nearer to the store" * slow,
    )  # fmt: skip


def _timed(operation: Callable[[int], object], count: int) -> list[float]:
    times = []
    for at in range(count):
        began = time.perf_counter()
        operation(at)
        times.append(time.perf_counter() - began)
    return times


def _latency(store: KvStore, name: str, times: list[float]) -> Result:
    middle, high = median(times), sorted(times)[int(len(times) * 0.9)]
    slow = middle > _SLOW_S[store.store.inline]
    return Result(
        name, "warn" if slow else "ok",
        f"median {_duration(middle)}, 90 % within {_duration(high)} ({len(times)} small {name}s)",
        "run nearer to the store, or use larger chunks and a cache_pool" * slow,
    )  # fmt: skip


def _duration(seconds: float) -> str:
    """A time for people.

    Example:
        >>> _duration(0.0000123), _duration(0.0123), _duration(2.5)
        ('12 us', '12.3 ms', '2.50 s')
    """
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} us"
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def check_writes(checked: CheckedStore) -> Iterator[Result]:
    """Conditional writes, and how long writes take.

    Of an archive or a database it is the store underneath that is written to: a write would be
    another version of all of it.
    """
    store = checked.store
    while store.base is not None:
        store = store.base
        above, slash, _ = store.path.rpartition("/")
        store.path = above + slash
    if not store.store.writable:
        yield Result("write", "fail", "this store is read-only")
        return
    scratch = f"tspy-doctor-{secrets.token_hex(8)}"
    try:
        yield from _conditions(store, scratch)
        times = _timed(lambda at: store.write(scratch, b"%d" % at).result(), _WRITES)
        yield _latency(store, "write", times)
    except TensorStoreError as error:
        yield Result("write", "fail", str(error), _remedy(error))
    finally:
        with suppress(TensorStoreError):
            store.write(scratch, None).result()


def _remedy(error: TensorStoreError) -> str:
    if isinstance(error, PermissionDeniedError):
        return "these credentials may not write here"
    if isinstance(error, UnsupportedError):
        return "let only one program write at a time"
    return ""


def _conditions(store: KvStore, scratch: str) -> Iterator[Result]:
    first = store.write(scratch, b"1", if_equal=NO_VALUE).result().generation
    again = store.write(scratch, b"2", if_equal=NO_VALUE).result().generation
    right = store.write(scratch, b"3", if_equal=first).result().generation
    stale = store.write(scratch, b"4", if_equal=first).result().generation
    value = store[scratch]
    heeded = {
        "write-if-absent": first != UNKNOWN and again == UNKNOWN,
        "write-if-equal": right != UNKNOWN and stale == UNKNOWN and value == b"3",
    }
    wrong = [name for name, held in heeded.items() if not held]
    if wrong:
        yield Result("conditions", "fail", f"not heeded: {', '.join(wrong)}",
                     "let only one program write at a time: others undo its work")  # fmt: skip
    else:
        yield Result("conditions", "ok", f"{' and '.join(heeded)} are heeded")
