"""How far a plan is: what a listing of its manifest tells, and the records of the active workers.

Finished parts are known by their keys, so only those that are claimed or failed are read: no more
than there are workers. Whether a worker is still there is judged by this machine's clock, as far as
one look can tell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from tensorstore_py._plan.parts import BEGIN, DONE, END, FREE, PAGE
from tensorstore_py._runtime.fan_out import fan_out

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorstore_py._plan.manifest import Manifest
    from tensorstore_py._plan.record import Failure, Record

__all__ = ["Status", "WorkerStatus", "status_of"]


class WorkerStatus(NamedTuple):
    """One worker, as it was when it wrote last."""

    host: str
    pid: int
    tasks: int
    bytes: int
    seconds: float
    alive: bool

    @property
    def rate(self) -> float:
        """Bytes a second."""
        return self.bytes / self.seconds if self.seconds > 0 else 0.0


class Status(NamedTuple):
    """How far a plan is.

    Attributes:
        state: `"planned"`: no worker has begun; `"running"`: one or more are at work;
            `"partly done"`: none is, and something is left; `"done"`.
        parts: how many parts there are.
        parts_done: how many of them are done.
        claimed: how many belong to a worker that is alive.
        abandoned: how many no worker works on any more.
        tasks: how many tasks there are.
        tasks_done: how many of them are done, as far as it was written down.
        bytes_done: how many bytes these have.
        failed: how many tasks could not be done, since what they read is damaged.
        failures: of these, some.
        workers: those that hold a part.
    """

    state: Literal["planned", "running", "partly done", "done"]
    parts: int
    parts_done: int
    claimed: int
    abandoned: int
    tasks: int
    tasks_done: int
    bytes_done: int
    failed: int
    failures: tuple[Failure, ...]
    workers: tuple[WorkerStatus, ...]


async def status_of(manifest: Manifest, bytes_of: Callable[[range], int] | None = None) -> Status:
    """How far a plan is that is stored or loaded already.

    `bytes_of` says how many bytes some tasks tell, for parts that are done: their records are not
    read.
    """
    parts = manifest.parts
    states = bytearray()
    for low in range(0, parts.count, PAGE):
        states += await manifest.states(low, min(parts.count, low + PAGE))
    open_ = [part for part, state in enumerate(states) if state not in (FREE, DONE)]
    records: dict[int, Record] = {}

    async def read(part: int) -> None:
        record = (await manifest.read(part)).record
        if record is not None:
            records[part] = record

    wanted = [BEGIN, END, *open_]
    await fan_out(False, wanted, read, count=len(wanted), width=manifest.width)
    begin, end = records.pop(BEGIN, None), records.pop(END, None)
    done = [part for part, state in enumerate(states) if state == DONE]
    # what was finished while we listed
    done += [part for part, record in records.items() if record.state == "done"]
    open_records = [records[part] for part in sorted(records) if part not in done]
    at_work = [each for each in (begin, end, *open_records) if each and each.state == "claimed"]
    alive = {each.owner.id for each in at_work if _is_alive(manifest, each)}
    failing = [each for each in open_records if each.failed]
    counted = sum(len(parts[part]) for part in done)
    bytes_done = 0 if bytes_of is None else sum(bytes_of(parts[part]) for part in done)
    claimed = sum(each.state == "claimed" and each.owner.id in alive for each in open_records)
    abandoned = sum(each.state in ("claimed", "free") for each in open_records) - claimed
    workers = {each.owner.id: each for each in sorted(at_work, key=lambda each: each.at)}
    return Status(
        _state(begin, end, alive),
        parts.count,
        len(done),
        claimed,
        abandoned,
        parts.tasks,
        counted + sum(len(each.done) for each in open_records),
        bytes_done + sum(each.bytes for each in open_records),
        sum(each.failed for each in failing),
        tuple(failure for each in failing for failure in each.failures),
        tuple(
            WorkerStatus(each.owner.host, each.owner.pid, each.worker.tasks, each.worker.bytes,
                         max(0.0, each.at - each.worker.since), each.owner.id in alive)
            for each in workers.values()
        ),
    )  # fmt: skip


def _state(
    begin: Record | None, end: Record | None, alive: set[str]
) -> Literal["planned", "running", "partly done", "done"]:
    if end is not None and end.state == "done":
        return "done"
    if alive:
        return "running"
    return "planned" if begin is None else "partly done"


def _is_alive(manifest: Manifest, record: Record) -> bool:
    if record.owner.is_gone():
        return False
    return manifest.clock.wall() <= record.until + record.lease_s
