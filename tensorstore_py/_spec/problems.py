"""pydantic's findings in our words: one `SpecError` with the path in the JSON.

pydantic reports every branch that failed and names its own plumbing in the locations; a reader
wants the one member that is wrong, what was found there and what is allowed. The path is found by
walking the input along the location and keeping only the steps that exist in the input.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorstore_py._spec.json_value import describe
from tensorstore_py.errors import SpecError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

__all__ = ["spec_error"]

Path = tuple[str | int, ...]

_NOWHERE = object()

#: pydantic's error types to what was expected; a template's fields come from the error's context.
_EXPECTED = {
    "bool_type": "true or false",
    "dataclass_type": "an object",
    "dict_type": "an object",
    "enum": "one of {expected}",
    "finite_number": "a finite number",
    "float_type": "a number",
    "greater_than": "a number above {gt}",
    "greater_than_equal": "a number not below {ge}",
    "int_from_float": "an integer",
    "int_type": "an integer",
    "is_instance_of": "{class}",
    "less_than": "a number below {lt}",
    "less_than_equal": "a number not above {le}",
    "list_type": "an array",
    "literal_error": "{expected}",
    "mapping_type": "an object",
    "model_type": "an object",
    "multiple_of": "a multiple of {multiple_of}",
    "none_required": "null",
    "string_pattern_mismatch": 'a string that matches "{pattern}"',
    "string_too_long": "a string of at most {max_length} characters",
    "string_too_short": "a string of at least {min_length} characters",
    "string_type": "a string",
    "too_long": "at most {max_length} elements",
    "too_short": "at least {min_length} elements",
    "tuple_type": "an array",
}


def spec_error(error: ValidationError, json: object) -> SpecError:
    """The most telling of pydantic's findings about `json`."""
    best: tuple[tuple[int, int], Path, ErrorDetails] | None = None
    for details in error.errors(include_url=False):
        path = _path(details, json)
        # An inner finding is closer to the cause; a typed one comes from our own validators.
        weight = (len(path), int(_cause(details) is not None))
        if best is None or weight > best[0]:
            best = (weight, path, details)
    assert best is not None
    _, path, details = best
    cause = _cause(details)
    if isinstance(cause, SpecError):
        return SpecError(cause.problem, path)
    return SpecError(_problem(details, cause), path)


def _path(details: ErrorDetails, json: object) -> Path:
    path: list[str | int] = []
    found: object = json
    for step in details["loc"]:
        inner = _step(found, step)
        if inner is not _NOWHERE:
            found = inner
        elif step != details["loc"][-1] or details["type"] not in ("missing", "extra_forbidden"):
            continue
        path.append(step)
    cause = _cause(details)
    if isinstance(cause, SpecError):
        path.extend(cause.path)
    return tuple(path)


def _step(found: object, step: str | int) -> object:
    """The member or element of the input that a step of a location names, or `_NOWHERE`."""
    if isinstance(found, dict):
        return found.get(step, _NOWHERE)
    if isinstance(found, tuple | list) and isinstance(step, int) and step < len(found):
        return found[step]
    return _NOWHERE


def _cause(details: ErrorDetails) -> Exception | None:
    cause = details.get("ctx", {}).get("error")
    return cause if isinstance(cause, Exception) else None


def _problem(details: ErrorDetails, cause: Exception | None) -> str:
    kind = details["type"]
    if cause is not None:
        return str(cause)
    if kind == "missing":
        return "this member is required"
    if kind == "extra_forbidden":
        return "no such member"
    context: Mapping[str, object] = details.get("ctx", {})
    template = _EXPECTED.get(kind)
    if template is None:
        return f"{details['msg']}, but found {describe(details['input'])}"
    expected = template.format(**context)
    if kind == "literal_error" and isinstance(details["input"], str):
        allowed = [word.strip("' ") for word in expected.replace(" or ", ", ").split(",")]
        found = details["input"]
        return f"{describe(found)} is not possible here{did_you_mean(found, allowed)}"
    return f"expected {expected.replace(chr(39), chr(34))}, but found {describe(details['input'])}"
