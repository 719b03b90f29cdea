"""`ts.json_schema`: what specs and job files may say, told to editors and validators.

The schema is made of whatever is registered when it is asked for, plug-ins included, and costs some
milliseconds; nothing is remembered. A document that has the member of job files is one of these.
"""

from __future__ import annotations

from typing import Any, Final

from tensorstore_py._jobs.job import ENGINES, JOB
from tensorstore_py._jobs.operations import operations
from tensorstore_py._spec.codec_spec import codec_specs
from tensorstore_py._spec.json_schema import spec_schema

__all__ = ["json_schema"]

Json = dict[str, Any]  # Any: nested JSON

_NOTES: Final[Json] = {"$schema": {}, "$comment": {}}
_PLACE: Final[Json] = {"type": "string"}


def json_schema() -> dict[str, Any]:  # Any: JSON, to be walked through
    """One JSON Schema (draft 2020-12) of every TensorStore spec, and of job files.

    Save it beside your files and name it in them, and an editor completes and checks them:
    `{"$schema": "tensorstore.schema.json", "driver": "zarr3", ...}`.

    Example:
        >>> import tensorstore_py as ts
        >>> schema = ts.json_schema()
        >>> "Driver.zarr3" in schema["$defs"], "Step.copy" in schema["$defs"]
        (True, True)
    """
    schema = spec_schema(codec_specs)
    spec = {"$ref": schema.pop("$ref")}
    definitions = {**schema.pop("$defs"), **_definitions()}
    return {
        **schema,
        "title": "tensorstore_py spec or job file",
        "description": "An array to open or create: a URL, or an object that names a driver. Or a "
        "job file, for tspy run.",
        "properties": {JOB: _version()},
        "if": {"type": "object", "required": [JOB]},
        "then": {"$ref": "#/$defs/Job"},
        "else": spec,
        "$defs": {name: definitions[name] for name in sorted(definitions)},
    }


def _version() -> Json:
    return {"const": 1, "description": "This is a job file, of this version."}


def _definitions() -> Json:
    known = operations()
    steps = {
        f"Step.{name}": _object(
            each.text,
            {
                "operation": {"const": name},
                **{member.name: member.schema() for member in each.members.values()},
            },
            ["operation", *(member.name for member in each.members.values() if member.required)],
        )
        for name, each in known.items()
    }
    engines = {
        f"Engine.{name}": _object(text, {"kind": {"const": name}, **members}, ["kind"])
        for name, (text, members) in ENGINES.items()
    }
    return {
        **steps,
        **engines,
        "Step": _chosen("What is done: one operation.", "operation", "Step", list(known)),
        "Engine": _chosen("Who runs the tasks.", "kind", "Engine", list(ENGINES)),
        "Job": _job(),
    }


def _job() -> Json:
    members: Json = {
        JOB: _version(),
        "description": {"type": "string", "description": "For people."},
        "steps": {
            "type": "array",
            "minItems": 1,
            "items": {"$ref": "#/$defs/Step"},
            "description": "What is done, one after the other.",
        },
        "engine": {"$ref": "#/$defs/Engine"},
        "manifest": {
            **_PLACE,
            "description": "Where to keep what is done, so that a second run goes on from there: "
            "a URL, or a path relative to this file.",
        },
        "report": {
            **_PLACE,
            "description": "Where to write what was done, as JSON: a URL, or a path relative to "
            "this file.",
        },
        "progress": {
            "type": "boolean",
            "description": "Whether to tell how far it is; by default to a terminal only.",
        },
        "context": {"$ref": "#/$defs/Context"},
    }
    return _object("What tspy run does: steps, and who does them.", members, [JOB, "steps"])


def _object(text: str, members: Json, required: list[str]) -> Json:
    return {
        "description": text,
        "type": "object",
        "properties": {**members, **_NOTES},
        "required": required,
        "additionalProperties": False,
    }


def _chosen(text: str, tag: str, definition: str, names: list[str]) -> Json:
    """One of several objects, that which its tag names: so errors are about that one alone."""
    return {
        "description": text,
        "type": "object",
        "properties": {tag: {"enum": names, "description": "What it is."}},
        "required": [tag],
        "allOf": [
            {
                "if": {"properties": {tag: {"const": name}}, "required": [tag]},
                "then": {"$ref": f"#/$defs/{definition}.{name}"},
            }
            for name in names
        ],
    }
