import asyncio
import errno
import tracemalloc

import pytest

from tensorstore_py._interface.generation import NO_VALUE
from tensorstore_py._plan.manifest import Manifest
from tensorstore_py._plan.parts import Parts
from tensorstore_py._plan.record import Record
from tensorstore_py._plan.work import Work
from tensorstore_py._plan.worker import Worker
from tensorstore_py._runtime.start import start
from tensorstore_py.errors import DataLossError
from tensorstore_py.kvstores.memory import MemoryStore, SharedMap
from tensorstore_py.testing import CountingStore, LoopStore
from tests.plan.cluster import REQUEST, Cluster, machine, simulated


@pytest.mark.parametrize("tasks", [0, 1, 10, 5000])
@pytest.mark.parametrize("width", [1, 7])
def test_one_worker_does_each_task_once(tasks, width):
    cluster = Cluster(tasks)
    told: list[int] = []

    outcome = simulated(cluster.run(width=width, told=told.append))

    assert outcome[:3] == ("done", tasks, 0)
    assert cluster.ran == dict.fromkeys(range(tasks), 1)
    assert sum(told) == tasks


@pytest.mark.parametrize("workers", [2, 30])
def test_many_workers_do_each_task_once(workers):
    cluster = Cluster(600)
    told: list[list[int]] = [[] for _ in range(workers)]

    async def main():
        return await asyncio.gather(
            *(
                cluster.run(f"{number}", seed=number, told=told[number].append)
                for number in range(workers)
            )
        )

    outcomes = simulated(main())

    assert cluster.ran == dict.fromkeys(range(600), 1)
    assert sum(outcome.tasks for outcome in outcomes) == 600
    assert {outcome.state for outcome in outcomes} == {"done"}
    assert all(outcome.tasks > 0 for outcome in outcomes)
    assert all(sum(each) <= 600 for each in told)


def test_shares_are_done_by_those_they_are_meant_for():
    cluster = Cluster(64)

    async def main():
        await asyncio.gather(*(cluster.run(f"{n}", share=(n, 4)) for n in range(4)))

    simulated(main())

    assert [cluster.by[task] for task in range(64)] == [f"{task // 16}" for task in range(64)]
    # each part is claimed, finished and listed as such, and nobody got in another's way
    assert cluster.requests <= 64 * 3 + 4 * 16


def test_who_is_done_with_its_share_helps_others():
    cluster = Cluster(40)

    outcome = simulated(cluster.run(share=(3, 4)))

    assert outcome.tasks == 40
    assert list(cluster.by)[:10] == list(range(30, 40))


def test_a_finished_plan_takes_two_requests():
    cluster = Cluster(100)
    work = cluster.work(merge=lambda one, other: {"sum": one["sum"] + other["sum"]})
    first = simulated(cluster.run(work=work))
    cluster.counting.reset()

    outcome = simulated(cluster.run("b", work=work))

    assert outcome == ("done", 0, 0, outcome.seconds, {"sum": 4950})
    assert first.result == outcome.result
    assert cluster.requests == 2  # the plan, and the record of its end


def test_results_are_merged_over_all_workers_and_losses():
    cluster = Cluster(200, size=10)
    ends = []

    async def run(task):
        await asyncio.sleep(20)
        return {task}

    async def end(result):
        ends.append(result)

    work = Work(run, merge=set.union, to_json=sorted, from_json=set, end=end)

    async def main():
        await asyncio.gather(
            cluster.lose("lost", 130, work=work), cluster.run("a", work=work, seed=3)
        )
        return await cluster.run("b", work=work)

    assert simulated(main()).result == set(range(200))
    assert ends == [set(range(200))]


def test_what_comes_first_and_last_does_so_once():
    cluster = Cluster(30, size=1)
    said: list[object] = []

    async def begin(again):
        assert not again
        said.append("begin")
        await asyncio.sleep(50)
        said.append("begun")

    async def end(result):
        assert result is None
        said.append("end")

    async def run(task):
        await asyncio.sleep(1)
        said.append(task)

    async def main():
        work = Work(run, begin=begin, end=end)
        await asyncio.gather(*(cluster.run(f"{n}", seed=n, work=work) for n in range(8)))

    simulated(main())

    assert said[:2] == ["begin", "begun"]
    assert said[-1] == "end"
    assert set(said[2:-1]) == set(range(30))


def test_damaged_regions_are_named_at_the_end_and_tried_again_by_the_next_run():
    cluster = Cluster(100)
    cluster.bad = {17, 40}
    work = cluster.work(damaged=(DataLossError,), region=lambda task: f"rows {task}")

    async def main():
        return await asyncio.gather(
            *(cluster.run(f"{n}", seed=n, work=work) for n in range(3)), return_exceptions=True
        )

    errors = simulated(main())

    for error in errors:
        assert type(error) is DataLossError
        assert "2 of 100 tasks could not be done" in str(error)
        assert "task 17 (rows 17): task 17 is bad; task 40 (rows 40): task 40 is bad" in str(error)
        assert "copy.json" in str(error)
    assert len(cluster.ran) == 98
    assert cluster.began.total() == 100

    async def later(name):
        await asyncio.sleep(500)
        return await cluster.run(name, work=work)

    cluster.bad = {40}
    with pytest.raises(DataLossError, match="1 of 100 tasks"):
        simulated(later("b"))
    assert cluster.began == dict.fromkeys(range(100), 1) | {17: 2, 40: 2}

    async def much_later():
        await asyncio.sleep(1000)
        return await cluster.run("c", work=work)

    cluster.bad = set()
    assert simulated(much_later())[:2] == ("done", 1)
    assert cluster.ran == dict.fromkeys(range(100), 1)


