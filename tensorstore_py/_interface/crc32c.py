"""CRC-32C, which formats and services use to tell damaged data.

Source: RFC 3720, section 12.1.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorstore_py._interface.kvstore import Buffer

__all__ = ["crc32c"]


@cache
def _function() -> Callable[[Buffer], int]:
    import google_crc32c  # noqa: PLC0415 - loads a shared library: only where it is needed

    def compute(data: Buffer) -> int:
        # The library takes bytes, or arrays without a copy.
        value = google_crc32c.value(data if isinstance(data, bytes) else np.frombuffer(data, "u1"))
        return int(value)

    return compute


def crc32c(data: Buffer) -> int:
    """The CRC-32C of some bytes.

    Example:
        >>> hex(crc32c(b"123456789"))
        '0xe3069283'
    """
    return _function()(data)
