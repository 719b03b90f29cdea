"""JSON as people see it: the `repr` of everything that has a JSON form, and pages of notebooks.

One line if it fits 80 columns, else one member a line, indented by two; the room shrinks by one
column with each level for the comma. Strings are single-quoted with C escapes, byte by byte, as
the reference prints them, so that reprs can be compared as text.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from tensorstore_py._display.info import rows
from tensorstore_py._display.json_view import json_view
from tensorstore_py._display.page import folded, page
from tensorstore_py.errors import without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorstore_py._display.markup import Markup

__all__ = [
    "escape",
    "folded_json",
    "json_page",
    "pretty",
    "python_literal",
    "shown",
    "shown_member",
]

_WIDTH = 80
_ESCAPES = {
    ord("\n"): "\\n",
    ord("\r"): "\\r",
    ord("\t"): "\\t",
    ord('"'): '\\"',
    ord("'"): "\\'",
    ord("\\"): "\\\\",
}
_HEX_DIGITS = frozenset(b"0123456789abcdefABCDEF")


def pretty(name: str, json: object) -> str:
    """`name(...)` with the JSON value in between, but without secrets of URLs and headers.

    Example:
        >>> print(pretty("Schema", {"rank": 3, "dtype": "uint8"}))
        Schema({'rank': 3, 'dtype': 'uint8'})
    """
    return f"{name}({python_literal(shown(json))})"


def shown(json: object) -> object:
    """JSON as it may be shown to people: no passwords, no signatures, no values of headers.

    Example:
        >>> shown({"base_url": "https://me:pass@host?sig=1", "headers": ["Cookie: 5"]})
        {'base_url': 'https://host?sig=...', 'headers': ['Cookie: ...']}
    """
    if isinstance(json, str):
        return without_secrets(json)
    if isinstance(json, dict):
        return {name: shown_member(name, value) for name, value in json.items()}
    if isinstance(json, list | tuple):
        return type(json)(map(shown, json)) if type(json) in (list, tuple) else json
    return json


def shown_member(name: str, json: object) -> object:
    """A member of an object, as `shown`."""
    if name != "headers" or not isinstance(json, list | tuple):
        return shown(json)
    return [
        f"{each.partition(':')[0]}: ..." if isinstance(each, str) and ":" in each else shown(each)
        for each in json
    ]


def python_literal(json: object, indent: int = 0, column: int = 0, width: int = _WIDTH) -> str:
    """The literal, broken over lines where one does not hold it.

    Following lines are indented by `indent`; `column` is where the literal starts on its own line.
    """
    line = _one_line(json)
    if len(line) <= width - column or not isinstance(json, dict | list | tuple):
        return line
    inner = indent + 2
    lines = []
    if isinstance(json, dict):
        for key, value in json.items():
            name = _string(str(key)) + ": "
            lines.append(name + python_literal(value, inner, inner + len(name), width - 1))
        opening, closing = "{", "}"
    else:
        lines = [python_literal(value, inner, inner, width - 1) for value in json]
        opening, closing = "[", "]"
    body = "".join(f"\n{' ' * inner}{line}," for line in lines)
    return f"{opening}{body}\n{' ' * indent}{closing}" if body else opening + closing


def _one_line(json: object) -> str:
    if isinstance(json, str):
        return _string(json)
    if isinstance(json, dict):
        return "{" + ", ".join(f"{_string(str(k))}: {_one_line(v)}" for k, v in json.items()) + "}"
    if isinstance(json, list | tuple):
        return "[" + ", ".join(map(_one_line, json)) + "]"
    if isinstance(json, float):
        return _float(json)
    return repr(json)


def _string(text: str) -> str:
    return f"'{escape(text)}'"


def escape(text: str) -> str:
    r"""C escapes; everything outside printable ASCII as `\xNN` of its UTF-8 bytes."""
    out: list[str] = []
    after_hex = False
    for byte in _encoded(text):
        known = _ESCAPES.get(byte)
        # a digit right after \xNN would read as part of it
        if known is None and (not 32 <= byte < 127 or (after_hex and byte in _HEX_DIGITS)):
            out.append(f"\\x{byte:02x}")
            after_hex = True
            continue
        out.append(known or chr(byte))
        after_hex = False
    return "".join(out)


def _encoded(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # nothing that can be stored, but a repr shows what there is
        return text.encode("utf-8", "surrogatepass")


def _float(value: float) -> str:
    """Shortest round-trip digits; an exponent from 1e15 on, where Python waits for 1e16."""
    if not isfinite(value):
        return "null"
    text = repr(value)
    if 1e15 <= abs(value) < 1e16 and "e" not in text:
        digits = text.removesuffix(".0").lstrip("-")
        if len(digits) == 16 and text.endswith(".0"):
            head, tail = digits[0], digits[1:].rstrip("0")
            mantissa = f"{head}.{tail}" if tail else head
            text = f"{'-' if value < 0 else ''}{mantissa}e+15"
    return text


def json_page(
    title: str, name: object, lines: list[tuple[str, object]], json: Callable[[], object]
) -> str:
    """A page of lines (name and value), with the JSON folded below.

    Where `json` raises ValueError, of which SpecError is one, there is none to fold.
    """
    table = rows([(each, value) for each, value in lines if value is not None])
    return page(title, name, table, folded_json(json, folds=table is not None))


def folded_json(json: Callable[[], object], *, folds: bool = True) -> Markup | None:
    """The JSON as a tree, behind a line to unfold it; None if there is none to show."""
    try:
        found = shown(json())
    except (TypeError, ValueError, NotImplementedError):
        return None
    if not found:
        return None
    return folded("JSON", json_view(found)) if folds else json_view(found)
