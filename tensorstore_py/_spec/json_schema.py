"""One JSON Schema (draft 2020-12) of everything that a spec may say, from the models themselves.

Each registered class becomes a definition: its members with the texts that its docstring has for
them, its defaults, and no members besides. A member whose class is chosen by its own JSON (a
driver, a store, a codec) lists the names that are registered, so that an editor completes them,
and applies the definition of the one that is named, so that errors are about that one alone.

The parts that are no models (index transforms, schemas, units) are written down in `json_forms`.
Models say `{"x-def": NAME}` where they mean one of these definitions.
"""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any, get_args

from pydantic.json_schema import GenerateJsonSchema

from tensorstore_py._spec.duration import Duration
from tensorstore_py._spec.json_forms import FORMS
from tensorstore_py._spec.json_value import Unset, thaw
from tensorstore_py._spec.model import Model
from tensorstore_py._spec.registry import codecs, drivers, kvstores, resources

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic.fields import FieldInfo
    from pydantic_core import core_schema

    from tensorstore_py._spec.registry import Registry

__all__ = ["model_schema", "spec_schema"]

Json = dict[str, Any]  # Any: nested JSON

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_MEMBER = re.compile(r"^ {4}(\w+): (.*)$")


def spec_schema(codec_specs: Registry[object]) -> Json:
    """The whole schema; see `ts.json_schema`.

    Args:
        codec_specs: the registry of drivers with a `codec` member in schemas.
    """
    definitions: Json = {name: dict(form) for name, form in FORMS.items()}
    _add_choice(definitions, "Driver", drivers, _URL)
    _add_choice(definitions, "KvstoreDriver", kvstores, _URL)
    _add_choice(definitions, "CodecSpec", codec_specs, None)
    codecs["zarr3"].discover()  # which finds the codecs of every family
    for family in codecs.families():
        _add_codecs(definitions, family)
    _add_resources(definitions)
    root: Json = {
        "$schema": DIALECT,
        "$id": "https://tensorstore-py/schema.json",
        "title": "tensorstore_py spec",
        "description": "An array to open or create: a URL, or an object that names a driver.",
        "x-def": "Driver",
        "$defs": {name: definitions[name] for name in sorted(definitions)},
    }
    resolved = _resolve(root)
    assert isinstance(resolved, dict)
    return resolved


_URL: Json = {
    "type": "string",
    "pattern": "^[a-z0-9+.-]+:",
    "description": "A URL, such as file:///data/a/|zarr3:",
}


def model_schema(cls: type[Model]) -> Json:
    """The definition of one model.

    Example:
        >>> from tensorstore_py._spec.limits import RetriesModel
        >>> model_schema(RetriesModel)["properties"]["max_retries"]["description"]
        'How often after the first attempt.'
    """
    schema = _inlined(cls.model_json_schema(schema_generator=_Generator), cls)
    texts = _member_texts(cls)
    found = schema.get("properties", {})
    assert isinstance(found, dict)
    properties: Json = dict(found)
    for name, field in cls.model_fields.items():
        json_name = field.alias or name
        member: Json = dict(found[json_name])
        text = texts.get(name) or texts.get(json_name)
        if text:
            member["description"] = text
        if field.default is None:
            member = _not_null(member)
        default = _default(field)
        if default is not None:
            member["default"] = default
        properties[json_name] = member
    if cls.json_tag is not None:
        properties[cls.json_tag] = {"const": getattr(cls, cls.json_tag)}
    cls.adapt_json_schema(properties)
    properties["$schema"] = properties["$comment"] = {}
    cleaned = _without_titles({**schema, "properties": properties})
    assert isinstance(cleaned, dict)
    cleaned["description"] = _summary(cls)
    return cleaned


def _not_null(member: Json) -> Json:
    """None stands for "absent": JSON has no null for it."""
    choices = member.get("anyOf")
    if not isinstance(choices, list):
        return member
    kept = [choice for choice in choices if choice != {"type": "null"}]
    rest = {name: value for name, value in member.items() if name != "anyOf"}
    return {**rest, "anyOf": kept} if len(kept) > 1 else {**kept[0], **rest}


class _Generator(GenerateJsonSchema):
    """Leaves defaults out: ours are objects that pydantic cannot print, so they are added above."""

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> dict[str, object]:
        return self.generate_inner(schema["schema"])


def _default(field: FieldInfo) -> object:
    """The default as JSON; None if there is none that can be written."""
    default = field.get_default(call_default_factory=True, validated_data={})
    json = default if isinstance(default, bool | int | float | str) else None
    if isinstance(default, Duration):
        json = str(thaw(default))
    return None if json == "" or default is Unset.UNSET else json


def _inlined(schema: Json, cls: type[Model]) -> Json:
    """Models inside the model in their place: pydantic's definitions have their own names."""
    nested = {each.__name__: each for each in _models_in(cls)}
    schema.pop("$defs", None)

    def visit(json: object) -> object:
        if isinstance(json, dict):
            name = str(json.get("$ref", "")).rpartition("/")[2]
            return (
                model_schema(nested[name])
                if name in nested
                else {key: visit(value) for key, value in json.items()}
            )
        return [visit(value) for value in json] if isinstance(json, list) else json

    inlined = visit(schema)
    assert isinstance(inlined, dict)
    return inlined


def _models_in(cls: type[Model]) -> Iterator[type[Model]]:
    waiting: list[object] = [field.annotation for field in cls.model_fields.values()]
    while waiting:
        annotation = waiting.pop()
        if isinstance(annotation, type) and issubclass(annotation, Model):
            yield annotation
        waiting.extend(get_args(annotation))


