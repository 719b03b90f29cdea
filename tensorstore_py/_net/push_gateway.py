"""A push gateway of Prometheus: where metrics of programs that end soon are sent.

Source: https://github.com/prometheus/pushgateway
"""

from __future__ import annotations

from typing import Final

from tensorstore_py._net.failures import Failure
from tensorstore_py._net.idle_timeout import idle_limit_s, least_rate
from tensorstore_py._net.message import HttpRequest
from tensorstore_py._net.transport import HttpTransport

__all__ = ["push"]

_CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


async def push(url: str, body: bytes) -> int:
    """Put metrics in place of those that the gateway has there.

    Args:
        url: of the group of metrics.
        body: the metrics in the text format.

    Returns:
        The status of the answer.

    Raises:
        UnavailableError: there is no answer.
    """
    request = HttpRequest("PUT", url, {"Content-Type": _CONTENT_TYPE}, body)
    transport = HttpTransport(idle_s=idle_limit_s(), least_rate=least_rate())
    try:
        return (await transport.attempt(request)).status
    except Failure as failure:
        raise failure.error(f"cannot push metrics by {request!r}: {failure.text}") from None
