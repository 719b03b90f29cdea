import asyncio

import pytest

from tensorstore_py._runtime.private_loop import run_coroutine


async def test_coroutines_are_run_to_their_end() -> None:
    async def waits(count: int) -> int:
        for _ in range(count):
            await asyncio.sleep(0)
        return count

    async def fails() -> int:
        raise KeyError("a")

    assert run_coroutine(lambda: waits(0)) == 0
    assert run_coroutine(lambda: waits(3)) == 3
    with pytest.raises(KeyError):
        run_coroutine(fails)


async def test_a_loop_that_runs_is_neither_seen_nor_changed() -> None:
    loop = asyncio.get_running_loop()
    seen: list[object] = []

    async def looks() -> int:
        seen.append(asyncio.get_running_loop())
        return await asyncio.to_thread(int, "7")

    assert run_coroutine(looks) == 7
    assert len(seen) == 1
    assert seen[0] is not loop
    assert asyncio.get_running_loop() is loop
    await asyncio.sleep(0)


def test_without_a_loop_none_is_left_behind() -> None:
    async def waits() -> int:
        await asyncio.sleep(0)
        return 5

    assert run_coroutine(waits) == 5
    with pytest.raises(RuntimeError):
        asyncio.get_running_loop()
