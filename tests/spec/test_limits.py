import random

import pytest

from tensorstore_py._runtime.inline import run_inline
from tensorstore_py._spec.duration import Duration
from tensorstore_py._spec.limits import (
    ConcurrencyModel,
    RateModel,
    RequestConcurrencyModel,
    RetriesModel,
)
from tensorstore_py.errors import SpecError


class Requests(RequestConcurrencyModel):
    resource_id = "test_request_concurrency"
    variable = "TEST_REQUEST_CONCURRENCY"


class Operations(ConcurrencyModel):
    resource_id = "test_concurrency"


def test_a_number_is_its_own_limit():
    assert Requests.parse({"limit": 5}).create().limit == 5
    assert Requests(limit=5).create() is not Requests(limit=5).create()


def test_shared_is_one_for_the_kind():
    assert Requests.parse({"limit": "shared"}).create().limit == 32
    assert Requests().create() is Requests().create()
    assert Operations().create().limit >= 4
    assert Operations().create() is Operations().create() is not Requests().create()


@pytest.mark.parametrize(("text", "limit"), [("7", 7), ("0", 32), ("many", 32), ("", 32)])
def test_the_environment_says_what_shared_is(monkeypatch, text, limit):
    monkeypatch.setenv("TEST_REQUEST_CONCURRENCY", text)
    assert Requests.shared_limit() == limit


class Rate(RateModel):
    resource_id = "test_rate"


def test_rates():
    rate = Rate.parse({"read_rate": 3, "doubling_time": "1m"})
    assert rate.to_json() == {"doubling_time": "1m", "read_rate": 3.0}
    assert Rate().to_json(include_defaults=True) == {}


def test_a_rate_limits_what_it_names():
    rates = Rate.parse({"read_rate": 3}).create()
    assert rates.read is not None
    assert rates.read.per_second == 3
    assert rates.write is None


class Growing(RateModel):
    resource_id = "test_growing"
    variable = "TEST_DOUBLING_TIME"


@pytest.mark.parametrize(
    ("said", "variable", "waits"),
    [
        ("0", "1s", [1.0, 1.0]),
        (None, None, [1.0, 1.0]),
        ("inf", None, [1.0, 1.0]),
        (None, "1s", [0.7597, 0.4951]),
        ("1s", "0", [0.7597, 0.4951]),
    ],
)
def test_a_rate_grows_as_it_or_the_environment_says(monkeypatch, said, variable, waits):
    clock, taken = [0.0], []

    async def sleep(seconds):
        taken.append(seconds)
        clock[0] += seconds

    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    monkeypatch.setattr("asyncio.sleep", sleep)
    if variable is not None:
        monkeypatch.setenv("TEST_DOUBLING_TIME", variable)
    json = {"read_rate": 1} | ({} if said is None else {"doubling_time": said})

    rate = Growing.parse(json).create().read
    assert rate is not None
    for _ in range(2):
        run_inline(rate.turn())

    assert taken == pytest.approx(waits, abs=1e-3)


@pytest.mark.parametrize("rate", [0, -3, "3", True, float("inf"), float("nan")])
def test_refuses_other_rates(rate):
    with pytest.raises(SpecError) as caught:
        Rate.parse({"write_rate": rate})
    assert caught.value.path == ("write_rate",)


@pytest.mark.parametrize("limit", [0, -1, 1.5, True, "all", None, [3]])
def test_refuses_other_limits(limit):
    with pytest.raises(SpecError, match=r'limit: expected "shared" or a positive integer'):
        Requests.parse({"limit": limit})


def test_prints_only_what_is_said():
    assert Requests.parse({"limit": "shared"}).to_json() == {}
    assert Requests().to_json(include_defaults=True) == {"limit": "shared"}
    assert RetriesModel().to_json(include_defaults=True) == {
        "initial_delay": "1s",
        "max_delay": "32s",
        "max_retries": 32,
    }


def test_delays_double_up_to_the_longest():
    retries = RetriesModel(
        initial_delay=Duration.parse("100ms"), max_delay=Duration.parse("2s"), max_retries=9
    )

    for attempt in range(20):
        assert 0.1 * 2**attempt <= retries.delay_s(attempt) + 1e-9 or attempt > 4
        assert retries.delay_s(attempt) <= min(0.1 * 2**attempt + 0.1, 2)


def test_jitter_neither_follows_nor_disturbs_what_a_program_seeds():
    def drawn():
        random.seed(7)
        before = random.getstate()
        found = [RetriesModel().delay_s(0) for _ in range(4)]
        assert random.getstate() == before
        return found

    assert drawn() != drawn()


def test_odd_delays_are_no_waits_into_the_past():
    retries = RetriesModel(initial_delay=Duration.parse("-1s"), max_delay=Duration.parse("-1s"))

    assert retries.delay_s(0) == 0


def test_after_very_many_attempts_the_wait_is_the_longest():
    assert RetriesModel().delay_s(100_000) == 32