def test_another_error_stops_the_worker_and_others_go_on_at_once():
    cluster = Cluster(60, size=20)

    async def run(task):
        await asyncio.sleep(1)
        if task == 5:
            raise OSError(errno.ENOSPC, "No space left on device")
        cluster.ran[task] += 1

    work = Work(run, region=lambda task: f"rows {task}")

    async def main():
        with pytest.raises(OSError, match="No space left") as raised:
            await cluster.run("full", work=work, width=2, share=(0, 1))
        loop = asyncio.get_running_loop()
        began = loop.time()
        outcome = await cluster.run("other")
        return raised.value, outcome, loop.time() - began

    error, outcome, seconds = simulated(main())

    (note,) = error.__notes__
    assert note.startswith("in task 5 (rows 5), process 1 on full; what was done stays done")
    assert 'goes on from "copy.json"' in note
    assert cluster.ran == dict.fromkeys(range(60), 1)
    assert outcome.tasks == 60 - 6  # all before it, and what ran beside it
    assert seconds < 60


def test_who_is_cancelled_lets_others_have_its_part():
    cluster = Cluster(20, size=20)

    async def main():
        running = asyncio.ensure_future(cluster.run("a"))
        await asyncio.sleep(5.5)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        outcome = await cluster.run("b")
        return outcome, asyncio.get_running_loop().time()

    outcome, seconds = simulated(main())

    assert outcome.tasks == 15
    assert cluster.ran == dict.fromkeys(range(20), 1)
    assert seconds < 25


def test_who_does_not_wait_leaves_what_others_are_at():
    cluster = Cluster(2, size=1, task_s=1000)

    async def main():
        slow = asyncio.ensure_future(cluster.run("slow"))
        await asyncio.sleep(10)
        quick = cluster.work(task_s=1)
        outcome = await cluster.run("b", wait=False, work=quick)
        return outcome, asyncio.get_running_loop().time(), await slow

    outcome, seconds, slow = simulated(main())

    assert outcome[:2] == ("partly done", 1)
    assert seconds < 15
    assert slow[:2] == ("done", 1)


def test_who_does_not_wait_still_waits_for_the_beginning():
    cluster = Cluster(40, size=1, task_s=20)

    async def begin(_):
        await asyncio.sleep(30)

    async def main():
        works = [cluster.work(f"{n}", begin=begin) for n in range(4)]
        return await asyncio.gather(
            *(cluster.run(f"{n}", seed=n, wait=False, work=works[n]) for n in range(4))
        )

    outcomes = simulated(main())

    assert all(outcome.tasks >= 5 for outcome in outcomes)
    assert sum(outcome.tasks for outcome in outcomes) == 40


def test_long_tasks_take_two_requests_at_most_however_long():
    cluster = Cluster(400, size=20, task_s=1800)

    simulated(cluster.run(width=2))

    assert cluster.requests / 400 < 2
    assert cluster.ran == dict.fromkeys(range(400), 1)


@pytest.mark.parametrize("inline", [True, False])
@pytest.mark.parametrize("store", [MemoryStore(SharedMap()), LoopStore(MemoryStore(SharedMap()))])
def test_tasks_and_stores_of_either_temperament(inline, store):
    ran = []

    async def run(task):
        if not inline:
            await asyncio.sleep(0)
        ran.append(task)
        return task

    async def main():
        manifest = Manifest(store, f"{inline}.json", Parts(300))
        await manifest.ensure(REQUEST)
        work = Work(run, inline=inline, merge=lambda one, other: one + other)
        return await Worker(manifest, work, width=4).run()

    outcome = start(False, main).result()

    assert outcome.result == 300 * 299 // 2
    assert sorted(ran) == list(range(300))


def test_an_inline_task_that_fails_is_named_too():
    async def run(task):
        if task == 30:
            raise ValueError("wrong shape")

    async def main():
        manifest = Manifest(MemoryStore(SharedMap()), "p.json", Parts(100))
        await manifest.ensure(REQUEST)
        await Worker(manifest, Work(run, inline=True), width=2).run()

    with pytest.raises(ValueError, match="wrong shape") as raised:
        start(False, main).result()
    assert "in task 30 (number 30)" in raised.value.__notes__[0]


class StoppedError(Exception):
    """The end of a run."""


def test_a_plan_of_14_million_tasks_is_resumed_in_little_memory():
    store = CountingStore(MemoryStore(SharedMap()))
    parts = Parts(14_000_000)
    ran = []

    async def run(task):
        ran.append(task)
        if len(ran) == 5000:
            raise StoppedError

    async def main(*, most_done):
        manifest = Manifest(LoopStore(store), "p.json", parts)
        await manifest.ensure(REQUEST)
        if most_done:
            for part in range(1, parts.count - 10):
                await manifest.put(part, Record(machine("a"), "done"), NO_VALUE)
                await manifest.mark(part, "done")
        store.reset()
        tracemalloc.start()
        try:
            with pytest.raises(StoppedError):
                await Worker(manifest, Work(run), share=(0, 1)).run()
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    simulated(main(most_done=True))
    ran.clear()

    assert simulated(main(most_done=False)) < 2e6
    assert len(set(ran)) == 5000
    assert store.reads.total() + store.writes.total() + store.lists.total() < 40
