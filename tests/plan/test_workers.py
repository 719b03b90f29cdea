"""Workers that share a manifest, in simulated time: what they take, lose, and find again."""

import asyncio
import errno
import subprocess
import sys
import tracemalloc
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorstore_py import DataLossError, UnavailableError
from tensorstore_py.kvstores.memory import MemoryStore, SharedMap
from tensorstore_py.plugin.kvstore import NO_VALUE
from tensorstore_py.testing import CountedWaits, CountingStore, FaultyStore, LoopStore
from tests.plan.cluster import (
    REQUEST,
    Cluster,
    Line,
    MachineClock,
    Manifest,
    Owner,
    Parts,
    Record,
    Work,
    Worker,
    machine,
    simulated,
    status_of,
    until,
)
from tests.runtime.processes import start


class StoppedError(Exception):
    """The end of a run."""


class TestWorker:
    @pytest.mark.parametrize("tasks", [0, 1, 10, 5000])
    @pytest.mark.parametrize("width", [1, 7])
    def test_one_worker_does_each_task_once(self, tasks, width):
        cluster = Cluster(tasks)
        reporter: list[int] = []

        outcome = simulated(cluster.run(width=width, on_progress=reporter.append))

        assert outcome[:3] == ("done", tasks, 0)
        assert cluster.ran == dict.fromkeys(range(tasks), 1)
        assert sum(reporter) == tasks

    @pytest.mark.parametrize("workers", [2, 30])
    def test_many_workers_do_each_task_once(self, workers):
        cluster = Cluster(600)
        reporter: list[list[int]] = [[] for _ in range(workers)]

        async def main():
            return await asyncio.gather(
                *(
                    cluster.run(f"{number}", seed=number, on_progress=reporter[number].append)
                    for number in range(workers)
                )
            )

        outcomes = simulated(main())

        assert cluster.ran == dict.fromkeys(range(600), 1)
        assert sum(outcome.tasks for outcome in outcomes) == 600
        assert {outcome.state for outcome in outcomes} == {"done"}
        assert all(outcome.tasks > 0 for outcome in outcomes)
        assert all(sum(each) <= 600 for each in reporter)

    def test_shares_are_done_by_those_they_are_meant_for(self):
        cluster = Cluster(64)

        async def main():
            await asyncio.gather(*(cluster.run(f"{n}", share=(n, 4)) for n in range(4)))

        simulated(main())

        assert [cluster.by[task] for task in range(64)] == [f"{task // 16}" for task in range(64)]
        # each part is claimed, finished and listed as such, and no worker got in another's way
        assert cluster.requests <= 64 * 3 + 4 * 16

    def test_a_worker_that_is_done_with_its_share_helps_others(self):
        cluster = Cluster(40)

        outcome = simulated(cluster.run(share=(3, 4)))

        assert outcome.tasks == 40
        assert list(cluster.by)[:10] == list(range(30, 40))

    def test_a_finished_plan_takes_two_requests(self):
        cluster = Cluster(100)
        work = cluster.work(merge=lambda one, other: {"sum": one["sum"] + other["sum"]})
        first = simulated(cluster.run(work=work))
        cluster.counting.reset()

        outcome = simulated(cluster.run("b", work=work))

        assert outcome == ("done", 0, 0, outcome.seconds, {"sum": 4950})
        assert first.result == outcome.result
        assert cluster.requests == 2  # the plan, and the record of its end

    def test_results_are_merged_over_all_workers_and_losses(self):
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

    def test_what_comes_first_and_last_does_so_once(self):
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

    def test_damaged_regions_are_named_at_the_end_and_tried_again_by_the_next_run(self):
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
            assert "task 17 (rows 17): task 17 is bad; task 40 (rows 40): task 40 is bad" in str(
                error
            )
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

    def test_another_error_stops_the_worker_and_others_go_on_at_once(self):
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

    def test_a_cancelled_worker_lets_others_have_its_part(self):
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

    def test_a_worker_that_does_not_wait_leaves_what_others_are_at(self):
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

    def test_a_caller_that_does_not_wait_still_waits_for_the_beginning(self):
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

    def test_long_tasks_take_two_requests_at_most_however_long(self):
        cluster = Cluster(400, size=20, task_s=1800)

        simulated(cluster.run(width=2))

        assert cluster.requests / 400 < 2
        assert cluster.ran == dict.fromkeys(range(400), 1)

    @pytest.mark.parametrize("inline", [True, False])
    @pytest.mark.parametrize(
        "store", [MemoryStore(SharedMap()), LoopStore(MemoryStore(SharedMap()))]
    )
    def test_tasks_and_stores_of_either_execution_mode(self, inline, store):
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

    def test_an_inline_task_that_fails_is_named_too(self):
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

    def test_a_plan_of_14_million_tasks_is_resumed_in_little_memory(self):
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


