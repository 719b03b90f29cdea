"""Requests that survive what networks do: attempts, signatures, ambiguous writes, redirects."""

import asyncio
import hashlib
from time import time

import pytest

from tensorstore_py.errors import (
    DataLossError,
    FailedPreconditionError,
    OutOfRangeError,
    PermissionDeniedError,
    UnavailableError,
)
from tensorstore_py.plugin.http import (
    HttpDialect,
    HttpRequest,
    HttpResponse,
    HttpSigner,
    HttpThrottle,
    HttpTiming,
    HttpVerdict,
    RateLimits,
)
from tensorstore_py.plugin.kvstore import ByteRange, Semaphore
from tensorstore_py.testing import Reply, WebValues
from tensorstore_py.testing.fault_server import (
    CLOSE,
    RESET,
    STALL,
    applied_then,
    flipped,
    redirect,
    skewed,
    status,
)
from tests.runtime.processes import start

VALUE = b"0123456789"
GOOD = frozenset({200, 206, 412})


@pytest.fixture
def web():
    return WebValues({"a": VALUE})


@pytest.fixture
def get(run):
    def get(client, url, byte_range=None, **headers):
        request = HttpRequest("GET", url, headers, key="a")
        more = () if byte_range is None else (byte_range,)
        return run(lambda: client.send(request, GOOD, *more))

    return get


@pytest.mark.parametrize("fault", [status(503), status(429), RESET, CLOSE], ids=repr)
def test_tries_again_until_it_works(serve, client, get, web, pauses, fault):
    server = serve(web.handle, [fault, fault])

    response = get(client(), server.url + "/a")

    assert bytes(response.body) == VALUE
    assert response.attempts == 3
    assert len(server.requests) == 3
    assert len(pauses.taken) == (2 if "status" in repr(fault) else 1)


def test_gives_up_with_the_number_of_attempts(serve, client, get, web):
    server = serve(web.handle, [status(503)] * 9)

    with pytest.raises(UnavailableError, match=r'cannot read "there/a".*503.*attempt 5') as error:
        get(client(max_retries=4), server.url + "/a")

    assert error.value.attempts == 5
    assert len(server.requests) == 5
    assert "http_request_retries" in str(error.value)


def test_what_will_not_pass_is_not_tried_again(serve, client, get, web, pauses):
    server = serve(web.handle, [status(403, {"Content-Type": "text/plain"}, b"ask the owner")])

    with pytest.raises(PermissionDeniedError, match=r"403 Forbidden \(ask the owner\)"):
        get(client(), server.url + "/a")

    assert len(server.requests) == 1
    assert pauses.taken == []


def test_the_server_says_when(serve, client, get, web, pauses):
    server = serve(web.handle, [status(503, {"Retry-After": "17"})])

    get(client(), server.url + "/a")

    assert pauses.taken == [17.0]


def test_a_pause_that_is_too_long_is_an_error(serve, client, get, web, pauses):
    server = serve(web.handle, [status(429, {"Retry-After": "86400"})])

    with pytest.raises(UnavailableError, match="86400 s"):
        get(client(), server.url + "/a")

    assert pauses.taken == []


def test_a_deadline_ends_it(serve, client, get, web, pauses):
    server = serve(web.handle, [status(503)] * 99)

    with pytest.raises(UnavailableError):
        get(client(max_retries=99, deadline_s=20.0), server.url + "/a")

    assert sum(pauses.taken) <= 20
    assert len(server.requests) == len(pauses.taken) + 1


def test_a_part_outside_is_an_error_with_a_name(serve, client, get, web):
    server = serve(web.handle)

    with pytest.raises(OutOfRangeError, match=r'"there/a".*\[5, 50\).*10 bytes'):
        get(client(), server.url + "/a", ByteRange(5, 50), Range="bytes=5-49")

    assert len(server.requests) == 1


def test_flipped_bits_are_tried_again_and_then_reported(serve, client, get):
    headers = {"x-goog-hash": "crc32c=gP2sZA=="}
    web = WebValues({"a": VALUE}, headers=headers)
    server = serve(web.handle, [flipped(3)] * 9)

    with pytest.raises(DataLossError, match=r'"there/a".*crc32c'):
        get(client(), server.url + "/a")

    assert len(server.requests) == 3


class Wedged(HttpSigner):
    """Signs with what it has; another token is to be had once."""

    def __init__(self):
        self.token = "old"
        self.times = []
        self.refreshed = 0

    async def sign(self, request, now):
        self.times.append(now)
        return {**request.headers, "Authorization": self.token}

    async def refresh(self, response):
        self.refreshed += 1
        self.token = "new"
        return True


