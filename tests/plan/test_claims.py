import asyncio
import subprocess
import sys

import pytest

from tensorstore_py._plan.manifest import Manifest
from tensorstore_py._plan.owner import Owner
from tensorstore_py._plan.work import Work
from tensorstore_py._plan.worker import Worker
from tensorstore_py.errors import UnavailableError
from tensorstore_py.testing import CountedWaits, FaultyStore
from tests.plan.cluster import REQUEST, Cluster, Line, MachineClock, simulated, until


def now():
    return asyncio.get_running_loop().time()


async def lost_and_found(cluster, *, after_s=0.0, **options):
    """One worker is lost in the middle; another begins a while later. Returns when it was done."""
    await cluster.lose("lost", 30.5, share=(0, 1))
    await asyncio.sleep(after_s)
    began = now()
    await cluster.run("found", **options)
    return now() - began


@pytest.mark.parametrize("wrong_s", [0.0, -1e6])
def test_what_another_machine_abandoned_is_taken_after_a_lease_by_ones_own_clock(wrong_s):
    cluster = Cluster(40, size=40)

    seconds = simulated(lost_and_found(cluster, wrong_s=wrong_s))

    # of the thirty tasks those since the last record are done again
    assert cluster.ran == dict.fromkeys(range(40), 1) | dict.fromkeys(range(20, 30), 2)
    assert cluster.lease_s - 30 < seconds < 2 * cluster.lease_s


def test_what_was_abandoned_long_ago_is_taken_at_once():
    cluster = Cluster(40, size=40)

    assert simulated(lost_and_found(cluster, after_s=300)) < 25


def test_who_works_slowly_keeps_its_part_however_wrong_clocks_are():
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


def test_a_lease_is_what_its_owner_says():
    cluster = Cluster(4, size=4, task_s=500)

    async def main():
        slow = asyncio.ensure_future(cluster.run("slow"))
        await asyncio.sleep(1100)
        cluster.lease_s = 10.0
        await cluster.run("hasty", work=cluster.work(task_s=1))
        await slow

    simulated(main())

    assert cluster.began == dict.fromkeys(range(4), 1)


def test_who_finds_its_part_taken_stops():
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


def test_a_claim_that_the_store_took_without_saying_so_is_found():
    cluster = Cluster(3, size=1)

    class Silent(FaultyStore):
        """Says of the first claim of the second part that it was refused, although it was not."""

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


def test_a_renewal_that_fails_is_made_up_for():
    cluster = Cluster(100, size=100)

    async def main():
        running = asyncio.ensure_future(cluster.run())
        await asyncio.sleep(10)
        cluster.faulty.fail("write", UnavailableError("busy"), times=9)
        with CountedWaits():
            return await running

    assert simulated(main()).tasks == 100


def test_a_marker_that_was_never_stored_is_made_up_for():
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
    assert {key.rpartition("/")[2] for key in cluster.counting.writes} >= {"0000.done", "0001.done"}


def test_what_a_dead_process_of_this_machine_had_is_taken_at_once():
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
