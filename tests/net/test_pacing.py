import asyncio

from tensorstore_py._net.message import HttpRequest
from tensorstore_py._net.pacing import HttpPacer
from tensorstore_py._runtime.admission import Slots
from tensorstore_py._runtime.rates import Rate, Rates
from tensorstore_py.testing import Reply
from tensorstore_py.testing.fault_server import status


class Log(HttpPacer):
    """Writes down what it is asked and told."""

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
    pacer = Log()
    server = serve(lambda _: Reply(200, b"x"), [status(503), status(429), None])

    run(lambda: client(pacer=pacer).send(request(server.url), {200}))

    assert pacer.seen == ["turn a", "503 a", "turn a", "429 a", "turn a"]


def test_reads_and_writes_have_rates_of_their_own(serve, client, run):
    waits = []

    async def sleep(seconds):
        waits.append(seconds)

    rates = Rates(
        Rate(10, now=lambda: 0.0, sleep=sleep),
        Rate(2, now=lambda: 0.0, sleep=sleep),
    )
    server = serve(lambda _: Reply(200, b""))
    paced = client(pacer=HttpPacer(rates))

    async def body():
        for method in ("GET", "HEAD", "PUT", "DELETE", "POST", "GET"):
            await paced.send(request(server.url, method), {200})

    run(body)

    assert waits == [0.1, 0.2, 0.5, 1.0, 1.5, 0.3]


def test_who_waits_for_a_turn_holds_no_slot(serve, client, run):
    server = serve(lambda _: Reply(200, b"x"))

    class Stuck(HttpPacer):
        async def turn(self, request):
            if request.key == "stuck":
                await asyncio.Event().wait()

    paced = client(pacer=Stuck(), slots=Slots(1))

    async def body():
        stuck = asyncio.ensure_future(paced.send(request(server.url, key="stuck"), {200}))
        await asyncio.sleep(0)
        answer = await paced.send(request(server.url, key="free"), {200})
        stuck.cancel()
        await asyncio.gather(stuck, return_exceptions=True)
        return answer.body

    assert run(body) == b"x"
