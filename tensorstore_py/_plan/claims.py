"""The parts of one worker: how it claims, renews and finishes them, and finds the next.

    free      -> claimed    no record, or its owner released it
    claimed   -> claimed    renewed by its owner, about once a task and three times in a lease
    claimed   -> done       all of its tasks are
    claimed   -> failed     all but tasks whose source is damaged; a later run claims it again
    claimed   -> free       released, after an error or when the worker is cancelled
    abandoned -> claimed    by another worker

A claimed part is abandoned if its owner was a process of this machine that is gone, or should have
written long ago by the clocks of both machines, or has not written for a whole lease by this
machine's clock alone. If that is a mistake, tasks are run twice, and nothing worse happens: a
worker that finds that a part was taken from it stops working on it.

A worker that finds all remaining parts claimed by others waits. It looks whether all is done, and
at a few records, at first often and then rarely, so a thousand waiting workers are no burden.
"""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tensorstore_py._interface.generation import NO_VALUE
from tensorstore_py._plan.manifest import AMBIGUOUS_ERRORS
from tensorstore_py._plan.parts import BEGIN, DONE, END, FAILED, FREE, PAGE, TAKEN
from tensorstore_py._plan.record import MOST_FAILURES, Failure, Record, WorkerTotals

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tensorstore_py._plan.manifest import Manifest, StoredRecord
    from tensorstore_py._plan.record import Owner
    from tensorstore_py._plan.work import Work

__all__ = ["ClaimedPart", "Claims", "PartSearch", "TaskResult"]


class TaskResult(NamedTuple):
    """What came of a task that was run.

    Attributes:
        failure: if it could not be done, since what it reads is damaged.
        error: anything else that it ended with.
    """

    task: int
    seconds: float
    result: object = None
    failure: Failure | None = None
    error: Exception | None = None


class ClaimedPart:
    """A part that this worker holds: which of its tasks are left, and what came of the others.

    It is filled in on the event loop only. The one invariant: what is in its record came of tasks
    that are done, so the record can be stored at any time.
    """

    __slots__ = (
        "_left", "_result", "again", "drained", "generation", "lock", "lost", "part", "record",
        "running", "stored_at",
    )  # fmt: skip

    def __init__(
        self, part: int, tasks: range, record: Record, generation: bytes, result: object
    ) -> None:
        self.part = part
        self.record = record
        self.generation = generation
        self.again = generation != NO_VALUE
        self.lock = asyncio.Lock()
        self.stored_at = 0.0
        self.lost = False
        self.running = 0
        self.drained = False
        self._left = record.done.missing(tasks)
        self._result = result

    def take(self, most: int) -> list[int]:
        """The next tasks to be run, which count as running; none: all were taken."""
        taken = [] if self.lost else list(islice(self._left, most))
        self.drained = not taken
        self.running += len(taken)
        return taken

    @property
    def complete(self) -> bool:
        """Whether all that can be done is."""
        return self.drained and not self.running and not self.lost

    def note(self, taken: int, ran: list[TaskResult], work: Work) -> tuple[int, int]:
        """Of so many tasks that were taken these were run; returns how many are done, and bytes."""
        self.running -= taken
        record, tasks, size = self.record, 0, 0
        for each in ran:
            if each.failure is not None:
                record.failed += 1
                record.failures = [*record.failures, each.failure][:MOST_FAILURES]
            elif each.error is None:
                record.done.add(each.task)
                tasks += 1
                size += work.size(each.task)
                if each.result is not None:
                    self._result = work.merged(self._result, each.result)
        record.bytes += size
        if self._result is not None and tasks:
            record.result = work.to_json(self._result)
        return tasks, size


#: After so many refused claims the listing of a page is too old.
_MOST_CONFLICTS: Final = 2


