import pytest

from tensorstore_py._net.message import HttpRequest, HttpResponse
from tensorstore_py._net.retrying import HttpTiming
from tensorstore_py._net.signing import HttpSigner, ServerClock

NOON = 1445428800.0  # Wed, 21 Oct 2015 12:00:00 GMT


def answer(date):
    return HttpResponse(403, {} if date is None else {"Date": date})


def clock(now=NOON):
    return ServerClock(HttpTiming(lambda: now))


def test_our_clock_is_right_until_a_server_complains():
    assert clock().now() == NOON


@pytest.mark.parametrize(
    ("date", "ahead_s"),
    [("Wed, 21 Oct 2015 13:00:00 GMT", 3600), ("Wed, 21 Oct 2015 11:00:00 GMT", -3600)],
)
def test_follows_the_servers_clock(date, ahead_s):
    ours = clock()

    assert ours.follow(answer(date))
    assert ours.now() == NOON + ahead_s
    assert not ours.follow(answer(date)), "the same answer changes nothing more"


@pytest.mark.parametrize("date", [None, "yesterday", "Wed, 21 Oct 2015 12:00:01 GMT"])
def test_what_differs_by_little_or_nothing_is_no_reason_to_try_again(date):
    assert not clock().follow(answer(date))


async def test_a_signer_has_no_other_credentials_unless_it_says_so():
    class Fixed(HttpSigner):
        async def sign(self, request, now):
            return {**request.headers, "Authorization": "x"}

    signer = Fixed()

    assert await signer.sign(HttpRequest("GET", "http://a/", {"A": "1"}), 0.0) == {
        "A": "1", "Authorization": "x"
    }  # fmt: skip
    assert not await signer.refresh(answer(None))
