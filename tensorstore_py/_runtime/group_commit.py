"""Group commit: what several writers want of one thing is done together, by one of them.

For what is replaced as a whole by each change, such as an archive or the manifest of a database. A
writer adds its change to those that wait and takes a turn; who has the turn commits all that wait
by then, the others find theirs done. So under load one replacement serves many writers, and a
single writer waits for nothing. A worker that would have to wait for its turn leaves that to
another thread and begins the next job, which may have a change to add.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from tensorstore_py._runtime.execution import PendingBody
from tensorstore_py._runtime.executors import on_worker
from tensorstore_py._runtime.fork import Forkable
from tensorstore_py._runtime.keyed_lock import KeyedLock, Mutex
from tensorstore_py._runtime.metrics import Sums, register
from tensorstore_py._runtime.signals import step_aside

__all__ = ["GroupCommit", "PendingChange", "Registered"]

T = TypeVar("T")


class PendingChange:
    """A change that waits to be committed; subclasses say what it is.

    Attributes:
        done: whether it was decided.
        error: what went wrong.
    """

    def __init__(self) -> None:
        self.done = False
        self.error: Exception | None = None


C = TypeVar("C", bound=PendingChange)
_COMMITS: Final = register(
    Sums(
        ("/tensorstore/group_commit/commits", "changes of several writers, made as one", ""),
        ("/tensorstore/group_commit/changes", "changes of one writer each, in all of them", ""),
    )
)


class Registered(PendingBody, Generic[T]):
    """A change that is made with the next commit, and what comes of it: one use, as of any body.

    Args:
        group: that it was added to.
        change: which.
        outcome: what the body gives when it was decided.
    """

    __slots__ = ("_change", "_group", "_outcome")

    def __init__(self, group: GroupCommit[C], change: C, outcome: Callable[[], T]) -> None:
        self._group: GroupCommit[Any] = group
        self._change = change
        self._outcome = outcome

    @property
    def short(self) -> bool:
        return True  # who comes first makes all that wait

    async def __call__(self) -> T:
        await self._group.finish(self._change)
        return self._outcome()

    def withdraw(self) -> None:
        self._group.withdraw(self._change)


#: So many writers wait in threads of their own, while workers begin what may join them.
_MOST_ASIDE: Final = 64


class GroupCommit(Forkable, Generic[C]):
    """All writers of one thing in this process; subclasses say how a commit is made.

    Args:
        inline: the execution mode.
    """

    def __init__(self, *, inline: bool) -> None:
        self._inline = inline
        self._gate = KeyedLock(inline=inline)
        self._mutex = Mutex()
        self._waiting: list[C] = []
        self._turns = 0  # those who have the turn, or wait for it
        super().__init__()

    def after_fork(self) -> None:
        # Those who wait are in the parent, which makes their changes; made here as well, and later,
        # they would undo what was stored since.
        self._waiting = []
        self._turns = 0

    @abstractmethod
    async def commit(self, batch: list[C]) -> None:
        """Make several changes at once, in their order; an error is each writer's."""

    async def make(self, change: C) -> None:
        """Make a change, together with all others that are wanted by then.

        Raises:
            Exception: whatever `commit` raises.
        """
        self.add(change)
        await self.finish(change)

    def add(self, change: C) -> None:
        """Have the next commit make a change, whoever begins it."""
        with self._mutex:
            self._waiting.append(change)

    def withdraw(self, change: C) -> None:
        """Nobody wants a change any more; without effect if it is being made."""
        with self._mutex:
            if change in self._waiting:
                self._waiting.remove(change)

    async def finish(self, change: C) -> None:
        """Make a change that was added, unless that was done.

        Raises:
            Exception: whatever `commit` raises.
        """
        if change.done:
            pass
        elif self._inline:
            await self._take_turn(change)
        else:
            # Others may have put their changes with ours: a cancelled writer leaves them be.
            turn = asyncio.ensure_future(self._take_turn(change))
            try:
                await asyncio.shield(turn)
            except asyncio.CancelledError:
                self.withdraw(change)
                raise
        if change.error is not None:
            raise change.error

    async def _take_turn(self, change: C) -> None:
        with self._mutex:
            aside = bool(self._turns) and len(self._waiting) < _MOST_ASIDE
            self._turns += 1
        try:
            if aside and self._inline and on_worker():
                await step_aside()
            async with self._gate.acquire(None):
                if not change.done:
                    await self._commit_waiting(change)
        finally:
            with self._mutex:
                self._turns = max(0, self._turns - 1)  # it may be a forked child that goes on here

    async def _commit_waiting(self, change: C) -> None:
        """Make all changes that wait, by the one whose turn it is."""
        with self._mutex:
            batch, self._waiting = self._waiting, []
        _COMMITS.note((1, len(batch)))
        try:
            await self.commit(batch)
        except Exception as error:
            for each in batch:
                each.error = error
        except BaseException:
            # An interrupted writer does not take the others' changes along.
            with self._mutex:
                self._waiting[:0] = [each for each in batch if each is not change]
            raise
        for each in batch:
            each.done = True
