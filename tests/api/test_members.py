import asyncio

import pytest

import tensorstore_py as ts
from tensorstore_py._api.members import Members
from tensorstore_py._runtime.start import start


def members(batches):
    """Members of some batches, and the list of those that were asked for."""
    asked = []

    def steps():
        left = list(batches)

        async def step():
            asked.append(1)
            return left.pop(0) if left else None

        return step

    return Members(lambda body: start(True, body), steps), asked


def test_nothing_is_asked_before_it_is_wanted():
    found, asked = members([[("a", 1), ("b", 2)], [], [("c", 3)]])

    iterator = iter(found)
    assert asked == []
    assert next(iterator) == ("a", 1)
    assert len(asked) == 1
    assert list(iterator) == [("b", 2), ("c", 3)]


async def test_all_ways_give_the_same():
    found, _ = members([[("a", 1)], [("b", 2)]])
    expected = [("a", 1), ("b", 2)]

    assert list(found) == expected
    assert list(found) == expected
    assert [pair async for pair in found] == expected
    assert await found == expected
    assert found.result() == found.read().result() == expected


async def test_a_group_is_walked_on_any_loop():
    group = await ts.Group.open("memory://", create=True)
    await asyncio.gather(*(group.create_group(f"g{n}") for n in range(5)))

    assert [path async for path, _ in group.members()] == ["g0", "g1", "g2", "g3", "g4"]


def test_a_transaction_that_is_over_shows_nothing():
    transaction = ts.Transaction()
    group = ts.Group.open("memory://", create=True, transaction=transaction).result()
    found = group.members()
    transaction.abort()

    with pytest.raises(ts.FailedPreconditionError):
        list(found)
