"""Dates and spans of time in headers: `Date`, `Last-Modified`, `Retry-After`, `Age`.

Text in, numbers out; what cannot be read is None, since no answer is refused for a malformed date.
"""

from __future__ import annotations

from email.utils import parsedate_to_datetime

__all__ = ["http_date", "retry_after_s"]


def http_date(text: str | None) -> float | None:
    """Seconds since the epoch.

    Example:
        >>> http_date("Wed, 21 Oct 2015 07:28:00 GMT"), http_date("soon"), http_date(None)
        (1445412480.0, None, None)
    """
    if not text:
        return None
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def retry_after_s(text: str | None, now: float) -> float | None:
    """For how long a server asks to be left alone, in seconds.

    Args:
        text: a number of seconds, or a date.
        now: seconds since the epoch.

    Example:
        >>> retry_after_s("120", 0), retry_after_s("Wed, 21 Oct 2015 07:28:00 GMT", 1445412470)
        (120.0, 10.0)
    """
    if text is None:
        return None
    text = text.strip()
    if text.isascii() and text.isdecimal():
        return float(text) if len(text) < 12 else None
    date = http_date(text)
    return None if date is None else max(0.0, date - now)
