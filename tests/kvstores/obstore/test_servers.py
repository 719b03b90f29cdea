"""The obstore store on real servers, which are shared: each test has a prefix of its own."""

import uuid
from typing import ClassVar

import numpy as np
import pytest

import tensorstore_py as ts
from tensorstore_py.testing import KvStoreSuite


@pytest.fixture(scope="module")
def buckets():
    """By server, one bucket for all tests of its class."""
    return {}


class OnServer:
    """What is tried on every server.

    Attributes:
        fixture: which server.
        members: of the specs of its stores.
    """

    fixture: ClassVar[str] = ""
    members: ClassVar[dict[str, object]] = {}

    @pytest.fixture
    def spec(self, request, buckets):
        server = request.getfixturevalue(self.fixture)
        if server.name not in buckets:
            buckets[server.name] = server.make_bucket()
        config = {
            "endpoint": server.endpoint,
            "region": "us-east-1",
            "access_key_id": server.access_key,
            "secret_access_key": server.secret_key,
            "client_options": {"allow_http": True},
        }
        url = f"s3://{buckets[server.name]}"
        return {"driver": "obstore", "url": url, "config": config, **self.members}

    @pytest.fixture
    def store(self, spec):
        return ts.KvStore.open(spec).result().store

    @pytest.fixture
    def prefix(self):
        return f"{uuid.uuid4().hex}/"

    def test_an_array_in_an_archive(self, spec, prefix):
        base = {**spec, "path": f"{prefix}a.zip"}
        data = np.arange(400, dtype=np.uint8).reshape(20, 20)
        kvstore = {"driver": "zip", "base": base}
        made = ts.open(
            {"driver": "zarr3", "kvstore": kvstore}, create=True, dtype="uint8", shape=[20, 20]
        ).result()
        made[...] = data
        made[3] = data[3] = 7

        found = ts.open({"driver": "zarr3", "kvstore": kvstore}).result()
        np.testing.assert_array_equal(found[...].read().result(), data)


class TestMoto(OnServer):
    fixture = "moto_s3"


class TestRgw(OnServer, KvStoreSuite):
    """Ceph: it wants ETags without their quotes."""

    fixture = "rgw_s3"
    bad_keys = ("a//b", "a\x01")


class TestSwift(OnServer):
    """Swift has no conditional writes."""

    fixture = "swift_s3"
    members: ClassVar[dict[str, object]] = {"use_conditional_write": False}

    def test_its_conditions_are_not_relied_on(self, spec, prefix):
        trusting = {name: spec[name] for name in ("driver", "url", "config")}
        store = ts.KvStore.open({**trusting, "path": prefix}).result()

        with pytest.raises(ts.UnsupportedError, match='"use_conditional_write": false'):
            store.write("a", b"1", if_equal=b"\2").result()
        assert store.list().result() == []