def test_every_attempt_is_signed_anew(serve, client, get, web):
    signer = Wedged()
    server = serve(web.handle, [status(503), status(503)])

    get(client(signer=signer), server.url + "/a")

    assert len(signer.times) == 3
    assert signer.times == sorted(set(signer.times)), "each at its own time"
    assert server.requests[2].headers["authorization"] == "old"


def test_refused_credentials_are_renewed_once(serve, client, get, web, pauses):
    signer = Wedged()
    server = serve(web.handle, [status(401)])

    assert bytes(get(client(signer=signer), server.url + "/a").body) == VALUE
    assert [request.headers["authorization"] for request in server.requests] == ["old", "new"]
    assert pauses.taken == []

    server.plan = [status(401)] * 5
    with pytest.raises(PermissionDeniedError, match="401"):
        get(client(signer=signer), server.url + "/a")
    assert signer.refreshed == 2


def test_without_a_signer_there_is_nothing_to_renew(serve, client, get, web):
    server = serve(web.handle, [status(401)])

    with pytest.raises(PermissionDeniedError):
        get(client(), server.url + "/a")

    assert len(server.requests) == 1


class Cloudy(HttpDialect):
    """A service with error codes in the body."""

    name = "cloudy"

    def verdict(self, response):
        code = bytes(response.body)
        if code == b"TooSkewed":
            return HttpVerdict.SKEWED
        return HttpVerdict.REFRESH if code == b"Expired" else super().verdict(response)

    def words(self, response):
        return bytes(response.body).decode()


def test_the_services_clock_counts(serve, client, get, web):
    signer = Wedged()
    server = serve(web.handle, [skewed(403, 7200, b"TooSkewed")])
    cloudy = client(signer=signer, dialect=Cloudy(), timing=HttpTiming())

    assert bytes(get(cloudy, server.url + "/a").body) == VALUE
    get(cloudy, server.url + "/a")

    first, second, third = (moment - time() for moment in signer.times)
    assert first == pytest.approx(0, abs=30)
    assert second == pytest.approx(-7200, abs=30)
    assert third == pytest.approx(-7200, abs=30)


def test_a_clock_is_set_once_a_request(serve, client, get, web):
    server = serve(web.handle, [skewed(403, 7200, b"TooSkewed")] * 5)

    with pytest.raises(PermissionDeniedError, match="TooSkewed"):
        get(client(signer=Wedged(), dialect=Cloudy()), server.url + "/a")

    assert len(server.requests) == 2


def test_a_dialect_says_what_may_pass(serve, client, get, web):
    signer = Wedged()
    server = serve(web.handle, [status(400, body=b"Expired"), status(503)])

    response = get(client(signer=signer, dialect=Cloudy()), server.url + "/a")

    assert bytes(response.body) == VALUE
    assert signer.refreshed == 1
    server.plan = [status(503, body=b"SlowDown")] * 9
    with pytest.raises(UnavailableError, match=r"SlowDown.*cloudy_request_retries"):
        get(client(dialect=Cloudy(), max_retries=1), server.url + "/a")


class Values:
    """A store of values with conditional writes, as a handler."""

    def __init__(self):
        self.values = {}
        self.writes = 0

    def handle(self, request):
        value = self.values.get(request.target)
        if request.method == "GET":
            return Reply(404) if value is None else Reply(200, value)
        if value is not None and request.headers.get("if-none-match") == "*":
            return Reply(412)
        self.values[request.target] = request.body
        self.writes += 1
        return Reply(200, hashlib.md5(request.body).hexdigest().encode())


def create(client, url, body):
    """Create a value; whether it was this request that did it."""

    async def resolve_ambiguous():
        found = await client.send(HttpRequest("GET", url, {}, key="a"), {200})
        return HttpResponse(200, {}) if bytes(found.body) == body else None

    async def send():
        request = HttpRequest("PUT", url, {"If-None-Match": "*"}, body, action="write", key="a")
        response = await client.send(request, {200, 412}, resolve_ambiguous=resolve_ambiguous)
        return response.status == 200

    return start(False, send).result(timeout=30)


@pytest.mark.parametrize("fault", [RESET, CLOSE, status(500), status(503)], ids=repr)
def test_a_lost_answer_does_not_make_a_success_a_refusal(serve, client, fault):
    values = Values()
    server = serve(values.handle, [applied_then(fault)])

    assert create(client(limit=1), server.url + "/a", b"mine")
    assert values.writes == 1
    assert [request.method for request in server.requests] == ["PUT", "PUT", "GET"]


def test_a_lost_answer_does_not_make_a_refusal_a_success(serve, client):
    values = Values()
    values.values["/a"] = b"theirs"
    server = serve(values.handle, [applied_then(RESET)])

    assert not create(client(), server.url + "/a", b"mine")
    assert values.values == {"/a": b"theirs"}


