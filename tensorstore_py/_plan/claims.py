"""The parts of one worker: how it gets them, keeps them, and says that they are done.

A part is free, or abandoned: its owner said so, or was a process of this machine that is gone, or
should have written long ago by what the clocks of both machines say, or has not written for a whole
lease by this machine's clock alone. If that is a mistake, tasks are run twice, and nothing worse
happens: whoever finds that a part was taken from it stops.

Who finds all that is left in the hands of others waits. It looks whether all is over, and at a few
records, at first often and then rarely, so a thousand that wait are no burden.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple

from tensorstore_py._interface.generation import NO_VALUE
from tensorstore_py._plan.held import Held
from tensorstore_py._plan.manifest import TROUBLES
from tensorstore_py._plan.parts import BEGIN, DONE, END, FAILED
from tensorstore_py._plan.record import Done, Record

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tensorstore_py._plan.manifest import Found, Manifest
    from tensorstore_py._plan.owner import Owner
    from tensorstore_py._plan.search import Search
    from tensorstore_py._plan.work import Work

__all__ = ["Claims"]

#: A worker writes so many times in a lease; at the end of a task twice as often, if it pays.
_WRITES_A_LEASE: Final = 3
#: How long the first wait for others is; doubled after each.
_FIRST_WAIT_S: Final = 0.25
#: It looks at a few records of others at once, after so long, and then ever more rarely; all who
#: wait look at each about twice.
_FIRST_LOOK_S: Final = 4.0
_MOST_LOOKS: Final = 4
_LOOKS: Final = 2


class _Seen(NamedTuple):
    """A record of somebody else: which one, since when, and when it was looked at last."""

    generation: bytes
    since: float
    looked: float


class Claims:
    """See the head of this file.

    Args:
        manifest: where they are recorded.
        owner: who they are claimed for.
        search: where to look for them.
        work: what is done.
        wait: whether to wait for parts that others have.
        told: called with how many more tasks are known to be done, by whomever.

    Attributes:
        held: the parts that are claimed.
        began: when the worker began, in seconds since the epoch: what failed earlier is tried
            again.
        failed: what is known of parts that failed since.
        results: partial results of the parts that it has finished, as JSON.
        end: the record of the end, as soon as all there is to do is done, by whomever.
        done: how much this worker did.
        stopped: done as soon as nothing more is to be begun.
    """

    def __init__(
        self,
        manifest: Manifest,
        owner: Owner,
        search: Search,
        work: Work,
        *,
        wait: bool,
        told: Callable[[int], object],
    ) -> None:
        self._manifest = manifest
        self._owner = owner
        self._search = search
        self._work = work
        self._wait = wait
        self._told = told
        self._clock = manifest.clock
        self._lease_s = manifest.lease_s
        self._sequence = 0
        self._seen: dict[int, _Seen] = {}
        self._told_of: dict[int, int] = {}
        self.held: dict[int, Held] = {}
        self.began = self._clock.wall()
        self.failed: dict[int, Record] = {}
        self.results: dict[int, object] = {}
        self.end: Record | None = None
        self.done = Done(since=self.began)
        self.stopped: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    # Getting one.

    async def next(self) -> Held | None:
        """A part to work on; None: there is none, and will be none."""
        return await self._claim_free() or await self._claim_abandoned()

    async def _claim_free(self) -> Held | None:
        search = self._search
        while (part := search.next_free()) is not None and not self.stopped.done():
            if search.wants_page(part):
                await self._list(search.page(part))
                continue
            held = await self._claim(part, None)
            if held is not None:
                search.claimed(part)
                return held
            search.refused(part)
            if search.wants_page(part):
                await self._list(search.page(part))
            search.move_on()
        return None

    async def _list(self, page: tuple[int, int]) -> None:
        states = await self._manifest.states(*page)
        self._tell_all(self._search.learn(page[0], states))

    async def _claim(self, part: int, found: Found | None) -> Held | None:
        """Claim a part, from whoever had it; None: somebody else was faster."""
        record, over = Record(self._owner), NO_VALUE
        result: object = None
        if found is not None:
            over = found.generation
            if found.record is not None:
                before = found.record
                record.done, record.bytes, record.result = before.done, before.bytes, before.result
                if before.result is not None:
                    result = self._work.from_json(before.result)
        held = Held(part, self._manifest.parts[part], record, over, result)
        if not await self._store(held, "claimed"):
            return None
        self.held[part] = held
        self._seen.pop(part, None)
        self._tell(part, len(record.done))
        return held

    async def _claim_abandoned(self) -> Held | None:
        clock = self._clock
        pause, every, look_at = _FIRST_WAIT_S, _FIRST_LOOK_S, clock.now()
        most = len(self.left())
        while not self.stopped.done() and (left := self.left()):
            if clock.now() >= look_at:
                held = await self._look(left, most)
                if held is not None:
                    return held
                look_at = clock.now() + every
                every = min(4 * every, self._lease_s / 2)
            if not self._wait:
                return None
            await self.pause(pause)
            pause = min(2 * pause, self._lease_s / 2)
            if await self.is_over():
                return None
        return None

    def left(self) -> list[int]:
        """The parts of others that are neither done nor known to fail."""
        return [
            part
            for part in self._search.unfinished()
            if part not in self.failed and part not in self.held
        ]

    async def _look(self, left: list[int], most: int) -> Held | None:
        """Look at a few of them, those first that were never looked at, or long ago.

        Args:
            left: the parts of others.
            most: how many these were at first: so many workers there were. Who is done with one of
                them waits, too, and all who wait share the looking.
        """
        start = int(self._clock.chance() * len(left))
        seen = self._seen
        order = sorted(
            left[start:] + left[:start],
            key=lambda part: seen[part].looked if part in seen else float("-inf"),
        )
        share = _LOOKS * len(left) / (1 + most - len(left))
        looks = max(1, min(_MOST_LOOKS, round(share))) if self._wait else len(left)
        unfinished = 0
        for part in order:
            if self._search.is_done(part):  # we have heard meanwhile
                continue
            found = await self._manifest.read(part)
            if found.record is not None and found.record.state == "done":
                await self._refresh(part)
                continue
            if self._has_failed(part, found):
                continue
            if self._is_abandoned(part, found):
                held = await self._claim(part, found)
                if held is not None:
                    return held
            unfinished += 1
            if unfinished == looks:
                break
        return None

    async def _refresh(self, part: int) -> None:
        """A part is done, so what we know is old: of its neighbours, too.

        Whoever finished it may have been lost before listings said so.
        """
        low, high = self._search.page(part)
        states = await self._manifest.states(low, high)
        is_marked = states[part - low] == DONE
        states[part - low] = DONE
        self._tell_all(self._search.learn(low, states))
        if not is_marked:
            await self._manifest.mark(part, "done")

    def _has_failed(self, part: int, found: Found) -> bool:
        """Whether all of a part is done that can be, since we began."""
        record = found.record
        if record is None or record.state != "failed" or record.at < self.began:
            return False
        self._search.note(part, FAILED)
        self.failed[part] = record
        self._tell(part, len(record.done))
        return True

    def _is_abandoned(self, part: int, found: Found) -> bool:
        record, now = found.record, self._clock.now()
        if record is None or record.state in ("free", "failed"):
            return True
        if record.owner.id == self._owner.id or record.owner.is_gone():
            return True
        # Clocks of two machines may differ, by less than a lease as a rule.
        if self._clock.wall() > record.until + record.lease_s:
            return True
        seen = self._seen.get(part)
        if seen is None or seen.generation != found.generation:
            self._seen[part] = _Seen(found.generation, now, now)
            return False
        self._seen[part] = seen._replace(looked=now)
        return now - seen.since >= record.lease_s

    async def is_over(self) -> bool:
        """Whether somebody has finished all there is to do."""
        found = await self._manifest.read(END)
        if self._is_final(found.record):
            self.end = found.record
        return self.end is not None

    def _is_final(self, record: Record | None) -> bool:
        if record is None:
            return False
        # What had failed may be done by now.
        fails = record.state == "failed" and record.at >= self.began
        return record.state == "done" or (fails and bool(self._search.unfinished()))

    async def once(self, part: int, body: Callable[[Held], Awaitable[None]]) -> Record | None:
        """Have done what is done once, before or after all tasks; by whomever.

        What comes before is always waited for: it is short, and nobody can do anything without it.

        Returns:
            Its record; None if somebody is at it and is not waited for.
        """
        pause = _FIRST_WAIT_S
        while True:
            found = await self._manifest.read(part)
            if self._is_final(found.record):
                return found.record
            if self._is_abandoned(part, found):
                held = await self._claim(part, found)
                if held is not None:
                    await body(held)
                    if await self.finish(held):
                        return held.record
                    continue
            if not (self._wait or part == BEGIN) or self.stopped.done():
                return None
            await self.pause(pause)
            pause = min(2 * pause, self._lease_s / 4)

    async def pause(self, seconds: float) -> None:
        """Wait about so long, unless everything is stopped."""
        seconds *= (1 + self._clock.chance()) / 2
        waiting = asyncio.ensure_future(self._clock.pause(seconds))
        try:
            await asyncio.wait((waiting, self.stopped), return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()

    # Keeping it, and the end of it.

    def did(self, held: Held, tasks: int, size: int, slowest: float) -> None:
        """So many more tasks of a part are done; one of them took so long.

        A lease is long enough for the tasks there are, so that the record is stored about once a
        task, however long they take.
        """
        before = self.done
        self.done = before._replace(tasks=before.tasks + tasks, bytes=before.bytes + size)
        self._lease_s = max(self._lease_s, _WRITES_A_LEASE * slowest)
        self._tell(held.part, len(held.record.done))

    async def renew(self, held: Held, *, early: bool = False) -> None:
        """Store a part's record if it is time to.

        Args:
            held: the part.
            early: a task has just ended, so there is something new to say.
        """
        wait_s = held.record.lease_s / _WRITES_A_LEASE / (2 if early else 1)
        if held.lost or self._clock.now() - held.stored_at < wait_s:
            return
        async with held.lock:
            if self._clock.now() - held.stored_at < wait_s:
                return
            try:
                await self._store(held, "claimed")
            except TROUBLES:
                return  # there will be another time, and if not, others do it again

    async def keep(self) -> None:
        """Renew what is held, for ever."""
        while True:
            await self._clock.pause(self._manifest.lease_s / _WRITES_A_LEASE / 2)
            for held in list(self.held.values()):
                if self.held.get(held.part) is held:
                    await self.renew(held)

    async def finish(self, held: Held) -> bool:
        """All of a part is done that can be; returns whether it was still ours to say so."""
        state = "failed" if held.record.failed else "done"
        async with held.lock:
            if self.held.get(held.part) is not held:
                return False
            stored = not held.lost and await self._store(held, state)
            self.held.pop(held.part, None)
        part = held.part
        if stored and part >= 0:
            await self._manifest.mark(part, state)
            self._told_of.pop(part, None)
            self._search.note(part, FAILED if state == "failed" else DONE)
            if state == "failed":
                self.failed[part] = held.record
            if held.record.result is not None:
                self.results[part] = held.record.result
        return stored

    async def release(self) -> None:
        """Let others have what is held."""
        for held in list(self.held.values()):
            async with held.lock:
                if self.held.pop(held.part, None) is held and not held.lost:
                    await self._store(held, "free")

    async def _store(self, held: Held, state: str) -> bool:
        record = held.record
        self._sequence += 1
        record.state = state  # type: ignore[assignment]
        record.sequence = self._sequence
        record.at = self._clock.wall()
        record.lease_s = self._lease_s
        record.worker = self.done
        began = self._clock.now()
        generation = await self._manifest.put(held.part, record, held.generation)
        if generation is None:
            held.lost = True
            if self.held.get(held.part) is held:  # so that it is waited for like any other's
                del self.held[held.part]
            return False
        held.generation, held.stored_at = generation, began
        return True

    # Telling.

    def _tell(self, part: int, tasks: int) -> None:
        """So many tasks of a part are known to be done in all."""
        before = self._told_of.get(part, 0)
        if part >= 0 and tasks > before:
            self._told_of[part] = tasks
            self._told(tasks - before)

    def _tell_all(self, done: list[int]) -> None:
        """All tasks of some parts are known to be done."""
        parts, told = self._manifest.parts, self._told_of
        tasks = len(done) * parts.size
        if done and done[-1] == parts.count - 1:
            tasks = tasks - parts.size + len(parts[done[-1]])
        if told:
            tasks -= sum(told.pop(part, 0) for part in done)
        if tasks > 0:
            self._told(tasks)
