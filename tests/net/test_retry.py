"""How often a request is tried again, and after how long."""

import pytest

from tensorstore_py._net.failures import Failure, Retryability
from tensorstore_py._net.retry import RetryBudget, RetryState
from tensorstore_py._spec.limits import Duration
from tensorstore_py.errors import DataLossError, UnavailableError
from tensorstore_py.plugin.http import RetriesModel


def state(max_retries=5, tokens=100.0, deadline=None):
    return RetryState(RetriesModel(max_retries=max_retries), RetryBudget(tokens), deadline)


def lost(**options):
    return Failure("lost", UnavailableError, Retryability.FULL, **options)


def test_delays_double_up_to_the_longest():
    request = state(max_retries=8)

    delays = [request.delay_after(lost(), 0.0) for _ in range(9)]

    for number, delay in enumerate(delays[:5]):
        assert 2.0**number <= delay <= 2.0**number + 1
    assert delays[5:] == [32.0, 32.0, 32.0, None]


@pytest.mark.parametrize("retries", [0, 1, 7])
def test_one_attempt_more_than_retries(retries):
    request = state(max_retries=retries)

    attempts = 1
    while request.delay_after(lost(), 0.0) is not None:
        attempts += 1

    assert (attempts, request.attempts) == (retries + 1, retries + 1)


def test_retryability_depends_on_the_failure():
    final, little = Failure("x", DataLossError), Failure("x", DataLossError, Retryability.LITTLE)

    assert state().delay_after(final, 0.0) is None
    request = state()
    assert [request.delay_after(little, 0.0) is None for _ in range(3)] == [False, False, True]
    assert state(max_retries=0).delay_after(little, 0.0) is None


def test_retryability_is_for_each_kind_of_failure():
    little, request = Failure("x", DataLossError, Retryability.LITTLE), state()

    failures = [lost(), lost(), lost(), little, little]

    assert None not in [request.delay_after(failure, 0.0) for failure in failures]
    assert request.delay_after(little, 0.0) is None


def test_a_connection_that_had_just_been_closed_costs_no_delay_once():
    request = state()

    delays = [request.delay_after(lost(is_prompt=True), 0.0) for _ in range(3)]

    assert delays[0] == 0.0
    assert all(delay >= 1 for delay in delays[1:])


def test_waits_for_as_long_as_the_server_asks():
    assert state().delay_after(lost(wait_s=77.0), 0.0) == 77.0
    assert state().delay_after(lost(wait_s=0.0), 0.0) >= 1.0


def test_a_much_later_retry_is_an_error_now():
    assert state().delay_after(lost(wait_s=3600.0), 0.0) is None


def test_no_attempt_begins_after_the_deadline():
    request = state(deadline=10.0)

    assert request.delay_after(lost(), 0.0) is not None
    assert request.delay_after(lost(), 9.0) is None


def test_an_empty_budget_slows_down_and_never_fails():
    request = state(tokens=1.0)

    first, second = (request.delay_after(lost(), 0.0) for _ in range(2))

    assert first < 3
    assert second == 32.0


def test_answers_earn_the_budget_back():
    budget = RetryBudget(1.0)
    assert [budget.take(), budget.take()] == [True, False]

    for _ in range(5):
        budget.earn()

    assert [budget.take(), budget.take()] == [True, False]
    for _ in range(100):
        budget.earn()
    assert [budget.take(), budget.take()] == [True, False]


def test_a_server_has_one_budget():
    one, other = RetryBudget.of("http://a"), RetryBudget.of("http://b")

    assert RetryBudget.of("http://a") is one
    assert other is not one


def test_an_uncertain_attempt_makes_the_request_ambiguous():
    request = state()
    request.delay_after(lost(), 0.0)
    assert not request.ambiguous

    request.delay_after(lost(may_have_run=True), 0.0)
    request.delay_after(lost(), 0.0)

    assert request.ambiguous


def test_a_reason_of_ours_excuses_once():
    request = state()

    assert [request.may_excuse("clock"), request.may_excuse("clock")] == [True, False]
    assert request.may_excuse("token")


def test_the_delays_are_the_resources():
    retries = RetriesModel(initial_delay=Duration.parse("5s"), max_delay=Duration.parse("6s"))

    delay = RetryState(retries, RetryBudget()).delay_after(lost(), 0.0)

    assert delay is not None
    assert 5.0 <= delay <= 6.0


class TestWarnings:
    """What is waited for is told after a few seconds, once for all requests to a server."""

    @staticmethod
    def warn(caplog, requests, *times):
        """The moments at which there was a warning."""
        told = []
        for now in times:
            for each in requests:
                caplog.clear()
                each.delay_after(lost(), now)
                each.warn(1.0, now, lambda: "cannot read it: refused")
                told += [now] * len(caplog.records)
        return told

    def test_after_a_few_seconds_and_now_and_then(self, caplog):
        request = state(max_retries=100)

        times = (100, 101, 102, 103, 110, 131, 132, 133, 170)
        assert self.warn(caplog, [request], *times) == [102, 132, 170]

    def test_once_for_all_requests(self, caplog):
        budget = RetryBudget()
        retries = RetriesModel(max_retries=100)
        requests = [RetryState(retries, budget) for _ in range(20)]

        assert self.warn(caplog, requests, 100, 105, 106) == [105]

    def test_what_it_says(self, caplog):
        request = state(max_retries=9)
        request.delay_after(lost(), 0)
        request.warn(4.0, 0, lambda: "cannot read it: refused")

        assert [record.levelname for record in caplog.records] == ["WARNING"]
        assert caplog.messages == ["still waiting: cannot read it: refused (attempt 2 in 4 s)"]
