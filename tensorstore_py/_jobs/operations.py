"""What steps of a job may do: the public functions whose calls can be planned, and their arguments.

Names and defaults of arguments are those of the functions' signatures, and texts those of their
docstrings, so nothing is said twice; only the JSON form of each argument is said here. A form is
JSON Schema for editors, and arguments are checked by the same words: `type`, `enum`, `items`,
`minimum`, `additionalProperties`, `anyOf`. A reference to a definition is checked by its parser.
An argument without a form is taken as it is, except from a job that is not trusted.
"""

from __future__ import annotations

import inspect
import json
import re
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from tensorstore_py._plan.call import registered_functions
from tensorstore_py._spec.chunk_layout import ChunkLayout
from tensorstore_py._spec.dtype import dtype
from tensorstore_py.errors import SpecError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "BOOLEAN",
    "INTEGER",
    "NUMBER",
    "STRING",
    "JobOperation",
    "Member",
    "check_form",
    "operations",
    "or_named",
    "or_several",
]


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

    Raises SpecError: it is not.

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


#: What the job says for all steps, and not a step.
_OF_THE_JOB: Final = frozenset(
    {"context", "dry_run", "executor", "loop", "manifest", "progress", "transaction"}
)
_TEXT: Final = re.compile(r"^ {4}\*?(\w+): (.*)$")


def _definition(name: str) -> Json:
    return {"$ref": f"#/$defs/{name}"}


_PLACE: Final[Json] = {
    "anyOf": [
        {"type": "string", "description": "A URL, or a path relative to this file."},
        _definition("Driver"),
        _definition("KvstoreDriver"),
    ]
}
_CODEC: Final[Json] = {"anyOf": [STRING, {"type": "object"}, {"type": "array"}]}

#: Arguments that are places, or lists of such, and what is done there.
_PLACES: Final[dict[str, Literal["read", "write"]]] = {
    "a": "read",
    "b": "read",
    "dest": "write",
    "source": "read",
    "sources": "read",
    "target": "write",
    "where": "read",
}
#: Arguments that name what is run.
_CODE: Final[dict[str, Json]] = {"function": STRING}
#: Arguments that are mere data, and what they are in JSON.
_DATA: Final[dict[str, Json]] = {
    "atol": NUMBER,
    "axes": {"anyOf": [STRING, {"type": "array"}]},
    "boundary": {"anyOf": [STRING, NUMBER, {"type": "object"}]},
    "bins": or_several(NUMBER),
    "chunk_layout": _definition("ChunkLayout"),
    "chunks": or_named(INTEGER),
    "codec": _CODEC,
    "ddof": INTEGER,
    "dims": or_several({"anyOf": [INTEGER, STRING]}),
    "drop": or_several({"anyOf": [INTEGER, STRING]}),
    "dtype": _definition("dtype"),
    "equal_nan": BOOLEAN,
    "excludes": or_several(STRING),
    "fill_value": {},
    "halo": {"anyOf": [INTEGER, {"type": "array"}, {"type": "object"}]},
    "if_exists": {"enum": ["raise", "skip", "replace"]},
    "in_place": BOOLEAN,
    "includes": or_several(STRING),
    "keep": BOOLEAN,
    "kwargs": {"type": "object"},
    "levels": {"type": "integer", "minimum": 1},
    "max_blocks": INTEGER,
    "memory": {"type": "integer", "minimum": 1},
    "method": STRING,
    "name": STRING,
    "new": {"type": "object", "additionalProperties": INTEGER},
    "omero": {"anyOf": [BOOLEAN, {"type": "array"}, {"type": "object"}]},
    "pixel_size": or_named(NUMBER),
    "q": or_several(NUMBER),
    "range": {"type": "array", "items": NUMBER},
    "reductions": or_several(STRING),
    "rtol": NUMBER,
    "scale": {"anyOf": [INTEGER, {"type": "array"}, {"type": "object"}]},
    "shards": or_named(INTEGER),
    "skipna": BOOLEAN,
    "to": {"enum": [2, 3]},
    "translation": or_named(NUMBER),
    "units": {"anyOf": [STRING, {"type": "array"}, {"type": "object"}]},
    "verify": BOOLEAN,
    "version": {"enum": ["0.4", "0.5"]},
    "zarr_format": {"enum": [2, 3]},
}
_FORMS: Final = {**_CODE, **_DATA}


class Member(NamedTuple):
    """What a step may say.

    Attributes:
        kind: places that are read or written, mere data; or `"other"`: code, or unknown here.
        text: what the function's docstring says of it.
    """

    name: str
    kind: Literal["read", "write", "data", "other"]
    required: bool
    default: object
    text: str
    several: bool = False

    def check(self, value: object) -> None:
        """Check what a step says of it, unless it is a place.

        Raises SpecError: it is something else.
        """
        if self.name == "dtype":
            try:
                dtype(value)  # type: ignore[arg-type]
            except TypeError as error:
                raise SpecError(str(error)) from None
        elif self.name == "chunk_layout":
            ChunkLayout(value)
        else:
            check_form(value, _FORMS.get(self.name, {}))

    def schema(self) -> Json:
        """Its JSON Schema."""
        form = _FORMS.get(self.name, {})
        if self.name in _PLACES:
            several: Json = {"type": "array", "items": _PLACE, "minItems": 1}
            form = several if self.several else _PLACE
        schema: Json = {"description": self.text, **form} if self.text else dict(form)
        if isinstance(self.default, bool | int | float | str):
            schema["default"] = self.default
        return schema


class JobOperation(NamedTuple):
    """An operation; members are its function's arguments that jobs do not say for all steps."""

    name: str
    text: str
    members: dict[str, Member]


def operations() -> dict[str, JobOperation]:
    """All that steps may do, by name.

    Example:
        >>> import tensorstore_py
        >>> operations()["copy"].members["dest"].kind
        'write'
    """
    functions = registered_functions()
    texts: dict[str, str] = {}
    for function in functions.values():
        texts = {**_texts(function), **texts}
    return {name: _operation(name, function, texts) for name, function in functions.items()}


def _operation(name: str, function: Callable[..., object], texts: dict[str, str]) -> JobOperation:
    members = {}
    own = _texts(function)
    for each in inspect.signature(function).parameters.values():
        if each.name in _OF_THE_JOB or each.kind == each.VAR_KEYWORD:
            continue
        required = each.default is each.empty
        members[each.name] = Member(
            each.name,
            _PLACES.get(each.name) or ("data" if each.name in _DATA else "other"),
            required,
            None if required else each.default,
            own.get(each.name) or texts.get(each.name, ""),
            each.kind == each.VAR_POSITIONAL,
        )
    text = inspect.cleandoc(function.__doc__ or "").split("\n")[0]
    return JobOperation(name, text, members)


def _texts(function: Callable[..., object]) -> dict[str, str]:
    """What a docstring says of each argument."""
    _, _, section = inspect.cleandoc(function.__doc__ or "").partition("Args:\n")
    texts: dict[str, list[str]] = {}
    current: list[str] = []
    for line in section.split("\n"):
        if line and not line.startswith(" "):
            break
        found = _TEXT.match(line)
        if found is not None:
            current = texts.setdefault(found[1], [])
            current.append(found[2])
        elif line.strip():
            current.append(line.strip())
    return {name: _plain(" ".join(lines)) for name, lines in texts.items()}


def _plain(text: str) -> str:
    text = text.replace("`", "")
    return text[:1].upper() + text[1:]