class PartSearch:
    """What a worker knows of all parts, and where it looks for its next one.

    Each worker begins somewhere else and goes on in order, without asking what there is: alone, it
    never has to. When it meets another's part it asks for a listing of the parts around it, a
    page, and goes on at a random place of it; or right behind that part, if it is done: then
    another worker has been here earlier. The one invariant: a part that is known to be taken or
    finished never becomes free again, so once there is none left there never is.
    """

    def __init__(
        self, count: int, share: range, chance: Callable[[], float], *, anywhere: bool
    ) -> None:
        self._count = count
        self._share = share
        self._chance = chance
        self._states = bytearray(count)
        self._conflicts: dict[int, int] = {}  # since the listing of a page
        self._wary = False  # there are others, or were
        self._crowded = False  # there are others
        self._at = share.start + int(chance() * len(share) * anywhere)
        if self._at >= count:
            self._at, self._wary = int(chance() * count), True

    def next_free(self) -> int | None:
        """The part to try next; None: there is none left."""
        if not self._count:
            return None
        low, high = self.page(self._at)
        found = self._within(self._at, high, low)
        if found < 0:
            found = self._within(high, self._count, 0)
            if found < 0:
                return None
            if self._crowded:
                self._jump(*self.page(found))
                return self.next_free()
        self._at = found
        return found

    def _within(self, at: int, high: int, low: int) -> int:
        """The first free part from somewhere on, or else from an earlier place; or -1."""
        found = self._states.find(FREE, at, high)
        return found if found >= 0 else self._states.find(FREE, low, at)

    def page(self, part: int) -> tuple[int, int]:
        """The parts that are listed together with one."""
        low = part - part % PAGE
        return low, min(self._count, low + PAGE)

    def wants_page(self, part: int) -> bool:
        """Whether to list a part's page before it is tried."""
        return self._wary and self._conflicts.get(part // PAGE, _MOST_CONFLICTS) >= _MOST_CONFLICTS

    def learn(self, low: int, states: bytearray) -> list[int]:
        """A page is listed; returns the parts that are newly known to be done."""
        self._conflicts[low // PAGE] = 0
        known = np.frombuffer(self._states, np.uint8)[low : low + len(states)]
        found = np.maximum(known, np.frombuffer(states, np.uint8))
        new: list[int] = (low + np.flatnonzero((found == DONE) & (known != DONE))).tolist()
        known[:] = found
        return new

    def note(self, part: int, state: int) -> None:
        """A part is at least so far."""
        self._states[part] = max(state, self._states[part])

    def claimed(self, part: int) -> None:
        """It is ours; go on behind it."""
        self.note(part, TAKEN)
        self._at = (part + 1) % self._count
        if part + 1 == self._share.stop and len(self._share) < self._count:
            self._wary = self._crowded = True

    def refused(self, part: int) -> None:
        """Another worker has it."""
        self._wary = True
        self.note(part, TAKEN)
        page = part // PAGE
        self._conflicts[page] = self._conflicts.get(page, _MOST_CONFLICTS) + 1
        self._at = part

    def move_on(self) -> None:
        """Go on elsewhere, after one was refused, and its page is listed."""
        if self._states[self._at] != DONE:
            self._crowded = True
            self._jump(*self.page(self._at))

    def _jump(self, low: int, high: int) -> None:
        self._at = low + int(self._chance() * (high - low))

    def is_done(self, part: int) -> bool:
        """Whether a part is known to be done."""
        return self._states[part] == DONE

    def unfinished(self) -> list[int]:
        """The parts that are not known to be done."""
        states = np.frombuffer(self._states, np.uint8)
        found: list[int] = np.flatnonzero(states != DONE).tolist()
        return found


#: A worker writes so many times in a lease; at the end of a task twice as often, if it pays.
_WRITES_A_LEASE: Final = 3
#: How long the first wait for others is; doubled after each.
_FIRST_WAIT_S: Final = 0.25
#: It looks at a few records of others at once, after so long, and then ever more rarely; all who
#: wait look at each about twice.
_FIRST_LOOK_S: Final = 4.0
_MOST_LOOKS: Final = 4
_LOOKS: Final = 2


class _SeenRecord(NamedTuple):
    """A record of another worker: which one, since when, and when it was looked at last."""

    generation: bytes
    since: float
    looked: float


class Claims:
    """See the head of this file.

    Args:
        manifest: where they are recorded.
        owner: the worker that they are claimed for.
        search: where to look for them.
        work: what is done.
        wait: whether to wait for parts that others have.
        on_progress: called with how many more tasks are known to be done, here or elsewhere.

    Attributes:
        held: the parts that are claimed.
        began: when the worker began, in seconds since the epoch: what failed earlier is tried
            again.
        failed: what is known of parts that failed since.
        results: partial results of the parts that it has finished, as JSON.
        end: the record of the end, as soon as all there is to do is done, here or elsewhere.
        done: how much this worker did.
        stopped: done as soon as nothing more is to be begun.
    """

    def __init__(
        self,
        manifest: Manifest,
        owner: Owner,
        search: PartSearch,
        work: Work,
        *,
        wait: bool,
        on_progress: Callable[[int], object],
    ) -> None:
        self._manifest = manifest
        self._owner = owner
        self._search = search
        self._work = work
        self._wait = wait
        self._on_progress = on_progress
        self._clock = manifest.clock
        self._lease_s = manifest.lease_s
        self._sequence = 0
        self._seen: dict[int, _SeenRecord] = {}
        self._counted: dict[int, int] = {}
        self.held: dict[int, ClaimedPart] = {}
        self.began = self._clock.wall()
        self.failed: dict[int, Record] = {}
        self.results: dict[int, object] = {}
        self.end: Record | None = None
        self.done = WorkerTotals(since=self.began)
        self.stopped: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    # Getting one.

    async def next(self) -> ClaimedPart | None:
        """A part to work on; None: there is none, and will be none."""
        return await self._claim_free() or await self._claim_abandoned()

    async def _claim_free(self) -> ClaimedPart | None:
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

    async def _claim(self, part: int, found: StoredRecord | None) -> ClaimedPart | None:
        """Claim a part, from its former owner if any; None: another worker was faster."""
        record, over = Record(self._owner), NO_VALUE
        result: object = None
        if found is not None:
            over = found.generation
            if found.record is not None:
                before = found.record
                record.done, record.bytes, record.result = before.done, before.bytes, before.result
                if before.result is not None:
                    result = self._work.from_json(before.result)
        held = ClaimedPart(part, self._manifest.parts[part], record, over, result)
        if not await self._store(held, "claimed"):
            return None
        self.held[part] = held
        self._seen.pop(part, None)
        self._tell(part, len(record.done))
        return held

    async def _claim_abandoned(self) -> ClaimedPart | None:
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

    async def _look(self, left: list[int], most: int) -> ClaimedPart | None:
        """Look at a few parts of others, those first that were never looked at, or long ago.

        `most` is how many these were at first: so many workers there were. A worker that is done
        with one of them waits, too, and all that wait share the looking.
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

        Its owner may have been lost between finishing it and marking that for listings.
        """
        low, high = self._search.page(part)
        states = await self._manifest.states(low, high)
        is_marked = states[part - low] == DONE
        states[part - low] = DONE
        self._tell_all(self._search.learn(low, states))
        if not is_marked:
            await self._manifest.mark(part, "done")

    def _has_failed(self, part: int, found: StoredRecord) -> bool:
        """Whether all of a part is done that can be, since we began."""
        record = found.record
        if record is None or record.state != "failed" or record.at < self.began:
            return False
        self._search.note(part, FAILED)
        self.failed[part] = record
        self._tell(part, len(record.done))
        return True

    def _is_abandoned(self, part: int, found: StoredRecord) -> bool:
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
            self._seen[part] = _SeenRecord(found.generation, now, now)
            return False
        self._seen[part] = seen._replace(looked=now)
        return now - seen.since >= record.lease_s

    async def is_over(self) -> bool:
        """Whether all there is to do is done, here or elsewhere."""
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

    async def once(
        self, part: int, body: Callable[[ClaimedPart], Awaitable[None]]
    ) -> Record | None:
        """Have done what is done once, before or after all tasks, by this worker or another.

        What comes before is always waited for: it is short, and no task can run without it. Gives
        its record; None if another worker has it and is not waited for.
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

    def did(self, held: ClaimedPart, tasks: int, size: int, slowest: float) -> None:
        """So many more tasks of a part are done; one of them took so long.

        A lease is long enough for the tasks there are, so that the record is stored about once a
        task, however long they take.
        """
        before = self.done
        self.done = before._replace(tasks=before.tasks + tasks, bytes=before.bytes + size)
        self._lease_s = max(self._lease_s, _WRITES_A_LEASE * slowest)
        self._tell(held.part, len(held.record.done))

    async def renew(self, held: ClaimedPart, *, early: bool = False) -> None:
        """Store a part's record if it is time to; `early`: a task has just ended."""
        wait_s = held.record.lease_s / _WRITES_A_LEASE / (2 if early else 1)
        if held.lost or self._clock.now() - held.stored_at < wait_s:
            return
        async with held.lock:
            if self._clock.now() - held.stored_at < wait_s:
                return
            try:
                await self._store(held, "claimed")
            except AMBIGUOUS_ERRORS:
                return  # there will be another time, and if not, others do it again

    async def keep(self) -> None:
        """Renew what is claimed, until it is cancelled."""
        while True:
            await self._clock.pause(self._manifest.lease_s / _WRITES_A_LEASE / 2)
            for held in list(self.held.values()):
                if self.held.get(held.part) is held:
                    await self.renew(held)

    async def finish(self, held: ClaimedPart) -> bool:
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
            self._counted.pop(part, None)
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

    async def _store(self, held: ClaimedPart, state: str) -> bool:
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
        before = self._counted.get(part, 0)
        if part >= 0 and tasks > before:
            self._counted[part] = tasks
            self._on_progress(tasks - before)

    def _tell_all(self, done: list[int]) -> None:
        """All tasks of some parts are known to be done."""
        parts, counted = self._manifest.parts, self._counted
        tasks = len(done) * parts.size
        if done and done[-1] == parts.count - 1:
            tasks = tasks - parts.size + len(parts[done[-1]])
        if counted:
            tasks -= sum(counted.pop(part, 0) for part in done)
        if tasks > 0:
            self._on_progress(tasks)