def _add_choice(definitions: Json, name: str, registry: Registry[object], url: Json | None) -> None:
    """The definition of a member whose class its tag names, and of each class."""
    names = [each for each in registry.names() if _is_model(registry.get(each))]
    definitions[name] = {
        "description": f"One of the registered classes, named by {registry.tag!r}.",
        **_chosen(registry.tag, {each: f"{name}.{each}" for each in names}, url),
    }
    for each in names:
        cls = registry.get(each)
        assert issubclass(cls, Model)
        definitions[f"{name}.{each}"] = model_schema(cls)


def _chosen(tag: str, choices: Mapping[str, str], text: Json | None) -> Json:
    chosen: Json = {
        "type": ["object"] if text is None else ["object", "string"],
        "if": {"type": "object"},
        "then": {
            "properties": {tag: {"enum": list(choices), "description": "What it is."}},
            "required": [tag],
            "allOf": [
                {
                    "if": {"properties": {tag: {"const": name}}, "required": [tag]},
                    "then": {"x-def": definition},
                }
                for name, definition in choices.items()
            ],
        },
    }
    if text is not None:
        chosen["else"] = text
    return chosen


def _add_codecs(definitions: Json, family: str) -> None:
    """Codecs as a family writes them: `{"id", …}`, or `{"name", "configuration"}` or the name."""
    registry = codecs[family]
    flat_tag = codecs.flat_tags.get(family)
    choices = {}
    for name in registry.names():
        cls = registry.get(name)
        if not issubclass(cls, Model):
            continue  # a plug-in whose members nobody can know
        members = model_schema(cls)
        definition = f"Codec.{family}.{name}"
        choices[name] = definition
        if flat_tag is not None:
            properties = members["properties"]
            assert isinstance(properties, dict)
            definitions[definition] = {
                **members,
                "properties": {flat_tag: {"const": name}, **properties},
            }
        else:
            required = ["name", "configuration"] if members.get("required") else ["name"]
            definitions[definition] = {
                "description": members["description"],
                "type": "object",
                "properties": {"name": {"const": name}, "configuration": members},
                "required": required,
                "additionalProperties": False,
            }
    named: Json | None = {"enum": list(choices)} if flat_tag is None else None
    definitions[f"Codec.{family}"] = {
        "description": "One codec.",
        **_chosen(flat_tag or "name", choices, named),
    }


def _add_resources(definitions: Json) -> None:
    """Each context resource (a reference or an object), and contexts, which define them by key."""
    properties: Json = {}
    patterns: Json = {}
    for name in resources.names():
        cls = resources.get(name)
        assert issubclass(cls, Model)
        definitions[f"Resource.{name}"] = {
            "description": _summary(cls),
            "anyOf": [
                {
                    "type": "string",
                    "pattern": f"^{re.escape(name)}(#.*)?$",
                    "description": f"A reference to a {name} of the context.",
                },
                _resource_form(cls),
                {
                    "type": "array",
                    "items": {"x-def": f"Resource.{name}"},
                    "minItems": 1,
                    "maxItems": 1,
                    "description": "As printed of a resource that was bound.",
                },
            ],
        }
        entry: Json = {"anyOf": [{"x-def": f"Resource.{name}"}, {"type": "null"}]}
        properties[name] = entry
        patterns[f"^{re.escape(name)}#.*$"] = entry
    definitions["Context"] = {
        "description": "Shared resources, by kind or by kind#name.",
        "type": "object",
        "properties": {**properties, "$schema": {}, "$comment": {}},
        "patternProperties": patterns,
        "additionalProperties": False,
    }


def _resource_form(cls: type[Model]) -> Json:
    form = getattr(cls, "json_form", None)
    if form is None:
        return model_schema(cls)
    return dict(form)


def _is_model(cls: object) -> bool:
    return isinstance(cls, type) and issubclass(cls, Model)


def _summary(cls: type) -> str:
    """The first paragraph of the docstring, in one line, without code marks."""
    text = inspect.cleandoc(cls.__doc__ or "").split("\n\n")[0]
    return _plain(" ".join(text.split()))


def _member_texts(cls: type) -> dict[str, str]:
    """What the docstrings of a class and its bases say of each member."""
    texts: dict[str, str] = {}
    for each in reversed(cls.__mro__):
        texts.update(_attributes(each.__dict__.get("__doc__") or ""))
    return texts


def _attributes(docstring: str) -> dict[str, str]:
    _, found, section = inspect.cleandoc(docstring).partition("Attributes:\n")
    texts: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in section.split("\n") if found else ():
        if line and not line.startswith(" "):
            break
        member = _MEMBER.match(line)
        if member is not None:
            current = texts.setdefault(member[1], [])
            current.append(member[2])
        elif current is not None and line.strip():
            current.append(line.strip())
    return {name: _plain(" ".join(lines)) for name, lines in texts.items()}


def _plain(text: str) -> str:
    """Without code marks, in JSON's words, and with a capital letter."""
    text = re.sub(r"\bNone\b", "null", text.replace("`", ""))
    return text[:1].upper() + text[1:]


def _without_titles(json: object) -> object:
    if isinstance(json, dict):
        return {
            name: _without_titles(value)
            for name, value in json.items()
            if not (name == "title" and isinstance(value, str))
        }
    return [_without_titles(value) for value in json] if isinstance(json, list) else json


def _resolve(json: object) -> object:
    """`x-def` as `$ref`: pydantic would look these up among its own definitions."""
    if isinstance(json, dict):
        resolved: Json = {}
        for name, value in json.items():
            if name == "x-def":
                resolved["$ref"] = f"#/$defs/{value}"
            else:
                resolved[name] = _resolve(value)
        return resolved
    if isinstance(json, list | tuple):
        return [_resolve(value) for value in json]
    return json
