"""JSON text to objects, strictly: what a person may get wrong is an error with its place.

Two members of one name, NaN and infinities, text that is none, and syntax errors are refused.
Numbers and strings are otherwise as the standard library reads them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NoReturn

from tensorstore_py._spec.json_value import check_text
from tensorstore_py.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["parse_json_text", "parse_stored_json"]


#: How deep it is looked into.
_DEEPEST = 200


class _Duplicate:
    """Stands for an object with a repeated member until its path is known."""

    def __init__(self, name: str) -> None:
        self.name = name


def parse_json_text(text: str | bytes) -> object:
    """The value of a JSON document.

    Args:
        text: the document, UTF-8 if bytes.

    Raises:
        SpecError: not JSON (with line and column), a repeated member (with its path), NaN or
            Infinity, text with half of a surrogate pair (with its path).

    Example:
        >>> parse_json_text('{"driver": "zarr3"}')
        {'driver': 'zarr3'}
        >>> parse_json_text('{"a": [{"b": 1, "b": 2}]}')
        Traceback (most recent call last):
            ...
        tensorstore_py.errors.SpecError: a[0].b: this member is given twice; remove one
    """
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise SpecError(f"not UTF-8 text: invalid byte at position {error.start}") from None
    try:
        value: object = json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except json.JSONDecodeError as error:
        raise SpecError(
            f"not valid JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        ) from None
    except ValueError as error:  # an integer of more digits than Python reads
        raise SpecError(f"not valid JSON here: {error}") from None
    except RecursionError:
        raise SpecError("not valid here: the JSON is nested too deeply") from None
    try:
        _raise_errors(value, ())
    except RecursionError:
        raise SpecError("not valid here: the JSON is nested too deeply") from None
    return value


def parse_stored_json(data: bytes) -> object:
    """The value of a document that a program wrote: as the standard library reads it, but text.

    Args:
        data: the document.

    Raises:
        SpecError: not JSON; text with half of a surrogate pair, with the path to it.

    Example:
        >>> parse_stored_json(b'{"fill_value": NaN}')
        {'fill_value': nan}
    """
    try:
        value: object = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise SpecError(f"this is no JSON: {error}") from error
    # Text that is none needs an escape, or bytes that are no ASCII.
    if b"\\u" in data or b"\0" in data or not data.isascii():
        _check_texts(value, ())
    return value


def _check_texts(value: object, path: tuple[str | int, ...]) -> None:
    inner: Iterable[tuple[str | int, object]] = ()
    if isinstance(value, str):
        _check_characters(value, path)
    elif isinstance(value, dict):
        for name in value:
            _check_characters(name, path)
        inner = value.items()
    elif isinstance(value, list):
        inner = enumerate(value)
    if len(path) > _DEEPEST:
        return  # what is nested so deeply is refused by whoever takes it
    for step, member in inner:
        _check_texts(member, (*path, step))


def _check_characters(text: str, path: tuple[str | int, ...]) -> None:
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise SpecError(f"{text!a} has half of a surrogate pair, which is no character", path)


def _object(pairs: list[tuple[str, object]]) -> object:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                # Kept beside the members: an inner duplicate is to be reported first, too.
                return {**members, name: _Duplicate(name)}
            seen.add(name)
    return members


def _constant(name: str) -> NoReturn:
    raise SpecError(f'{name} is not JSON; write it as a string, "{name}", where a number may be so')


def _check_text(text: str, path: tuple[str | int, ...]) -> None:
    try:
        check_text(text)
    except SpecError as error:
        raise SpecError(error.problem, path) from None


def _raise_errors(value: object, path: tuple[str | int, ...]) -> None:
    if isinstance(value, _Duplicate):
        raise SpecError("this member is given twice; remove one", path)
    if isinstance(value, str):
        _check_text(value, path)
    if isinstance(value, dict):
        for name, inner in value.items():
            _check_text(name, path)
            _raise_errors(inner, (*path, name))
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            _raise_errors(inner, (*path, position))
