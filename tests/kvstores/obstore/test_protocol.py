"""Services that differ in what they make of conditions."""

from datetime import UTC, datetime

import pytest

import tensorstore_py as ts
from tensorstore_py.errors import PermissionDeniedError, UnavailableError, UnsupportedError
from tensorstore_py.kvstores.obstore import ObstoreClients, ObstoreConfig, ObstoreStore
from tensorstore_py.kvstores.obstore.protocol import (
    KINDS,
    generation_of,
    get_options,
    put_mode,
    says_missing,
    says_no,
    says_unable,
)
from tensorstore_py.plugin.kvstore import NO_VALUE, UNKNOWN, WHOLE, ByteRange, ForeignErrors
from tensorstore_py.testing import FaultServer, drive
from tests.kvstores.s3.fake_s3 import FakeS3


class AlreadyExistsError(Exception):
    pass


class UnauthenticatedError(Exception):
    pass


@pytest.mark.parametrize(
    ("error", "cls"),
    [
        (UnauthenticatedError(), PermissionDeniedError),
        (NotImplementedError(), UnsupportedError),
        (RuntimeError(), UnavailableError),
    ],
)
def test_each_has_a_class_of_ours(error, cls):
    assert type(ForeignErrors(KINDS).typed(error, "read", "a")) is cls


def test_what_they_say_of_a_key():
    assert says_missing(FileNotFoundError())
    assert says_missing(RuntimeError("Unable to open: Not a directory (os error 20)"))
    assert not says_missing(AlreadyExistsError())
    assert says_no(AlreadyExistsError())
    assert says_unable(NotImplementedError())
    assert says_unable(RuntimeError("non-2xx status code: 501 Not Implemented: ..."))
    assert not says_unable(AlreadyExistsError())


def told(e_tag, version=None):
    return {
        "path": "a", "size": 5, "last_modified": datetime(2020, 1, 1, tzinfo=UTC),
        "e_tag": e_tag, "version": version,
    }  # fmt: skip


def test_a_generation_is_what_the_service_says():
    assert generation_of(told('"abc"')) == b'"abc"'
    assert generation_of(told('"abc"', "7")) == b'"abc"\n7'
    assert generation_of(told(None, "7")) == b"\n7"
    assert b" 5" in generation_of(told(None))


@pytest.mark.parametrize(
    ("generation", "mode"),
    [
        (NO_VALUE, "create"),
        (b'"abc"', {"e_tag": '"abc"'}),
        (b'"abc"\n7', {"e_tag": '"abc"', "version": "7"}),
        (b"\n7", {"version": "7"}),
        (generation_of(told(None)), None),
        (b"\0some other generation", None),
    ],
)
def test_a_condition_of_a_write(generation, mode):
    assert put_mode(generation) == mode


def test_quotes_may_be_left_out():
    assert put_mode(b'"abc"', bare=True) == {"e_tag": "abc"}
    assert put_mode(NO_VALUE, bare=True) == "create"


@pytest.mark.parametrize(
    ("byte_range", "options"),
    [
        (WHOLE, {}),
        (ByteRange(2, 5), {"range": (2, 5)}),
        (ByteRange(2), {"range": {"offset": 2}}),
        (ByteRange(-2), {"range": {"suffix": 2}}),
    ],
)
def test_a_part_of_a_value(byte_range, options):
    assert get_options(byte_range, None, None) == options


def test_conditions_of_reads():
    assert get_options(WHOLE, b'"x"', b'"y"\n7') == {"if_match": '"x"', "if_none_match": '"y"'}
    for nothing in (None, UNKNOWN, NO_VALUE, b"\0other"):
        assert get_options(WHOLE, nothing, nothing) == {}


@pytest.fixture
def service(request):
    fake = FakeS3(conditions=request.param)
    server = FaultServer(fake.handle, ())
    with server.running():
        options = {"endpoint": server.url, "region": "x", "skip_signature": True}
        config = ObstoreConfig.parse(
            {
                **options,
                "client_options": {"allow_http": True},
                "retry_config": {"max_retries": 0},
            }
        )
        yield fake, ObstoreStore(ObstoreClients(config), "s3://bucket"), server


def write(store, key, value, **condition):
    return drive(store, lambda: store.write(key, value, **condition)).generation


@pytest.mark.parametrize("service", ["heeded", "unquoted"], indirect=True)
def test_conditions_that_are_heeded_are_used_in_whatever_form(service):
    fake, store, server = service

    first = write(store, "a", b"1", if_equal=NO_VALUE)
    assert write(store, "a", b"2", if_equal=NO_VALUE) == UNKNOWN
    second = write(store, "a", b"3", if_equal=first)
    assert write(store, "a", b"4", if_equal=first) == UNKNOWN
    server.requests.clear()
    assert write(store, "a", b"5", if_equal=second) not in (UNKNOWN, NO_VALUE)

    assert fake.values["a"].body == b"5"
    assert list(fake.values) == ["a"]
    # What is known is not found out again.
    assert [request.method for request in server.requests] == ["PUT"]


@pytest.mark.parametrize("service", ["ignored", "refused"], indirect=True)
def test_conditions_that_are_not_heeded_are_not_used(service):
    fake, store, _ = service
    first = write(store, "a", b"1")

    for condition in (NO_VALUE, first):
        with pytest.raises(ts.UnsupportedError, match='"use_conditional_write": false'):
            write(store, "a", b"2", if_equal=condition)

    assert {key: stored.body for key, stored in fake.values.items()} == {"a": b"1"}
