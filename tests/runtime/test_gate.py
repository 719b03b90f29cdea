import asyncio
import os
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


class TestSeized:
    """Keys entered without waiting, by a thread that holds the gate's own lock."""

    @staticmethod
    def seize(gate, *keys):
        with gate._mutex:
            return gate._seize(iter(keys))

    @staticmethod
    async def enter(gate, key, inside):
        async with gate.hold(key):
            inside.append(key)

    def test_are_told(self):
        gate = Gate(inline=True)
        assert self.seize(gate, "a", "b") == ["a", "b"]
        assert self.seize(gate) == []
        gate.let_go(["a", "b"])

    def test_keep_others_waiting_until_they_are_let_go(self):
        gate = Gate(inline=True)
        seized = self.seize(gate, "a", "b")
        inside: list[str] = []
        threads = [
            threading.Thread(
                target=lambda key=key: run_inline(self.enter(gate, key, inside)), daemon=True
            )
            for key in "aab"
        ]
        for thread in threads:
            thread.start()
        while [turn.users for turn in gate._turns.values()] != [3, 2]:
            pass
        assert inside == []
        gate.let_go(seized)
        for thread in threads:
            thread.join()
        assert sorted(inside) == ["a", "a", "b"]
        assert not gate._turns

    def test_are_free_again(self):
        gate = Gate(inline=True)
        for _ in range(2):
            gate.let_go(self.seize(gate, "a", "b"))
            assert not gate._turns
        inside: list[str] = []
        run_inline(self.enter(gate, "a", inside))
        assert inside == ["a"]

    def test_other_keys_do_not_wait(self):
        gate = Gate(inline=True)
        seized = self.seize(gate, "a")
        inside: list[str] = []
        run_inline(self.enter(gate, "b", inside))
        gate.let_go(seized)
        assert inside == ["b"]

    def test_are_free_in_a_forked_child(self):
        gate = Gate(inline=True)
        seized = self.seize(gate, "a")
        child = os.fork()
        if child == 0:
            inside: list[str] = []
            run_inline(self.enter(gate, "a", inside))
            os._exit(0 if inside == ["a"] else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        gate.let_go(seized)
