import asyncio

import pytest

from benchmarks.simulated_cluster import allowed_s, duration, main, rows_of, simulate
from benchmarks.simulated_time import simulated
from tests.plan.cluster import Parts


def test_time_passes_by_waiting_alone():
    async def wait():
        loop = asyncio.get_running_loop()
        await asyncio.gather(asyncio.sleep(3600), asyncio.sleep(86_400 * 30))
        return loop.time()

    assert simulated(wait()) == pytest.approx(86_400 * 30)


def test_what_waits_for_ever_is_an_error():
    async def wait():
        await asyncio.Event().wait()

    with pytest.raises(RuntimeError, match="never comes"):
        simulated(wait())


def test_more_workers_take_less_time_and_few_requests():
    runs = [simulate(4000, workers, lost=0.0) for workers in (1, 40)]

    assert runs[0].seconds > 30 * runs[1].seconds
    for run in runs:
        assert run.ran == dict.fromkeys(range(4000), 1)
        assert run.asked.total() / 4000 < 2


def test_lost_machines_cost_the_tasks_that_they_had_done_and_not_said():
    run = simulate(1000, 30, seed=3, lost=0.5)

    assert run.losses > 5
    assert set(run.ran) == set(range(1000))
    assert run.ran.total() - 1000 <= 4 * run.losses


def test_a_run_is_the_same_every_time():
    one, other = (simulate(200, 8, seed=5) for _ in range(2))

    assert (one.seconds, one.asked, one.ran) == (other.seconds, other.asked, other.ran)


def test_the_table(capsys):
    assert main(["--tasks", "200", "--workers", "1,4", "--markdown"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "200 tasks in 200 parts of 1"
    assert lines[2].startswith("| workers | time | speed-up | efficiency | parts allow |")
    assert [line.split(" | ")[0] for line in lines[4:]] == ["| 1", "| 4"]
    assert len(rows_of([simulate(10, 1)])) == 2


def test_what_parts_allow():
    whole = allowed_s(Parts(400, 20), 1)

    assert allowed_s(Parts(400, 20), 4) < whole / 3
    assert allowed_s(Parts(400, 20), 400) == allowed_s(Parts(400, 20), 20) > whole / 20
    # the real thing needs no less, and on one machine no more
    assert whole < simulate(400, 1, lost=0.0).seconds < 1.05 * allowed_s(Parts(400), 1)
    assert [duration(seconds) for seconds in (59, 3600, 360_000)] == ["59 s", "60 min", "100.0 h"]
