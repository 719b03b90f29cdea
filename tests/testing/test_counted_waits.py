import pytest

from tensorstore_py.errors import AbortedError
from tensorstore_py.plugin.kvstore import RetryPolicy
from tensorstore_py.testing import CountedWaits
from tests.runtime.processes import run_inline


@pytest.mark.parametrize("inline", [True, False])
def test_waits_are_counted_and_not_waited(inline):
    with CountedWaits(chance=0.5) as waits:
        attempts = RetryPolicy(initial_s=1e6, longest_s=1e9).begin("try", str, inline=inline)
        run_inline(attempts.lost())
        run_inline(attempts.lost())

    assert waits.seconds == [5e5, 1e6]
    assert waits.now() == 1.5e6


def test_time_passes_by_waits_alone():
    with CountedWaits(), pytest.raises(AbortedError) as late:
        run_inline(_lose(RetryPolicy(initial_s=10.0, longest_s=10.0, deadline_s=25.0)))

    assert late.value.attempts == 3


async def _lose(policy):
    attempts = policy.begin("try", str, inline=True)
    while True:
        await attempts.lost()


def test_afterwards_the_clock_is_what_it_was():
    before = RetryPolicy.clock
    with CountedWaits(), CountedWaits():
        assert RetryPolicy.clock is not before

    assert RetryPolicy.clock is before
