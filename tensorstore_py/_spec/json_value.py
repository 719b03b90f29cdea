"""Python objects to plain JSON values, and typed values back to JSON.

`freeze` is the way in: whatever a caller may pass as JSON (numpy numbers, tuples, mappings, objects
with `to_json`) becomes None, bool, int, float, str, tuple and dict. Arrays become tuples, so that
nothing parsed can change afterwards. `thaw` is the way out: lists and sorted dicts. `Model`s and
context resources pass through `freeze` as they are: they may be bound to a context, which JSON
could not carry. Objects that stand for a store are held. NaN and infinities pass: members that
cannot have them refuse them.

`parse_json_text` reads what a person wrote: two members of one name, NaN and infinities, strings
that are no text and syntax errors are refused, with their place.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from enum import Enum
from math import isnan
from os import PathLike
from typing import TYPE_CHECKING, NoReturn, TypeAlias

import numpy as np

from tensorstore_py._spec.held import Held, is_store
from tensorstore_py.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "PLAIN",
    "Json",
    "Unset",
    "check_text",
    "describe",
    "freeze",
    "is_text",
    "parse_json_text",
    "parse_stored_json",
    "same_json",
    "thaw",
]

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

#: Types that are JSON as they are, as `None` is.
PLAIN = frozenset({bool, int, float, str})
_DEEPEST = 100


class Unset(Enum):
    """The default of a member for which JSON `null` means something: absent is not null."""

    UNSET = "unset"


class NotTextError(SpecError):
    """A string that no file and no other program could hold."""


class IntegerError(SpecError, OverflowError):
    """An integer that 64 bits cannot hold."""


def is_text(text: str) -> bool:
    r"""Whether a string stands for bytes: it has no halves of surrogate pairs.

    Those pass that stand for bytes which are no UTF-8, as Python has them in names of files.

    Example:
        >>> is_text("ä"), is_text("\udcff"), is_text("\ud800")
        (True, True, False)
    """
    if text.isascii():
        return True
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


def check_text(text: str) -> str:
    """The string, if it `is_text`. Raises SpecError: it is none."""
    if not is_text(text):
        raise NotTextError(f"{text!a} has half of a surrogate pair, which is no character")
    return text


def freeze(value: object, depth: int = _DEEPEST, *, objects: bool = True) -> object:
    """`value` as plain JSON with tuples for arrays.

    Args:
        value: whatever a caller may pass as JSON.
        depth: how deep it may be nested.
        objects: objects that stand for a store are held; else they are an error.

    Raises:
        SpecError: a mapping or sequence that contains itself, or is nested too deeply; a string
            with half of a surrogate pair, with the path to it; an integer that 64 bits cannot
            hold, which is an OverflowError, too.
        TypeError: an object that has no JSON form.

    Example:
        >>> freeze({"shape": [np.int64(3), 4], "order": "C"})
        {'shape': (3, 4), 'order': 'C'}
    """
    try:
        return _frozen(value, depth, objects)
    except NotTextError as error:
        raise SpecError(error.problem, _path_to_bad_text(value)) from None


def _path_to_bad_text(value: object) -> tuple[str | int, ...]:
    """Where the first string is that is none; empty if it is not within mappings and sequences."""
    inner: list[tuple[str | int, object]] = []
    if isinstance(value, Mapping):
        inner = [(str(key), member) for key, member in value.items()]
    elif isinstance(value, list | tuple):
        inner = list(enumerate(value))
    for step, member in inner:
        if isinstance(step, str) and not is_text(step):
            return ()
        if isinstance(member, str) and not is_text(member):
            return (step,)
        path = _path_to_bad_text(member)
        if path or (isinstance(member, Mapping) and not all(map(is_text, map(str, member)))):
            return (step, *path)
    return ()


def _frozen(value: object, depth: int, objects: bool) -> object:
    kind = type(value)
    if kind is str:
        return value if value.isascii() else check_text(value)  # type: ignore[arg-type, attr-defined]
    if kind is float or kind is bool or value is None:
        return value
    if isinstance(value, int):
        return _integer(int(value))
    if depth <= 0:
        raise SpecError("nested too deeply to be JSON; does the value contain itself?")
    if isinstance(value, dict):
        return {
            check_text(key if type(key) is str else str(key)): _frozen(inner, depth - 1, objects)
            for key, inner in value.items()
        }
    if isinstance(value, tuple | list):
        return tuple([_frozen(inner, depth - 1, objects) for inner in value])
    return _freeze_other(value, depth, objects)


def _integer(value: int) -> int:
    if not -(2**63) <= value < 2**64:
        shown = describe(value) if value.bit_length() < 2**10 else "an integer of many digits"
        raise IntegerError(f"{shown} does not fit 64 bits, so it has no JSON form here")
    return value


def _freeze_other(value: object, depth: int, objects: bool) -> object:
    if isinstance(value, float | str):
        return float(value) if isinstance(value, float) else check_text(str(value))
    if isinstance(value, np.generic):
        return _frozen(value.item(), depth - 1, objects)
    if isinstance(value, type | np.dtype):
        return _data_type_name(value)
    if hasattr(value, "spec_json") or isinstance(value, PathLike):
        return value  # what a local path means depends on the member
    if objects and is_store(value):
        return Held(value)
    to_json = getattr(value, "to_json", None)
    if callable(to_json):
        return _frozen(to_json(), depth - 1, objects)
    if isinstance(value, np.ndarray):
        return _frozen(value.tolist(), depth - 1, objects)
    if isinstance(value, Mapping):
        return _frozen(dict(value), depth - 1, objects)
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return tuple([_frozen(inner, depth - 1, objects) for inner in value])
    if hasattr(value, "__index__"):
        return _integer(int(value))
    raise TypeError(f"an object of type {type(value).__name__!r} cannot be converted to JSON")


def _data_type_name(value: type | np.dtype[np.generic]) -> str:
    """The name of a data type that stands where JSON has its name."""
    known = isinstance(value, np.dtype) or issubclass(value, np.generic)
    if not known and value not in (bool, int, float, complex):
        raise TypeError(f"{value!r} cannot be converted to JSON; write the name of a data type")
    found = np.dtype(value)
    return found.name if found.kind in "biufcV" else found.str


def thaw(value: object, include_defaults: bool = False) -> object:
    """`value` as JSON: arrays as lists, members sorted by name, typed values printed.

    Example:
        >>> thaw({"b": (1, 2), "a": None})
        {'a': None, 'b': [1, 2]}
    """
    if value is None or type(value) in PLAIN:
        return value
    spec_json = getattr(value, "spec_json", None)
    if spec_json is not None:
        return spec_json(include_defaults)
    if isinstance(value, dict):
        return {name: thaw(value[name], include_defaults) for name in sorted(value)}
    if isinstance(value, list | tuple):
        return [inner if type(inner) in PLAIN else thaw(inner, include_defaults) for inner in value]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, int | float | str):
        return value
    if isinstance(value, np.generic | np.ndarray):
        return thaw(value.tolist(), include_defaults)
    to_json = getattr(value, "to_json", None)
    if callable(to_json):
        return thaw(to_json(), include_defaults)
    raise TypeError(f"an object of type {type(value).__name__!r} has no JSON form")


def same_json(one: object, other: object) -> bool:
    """Whether two values are one in JSON: NaN is equal to itself, and `true` is not 1.

    Example:
        >>> nan = float("nan")
        >>> same_json({"a": [nan, 1]}, {"a": (nan, 1.0)}), same_json([1], [True])
        (True, False)
    """
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, float) and isinstance(other, float):
        return one == other or (isnan(one) and isnan(other))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same_json(one[name], other[name]) for name in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same_json, one, other))
    return one == other


def describe(value: object, width: int = 60) -> str:
    """`value` as JSON text for an error message, cut to `width` characters.

    Example:
        >>> describe(("a", None, True))
        '["a",null,true]'
    """
    text = _text(value, 6)
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _number(value: object) -> str:
    # Python does not print integers of more than some thousand digits.
    if isinstance(value, int) and value.bit_length() >= 4096:
        return hex(value)
    return repr(value)


def _text(value: object, depth: int) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        if not is_text(value):
            return ascii(value)
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, int | float):
        return _number(value)
    if depth <= 0:
        return "…"
    if isinstance(value, Mapping):
        inner = (f"{_text(str(key), 1)}:{_text(item, depth - 1)}" for key, item in value.items())
        return "{" + ",".join(inner) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(_text(item, depth - 1) for item in value) + "]"
    return repr(value)


#: How deep it is looked into.
_DEEPEST_LOOK = 200


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

    Raises SpecError: not JSON; text with half of a surrogate pair, with the path to it.

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
    if len(path) > _DEEPEST_LOOK:
        return  # what is nested so deeply is refused where it is parsed
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