def now():
    return asyncio.get_running_loop().time()


async def lost_and_found(cluster, *, after_s=0.0, **options):
    """One worker is lost in the middle; another begins a while later. Returns when it was done."""
    await cluster.lose("lost", 30.5, share=(0, 1))
    await asyncio.sleep(after_s)
    began = now()
    await cluster.run("found", **options)
    return now() - began


class TestClaims:
    @pytest.mark.parametrize("wrong_s", [0.0, -1e6])
    def test_what_another_machine_abandoned_is_taken_after_a_lease_by_ones_own_clock(self, wrong_s):
        cluster = Cluster(40, size=40)

        seconds = simulated(lost_and_found(cluster, wrong_s=wrong_s))

        # of the thirty tasks those since the last record are done again
        assert cluster.ran == dict.fromkeys(range(40), 1) | dict.fromkeys(range(20, 30), 2)
        assert cluster.lease_s - 30 < seconds < 2 * cluster.lease_s

    def test_what_was_abandoned_long_ago_is_taken_at_once(self):
        cluster = Cluster(40, size=40)

        assert simulated(lost_and_found(cluster, after_s=300)) < 25

    def test_a_slow_worker_keeps_its_part_however_wrong_clocks_are(self):
        cluster = Cluster(4, size=2, task_s=2000)

        async def main():
            await asyncio.gather(
                cluster.run("slow", share=(0, 2)),
                cluster.run("ahead", share=(1, 2), wrong_s=60, work=cluster.work(task_s=1)),
                cluster.run("behind", share=(1, 2), wrong_s=-1e6, work=cluster.work(task_s=1)),
            )

        simulated(main())

        assert cluster.began == dict.fromkeys(range(4), 1)
        # it is watched the whole time, by two, with few requests
        assert cluster.requests < 400

    def test_a_lease_is_what_its_owner_says(self):
        cluster = Cluster(4, size=4, task_s=500)

        async def main():
            slow = asyncio.ensure_future(cluster.run("slow"))
            await asyncio.sleep(1100)
            cluster.lease_s = 10.0
            await cluster.run("hasty", work=cluster.work(task_s=1))
            await slow

        simulated(main())

        assert cluster.began == dict.fromkeys(range(4), 1)

    def test_a_worker_whose_part_was_taken_stops(self):
        cluster = Cluster(40, size=40)
        line = Line(cluster.store)

        async def main():
            slow = asyncio.ensure_future(cluster.run("cut off", store=line))
            await asyncio.sleep(1.5)
            line.broken = UnavailableError("parted")
            with CountedWaits():
                other = asyncio.ensure_future(
                    cluster.run("other", work=cluster.work("other", task_s=0.1))
                )
                await until(lambda: "other" in cluster.by.values())
            line.broken = None
            return await other, await slow

        cluster.task_s = 20
        other, slow = simulated(main())

        assert other.tasks == 40
        assert slow.state == "done"
        assert slow.tasks < 15
        assert sum(cluster.ran.values()) == 40 + slow.tasks

    def test_a_claim_that_the_store_took_without_saying_so_is_found(self):
        cluster = Cluster(3, size=1)

        class Silent(FaultyStore):
            """Says that the first claim of the second part was refused, although it was not."""

            inline = False

            async def write(self, key, value, *, if_equal=None):
                stamp = await super().write(key, value, if_equal=if_equal)
                if key.endswith("0001.json") and b'"sequence": 4' in bytes(value):
                    stamp.generation = b""
                return stamp

        store = Silent(cluster.store)
        store.inline = False

        simulated(cluster.run(store=store, share=(0, 1)))

        assert cluster.ran == dict.fromkeys(range(3), 1)

    def test_a_renewal_that_fails_is_made_up_for(self):
        cluster = Cluster(100, size=100)

        async def main():
            running = asyncio.ensure_future(cluster.run())
            await asyncio.sleep(10)
            cluster.faulty.fail("write", UnavailableError("busy"), times=9)
            with CountedWaits():
                return await running

        assert simulated(main()).tasks == 100

    def test_a_marker_that_was_never_stored_is_made_up_for(self):
        cluster = Cluster(4, size=2)

        async def main():
            running = asyncio.ensure_future(cluster.run("a", share=(0, 1)))
            await until(lambda: cluster.ran[0])
            key = next(key for key in cluster.counting.writes if key.endswith("0000.json"))
            cluster.faulty.fail("write", OSError("unplugged"), key=key[:-4] + "done")
            with pytest.raises(OSError, match="unplugged"):
                await running
            began = now()
            await cluster.run("b")
            return now() - began

        assert simulated(main()) < 10
        assert cluster.ran == dict.fromkeys(range(4), 1)
        assert {key.rpartition("/")[2] for key in cluster.counting.writes} >= {
            "0000.done",
            "0001.done",
        }

    def test_what_a_dead_process_of_this_machine_had_is_taken_at_once(self):
        cluster = Cluster(40, size=40)
        with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
            here = Owner.new()
            theirs = Owner.new(process.pid)
            assert not theirs.is_gone()

            async def main(owner, work):
                manifest = Manifest(cluster.store, "copy.json", cluster.parts, clock=MachineClock())
                await manifest.ensure(REQUEST)
                return await Worker(manifest, work, owner=owner).run()

            async def dies(task):
                if task == 30:
                    cluster.faulty.fail("write", OSError("killed"), times=1)
                    raise OSError("killed")
                cluster.ran[task] += 1

            with pytest.raises(OSError, match="killed"):
                simulated(main(theirs, Work(dies)))
            process.kill()
            process.wait()

        async def timed():
            await main(here, cluster.work(task_s=0.0))
            return now()

        assert simulated(timed()) < 1
        assert len(cluster.ran) == 40


