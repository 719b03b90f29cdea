"""What tests change inside the package: sizes made small, work made countable or predictable.

Tests speak to the package through its public doors. What no door gives, because only a test wants
it, is here, so that a moved module is followed in one place.
"""

import asyncio
from importlib import import_module
from types import SimpleNamespace

from tensorstore_py._api import blockwise, transfer
from tensorstore_py._chunked import array, modify, read
from tensorstore_py._interface import crc32c, overlay
from tensorstore_py._net.counts import _Attempts
from tensorstore_py._net.pool import close_pool
from tensorstore_py._plan import call, homes, steps
from tensorstore_py._runtime import executors, fan_out, metrics
from tensorstore_py._runtime.execution import run_inline, start
from tensorstore_py._runtime.future import Settleable
from tensorstore_py._runtime.interpreter_lock import share
from tensorstore_py._runtime.keyed_lock import KeyedLock
from tensorstore_py._runtime.limiters import MemoryBudget, RateLimiter, ThreadLimiter, _Ledger
from tensorstore_py._runtime.lru_cache import LruCache
from tensorstore_py._runtime.single_flight import SingleFlights
from tensorstore_py._runtime.submission_queue import flush
from tensorstore_py._spec import codec_spec, registry

__all__ = [
    "KeyedLock",
    "LruCache",
    "MemoryBudget",
    "RateLimiter",
    "Settleable",
    "SingleFlights",
    "ThreadLimiter",
    "close_pool",
    "count_helpers",
    "do_computations_at_once",
    "fan_out_steps",
    "flush",
    "forget_crc32c_library",
    "leave_to_callers",
    "local_server",
    "looks_for_packages_again",
    "metrics",
    "operations",
    "points_of_requests",
    "registries",
    "run_inline",
    "set_block_bytes",
    "set_group_bytes",
    "set_transfer_piece_bytes",
    "share",
    "start",
    "unfinished_continuations",
    "watch_releases",
    "windows_allows",
]


#: What threads share, for tests that have many of them use it.
fan_out_steps = fan_out.fan_out


def set_block_bytes(monkeypatch, least, most):
    """How much an operation with a progress report reads or writes at a time."""
    monkeypatch.setattr(blockwise, "_LEAST_BYTES", least)
    monkeypatch.setattr(blockwise, "_MOST_BYTES", most)


def set_group_bytes(monkeypatch, size):
    """How much of what belongs together is stored at a time."""
    monkeypatch.setattr(overlay, "_TOGETHER", size)


def set_transfer_piece_bytes(monkeypatch, size):
    """How much of a value `ts.download` reads at a time."""
    monkeypatch.setattr(transfer, "_PIECE_BYTES", size)


def forget_crc32c_library():
    """The next checksum looks again which library there is."""
    crc32c._function.cache_clear()


def windows_allows(part):
    """Whether a part of a key can be the name of a file on Windows."""
    return transfer._windows_allows(part)


def local_server():
    """The class of HTTP servers of this process, which takes aiohttp."""
    return import_module("tensorstore_py._serving.local_server").LocalServer


def leave_to_callers(monkeypatch):
    """Inline work is done by the thread that asks for its result, never by another one."""
    monkeypatch.setattr("tensorstore_py._runtime.execution.enqueue", lambda _: None)


def do_computations_at_once(monkeypatch):
    """Computations of the loop take one turn of it, and no thread."""

    async def offload(_inline, function):
        await asyncio.sleep(0)
        return function()

    async def within(_here, _there, body):
        await asyncio.sleep(0)
        return await body()

    for module in (read, array, fan_out):
        monkeypatch.setattr(module, "offload", offload)
    monkeypatch.setattr(modify, "within", within)


def count_helpers(monkeypatch):
    """The list, growing, of calls to other threads for help with one operation."""
    invited = []

    def watch(work):
        invited.append(work)
        executors.operations.submit(work)

    monkeypatch.setattr(fan_out, "operations", SimpleNamespace(submit=watch))
    return invited


def watch_releases(monkeypatch):
    """The list, growing, of how many bytes were in flight each time some were given back."""
    held = []
    plain = _Ledger.release

    def watched(self, kind, size):
        held.append(sum(self.held))
        plain(self, kind, size)

    monkeypatch.setattr(_Ledger, "release", watched)
    return held


def unfinished_continuations():
    """How many operations that an interrupt left are still being continued by other threads."""
    return executors.continuations.unfinished


def looks_for_packages_again(monkeypatch, family):
    """The registries that installed packages add to, as if nothing had been looked for so far.

    Returns:
        The names that each knows, to be forgotten again.
    """
    monkeypatch.setattr(registry._guests, "are_loaded", False)
    found = (registry.codecs[family], registry.chunk_key_encodings, registry.chunk_grids)
    return [each._classes for each in found]


def registries():
    """Every registry of what plug-ins are, with all that is built in."""
    found = [
        registry.chunk_grids,
        registry.chunk_key_encodings,
        registry.drivers,
        registry.hierarchy_formats,
        registry.kvstores,
        registry.resources,
        codec_spec.codec_specs,
        *(registry.codecs[family] for family in ("n5", "zarr", "zarr3")),
    ]
    for each in found:
        each.discover()
    return found


def operations():
    """Two pairs, of calls and of kinds of steps.

    Returns:
        For each, the modules that register them, and the modules that a table says.
    """
    functions = call.registered_functions()
    homes.load(homes.STEPS, *homes.STEPS)
    calls = {name: function.__module__ for name, function in functions.items()}
    kinds = {kind: opener.__module__ for kind, (opener, _) in steps._openers.items()}
    return (calls, homes.CALLS), (kinds, homes.STEPS)


def points_of_requests(notes):
    """What is told of requests after these notes, by the last part of each metric's name."""
    attempts = _Attempts()
    attempts.add(notes)
    return {each.name.rpartition("/")[2]: each.points for each in attempts.collect()}
