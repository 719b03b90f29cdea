import asyncio
import ssl

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey

from tensorstore_py._net.failures import Patience, damaged, status_error, translate
from tensorstore_py.errors import (
    AbortedError,
    DataLossError,
    FailedPreconditionError,
    NotFoundError,
    OutOfRangeError,
    PermissionDeniedError,
    SpecError,
    UnavailableError,
    UnsupportedError,
)

KEY = ConnectionKey("host.example", 443, True, True, None, None, None)
REFUSED = OSError(111, "Connection refused")
INFO = aiohttp.RequestInfo("http://x/?sig=s3cret", "GET", {}, "http://x/?sig=s3cret")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (302, FailedPreconditionError),
        (400, FailedPreconditionError),
        (401, PermissionDeniedError),
        (403, PermissionDeniedError),
        (404, NotFoundError),
        (405, UnsupportedError),
        (408, UnavailableError),
        (409, AbortedError),
        (412, FailedPreconditionError),
        (416, OutOfRangeError),
        (418, FailedPreconditionError),
        (429, UnavailableError),
        (500, UnavailableError),
        (501, UnsupportedError),
        (503, UnavailableError),
        (599, UnavailableError),
    ],
)
def test_a_status_becomes_the_error_with_its_remedy(status, error):
    assert status_error(status) is error


@pytest.mark.parametrize(
    ("raised", "error", "patience", "may_have_run"),
    [
        (aiohttp.ClientConnectorCertificateError(KEY, ssl.SSLCertVerificationError("bad")),
         FailedPreconditionError, Patience.NONE, False),
        (aiohttp.ClientConnectorSSLError(KEY, ssl.SSLError(1, "wrong version")),
         UnavailableError, Patience.LITTLE, False),
        (aiohttp.ClientConnectorDNSError(KEY, OSError(-2, "Name or service not known")),
         UnavailableError, Patience.LITTLE, False),
        (aiohttp.ClientProxyConnectionError(KEY, REFUSED),
         UnavailableError, Patience.LITTLE, False),
        (aiohttp.ClientConnectorError(KEY, REFUSED), UnavailableError, Patience.FULL, False),
        (aiohttp.ConnectionTimeoutError("late"), UnavailableError, Patience.FULL, False),
        (aiohttp.ClientHttpProxyError(INFO, (), status=407),
         PermissionDeniedError, Patience.LITTLE, False),
        (aiohttp.InvalidURL("http://x/?sig=s3cret"), SpecError, Patience.NONE, False),
        (aiohttp.SocketTimeoutError("late"), UnavailableError, Patience.FULL, True),
        (TimeoutError(), UnavailableError, Patience.FULL, True),
        (aiohttp.ServerDisconnectedError(), UnavailableError, Patience.FULL, True),
        (aiohttp.ClientOSError(104, "Connection reset by peer"),
         UnavailableError, Patience.FULL, True),
        (ConnectionResetError(104, "Connection reset by peer"),
         UnavailableError, Patience.FULL, True),
        (aiohttp.ClientPayloadError("cut"), UnavailableError, Patience.FULL, True),
        (aiohttp.ClientResponseError(INFO, (), message="Bad status line: 's3cret'"),
         UnavailableError, Patience.FULL, True),
        (aiohttp.ClientError("s3cret"), UnavailableError, Patience.FULL, True),
    ],
    ids=lambda value: getattr(value, "__name__", None) or type(value).__name__,
)  # fmt: skip
def test_every_trouble_has_its_row(raised, error, patience, may_have_run):
    failure = translate(raised)

    assert failure is not None
    assert (failure.error, failure.patience, failure.may_have_run) == (
        error, patience, may_have_run
    )  # fmt: skip
    assert "s3cret" not in failure.text
    assert failure.text


def test_the_words_of_the_system_are_kept():
    failure = translate(aiohttp.ClientConnectorError(KEY, REFUSED))

    assert failure is not None
    assert "Connection refused" in failure.text


def test_a_remedy_for_what_is_not_trusted():
    raised = aiohttp.ClientConnectorCertificateError(KEY, ssl.SSLCertVerificationError("bad"))
    failure = translate(raised)

    assert failure is not None
    assert "TENSORSTORE_CA_BUNDLE" in failure.text


@pytest.mark.parametrize("error", [ValueError("x"), RuntimeError("x"), asyncio.CancelledError()])
def test_what_is_not_about_the_network_is_left_alone(error):
    assert translate(error) is None


def test_only_a_lost_connection_is_worth_trying_again_at_once():
    lost, late = translate(aiohttp.ServerDisconnectedError()), translate(TimeoutError())

    assert lost is not None
    assert late is not None
    assert (lost.is_prompt, late.is_prompt) == (True, False)


def test_damage_is_data_loss_in_the_end():
    failure = damaged("bytes are missing")

    assert (failure.error, failure.patience) == (DataLossError, Patience.LITTLE)
