"""The member `headers`: extra lines for every request, each `"Name: value"`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from tensorstore_py.errors import SpecError

__all__ = ["check_header", "parse_headers"]

_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_BAD_VALUE: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def check_header(line: str) -> str:
    """The line, if it can be sent.

    Raises:
        SpecError: it has no colon, no name, or characters that would end the line. The message
            does not repeat the value, which may be secret.
    """
    name, colon, value = line.partition(":")
    if not colon:
        raise SpecError('expected "Name: value", but found no colon')
    if _NAME.match(name) is None:
        raise SpecError(f"expected a header name before the colon, but found {name!r}")
    if _BAD_VALUE.search(value):
        raise SpecError(f'the value of the header "{name}" has control characters in it')
    return line


def parse_headers(lines: Iterable[str]) -> dict[str, str]:
    """Headers by name; of several with one name the last one, and none that are empty.

    Example:
        >>> parse_headers(["X-A: 1", "x-a: 2", "Empty:"])
        {'x-a': '2'}
    """
    found: dict[str, tuple[str, str]] = {}
    for line in lines:
        name, _, value = line.partition(":")
        if value.strip():
            found[name.lower()] = (name, value.strip())
    return dict(found.values())
