"""What an argument is in JSON: a form is JSON Schema for editors, and checked by the same words.

Only the few words of JSON Schema that arguments need: `type`, `enum`, `items`, `minimum`,
`additionalProperties`, `anyOf`. A reference to a definition is checked by who parses that.
"""

from __future__ import annotations

import json
from typing import Any, Final

from tensorstore_py.errors import SpecError, did_you_mean

__all__ = ["BOOLEAN", "INTEGER", "NUMBER", "STRING", "check_form", "or_named", "or_several"]

Json = dict[str, Any]  # Any: nested JSON

INTEGER: Final[Json] = {"type": "integer"}
STRING: Final[Json] = {"type": "string"}
NUMBER: Final[Json] = {"type": "number"}
BOOLEAN: Final[Json] = {"type": "boolean"}

_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "integer": (int,),
    "number": (int, float),
    "string": (str,),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}
_WORDS: Final = {
    "integer": "an integer",
    "number": "a number",
    "string": "text",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
}


def or_several(form: Json) -> Json:
    """One of a form, or a list of such."""
    return {"anyOf": [form, {"type": "array", "items": form}]}


def or_named(form: Json) -> Json:
    """One of a form, a list of such, or one for each name."""
    named = {"type": "object", "additionalProperties": form}
    return {"anyOf": [*or_several(form)["anyOf"], named]}


def check_form(value: object, form: Json) -> None:
    """Check that a value is of a form.

    Raises:
        SpecError: it is not.

    Example:
        >>> check_form([1, 2], or_several(INTEGER))
        >>> check_form("x", or_several(INTEGER))
        Traceback (most recent call last):
            ...
        tensorstore_py.errors.SpecError: expected an integer or a list of integers, but found "x"
    """
    if not _fits(value, form):
        likely = "enum" in form and isinstance(value, str)
        hint = did_you_mean(str(value), [str(each) for each in form["enum"]]) if likely else ""
        found = json.dumps(value, ensure_ascii=False)
        raise SpecError(f"expected {_said(form)}, but found {found:.80}{hint}")


def _fits(value: object, form: Json) -> bool:
    if "anyOf" in form:
        return any(_fits(value, each) for each in form["anyOf"])
    if "enum" in form:
        return bool(value in form["enum"]) and not isinstance(value, bool)
    if "type" not in form:
        return True
    if not isinstance(value, _TYPES[form["type"]]):
        return False
    if isinstance(value, bool):
        return bool(form["type"] == "boolean")
    if isinstance(value, list):
        return all(_fits(each, form.get("items", {})) for each in value)
    if isinstance(value, dict):
        return all(_fits(each, form.get("additionalProperties", {})) for each in value.values())
    return not isinstance(value, int | float) or bool(value >= form.get("minimum", value))


def _said(form: Json) -> str:
    if "anyOf" in form:
        return " or ".join(_said(each) for each in form["anyOf"])
    if "enum" in form:
        return "one of " + ", ".join(json.dumps(each) for each in form["enum"])
    inner = form.get("items") or form.get("additionalProperties")
    kind = _WORDS[form["type"]]
    if inner and "type" in inner:
        return f"{kind} of {inner['type']}s"
    return kind + (f" from {form['minimum']} on" if "minimum" in form else "")