MACHINE = st.fixed_dictionaries(
    {
        "starts_s": st.floats(0, 100),
        "lost_after_s": st.none() | st.floats(0, 300),
        "wrong_s": st.sampled_from([0.0, 0.0, 50.0, -50.0, 1e5, -1e5]),
        "task_s": st.sampled_from([0.1, 3.0, 30.0, 200.0]),
        "width": st.integers(1, 3),
    }
)


FAULT = st.tuples(
    st.floats(0, 400),
    st.sampled_from(["read", "write"]),
    st.booleans(),
    st.integers(1, 2),  # a store that never answers is an error
)


class TestLosses:
    @settings(max_examples=settings().max_examples // 2)
    @given(
        tasks=st.integers(0, 40),
        size=st.integers(1, 15),
        machines=st.lists(MACHINE, max_size=6),
        faults=st.lists(FAULT, max_size=4),
    )
    def test_all_is_done_and_counted_once(self, tasks, size, machines, faults):
        cluster = Cluster(tasks, size=size)
        lost = sum(machine["lost_after_s"] is not None for machine in machines)
        skewed = sum(abs(machine["wrong_s"]) > 1e3 for machine in machines)

        def work(task_s):
            async def run(task):
                cluster.began[task] += 1
                await asyncio.sleep(task_s)
                return Counter([task])

            return Work(run, merge=Counter.__add__, to_json=list, from_json=Counter)

        async def machine(number, given):
            await asyncio.sleep(given["starts_s"])
            options = {
                "wrong_s": given["wrong_s"], "width": given["width"], "seed": number,
                "work": work(given["task_s"]),
            }  # fmt: skip
            if given["lost_after_s"] is None:
                return await cluster.run(f"{number}", **options)
            return await cluster.lose(f"{number}", given["lost_after_s"], **options)

        async def fault(at_s, operation, afterwards, times):
            await asyncio.sleep(at_s)
            cluster.faulty.fail(
                operation, UnavailableError("?"), times=times, afterwards=afterwards
            )

        async def main():
            await asyncio.gather(
                *(machine(number, each) for number, each in enumerate(machines)),
                *(fault(*each) for each in faults),
            )
            return await cluster.run("last", work=work(1.0))

        outcome = simulated(main())

        assert Counter(outcome.result or {}) == Counter(range(tasks))
        assert all(cluster.began[task] >= 1 for task in range(tasks))
        if not skewed:  # or machines take from each other what is not abandoned
            assert all(runs <= 1 + lost for runs in cluster.began.values())


def status(cluster, after_s=0.0):
    """How far it is, as an observer sees it a while later."""

    async def main():
        await asyncio.sleep(after_s)
        manifest = cluster.manifest()
        await manifest.ensure(REQUEST)
        cluster.counting.reset()
        return await status_of(manifest, lambda tasks: 10 * len(tasks))

    return simulated(main())


class TestStatus:
    def test_no_worker_has_begun(self):
        found = status(Cluster(100, size=10))

        assert (found.state, found.parts, found.tasks) == ("planned", 10, 100)
        assert (found.parts_done, found.tasks_done, found.claimed, found.abandoned) == (0, 0, 0, 0)
        assert found.workers == ()

    def test_a_worker_is_at_work(self):
        cluster = Cluster(100, size=50)

        async def main():
            running = [
                asyncio.ensure_future(
                    cluster.run(f"{n}", share=(n, 2), work=cluster.work(size=lambda _: 10))
                )
                for n in range(2)
            ]
            await asyncio.sleep(41)
            manifest = cluster.manifest()
            await manifest.load()
            cluster.counting.reset()
            found = await status_of(manifest, lambda tasks: 10 * len(tasks))
            for each in running:
                each.cancel()
            return found

        found = simulated(main())

        assert (found.state, found.claimed, found.abandoned) == ("running", 2, 0)
        assert 40 <= found.tasks_done <= 80  # as far as it was written down
        assert found.bytes_done == 10 * found.tasks_done
        assert sorted(worker.host for worker in found.workers) == ["0", "1"]
        for worker in found.workers:
            assert worker.alive
            assert worker.rate == pytest.approx(10, rel=0.2)
        assert (
            cluster.requests == 1 + 2 + 2
        )  # a listing, the beginning, the end, and which workers are at work

    def test_all_were_lost(self):
        cluster = Cluster(100, size=25)
        simulated(cluster.lose("a", 60, share=(0, 1)))

        assert status(cluster, after_s=100).state == "running"  # as far as anybody can tell yet
        found = status(cluster, after_s=1000)

        assert (found.state, found.parts_done, found.abandoned) == ("partly done", 2, 1)
        assert 50 <= found.tasks_done < 60
        (worker,) = found.workers
        assert not worker.alive

    def test_a_worker_released_its_part(self):
        cluster = Cluster(100, size=25)

        async def main():
            running = asyncio.ensure_future(cluster.run(share=(0, 1)))
            await asyncio.sleep(60)
            running.cancel()
            await asyncio.wait((running,))

        simulated(main())
        found = status(cluster, after_s=61)

        assert (found.state, found.parts_done, found.claimed) == ("partly done", 2, 0)
        assert found.abandoned == 1
        assert found.tasks_done == 59

    def test_some_is_damaged(self):
        cluster = Cluster(100, size=25)
        cluster.bad = {3, 30}
        with pytest.raises(DataLossError):
            simulated(cluster.run(work=cluster.work(damaged=(DataLossError,))))

        found = status(cluster, after_s=1000)

        assert (found.state, found.parts_done, found.tasks_done) == ("partly done", 2, 98)
        assert (found.failed, [failure.task for failure in found.failures]) == (2, [3, 30])
        assert found.bytes_done == 500

    def test_all_is_done(self):
        cluster = Cluster(100, size=10)
        simulated(cluster.run())

        found = status(cluster)

        assert (found.state, found.parts_done, found.tasks_done) == ("done", 10, 100)
        assert found.bytes_done == 1000
        assert cluster.requests == 3

    def test_all_tasks_are_done_and_the_end_is_not(self):
        cluster = Cluster(10)

        async def end(_):
            raise PermissionError("no consolidated metadata")

        async def run(task):
            del task

        with pytest.raises(PermissionError):
            simulated(cluster.run(work=Work(run, end=end)))

        assert status(cluster)[:3] == ("partly done", 10, 10)
