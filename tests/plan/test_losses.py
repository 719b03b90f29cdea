"""Whatever is lost, machines, answers or time: all is done, and counted once."""

import asyncio
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from tensorstore_py._plan.work import Work
from tensorstore_py.errors import UnavailableError
from tests.plan.cluster import Cluster, simulated

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


@settings(max_examples=settings().max_examples // 2)
@given(
    tasks=st.integers(0, 40),
    size=st.integers(1, 15),
    machines=st.lists(MACHINE, max_size=6),
    faults=st.lists(FAULT, max_size=4),
)
def test_all_is_done_and_counted_once(tasks, size, machines, faults):
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
        cluster.faulty.fail(operation, UnavailableError("?"), times=times, afterwards=afterwards)

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
