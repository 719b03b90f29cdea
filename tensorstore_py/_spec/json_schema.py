"""One JSON Schema (draft 2020-12) of everything that a spec may say, from the models themselves.

Each registered class becomes a definition: its members with the texts that its docstring has for
them, its defaults, and no members besides. A member whose class is chosen by its own JSON (a
driver, a store, a codec) lists the names that are registered, so that an editor completes them,
and applies the definition of the one that is named, so that errors are about that one alone.

The parts that are no models (index transforms, schemas, units) are written down in `FORMS`; a test
holds each to the parser of the same part, as far as a schema can say what that accepts.
Models say `{"x-def": NAME}` where they mean one of these definitions.
"""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any, Final, get_args

from pydantic.json_schema import GenerateJsonSchema

from tensorstore_py._spec.json_value import Unset, thaw
from tensorstore_py._spec.limits import Duration
from tensorstore_py._spec.model import Model
from tensorstore_py._spec.registry import codecs, drivers, kvstores, resources

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic.fields import FieldInfo
    from pydantic_core import core_schema

    from tensorstore_py._spec.registry import Registry

__all__ = ["FORMS", "model_schema", "spec_schema"]

Json = dict[str, Any]  # Any: nested JSON

_INDEX: Json = {"anyOf": [{"type": "integer"}, {"enum": ["-inf", "+inf"]}]}
_BOUND: Json = {
    "anyOf": [
        *_INDEX["anyOf"],
        {"type": "array", "items": _INDEX, "minItems": 1, "maxItems": 1},
    ]
}
_RANK: Json = {
    "type": "integer",
    "minimum": 0,
    "maximum": 32,
    "description": "Number of dimensions.",
}


def _bounds(text: str) -> Json:
    return {
        "type": "array",
        "items": _BOUND,
        "description": f"{text}, for each dimension; in brackets: implicit, it can be resized.",
    }


def _labels(text: str) -> Json:
    return {"type": "array", "items": {"type": "string"}, "description": text}


def _nullable(items: Json, text: str) -> Json:
    entries = {"anyOf": [items, {"type": "null"}]}
    return {"anyOf": [{"type": "array", "items": entries}, {"type": "null"}], "description": text}


def _object(description: str, properties: Json, **more: object) -> Json:
    return {
        "description": description,
        "type": "object",
        "properties": {**properties, "$schema": {}, "$comment": {}},
        "additionalProperties": False,
        **more,
    }


def _soft(name: str, form: Json) -> Json:
    """A constraint, and the same as a mere wish."""
    text = form["description"]
    return {
        name: form,
        f"{name}_soft_constraint": {**form, "description": f"{text} Only if nothing else decides."},
    }


_GRID: Json = _object(
    "Shape of chunks.",
    {
        **_soft(
            "shape",
            _nullable(
                {"type": "integer", "minimum": -1},
                "Extent in each dimension; -1: all of it, null or 0: open.",
            ),
        ),
        **_soft(
            "aspect_ratio",
            _nullable({"type": "number", "minimum": 0}, "Extents in proportion; null or 0: open."),
        ),
        **_soft(
            "elements",
            {
                "anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}],
                "description": "Number of elements, about.",
            },
        ),
    },
)

_LAYOUT: Json = _object(
    "How an array is cut into chunks, and how they are ordered.",
    {
        "rank": _RANK,
        **_soft(
            "grid_origin",
            _nullable({"type": "integer"}, "Where the chunk grid begins in each dimension."),
        ),
        **_soft(
            "inner_order",
            {
                "anyOf": [{"type": "array", "items": {"type": "integer", "minimum": 0}}],
                "description": "Dimensions within a chunk, the slowest first.",
            },
        ),
        "chunk": {"x-def": "Grid", "description": "Of read and write chunks."},
        "write_chunk": {"x-def": "Grid", "description": "What is written at least."},
        "read_chunk": {"x-def": "Grid", "description": "What is read at least."},
        "codec_chunk": {"x-def": "Grid", "description": "What the codec works on."},
    },
)

_SCHEMA: Json = _object(
    "Constraints on an array's form.",
    {
        "rank": _RANK,
        "dtype": {"x-def": "dtype"},
        "domain": {"x-def": "IndexDomain"},
        "chunk_layout": {"x-def": "ChunkLayout"},
        "codec": {"x-def": "CodecSpec"},
        "fill_value": {"description": "What is read where nothing is stored."},
        "dimension_units": {
            "type": "array",
            "items": {"anyOf": [{"x-def": "Unit"}, {"type": "null"}]},
            "description": "The unit of each dimension.",
        },
    },
)

