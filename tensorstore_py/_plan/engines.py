"""`Engine`: what runs pieces of a plan elsewhere: an executor, a cluster of dask's, or Ray.

Each is recognised by what it is, not by a name, and none is imported here unless it is already.
Whatever it is, pieces are handed in a few at a time, and what comes back is a future of the kind
that `concurrent.futures` has.
"""

from __future__ import annotations

import asyncio
import importlib
import sys
from abc import ABC, abstractmethod
from concurrent.futures import BrokenExecutor, Executor, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from tensorstore_py._runtime.fan_out import to_thread
from tensorstore_py.errors import AbortedError, SpecError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

__all__ = ["Engine", "engine_of", "run_pieces"]

#: So many pieces are handed in for each worker, so that none waits for the next.
_AHEAD: Final = 2
#: How often dask does a piece again that failed with its worker.
_RETRIES: Final = 3


class Runnable(Protocol):
    """What is run: picklable, unless the engine shares memory with this process."""

    def run(self) -> object: ...


class Engine(ABC):
    """Something that runs pieces."""

    workers: int
    shares_memory = False

    @property
    def width(self) -> int:
        """How many pieces it should have at a time."""
        return _AHEAD * self.workers

    @abstractmethod
    def submit(self, piece: Runnable, name: str) -> Any:  # noqa: ANN401
        """Have a piece run; returns a future. May block."""

    @abstractmethod
    async def result(self, future: Any) -> object:  # noqa: ANN401
        """What became of a piece."""

    @abstractmethod
    def cancel(self, futures: list[Any]) -> None:
        """Cancel what is not needed any more."""


class _FuturesEngine(Engine):
    """Any `concurrent.futures.Executor`, and what looks like one."""

    def __init__(self, executor: Any) -> None:  # noqa: ANN401
        self._executor = executor
        self._is_broken = False
        self.shares_memory = isinstance(executor, ThreadPoolExecutor)
        workers = getattr(executor, "_max_workers", None) or getattr(executor, "max_workers", None)
        self.workers = workers if isinstance(workers, int) else 16

    def submit(self, piece: Runnable, name: str) -> object:
        del name
        try:
            return self._executor.submit(_call, piece)
        except BrokenExecutor as error:
            raise _broken(error) from error

    async def result(self, future: Any) -> object:  # noqa: ANN401
        await _ended(future)
        try:
            return future.result()
        except BrokenExecutor as error:
            self._is_broken = True
            raise _broken(error) from error

    def cancel(self, futures: list[Any]) -> None:
        if not self._is_broken:  # a broken pool has ended all futures
            for future in futures:
                future.cancel()


class _DaskEngine(Engine):
    """A `dask.distributed.Client`."""

    def __init__(self, client: Any) -> None:  # noqa: ANN401
        self._client = client
        self.workers = max(1, sum(client.nthreads().values()))

    def submit(self, piece: Runnable, name: str) -> object:
        return self._client.submit(_call, piece, key=name, pure=False, retries=_RETRIES, priority=0)

    async def result(self, future: Any) -> object:  # noqa: ANN401
        await _ended(future)
        value = await to_thread(future.result)
        future.release()
        return value

    def cancel(self, futures: list[Any]) -> None:
        self._client.cancel(futures, asynchronous=False)


class _RayEngine(Engine):
    """The module `ray`, initialized or not."""

    def __init__(self, ray: Any) -> None:  # noqa: ANN401
        if not ray.is_initialized():
            ray.init()
        self._ray = ray
        self._call = ray.remote(max_retries=_RETRIES)(_call)
        self._references: dict[int, Any] = {}
        self.workers = max(1, int(ray.cluster_resources().get("CPU", 1)))

    def submit(self, piece: Runnable, name: str) -> object:
        reference = self._call.options(name=name).remote(piece)
        future = reference.future()
        self._references[id(future)] = reference
        return future

    async def result(self, future: Any) -> object:  # noqa: ANN401
        await _ended(future)
        try:
            return future.result()
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause from error
        finally:
            self._references.pop(id(future), None)

    def cancel(self, futures: list[Any]) -> None:
        for future in futures:
            reference = self._references.pop(id(future), None)
            if reference is not None:
                self._ray.cancel(reference)


async def _ended(future: Any) -> None:  # noqa: ANN401
    """Wait until a future is done, on whichever thread; nothing is cancelled if this is."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def tell(_: object) -> None:
        with suppress(RuntimeError):  # the loop is closed: nothing waits
            loop.call_soon_threadsafe(_settle, done)

    future.add_done_callback(tell)
    await done


def _settle(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)


def _call(piece: Runnable) -> object:
    """What workers run. A name of its own, so that schedulers can show it."""
    return piece.run()


def _broken(error: BrokenExecutor) -> AbortedError:
    return AbortedError(
        f"a worker of the executor is gone ({error}); what is done stays done: call again with a "
        "new executor, and with manifest= to go on from there"
    )


def engine_of(executor: object) -> Engine | None:
    """The engine that an `executor=` means; None: this process.

    It may be an executor of `concurrent.futures` or one with its methods (loky, `mpi4py.futures`),
    a `dask.distributed.Client`, the module `ray`, or `"ray"`.

    Raises UnsupportedError: the engine is not installed; SpecError: it is no engine.
    """
    if executor is None:
        return None
    if executor == "ray":
        try:
            executor = importlib.import_module("ray")
        except ImportError:
            raise UnsupportedError("Ray is not installed: pip install ray") from None
    if executor is sys.modules.get("ray"):
        return _RayEngine(executor)
    distributed = sys.modules.get("distributed")
    if distributed is not None and isinstance(executor, distributed.Client):
        return _DaskEngine(executor)
    if isinstance(executor, Executor) or (
        callable(getattr(executor, "submit", None)) and callable(getattr(executor, "map", None))
    ):
        return _FuturesEngine(executor)
    raise SpecError(
        f"expected None, a concurrent.futures.Executor, a dask.distributed.Client, or the module "
        f"ray, but found {type(executor).__name__}",
        ("executor",),
    )


async def run_pieces(
    engine: Engine, pieces: Iterator[Runnable], name: str
) -> AsyncGenerator[object]:
    """Run pieces on an engine, a few at a time, and give what becomes of each, as it comes.

    Raises:
        Whatever a piece raised; others are cancelled then, and when the caller stops iterating.
    """
    waiting: dict[asyncio.Task[object], Any] = {}
    ended: list[asyncio.Task[object]] = []
    number = 0
    try:
        while True:
            while len(waiting) < engine.width and (piece := next(pieces, None)) is not None:
                future = await to_thread(partial(engine.submit, piece, f"{name}-{number}"))
                waiting[asyncio.ensure_future(engine.result(future))] = future
                number += 1
            if not waiting:
                return
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                del waiting[task]
            ended += done
            while ended:
                yield ended.pop().result()
    finally:
        for task in ended:
            task.exception()  # one error is raised; asyncio would log the others at the end
        for task in waiting:
            task.cancel()
        if waiting:
            left = list(waiting.values())
            await to_thread(lambda: engine.cancel(left))
            await asyncio.gather(*waiting, return_exceptions=True)