def test_a_plain_refusal_is_not_looked_into(serve, client):
    values = Values()
    values.values["/a"] = b"mine"
    server = serve(values.handle)

    assert not create(client(), server.url + "/a", b"mine")
    assert len(server.requests) == 1


def test_a_request_that_never_arrived_is_not_ambiguous(serve, client, run):
    server = serve(Values().handle, [status(429)])
    request = HttpRequest("PUT", server.url + "/a", {}, b"1", action="write", key="a")

    response = run(lambda: client().send(request, {200}))

    assert (response.attempts, response.ambiguous) == (2, False)


def test_only_so_many_requests_at_a_time(serve, client, run, web):
    slots = Semaphore(3)
    held = []

    class Counting:
        async def __aenter__(self):
            await slots.__aenter__()
            held.append(1)

        async def __aexit__(self, *error):
            held.append(-1)
            await slots.__aexit__(*error)

    server = serve(web.handle)
    limited = client(slots=Counting())
    request = HttpRequest("GET", server.url + "/a", {}, key="a")

    async def many():
        await asyncio.gather(*(limited.send(request, GOOD) for _ in range(20)))

    run(many)

    assert max(sum(held[:n]) for n in range(len(held))) == 3
    assert len(server.requests) == 20
    assert server.connections == 3


def test_a_cancelled_request_gives_its_slot_back(serve, client, run, web):
    slots = Semaphore(1)
    arrived = asyncio.Event()
    plan = iter([STALL])

    def plan_and_tell(_):
        arrived.set()
        return next(plan, None)

    server = serve(web.handle, plan_and_tell)
    limited = client(slots=slots)
    request = HttpRequest("GET", server.url + "/a", {}, key="a")

    async def body():
        hanging = asyncio.create_task(limited.send(request, GOOD))
        await asyncio.wait_for(arrived.wait(), 30)
        waiting = asyncio.create_task(limited.send(request, GOOD))
        await asyncio.sleep(0)
        hanging.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hanging
        return await waiting

    assert bytes(run(body).body) == VALUE


def test_a_stall_is_tried_again(serve, client, get, web):
    server = serve(web.handle, [STALL])

    response = get(client(idle_timeout_s=0.05), server.url + "/a")

    assert bytes(response.body) == VALUE
    assert response.ambiguous


def test_a_redirect_is_followed_where_that_is_allowed(serve, client, get, web):
    other = serve(web.handle)
    server = serve(web.handle, [redirect(307, other.url + "/a"), redirect(302, "/a")])

    with_headers = {"X-Key": "s3cret", "If-Match": "*"}
    assert bytes(get(client(redirects=True), server.url + "/x", **with_headers).body) == VALUE
    assert "x-key" not in other.requests[0].headers
    assert other.requests[0].headers["if-match"] == "*"
    assert bytes(get(client(redirects=True), server.url + "/x", **with_headers).body) == VALUE
    assert server.requests[-1].headers["x-key"] == "s3cret"


def test_a_redirect_is_an_error_elsewhere(serve, client, get, web):
    server = serve(web.handle, [redirect(301, "/a")])

    with pytest.raises(FailedPreconditionError, match="301"):
        get(client(), server.url + "/x")


def test_going_round_in_circles_ends(serve, client, get, web):
    server = serve(web.handle)
    server.plan = lambda _: redirect(302, "/x?token=s3cret")

    with pytest.raises(FailedPreconditionError, match="on and on") as error:
        get(client(redirects=True), server.url + "/x")

    assert "s3cret" not in str(error.value)
    assert len(server.requests) == 9


def test_errors_hold_no_secrets(serve, client, web):
    server = serve(web.handle, [RESET] * 9)
    url = server.url.replace("http://", "http://me:s3cret@") + "/a?sig=s3cret"
    request = HttpRequest("GET", url, {"X-Key": "s3cret"})

    with pytest.raises(UnavailableError) as error:
        start(False, lambda: client().send(request, GOOD)).result(timeout=30)

    told = str(error.value) + repr(error.value.__cause__) + repr(error.value.__context__)
    assert "s3cret" not in told
    assert "/a?sig=..." in str(error.value)


def test_what_must_not_be_sent_twice_is_followed_by_a_question(serve, client, run):
    server = serve(lambda request: Reply(200, request.method.encode()), [status(503), RESET])

    async def body():
        question = HttpRequest("POST", server.url + "/b", {})
        return await client().send(
            HttpRequest("PUT", server.url + "/a", {}, b"value"), {200}, instead=question
        )

    assert run(body).body == b"POST"
    assert [request.method for request in server.requests] == ["PUT", "POST", "POST"]