_DOMAIN: Json = _object(
    "Bounds and labels of dimensions.",
    {
        "rank": _RANK,
        "inclusive_min": _bounds("Lower bounds"),
        "exclusive_max": _bounds("Upper bounds, not included"),
        "inclusive_max": _bounds("Upper bounds, included"),
        "shape": _bounds("Extents"),
        "labels": _labels("Name of each dimension; empty: none."),
    },
)

_OUTPUT: Json = _object(
    "Where a dimension of the array comes from.",
    {
        "offset": {"type": "integer", "description": "Added; 0 by default."},
        "stride": {"type": "integer", "description": "Multiplied; 1 by default."},
        "input_dimension": {"type": "integer", "description": "Which input dimension."},
        "index_array": {"description": "Indices, as nested lists."},
        "index_array_bounds": {"type": "array", "items": _INDEX, "minItems": 2, "maxItems": 2},
        "index_array_shape": {"type": "array", "items": {"type": "integer", "minimum": 0}},
    },
)

_TRANSFORM: Json = _object(
    "From the positions of a view to those of the array.",
    {
        "input_rank": _RANK,
        "input_inclusive_min": _bounds("Lower bounds"),
        "input_exclusive_max": _bounds("Upper bounds, not included"),
        "input_inclusive_max": _bounds("Upper bounds, included"),
        "input_shape": _bounds("Extents"),
        "input_labels": _labels("Name of each input dimension; empty: none."),
        "output": {
            "type": "array",
            "items": _OUTPUT,
            "description": "One for each dimension of the array; by default the same dimensions.",
        },
    },
)

_NAMES = """
    bool char byte int2 int4 uint2 uint4 int8 uint8 int16 uint16 int32 uint32 int64 uint64
    float8_e3m4 float8_e4m3 float8_e4m3fn float8_e4m3fnuz float8_e4m3b11fnuz float8_e5m2
    float8_e5m2fnuz float8_e8m0fnu float4_e2m1fn float6_e2m3fn float6_e3m2fn float16 bfloat16
    float32 float64 complex64 complex128 string ustring json object
"""
_UNITS = "Y|M|W|D|h|m|s|ms|us|μs|ns|ps|fs|as"

_DTYPE: Json = {
    "description": "Element type.",
    "anyOf": [
        {"enum": _NAMES.split()},
        {
            "type": "string",
            "pattern": rf"^(datetime64|timedelta64)(\[[1-9]?[0-9]*({_UNITS})\])?$",
            "description": "A date or a time difference, such as datetime64[ns].",
        },
        {
            "type": "string",
            "pattern": "^([<>=|]?(b1|[iu][1248]|f[248]|c8|c16)|half|single|double)$",
            "description": "A name in NumPy's spelling, such as <f4; the byte order is dropped.",
        },
        {
            "type": "string",
            "pattern": "^[USV][1-9][0-9]*$",
            "description": "Text or bytes of a fixed length, such as U10.",
        },
        {"type": "string", "pattern": r"^\[\["},
        {
            "type": "array",
            "minItems": 1,
            "description": "A record: its fields, [name, type] or [name, type, shape].",
            "items": {
                "type": "array",
                "minItems": 2,
                "maxItems": 3,
                "prefixItems": [
                    {"type": "string", "minLength": 1},
                    {"x-def": "dtype"},
                    {"type": "array", "items": {"type": "integer", "minimum": 1}},
                ],
            },
        },
    ],
}

_UNIT: Json = {
    "description": 'A physical unit: [4, "nm"], "4nm", "nm" or 4.',
    "anyOf": [
        {"type": "string"},
        {"type": "number"},
        {
            "type": "array",
            "prefixItems": [{"type": "number"}, {"type": "string"}],
            "minItems": 2,
            "maxItems": 2,
        },
    ],
}

_DURATION: Json = {
    "type": "string",
    "description": 'A time, such as "1s", "100ms" or "1h30m".',
    "examples": ["1s", "100ms", "1m"],
}

#: By the name that `{"x-def": NAME}` refers to.
FORMS: Final[dict[str, Json]] = {
    "ChunkLayout": _LAYOUT,
    "Duration": _DURATION,
    "Grid": _GRID,
    "IndexDomain": _DOMAIN,
    "IndexTransform": _TRANSFORM,
    "Schema": _SCHEMA,
    "Unit": _UNIT,
    "dtype": _DTYPE,
}


DIALECT = "https://json-schema.org/draft/2020-12/schema"
_MEMBER = re.compile(r"^ {4}(\w+): (.*)$")


def spec_schema(codec_specs: Registry[object]) -> Json:
    """The whole schema; see `ts.json_schema`. `codec_specs` has drivers with codecs in schemas."""
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
        text = field.description or texts.get(name) or texts.get(json_name)
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
            continue  # a plug-in whose members are unknown
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
