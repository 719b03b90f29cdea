import asyncio

import pytest

from tensorstore_py._plan.work import Work
from tensorstore_py.errors import DataLossError
from tests.plan.cluster import REQUEST, Cluster, simulated


def status(cluster, after_s=0.0):
    """How far it is, as somebody sees it who looks a while later."""

    async def main():
        await asyncio.sleep(after_s)
        manifest = cluster.manifest()
        await manifest.ensure(REQUEST)
        cluster.counting.reset()
        return await manifest.status(lambda tasks: 10 * len(tasks))

    return simulated(main())


def test_nobody_has_begun():
    found = status(Cluster(100, size=10))

    assert (found.state, found.parts, found.tasks) == ("planned", 10, 100)
    assert (found.parts_done, found.tasks_done, found.claimed, found.abandoned) == (0, 0, 0, 0)
    assert found.workers == ()


def test_somebody_is_at_work():
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
        found = await manifest.status(lambda tasks: 10 * len(tasks))
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
    assert cluster.requests == 1 + 2 + 2  # a listing, the beginning, the end, and who is at work


def test_all_were_lost():
    cluster = Cluster(100, size=25)
    simulated(cluster.lose("a", 60, share=(0, 1)))

    assert status(cluster, after_s=100).state == "running"  # as far as anybody can tell yet
    found = status(cluster, after_s=1000)

    assert (found.state, found.parts_done, found.abandoned) == ("partly done", 2, 1)
    assert 50 <= found.tasks_done < 60
    (worker,) = found.workers
    assert not worker.alive


def test_somebody_let_go():
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


def test_some_is_damaged():
    cluster = Cluster(100, size=25)
    cluster.bad = {3, 30}
    with pytest.raises(DataLossError):
        simulated(cluster.run(work=cluster.work(damaged=(DataLossError,))))

    found = status(cluster, after_s=1000)

    assert (found.state, found.parts_done, found.tasks_done) == ("partly done", 2, 98)
    assert (found.failed, [failure.task for failure in found.failures]) == (2, [3, 30])
    assert found.bytes_done == 500


def test_all_is_done():
    cluster = Cluster(100, size=10)
    simulated(cluster.run())

    found = status(cluster)

    assert (found.state, found.parts_done, found.tasks_done) == ("done", 10, 100)
    assert found.bytes_done == 1000
    assert cluster.requests == 3


def test_all_tasks_are_done_and_the_end_is_not():
    cluster = Cluster(10)

    async def end(_):
        raise PermissionError("no consolidated metadata")

    async def run(task):
        del task

    with pytest.raises(PermissionError):
        simulated(cluster.run(work=Work(run, end=end)))

    assert status(cluster)[:3] == ("partly done", 10, 10)
