"""JSON Pointers (RFC 6901): `/a/0/b` is member `b` of element 0 of member `a`.

Between slashes `~1` stands for a slash and `~0` for a tilde; the empty pointer is the whole
document; `-` is the place behind the last element of an array. Members that are not there are made
by a write, elements are not. Documents are as `json` parses them; changes are made in place.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tensorstore_py.errors import (
    FailedPreconditionError,
    NotFoundError,
    OutOfRangeError,
    SpecError,
)
from tensorstore_py.plugin import Unset, describe

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["find", "parse_pointer", "replaced"]

_ELEMENT = re.compile("0|[1-9][0-9]*")
_BAD_ESCAPE = re.compile("~(?![01])")
_APPEND = "-"


def parse_pointer(text: str) -> tuple[str, ...]:
    """The names and positions of a pointer.

    Raises:
        SpecError: it does not begin with a slash, or has a tilde that is not `~0` or `~1`.

    Example:
        >>> parse_pointer("/a~1b/0/")
        ('a/b', '0', '')
    """
    if not text:
        return ()
    if not text.startswith("/"):
        raise SpecError(f"a JSON Pointer begins with a slash; did you mean {describe(f'/{text}')}?")
    bad = _BAD_ESCAPE.search(text)
    if bad is not None:
        raise SpecError(
            f'position {bad.start()} of {describe(text)}: a tilde in a JSON Pointer is "~0", '
            'and a slash in a name "~1"'
        )
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in text[1:].split("/"))


def find(document: object, parts: Sequence[str]) -> object:
    """The value at a pointer.

    Raises:
        NotFoundError: no such member.
        OutOfRangeError: no such element.
        FailedPreconditionError: a step into a value that has no members, or that is no position.

    Example:
        >>> find({"a": [1, {"b": 2}]}, ["a", "1", "b"])
        2
    """
    value = document
    for depth, part in enumerate(parts):
        if isinstance(value, dict):
            if part not in value:
                raise NotFoundError(f"there is no member {_text(parts, depth)}")
            value = value[part]
        elif isinstance(value, list):
            position = _position(value, parts, depth)
            if position == len(value):
                raise FailedPreconditionError(
                    f"{_text(parts, depth)} is the place behind the last element: it can be "
                    "written, not read"
                )
            value = value[position]
        else:
            raise _no_members(value, parts, depth)
    return value


def replaced(document: object, parts: Sequence[str], new: object) -> object:
    """The document with another value at a pointer; members on the way are made.

    Args:
        document: changed in place where it can be; `UNSET` if there is none yet.
        parts: the pointer.
        new: the value.

    Raises:
        OutOfRangeError: no such element.
        FailedPreconditionError: a step into a value that has no members, or that is no position.

    Example:
        >>> replaced({"a": [1]}, ["a", "-"], 2)
        {'a': [1, 2]}
        >>> replaced(Unset.UNSET, ["a", "b"], None)
        {'a': {'b': None}}
    """
    if not parts:
        return new
    root: object = {} if document is Unset.UNSET else document
    value = root
    last = len(parts) - 1
    for depth, part in enumerate(parts):
        inner: object = new if depth == last else {}
        if isinstance(value, dict):
            if depth == last:
                value[part] = new
            value = value.setdefault(part, inner)
        elif isinstance(value, list):
            position = _position(value, parts, depth)
            if position == len(value):
                value.append(inner)
            elif depth == last:
                value[position] = new
            value = value[position]
        else:
            raise _no_members(value, parts, depth)
    return root


def _position(value: list[object], parts: Sequence[str], depth: int) -> int:
    """Which element is meant; the length for the place behind the last one."""
    part = parts[depth]
    if part == _APPEND:
        return len(value)
    if not _ELEMENT.fullmatch(part):
        raise FailedPreconditionError(
            f'{_text(parts, depth)} is no position in an array of {len(value)}; write it like "0"'
        )
    if len(part) > len(str(len(value))) or int(part) >= len(value):
        raise OutOfRangeError(f"{_text(parts, depth)} is outside an array of {len(value)}")
    return int(part)


def _no_members(value: object, parts: Sequence[str], depth: int) -> FailedPreconditionError:
    where = _text(parts, depth - 1) if depth else "the document"
    return FailedPreconditionError(
        f"{where} is {describe(value)} and has no {describe(parts[depth])} in it"
    )


def _text(parts: Sequence[str], depth: int) -> str:
    """The pointer to a place on the way."""
    escaped = (part.replace("~", "~0").replace("/", "~1") for part in parts[: depth + 1])
    return describe("".join(f"/{part}" for part in escaped))
