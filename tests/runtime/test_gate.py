import asyncio
import threading

import pytest

from tensorstore_py._runtime.fan_out import fan_out
from tensorstore_py._runtime.gate import Gate, Mutex
from tensorstore_py._runtime.inline import run_inline
from tensorstore_py._runtime.start import start


@pytest.mark.parametrize("inline", [True, False])
def test_one_holder_a_key(inline):
    gate = Gate(inline=inline)
    inside: dict[int, int] = dict.fromkeys(range(3), 0)
    worst: list[int] = []

    async def work(step):
        key = step % 3
        async with gate.hold(key):
            inside[key] += 1
            worst.append(inside[key])
            if not inline:
                await asyncio.sleep(0)
            inside[key] -= 1

    start(inline, lambda: fan_out(inline, range(300), work, count=300, width=8)).result()
    assert len(worst) == 300
    assert set(worst) == {1}
    assert not gate._turns


def test_other_keys_do_not_wait():
    gate = Gate(inline=True)

    async def both():
        async with gate.hold("a"), gate.hold("b"):
            return "in"

    assert run_inline(both()) == "in"


@pytest.mark.parametrize("inline", [True, False])
def test_an_error_inside_lets_the_next_one_in(inline):
    gate = Gate(inline=inline)

    async def fail():
        async with gate.hold("a"):
            raise KeyError

    async def enter():
        async with gate.hold("a"):
            return "in"

    with pytest.raises(KeyError):
        start(inline, fail).result()
    assert start(inline, enter).result() == "in"


async def test_who_gives_up_waiting_leaves_no_trace():
    gate = Gate(inline=False)

    async def enter():
        async with gate.hold("a"):
            pass

    async with gate.hold("a"):
        waiting = asyncio.ensure_future(enter())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
    assert waiting.cancelled()
    assert not gate._turns
    await enter()


def test_a_mutex_excludes():
    mutex = Mutex()
    total = [0]

    def add():
        for _ in range(200):
            with mutex:
                seen = total[0]
                total[0] = seen + 1

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert total == [800]


def test_a_mutex_is_free_after_an_error():
    mutex = Mutex()
    with pytest.raises(KeyError), mutex:
        raise KeyError
    with mutex:
        pass