class Unable(HttpSigner):
    """Cannot sign the first times."""

    def __init__(self, *errors):
        self.errors = list(errors)

    async def sign(self, request, now):
        if self.errors:
            raise self.errors.pop(0)
        return request.headers

    async def refresh(self, response):
        raise PermissionDeniedError("the account is locked")


def test_a_signer_may_be_out_for_a_moment(serve, client, get, web):
    server = serve(web.handle)
    signer = Unable(UnavailableError("nobody there"), UnavailableError("nobody there"))

    assert bytes(get(client(signer=signer), server.url + "/a").body) == VALUE

    signer.errors = [UnavailableError("nobody there")] * 9
    with pytest.raises(UnavailableError, match='read "there/a": nobody there') as error:
        get(client(signer=signer), server.url + "/a")
    assert error.value.attempts == 5


def test_an_account_that_may_not_sign_is_an_error_with_the_key(serve, client, get, web):
    server = serve(web.handle, [None, status(401)])
    signer = Unable(PermissionDeniedError("no such account"))

    with pytest.raises(PermissionDeniedError, match='read "there/a": no such account'):
        get(client(signer=signer), server.url + "/a")
    assert server.requests == []

    get(client(signer=signer), server.url + "/a")
    with pytest.raises(PermissionDeniedError, match='read "there/a": the account is locked'):
        get(client(signer=signer), server.url + "/a")


def test_a_write_that_can_be_settled_is_tried_again_at_once(serve, client, run, pauses):
    server = serve(lambda _: Reply(412), [status(503), status(503)])

    async def resolve_ambiguous():
        return HttpResponse(200, {}, b"ours")

    async def body():
        request = HttpRequest("PUT", server.url + "/a", {}, b"value")
        return await client().send(request, {200, 412}, resolve_ambiguous=resolve_ambiguous)

    assert run(body).body == b"ours"
    assert len(pauses.taken) == 1


@pytest.mark.parametrize("date", ["yesterday", "Wed, 21 Oct 2015 07:28:01 GMT"])
def test_a_clock_that_is_right_is_no_reason_to_try_again(serve, client, get, web, date):
    server = serve(web.handle, [status(403, {"Date": date}, b"TooSkewed")])
    timing = HttpTiming(lambda: 1445412480.0)

    with pytest.raises(PermissionDeniedError, match="TooSkewed"):
        get(client(signer=Wedged(), dialect=Cloudy(), timing=timing), server.url + "/a")

    assert len(server.requests) == 1


class Log(HttpThrottle):
    """Records what it is asked, and what it is given."""

    def __init__(self):
        super().__init__()
        self.seen = []

    async def turn(self, request):
        self.seen.append(f"turn {request.key}")

    def refused(self, request, response):
        self.seen.append(f"{response.status} {request.key}")


def request(url, method="GET", key="a"):
    return HttpRequest(method, f"{url}/{key}", {}, key=key)


def test_every_attempt_has_its_turn(serve, client, run):
    throttle = Log()
    server = serve(lambda _: Reply(200, b"x"), [status(503), status(429), None])

    run(lambda: client(throttle=throttle).send(request(server.url), {200}))

    assert throttle.seen == ["turn a", "503 a", "turn a", "429 a", "turn a"]


def test_reads_and_writes_have_rates_of_their_own(serve, client, run):
    waits = []

    async def sleep(seconds):
        waits.append(seconds)

    rates = RateLimits(
        10,
        2,
        now=lambda: 0.0,
        sleep=sleep,
    )
    server = serve(lambda _: Reply(200, b""))
    paced = client(throttle=HttpThrottle(rates))

    async def body():
        for method in ("GET", "HEAD", "PUT", "DELETE", "POST", "GET"):
            await paced.send(request(server.url, method), {200})

    run(body)

    assert waits == [0.1, 0.2, 0.5, 1.0, 1.5, 0.3]


def test_waiting_for_a_turn_holds_no_slot(serve, client, run):
    server = serve(lambda _: Reply(200, b"x"))

    class Stuck(HttpThrottle):
        async def turn(self, request):
            if request.key == "stuck":
                await asyncio.Event().wait()

    paced = client(throttle=Stuck(), slots=Semaphore(1))

    async def body():
        stuck = asyncio.ensure_future(paced.send(request(server.url, key="stuck"), {200}))
        await asyncio.sleep(0)
        answer = await paced.send(request(server.url, key="free"), {200})
        stuck.cancel()
        await asyncio.gather(stuck, return_exceptions=True)
        return answer.body

    assert run(body) == b"x"


def test_what_is_waited_for_is_logged_without_secrets(serve, client, get, web, caplog):
    server = serve(web.handle, [status(503)] * 4)

    answer = get(client(max_retries=9), f"{server.url}/a?token=secret")

    assert answer.body == VALUE
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith('still waiting: cannot read "there/a": the server')
    assert "secret" not in caplog.text
