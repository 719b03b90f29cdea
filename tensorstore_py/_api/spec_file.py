"""Spec files, as they are checked into a project beside its code: from a path to JSON.

A spec file is JSON, to the letter. Members named `$schema` and `$comment` are for editors and
people; they are dropped wherever they stand, except among an array's own attributes, which are
data. Nothing of the environment gets in unless the caller asks for it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from tensorstore_py._spec.jsontext import parse_json_text
from tensorstore_py.errors import NotFoundError, SpecError, did_you_mean

__all__ = ["clean_json", "in_file", "load_json"]

_NOTES = ("$schema", "$comment")
#: Members whose content is the user's data, not ours.
_DATA = ("attributes", "array")
_REFERENCE = re.compile(r"\$(\$\{)|\$\{([^}:]*)(?::-([^}]*))?\}")

JsonPath = tuple[str | int, ...]


def load_json(path: str | os.PathLike[str], *, env: bool = False) -> object:
    """The JSON in a spec file, ready to be parsed; arguments and errors as for `ts.load_spec`."""
    try:
        text = Path(path).read_bytes()
    except FileNotFoundError:
        raise NotFoundError(f"{os.fspath(path)} does not exist; a spec file is expected") from None
    except IsADirectoryError:
        raise SpecError(f"{os.fspath(path)} is a directory; a spec file is expected") from None
    try:
        return clean_json(parse_json_text(text), env=env)
    except SpecError as error:
        raise in_file(error, path) from None


def clean_json(json: object, *, env: bool = False) -> object:
    """JSON without notes, and with the environment's values where that is asked for.

    Raises:
        SpecError: a variable is not set; has the path to the member.
    """
    return _cleaned(json, env, ())


def _cleaned(json: object, env: bool, path: JsonPath) -> object:
    if isinstance(json, dict):
        return {
            name: _cleaned(value, env, (*path, name)) if name not in _DATA else value
            for name, value in json.items()
            if name not in _NOTES
        }
    if isinstance(json, list):
        return [_cleaned(value, env, (*path, place)) for place, value in enumerate(json)]
    if env and isinstance(json, str):
        return _REFERENCE.sub(lambda match: _value(match, path), json)
    return json


def _value(match: re.Match[str], path: JsonPath) -> str:
    if match[1]:
        return match[1]
    name: str = match[2]
    default: str | None = match[3]
    found = os.environ.get(name, default)
    if found is None:
        hint = did_you_mean(name, [each for each in os.environ if len(each) > 3])
        hint = hint if "did you mean" in hint else ""
        raise SpecError(
            f"the environment variable {name} is not set{hint}; set it, or write "
            f"${{{name}:-default}}",
            path,
        )
    return found


def in_file(error: SpecError, path: str | os.PathLike[str]) -> SpecError:
    """The error, with the name of the file."""
    return SpecError(f"{error.problem} (in {os.fspath(path)})", error.path)
