"""A server that is far away: what is asked for together is answered together, and counted."""

import asyncio
from contextlib import contextmanager

import tensorstore_py as ts
from tensorstore_py.testing import FaultServer
from tensorstore_py.testing.fault_server import Fault
from tests.kvstores.s3.fake_s3 import FakeS3

KEYS = {"type": "static", "access_key_id": "AKIA", "secret_access_key": "do-not-print-me"}


class Waves:
    """Lets requests through in waves: all that come before the first of them is answered.

    Attributes:
        counts: how many requests each wave had.
    """

    #: How far away the server is; so long do requests of one wave have to come.
    AWAY_S = 0.15

    def __init__(self):
        self.counts = []
        self._open: asyncio.Future[None] | None = None

    def plan(self, request):
        return Fault("far away", self._answered)

    async def _answered(self, exchange):
        if self._open is None:
            self._open = asyncio.get_running_loop().create_future()
            self.counts.append(0)
            asyncio.get_running_loop().call_later(self.AWAY_S, self._let_through)
        self.counts[-1] += 1
        await asyncio.shield(self._open)
        await exchange.answer(exchange.serve())
        return True

    def _let_through(self):
        assert self._open is not None
        self._open.set_result(None)
        self._open = None


@contextmanager
def bucket():
    """A bucket: its spec, its server, and how to make it be far away."""
    server = FaultServer(FakeS3().handle)
    with server.running() as url:
        spec = {
            "driver": "s3",
            "bucket": "bucket",
            "endpoint": url,
            "aws_credentials": KEYS,
            "s3_request_concurrency": {"limit": 500},
        }
        yield spec, server


@contextmanager
def far_away(server):
    """The waves of requests within the block."""
    waves = Waves()
    server.plan = waves.plan
    try:
        yield waves
    finally:
        server.plan = ()


def make_tree(spec, groups, arrays, **options):
    """A group with so many groups, each with so many arrays, `x` and `t` being coordinates."""
    root = ts.Group.open(spec, create=True, **options).result()
    for number in range(groups):
        group = root.create_group(f"g{number}").result()
        for name in ("x", "t", *(f"v{each}" for each in range(arrays - 2))):
            dim = name if name in ("x", "t") else "x"
            units = {"units": "days since 2000-01-01"} if name == "t" else {}
            domain = ts.IndexDomain(shape=[3], labels=[dim])
            made = group.create_array(name, dtype="int32", domain=domain, attributes=units)
            made.result()[...] = [1, 2, 3]
    return root
